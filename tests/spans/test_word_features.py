import dataclasses
import math

import numpy as np
import pytest

from syncheck.base.errors import InputError
from syncheck.results import SpanItem
from syncheck.spans import span_feature_names, word_features, words_of

ITEM = SpanItem(
    id="1",
    lang="en",
    question="When did Petra van Staveren win?",
    response="Petra van Stoveren won in 2008. She won gold.",
    passages=("Petra van Staveren won the gold medal in 1984 || Staveren is a town",),
)


def measured(item=ITEM):
    words = words_of(item.response)
    rows = word_features(item, words)
    columns = dict(zip(span_feature_names("spans.v1"), rows.T, strict=True))
    return {name: dict(zip([w.text for w in words], values, strict=True)) for name, values in columns.items()}


def test_support_by_the_retrieved_texts():
    found = measured()
    assert [found["in_context"][w] for w in ("Petra", "Stoveren", "2008", "gold", "She")] == [1, 0, 0, 1, 0]
    assert found["run_context"]["Petra"] == found["run_context"]["van"] == 2
    assert found["run_context"]["Stoveren"] == 0
    # Eight trigrams each of ^stoveren$ and ^staveren$; ^st, ver, ere, ren and en$ are common.
    assert found["near_context"]["Stoveren"] == pytest.approx(2 * 5 / 16)
    assert found["log_count_context"]["van"] == pytest.approx(math.log(2))
    assert found["parts_with"]["van"] == 1
    assert found["in_question"]["Petra"] == 1


def test_shape_and_place_of_a_word():
    found = measured()
    assert found["number"]["2008"] == 1 and found["number_unknown"]["2008"] == 1
    assert found["capital"]["Stoveren"] == 1 and found["capital"]["in"] == 0
    assert found["sentence"]["gold"] == 1 and found["index_sentence"]["She"] == 0
    assert found["words_sentence"]["2008"] == 6
    assert found["repeated"]["won"] == 1  # the second one, which stands last in the dictionary
    assert math.isnan(found["near_context-1"]["Petra"])
    assert found["near_context+1"]["Petra"] == 1


def test_logits_are_compared_within_the_response():
    item = dataclasses.replace(
        ITEM, response="a bb c", tokens=("a", "Ġb", "b", "Ġc", "</s>"), logits=(1.0, 2.0, 6.0, 3.0, 99.0)
    )
    found = measured(item)
    # Mean 3 and standard deviation sqrt(3.5) of the four tokens that are shown.
    assert found["logit"]["bb"] == pytest.approx(-1 / math.sqrt(3.5), abs=1e-5)
    assert found["logit_mean"]["bb"] == pytest.approx(1 / math.sqrt(3.5), abs=1e-5)
    assert found["logit_raw"]["c"] == 3
    assert np.isnan(list(measured()["logit"].values())).all()


def test_digits_of_other_scripts_are_numbers_that_the_context_may_hold():
    item = dataclasses.replace(ITEM, lang="hi", response="१९८४ में", passages=("in 1984",))
    assert measured(item)["in_context"]["१९८४"] == 1


def test_a_response_without_words_has_no_rows():
    assert word_features(ITEM, []).shape == (0, len(span_feature_names("spans.v1")))


def test_without_passages_nothing_is_held_and_nothing_breaks():
    found = measured(dataclasses.replace(ITEM, passages=()))
    assert set(found["in_context"].values()) == {0.0}
    assert set(found["question_in_context"].values()) == {0.0}


def test_an_unknown_schema_is_refused():
    with pytest.raises(InputError, match=r"spans\.v1"):
        span_feature_names("spans.v9")
