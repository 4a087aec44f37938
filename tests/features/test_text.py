from math import isnan

from syncheck.features.groundedness import ContextChunks
from syncheck.features.rarity import packaged_rarity
from syncheck.features.text import TEXT_FEATURES, text_features
from syncheck.lexical import ContextLexicon

PASSAGES = ["The bridge opened in 1967.", "It has two lanes."]


def of(sentence, logit=1.5):
    return text_features(
        sentence,
        logit=logit,
        chunks=ContextChunks.from_texts(PASSAGES),
        best=[0, 1],
        lexicon=ContextLexicon.from_passages(PASSAGES),
        rarity=packaged_rarity(),
    )


def test_columns_are_in_order_and_named_once():
    names = [feature.name for feature in TEXT_FEATURES]
    assert list(of("The bridge opened in 1976.").values) == names
    assert len(set(names)) == len(names)
    assert {feature.direction for feature in TEXT_FEATURES} == {1, -1}


def test_a_contradiction_moves_each_column_in_its_direction_or_not_at_all():
    right, wrong = of("The bridge opened in 1967.").values, of("The bridge opened in 1976.").values
    moved = [f.direction * (right[f.name] - wrong[f.name]) for f in TEXT_FEATURES if not isnan(right[f.name])]
    assert min(moved) >= 0
    assert wrong["contrast_number"] == 1


def test_a_logit_that_was_not_asked_for_is_not_measured():
    assert isnan(of("It has two lanes.", logit=None).values["align_logit"])


def test_what_names_the_source_changes_nothing():
    plain, named = of("The bridge opened in 1967."), of("According to passage 1, The bridge opened in 1967.")
    assert plain == named
