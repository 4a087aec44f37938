import pytest

from syncheck.errors import InputError
from syncheck.spans import MarkAll, MarkNone, SoftSpan, SpanDetector, SpanItem, SpanLabels, score_spans


def item(name, lang, hard):
    labels = SpanLabels(tuple(SoftSpan(a, b, 1.0) for a, b in hard), hard)
    return SpanItem(id=name, lang=lang, question="?", response="0123456789", labels=labels)


ITEMS = [item("a", "EN", ((0, 5),)), item("b", "en", ()), item("c", "FI", ((0, 10),)), item("d", "FI", ((8, 10),))]


def scored(detector: SpanDetector, **options):
    return score_spans(ITEMS, {i.id: detector.detect(i) for i in ITEMS}, **options)


def test_mark_all_by_language_and_their_unweighted_mean():
    table = scored(MarkAll())
    assert [(row.lang, row.items, row.iou) for row in table.languages] == [("EN", 2, 0.25), ("FI", 2, 0.6)]
    assert table.mean.iou == pytest.approx(0.425)
    assert [row.correlation for row in table.languages] == [0.5, 0.5]  # constant against constant counts as agreement


def test_mark_none_is_right_where_nothing_is_wrong():
    assert [row.iou for row in scored(MarkNone()).languages] == [0.5, 0.0]


def test_only_the_languages_asked_for_count():
    table = scored(MarkAll(), languages=["fi"])
    assert (table.mean.items, table.mean.iou) == (2, 0.6)


def test_languages_count_alike_however_many_items_they_have():
    items = [ITEMS[0], *(item(name, "FI", ((0, 10),)) for name in "xyz")]
    table = score_spans(items, {i.id: MarkAll().detect(i) for i in items})
    assert [(row.items, row.iou) for row in (*table.languages, table.mean)] == [(1, 0.5), (3, 1.0), (4, 0.75)]
    assert table.mean.iou_interval == (0.75, 0.75)  # no language varies


def test_intervals_hold_the_mean_and_follow_the_seed():
    table = scored(MarkAll(), draws=500, seed=3)
    english = table.languages[0]
    assert english.iou_interval == (0.0, 0.5)  # either item twice
    assert table == scored(MarkAll(), draws=500, seed=3)
    assert table.mean.iou_interval[0] < table.mean.iou < table.mean.iou_interval[1]


def test_the_table_as_text_and_as_json():
    table = scored(MarkNone())
    assert table.to_text().splitlines()[0].split() == ["language", "items", "IoU", "correlation"]
    assert table.to_dict()["FI"]["iou"] == 0.0
    assert list(table.to_dict()) == ["EN", "FI", "mean"]


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputError, match="'a' has no prediction"):
        score_spans(ITEMS, {})
    with pytest.raises(InputError, match="has no labels"):
        score_spans([SpanItem(id="u", lang="en", question="", response="")], {})
    with pytest.raises(InputError, match=r"\['SV'\]"):
        scored(MarkAll(), languages=["sv", "en"])
