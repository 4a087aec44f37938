"""The regression of word risks: fitted, saved, loaded, and its gaps between words."""

import json
import sys

import pytest
from span_doubles import ITEMS, item, one
from span_folds import support_vectors

from syncheck.base.errors import (
    CheckpointError,
    InputError,
    MissingExtraError,
)
from syncheck.results import SpanItem, SpanLabels
from syncheck.spans import SpanRegressor, load_span_regressor, merged_risk, word_features, words_of


@pytest.fixture(scope="module")
def fitted():
    return SpanRegressor.fit(ITEMS)


def test_the_name_that_the_passages_lack_is_marked(fitted):
    wrong = item(101, right=False)
    assert fitted.detect(wrong).hard == wrong.labels.hard


def test_saved_is_loaded(fitted, tmp_path):
    fitted.save(tmp_path)
    loaded = load_span_regressor(tmp_path)
    assert (loaded.schema, loaded.name) == (fitted.schema, "mikani-xgb")
    for given in (item(7, right=False), item(55)):
        assert loaded.detect(given) == fitted.detect(given)


def test_a_swapped_weight_file_is_noticed(fitted, tmp_path):
    fitted.save(tmp_path)
    (weights,) = (p for p in tmp_path.iterdir() if p.suffix != ".json")
    weights.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(CheckpointError, match="weights"):
        load_span_regressor(tmp_path)


@pytest.mark.parametrize("change", [{"format": "other"}, {"schema": "spans.v9"}, {"kind": "lr"}, {"features": ["a"]}])
def test_a_folder_of_another_kind_is_refused(fitted, tmp_path, change):
    fitted.save(tmp_path)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError):
        load_span_regressor(tmp_path)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="exist"):
        load_span_regressor(tmp_path / "none")


def test_the_bundled_model_marks_a_wrong_year_in_a_language_it_never_saw():
    response = "El castell va ser construït l'any 1950."
    found = load_span_regressor().detect(
        SpanItem(
            id="ca",
            lang="ca",
            question="Quan va ser construït el castell?",
            response=response,
            passages=("El castell va ser construït l'any 1342 pel rei.",),
        )
    )
    assert found.hard == ((response.index("1950"), response.index("1950") + 4),)


def test_a_response_without_words_has_no_labels():
    empty = SpanItem(id="e", lang="en", question="?", response=" ... ")
    assert load_span_regressor().detect(empty) == SpanLabels((), ())


def test_every_character_has_its_risk_within_bounds():
    given = SpanItem(id="e", lang="hi", question="कब?", response="कैदियों 😀 1991 में", passages=())
    for span in load_span_regressor().detect(given).soft:
        assert 0 < span.prob <= 1
        assert 0 <= span.start < span.end <= len(given.response)


def test_training_needs_labels_and_words():
    with pytest.raises(InputError, match="labels"):
        SpanRegressor.fit([SpanItem(id="1", lang="en", question="?", response="word")])
    with pytest.raises(InputError, match="labelled"):
        SpanRegressor.fit([SpanItem(id="1", lang="en", question="?", response="", labels=SpanLabels((), ()))])


def test_support_vectors_are_fitted_on_a_seeded_sample_of_words_and_mark_the_wrong_name():
    values = [word_features(known, words_of(known.response), "spans.v1") for known in ITEMS]
    fitted = [support_vectors(ITEMS, values, schema="spans.v1", seed=s, max_words=300) for s in (0, 0, 1)]
    wrong, found = item(101, right=False), [one.model.probability(values[0]).tolist() for one in fitted]
    assert fitted[0].detect(wrong).hard == wrong.labels.hard
    assert found[0] == found[1] != found[2]


def test_the_model_with_rarity_marks_a_wrong_year():
    pytest.importorskip("wordfreq")
    response = "The castle was built in 1950."
    given = SpanItem(
        id="1", lang="en", question="When was the castle built?", response=response, passages=("In 1342.",)
    )
    assert load_span_regressor("bundled-rarity").detect(given).hard == ((24, 28),)


def test_without_wordfreq_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(MissingExtraError, match=r"syncheck\[rarity\]"):
        load_span_regressor("bundled-rarity").detect(one("a fox"))


def test_gaps_get_the_lower_risk():
    risk = merged_risk([1, 5, 9], [4, 6, 10], [0.8, 0.2, 0.5], 12)
    assert risk.tolist() == [0, 0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5, 0, 0]


def test_no_word_no_risk():
    assert merged_risk([], [], [], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("features", [[{"name": "a"}], "a", 3, [3]])
def test_a_damaged_list_of_features_is_no_regressor(features, tmp_path):
    SpanRegressor.fit(ITEMS).save(tmp_path)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"features": features}))
    with pytest.raises(CheckpointError, match="spans.json"):
        load_span_regressor(tmp_path)
