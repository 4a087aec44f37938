import pytest

from syncheck import feature_schema
from syncheck.base.errors import InputError
from syncheck.features.schemas import FEATURES, SCHEMAS, beyond_endpoints, feature_groups, needs_lid, needs_signals

EARLIER = ("support", "pair_overlap", "copied_run")


def test_released_versions_stay_as_they_are():
    paper = ("min_prob", "mean_prob", "max_entropy", "mean_entropy")
    contrast = ("mean_contrastive_kl", "large_kl_pos", "align_score")
    ours = (
        *("content_overlap", "bigram_overlap", "number_overlap", "name_overlap", "log_tokens", "mean_log_prob"),
        *("min_log_prob", "mean_log_prob_gain", "min_log_prob_gain", "max_contrastive_kl", "question_overlap"),
    )
    lid = ("lid_layer_15", "lid_layer_16", "lid_layer_17")
    layers = (15, 16, 17)
    assert feature_schema("paper.v1", layers).names == paper + lid + contrast
    assert feature_schema("paper-no-lid.v1", layers).names == paper + contrast
    assert feature_schema("syncheck.v1", layers).names == paper + lid + contrast + ours
    second = (
        *("stem_overlap", "pair_overlap", "copied_run", "novel_words", "sentence_index", "earlier_support_mean"),
        *("earlier_support_min", "source_mention", "negation", "list_item"),
    )
    assert feature_schema("syncheck.v2", layers).names == paper + lid + contrast + ours + second
    third = tuple(f"{which}_{name}" for which in ("previous", "inherited") for name in EARLIER)
    assert feature_schema("syncheck.v3", layers).names == paper + lid + contrast + ours + second + third
    assert feature_schema("paper.v1", layers).directions == (1, 1, -1, -1, -1, -1, -1, 0, 0, 1)
    assert feature_schema("syncheck.v1", ()).units[-1] == "share, [0, 1]"
    assert feature_schema("syncheck.v5", layers).names == (
        *("align_logit", "pair_overlap", "bigram_overlap", "content_overlap", "number_overlap", "name_overlap"),
        *("copied_run", "rarity_nearby", "rarity_best", "pieces_1", "pieces_2", "pieces_4", "stems_2", "stems_1"),
        *("bigrams_2", "absence", "closeness", "novel_pairs", "missing_rarity", "missing_numbers", "missing_names"),
        "contrasts",
    )
    v3, v5, v6 = (feature_schema(f"syncheck.v{number}", layers).names for number in (3, 5, 6))
    assert v6 == (*v3, *(name for name in v5 if name not in v3))
    assert [needs_lid(version) for version in SCHEMAS] == [True, False, True, True, True, False, True, False, False]
    assert feature_schema("aligner.v1", layers).names == ("align_score",)


def test_what_an_endpoint_measures_is_all_but_entropy_kl_and_lid():
    beyond = ("max_entropy", "mean_entropy", "lid_layer_2", "mean_contrastive_kl", "large_kl_pos", "max_contrastive_kl")
    full, measured = (feature_schema(version, (2,)).names for version in ("syncheck.v3", "endpoint.v1"))
    assert measured == tuple(name for name in full if name not in beyond)
    assert beyond_endpoints(full) == beyond
    assert beyond_endpoints(measured) == beyond_endpoints(feature_schema("syncheck.v5", ()).names) == ()


def test_which_schemas_need_the_model():
    assert {version for version in SCHEMAS if not needs_signals(version)} == {"syncheck.v5", "aligner.v1"}


def test_a_feature_of_a_new_group_needs_the_model(monkeypatch):
    monkeypatch.setattr("syncheck.features.schemas.SCHEMAS", {"new": (*SCHEMAS["syncheck.v5"], "new_signal")})
    assert needs_signals("new")


def test_features_are_tried_after_a_released_version():
    tried = feature_schema("paper.v1+novel_pairs+log_tokens", (15,))
    released = feature_schema("paper.v1", (15,))
    assert tried.version == "paper.v1+novel_pairs+log_tokens"
    assert tried.names == (*released.names, "novel_pairs", "log_tokens")
    assert tried.units == (*released.units, "ln pairs, >= 0", "ln tokens, >= 0")
    assert tried.directions == (*released.directions, -1, 0)
    assert needs_lid("paper-no-lid.v1+lid_layer_{k}")
    assert needs_signals("syncheck.v5+mean_prob")
    assert not needs_signals("syncheck.v5+stem_overlap")


def test_every_feature_is_described_and_released_ones_are_features():
    names = [feature.name for feature in FEATURES]
    assert len(set(names)) == len(names)
    assert set(names) >= {name for version in SCHEMAS.values() for name in version}
    assert all(feature.meaning and feature.unit and feature.cost for feature in FEATURES)


@pytest.mark.parametrize("call", [needs_lid, needs_signals, lambda version: feature_schema(version, ())])
@pytest.mark.parametrize(
    "version", ["paper.v2", "paper.v1+", "paper.v1+made_up", "paper.v1+min_prob", "paper.v1+negation+negation"]
)
def test_an_unknown_version_names_the_known_ones(call, version):
    with pytest.raises(InputError, match="syncheck.v5"):
        call(version)


@pytest.mark.parametrize("version", SCHEMAS)
def test_groups_divide_the_columns_of_a_schema(version):
    names = feature_schema(version, (2, 3)).names
    found = feature_groups(names)
    assert sorted(name for columns in found.values() for name in columns) == sorted(names)
    assert all(found.values())


def test_columns_keep_their_order_and_empty_groups_are_left_out():
    found = feature_groups(("lid_layer_9", "align_score", "lid_layer_10", "mean_prob", "min_prob"))
    assert list(found.items()) == [
        ("likelihood", ("mean_prob", "min_prob")),
        ("LID", ("lid_layer_9", "lid_layer_10")),
        ("aligner", ("align_score",)),
    ]


def test_an_unknown_column_is_refused():
    with pytest.raises(InputError, match="new_one"):
        feature_groups(("min_prob", "new_one"))
