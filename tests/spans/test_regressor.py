import json

import numpy as np
import pytest

from syncheck.errors import CheckpointError, InputError
from syncheck.spans import (
    SoftSpan,
    SpanItem,
    SpanLabels,
    SpanRegressor,
    hard_spans,
    held_out_folds,
    held_out_labels,
    load_span_regressor,
    question_of,
)

NAMES = ("Anna", "Bert", "Carl", "Dora", "Emil", "Frida", "Gustav", "Hilda")


def item(index, lang="en", right=True):
    """The passages name who won; an answer that names someone else is wrong there and nowhere else."""
    name, other = NAMES[index % 8], NAMES[(index + 3) % 8]
    response = f"The race was won by {name if right else other} in the end."
    start = response.index(" by ") + 4
    soft = () if right else (SoftSpan(start, start + len(other), 0.875),)
    return SpanItem(
        id=f"{lang}-{index}-{right}",
        lang=lang,
        question=f"Who won race {index}?",
        response=response,
        passages=(f"{name} won the race in the end, by a second.",),
        labels=SpanLabels(soft, hard_spans(soft)),
    )


ITEMS = [item(i, lang, right) for i in range(24) for lang, right in (("en", True), ("fi", False), ("sv", False))]


@pytest.fixture(scope="module", params=["xgb", "svr"])
def fitted(request):
    return SpanRegressor.fit(ITEMS, kind=request.param)


def test_the_name_that_the_passages_lack_is_marked(fitted):
    wrong = item(101, right=False)
    assert fitted.detect(wrong).hard == wrong.labels.hard


def test_saved_is_loaded(fitted, tmp_path):
    fitted.save(tmp_path)
    loaded = load_span_regressor(tmp_path)
    assert (loaded.kind, loaded.schema, loaded.name) == (fitted.kind, fitted.schema, f"mikani-{fitted.kind}")
    for one in (item(7, right=False), item(55)):
        assert loaded.detect(one) == fitted.detect(one)


def test_a_swapped_weight_file_is_noticed(fitted, tmp_path):
    fitted.save(tmp_path)
    (weights,) = (p for p in tmp_path.iterdir() if p.suffix != ".json")
    weights.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(CheckpointError, match="the weights are not those"):
        load_span_regressor(tmp_path)


@pytest.mark.parametrize("change", [{"format": "other"}, {"schema": "spans.v9"}, {"kind": "lr"}, {"features": ["a"]}])
def test_a_folder_of_another_kind_is_refused(fitted, tmp_path, change):
    fitted.save(tmp_path)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError):
        load_span_regressor(tmp_path)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
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
    one = SpanItem(id="e", lang="hi", question="कब?", response="कैदियों 😀 1991 में", passages=())
    for span in load_span_regressor().detect(one).soft:
        assert 0 < span.prob <= 1
        assert 0 <= span.start < span.end <= len(one.response)


def test_training_needs_labels_and_words():
    with pytest.raises(InputError, match="has no labels"):
        SpanRegressor.fit([SpanItem(id="1", lang="en", question="?", response="word")])
    with pytest.raises(InputError, match="found none"):
        SpanRegressor.fit([SpanItem(id="1", lang="en", question="?", response="", labels=SpanLabels((), ()))])
    with pytest.raises(InputError, match="kind"):
        SpanRegressor.fit(ITEMS, kind="lr")
    with pytest.raises(InputError, match="max_words"):
        SpanRegressor.fit(ITEMS, kind="svr", max_words=0)


@pytest.mark.slow
def test_support_vectors_are_fitted_on_a_seeded_sample_of_words():
    whole = SpanRegressor.fit(ITEMS, kind="svr").model
    small, again, other = (SpanRegressor.fit(ITEMS, kind="svr", max_words=20, seed=s).model for s in (0, 0, 1))
    assert len(small.vectors) <= 20 < len(whole.vectors)
    assert np.array_equal(small.vectors, again.vectors)
    assert not np.array_equal(small.vectors, other.vectors)
    assert np.array_equal(SpanRegressor.fit(ITEMS, kind="svr", max_words=720).model.weights, whole.weights)


def test_trees_are_fitted_on_all_words():
    one = item(101, right=False)
    few = SpanRegressor.fit(ITEMS, max_words=1)
    assert few.detect(one) == SpanRegressor.fit(ITEMS).detect(one)


@pytest.mark.parametrize("by", ["question", "language"])
def test_no_question_is_on_both_sides_of_a_fold(by):
    folds = held_out_folds(ITEMS, by=by)
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(len(ITEMS)))
    for train, held in folds:
        assert not {question_of(ITEMS[i]) for i in train} & {question_of(ITEMS[i]) for i in held}


def test_a_language_held_out_is_not_trained_on():
    items = [item(i, lang) for i, lang in enumerate(["en", "EN", "fi", "sv"])]
    for train, held in held_out_folds(items, by="language"):
        assert not {items[i].lang.upper() for i in train} & {items[i].lang.upper() for i in held}


def test_one_language_cannot_be_held_out():
    with pytest.raises(InputError, match="two or more parts by language"):
        held_out_folds([item(0), item(1)], by="language")


def test_every_item_gets_labels_from_a_model_that_did_not_see_it():
    found = held_out_labels(ITEMS, by="question", folds=2)
    assert set(found) == {i.id for i in ITEMS}
    assert all(found[i.id].hard == i.labels.hard for i in ITEMS if i.labels.hard)


def test_a_question_goes_by_the_title_of_its_page():
    one = SpanItem(id="1", lang="en", question="Q", response="", source="https://en.example.org/wiki/Tosquilles%C3%A9")
    assert question_of(one) == "Tosquillesé"
    assert question_of(item(3)) == "Who won race 3?"
