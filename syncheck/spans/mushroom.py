"""JSON Lines of Mu-SHROOM: questions with responses, labels if any, and predictions."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from syncheck.base.checks import check_texts
from syncheck.base.errors import InputError
from syncheck.base.records import Record, read_records
from syncheck.results.spans import SoftSpan, SpanItem, SpanLabels, hard_spans, label_dict


def load_span_items(path: str | Path) -> list[SpanItem]:
    """Read the items of a file, or of all ``*.jsonl`` files of a folder in the order of their names.

    Fields are ``id``, ``lang``, ``model_input``, ``model_output_text`` and optionally ``model_id``, ``wikipedia_url``,
    ``retrieved_context`` (a string or a list), ``model_output_tokens`` with ``model_output_logits``, ``soft_labels``
    and ``hard_labels``. If there is only one kind of labels, the other is derived from it, as in the organisers'
    scorer. A list may be written as a Python literal in a string, as in the Catalan part of the task.

    No item, and an id that occurs twice, raise InputError; the first record that cannot be used raises RecordError.
    """
    place = Path(path)
    items = [span_item(record) for record in _records(place)]
    if not items:
        raise InputError(f"{path} holds no item; pass a Mu-SHROOM file, or a folder of *.jsonl files")
    _check_ids((item.id for item in items), place)
    return items


def load_predictions(
    path: str | Path, items: Iterable[SpanItem], *, refused: Literal["error", "nothing"] = "error"
) -> dict[str, SpanLabels]:
    """Read predicted labels, by id, from a file or the ``*.jsonl`` files of a folder, and check them against the items.

    Records with ``error`` in place of labels are of items that ``syncheck spans`` refused: with ``refused="error"``
    they raise RecordError, with ``"nothing"`` they count as items in which nothing was found. An item without a
    prediction, and an id that occurs twice, raise InputError; the first record that cannot be used or belongs to no
    item raises RecordError.
    """
    place = Path(path)
    lengths = {item.id: len(item.response) for item in items}
    found: list[tuple[str, SpanLabels]] = []
    for record in _records(place):
        name = record.get("id", str)
        if name not in lengths:
            raise record.error(f"expected the id of an item of the reference, found {name!r}", "id")
        found.append((name, _predicted(record, lengths[name], refused)))
    _check_ids((name for name, _ in found), place)
    if missing := [name for name in lengths if name not in dict(found)]:
        raise InputError(f"{path} has no prediction for {len(missing)} items of the reference, {missing[0]!r} first")
    return dict(found)


def refused_predictions(path: str | Path) -> tuple[str, ...]:
    """List the ids of the predictions that have an error in place of labels, in order."""
    return tuple(record.get("id", str) for record in _records(Path(path)) if record.optional("error", str) is not None)


def prediction_record(item: SpanItem, labels: SpanLabels) -> dict[str, Any]:
    """Write a record in the format of the task: ``id``, ``lang``, ``soft_labels``, ``hard_labels``."""
    return {"id": item.id, "lang": item.lang, **label_dict(labels)}


def write_predictions(path: str | Path, items: Iterable[SpanItem], labels: Mapping[str, SpanLabels]) -> None:
    """Write the labels of these items, in their order, as JSON Lines."""
    lines = (json.dumps(prediction_record(item, labels[item.id]), ensure_ascii=False) for item in items)
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def span_item(record: Record) -> SpanItem:
    """Read one item; see :func:`load_span_items`."""
    response = record.get("model_output_text", str)
    passages = () if record.values.get("retrieved_context") is None else record.texts("retrieved_context")
    labelled = any(record.values.get(name) is not None for name in ("soft_labels", "hard_labels"))
    logits = _listed(record, "model_output_logits", (int, float))
    return SpanItem(
        id=record.get("id", str),
        lang=record.get("lang", str),
        question=record.get("model_input", str),
        response=response,
        passages=tuple(passage for passage in passages if passage.strip()),
        tokens=_listed(record, "model_output_tokens", str),
        logits=None if logits is None else tuple(float(value) for value in logits),
        generator=record.optional("model_id", str) or "",
        source=record.optional("wikipedia_url", str) or "",
        labels=_labels(record, len(response)) if labelled else None,
    )


def _records(place: Path) -> Iterator[Record]:
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    return (record for file in files for record in read_records(file))


def _listed(record: Record, name: str, kind: type | tuple[type, ...]) -> tuple[Any, ...] | None:
    values = record.values.get(name)
    if isinstance(values, str):
        try:
            values = ast.literal_eval(values)
        except (ValueError, SyntaxError, RecursionError) as error:
            raise record.error(f"expected a list, found a string that is not one ({error})", name) from error
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(v, kind) and not isinstance(v, bool) for v in values):
        raise record.error(f"expected a list of {'strings' if kind is str else 'numbers'}", name)
    try:
        check_texts(values if kind is str else (), name)
    except InputError as error:  # a list within a string has its own escapes
        raise record.error(str(error), name) from error
    return tuple(values)


def _predicted(record: Record, characters: int, refused: Literal["error", "nothing"]) -> SpanLabels:
    if (reason := record.optional("error", str)) is None:
        return _labels(record, characters)
    if refused == "error":
        raise record.error(
            f"item {record.values['id']!r} was refused ({reason}) and has no labels; find its spans again, or count it "
            "as an item in which nothing was found (refused='nothing'; syncheck spans-score --refused nothing)",
            "error",
        )
    return SpanLabels((), ())


def _labels(record: Record, characters: int) -> SpanLabels:
    soft, hard = record.values.get("soft_labels"), record.values.get("hard_labels")
    if soft is None and hard is None:
        raise record.error("missing; expected a list of objects (or hard_labels)", "soft_labels")
    spans = None if soft is None else tuple(_soft_span(entry, characters) for entry in record.objects("soft_labels"))
    marks = hard_spans(spans or ()) if hard is None else _hard_labels(record, characters)
    return SpanLabels(tuple(SoftSpan(*mark, 1.0) for mark in marks) if spans is None else spans, marks)


def _soft_span(entry: Record, characters: int) -> SoftSpan:
    start, end = entry.get("start", int), entry.get("end", int)
    prob = entry.values.get("prob")
    if not isinstance(prob, (int, float)) or isinstance(prob, bool) or not (math.isfinite(prob) and 0 <= prob <= 1):
        raise entry.error(f"expected a number in [0, 1], found {prob!r}", "prob")
    if not 0 <= start <= end <= characters:
        raise entry.error(f"expected a span within the {characters} characters of the response; found {start} to {end}")
    return SoftSpan(start, end, float(prob))


def _hard_labels(record: Record, characters: int) -> tuple[tuple[int, int], ...]:
    spans = []
    for index, span in enumerate(record.get("hard_labels", list)):
        pair = isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
        if not pair or not 0 <= span[0] <= span[1] <= characters:
            raise record.error(
                f"expected [start, end] within the {characters} characters of the response, found {span!r}",
                f"hard_labels[{index}]",
            )
        spans.append((span[0], span[1]))
    return tuple(spans)


def _check_ids(ids: Iterable[str], place: Path) -> None:
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        raise InputError(f"{place} has two records with id {twice[0]!r}; every id must be unique")
