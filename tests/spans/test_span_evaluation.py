"""Expected values by hand, or from the formula of the organisers' scorer written out once more with other tools."""

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata
from span_doubles import ITEMS, item
from span_folds import held_out_folds, held_out_labels, question_of
from span_methods import NOTHING, marked_whole

from syncheck.base.errors import InputError
from syncheck.results import SoftSpan, SpanItem, SpanLabels
from syncheck.spans import (
    score_spans,
    span_correlation,
    span_iou,
)


@pytest.mark.parametrize(
    ("reference", "predicted", "expected"),
    [
        ([(0, 4)], [(2, 8)], 2 / 8),
        ([(0, 2), (4, 6)], [(0, 6)], 4 / 6),
        ([(0, 3), (2, 5)], [(0, 5)], 1.0),  # characters are a set: marked twice is marked once
        ([], [], 1.0),
        ([(3, 3)], [], 1.0),
        ([], [(0, 1)], 0.0),
        ([(0, 1)], [], 0.0),
    ],
)
def test_iou_is_over_characters(reference, predicted, expected):
    assert span_iou(reference, predicted) == expected


def test_correlation_is_that_of_ranks_over_all_characters():
    reference, predicted = [SoftSpan(1, 3, 0.4), SoftSpan(5, 6, 0.9)], [SoftSpan(1, 2, 0.2), SoftSpan(4, 6, 0.3)]
    wanted, found = [0, 0.4, 0.4, 0, 0, 0.9, 0], [0, 0.2, 0, 0, 0.3, 0.3, 0]
    expected = pearsonr(rankdata(wanted), rankdata(found)).statistic
    assert span_correlation(reference, predicted, characters=7) == pytest.approx(expected, abs=1e-12)


def test_opposite_rankings_correlate_with_minus_one():
    assert span_correlation([SoftSpan(0, 1, 1.0)], [SoftSpan(1, 2, 0.1)], characters=2) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("reference", "predicted", "expected"),
    [
        ([], [], 1.0),
        ([SoftSpan(0, 4, 1.0)], [], 1.0),  # both constant: the organisers count it as agreement
        ([], [SoftSpan(0, 1, 0.5)], 0.0),
        ([SoftSpan(0, 1, 0.5)], [SoftSpan(0, 4, 1.0)], 0.0),
        ([], [SoftSpan(0, 1, 1e-9)], 1.0),  # constant to eight decimals
    ],
)
def test_constant_risks_agree_only_with_constant_risks(reference, predicted, expected):
    assert span_correlation(reference, predicted, characters=4) == expected


def test_an_empty_response_is_refused_only_if_a_span_lies_in_it():
    with pytest.raises(InputError):
        span_correlation([], [SoftSpan(0, 1, 0.5)], characters=0)


def test_metrics_equal_the_organisers_formula_on_random_labels():
    rng = np.random.default_rng(1)
    for _ in range(50):
        size = int(rng.integers(2, 30))
        spans = [
            [SoftSpan(a, a + 1, float(rng.integers(1, 5)) / 5) for a in range(size) if rng.random() < 0.4]
            for _ in range(2)
        ]
        vectors = [[next((s.prob for s in labels if s.start == i), 0.0) for i in range(size)] for labels in spans]
        if all(len(set(vector)) > 1 for vector in vectors):
            expected = pearsonr(rankdata(vectors[0]), rankdata(vectors[1])).statistic
            assert span_correlation(*spans, characters=size) == pytest.approx(expected, abs=1e-9)
        hard = [np.array(vector) > 0.5 for vector in vectors]
        union = (hard[0] | hard[1]).sum()
        expected = (hard[0] & hard[1]).sum() / union if union else 1.0
        assert span_iou(*[[(s.start, s.end) for s in labels if s.prob > 0.5] for labels in spans]) == expected


def labelled(name, lang, hard):
    labels = SpanLabels(tuple(SoftSpan(a, b, 1.0) for a, b in hard), hard)
    return SpanItem(id=name, lang=lang, question="?", response="0123456789", labels=labels)


FOUR = [
    labelled("a", "EN", ((0, 5),)),
    labelled("b", "en", ()),
    labelled("c", "FI", ((0, 10),)),
    labelled("d", "FI", ((8, 10),)),
]


def scored(mark, **options):
    return score_spans(FOUR, {i.id: mark(i) for i in FOUR}, **options)


def marked_nowhere(item):
    return NOTHING


def test_mark_all_by_language_and_their_unweighted_mean():
    table = scored(marked_whole)
    assert [(row.lang, row.items, row.iou) for row in table.languages] == [("EN", 2, 0.25), ("FI", 2, 0.6)]
    assert table.mean.iou == pytest.approx(0.425)
    assert [row.correlation for row in table.languages] == [0.5, 0.5]  # constant against constant counts as agreement


def test_mark_none_is_right_where_nothing_is_wrong():
    assert [row.iou for row in scored(marked_nowhere).languages] == [0.5, 0.0]


def test_only_the_languages_asked_for_count():
    table = scored(marked_whole, languages=["fi"])
    assert (table.mean.items, table.mean.iou) == (2, 0.6)


def test_languages_count_alike_however_many_items_they_have():
    items = [FOUR[0], *(labelled(name, "FI", ((0, 10),)) for name in "xyz")]
    table = score_spans(items, {i.id: marked_whole(i) for i in items})
    assert [(row.items, row.iou) for row in (*table.languages, table.mean)] == [(1, 0.5), (3, 1.0), (4, 0.75)]
    assert table.mean.iou_interval == (0.75, 0.75)  # no language varies


def test_intervals_hold_the_mean_and_follow_the_seed():
    table = scored(marked_whole, draws=500, seed=3)
    english = table.languages[0]
    assert english.iou_interval == (0.0, 0.5)  # either item twice
    assert table == scored(marked_whole, draws=500, seed=3)
    assert table.mean.iou_interval[0] < table.mean.iou < table.mean.iou_interval[1]


def test_the_table_as_text_and_as_json():
    table = scored(marked_nowhere)
    assert table.to_text().splitlines()[0].split() == ["language", "items", "IoU", "correlation"]
    assert table.to_dict()["FI"]["iou"] == 0.0
    assert list(table.to_dict()) == ["EN", "FI", "mean"]


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputError, match="prediction"):
        score_spans(FOUR, {})
    with pytest.raises(InputError, match="labels"):
        score_spans([SpanItem(id="u", lang="en", question="", response="")], {})
    with pytest.raises(InputError, match=r"\['SV'\]"):
        scored(marked_whole, languages=["sv", "en"])


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
    with pytest.raises(InputError, match="language"):
        held_out_folds([item(0), item(1)], by="language")


def test_every_item_gets_labels_from_a_model_that_did_not_see_it():
    found = held_out_labels(ITEMS, by="question", folds=2)
    assert set(found) == {i.id for i in ITEMS}
    assert all(found[i.id].hard == i.labels.hard for i in ITEMS if i.labels.hard)


def test_a_question_goes_by_the_title_of_its_page():
    one = SpanItem(id="1", lang="en", question="Q", response="", source="https://en.example.org/wiki/Tosquilles%C3%A9")
    assert question_of(one) == "Tosquillesé"
    assert question_of(item(3)) == "Who won race 3?"
