"""Mu-SHROOM: its JSON Lines, scores by language, and labels from regressions trained on other responses."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from syncheck.base.checks import check_texts
from syncheck.base.errors import InputError
from syncheck.base.printable import aligned
from syncheck.base.records import Record, read_records
from syncheck.evaluation.metrics import bootstrap_interval, with_interval
from syncheck.labelling.datasets import response_of
from syncheck.labelling.responses import LabelledResponse
from syncheck.results.spans import SoftSpan, SpanItem, SpanLabels, hard_spans, label_dict, labels_of, risk_of
from syncheck.text.sentences import is_checkable


def load_span_items(path: str | Path) -> list[SpanItem]:
    """Read the items of a file, or of all ``*.jsonl`` files of a folder in the order of their names.

    Fields are ``id``, ``lang``, ``model_input``, ``model_output_text`` and optionally ``model_id``, ``wikipedia_url``,
    ``retrieved_context`` (a string or a list), ``model_output_tokens`` with ``model_output_logits``, ``soft_labels``
    and ``hard_labels``. If there is only one kind of labels, the other is derived from it, as in the organisers'
    scorer. A list may be written as a Python literal in a string, as in the Catalan part of the task.

    Labelled responses, as :func:`syncheck.labelling.load_jsonl` reads them, are items too if they have an ``id``, and
    ``lang``, which is ``und`` if missing. They are labelled if they have spans and, with labels of sentences, if every
    sentence has one and every unfaithful one has marked words.

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
    prediction, and an id that occurs twice, raise InputError; a record that cannot be used, or of no item, RecordError.
    """
    place = Path(path)
    lengths = {item.id: len(item.response) for item in items}
    predictions: list[tuple[str, SpanLabels]] = []
    for record in _records(place):
        name = record.get("id", str)
        if name not in lengths:
            raise record.error(f"expected the id of an item of the reference, found {name!r}", "id")
        reason = record.optional("error", str)
        if reason is not None and refused == "error":
            raise record.error(
                f"item {name!r} was refused ({reason}) and has no labels; find its spans again, or count it as an item "
                "in which nothing was found (refused='nothing'; syncheck spans-score --refused nothing)",
                "error",
            )
        labels = _labels(record, lengths[name]) if reason is None else SpanLabels((), ())
        predictions.append((name, labels))
    _check_ids((name for name, _ in predictions), place)
    if missing := [name for name in lengths if name not in dict(predictions)]:
        raise InputError(f"{path} has no prediction for {len(missing)} items of the reference, {missing[0]!r} first")
    return dict(predictions)


def refused_predictions(path: str | Path) -> tuple[str, ...]:
    """List the ids of the predictions that have an error in place of labels, in order."""
    return tuple(record.get("id", str) for record in _records(Path(path)) if record.optional("error", str) is not None)


def prediction_record(item: SpanItem, labels: SpanLabels) -> dict[str, Any]:
    """Write a record in the format of the task: ``id``, ``lang``, ``soft_labels``, ``hard_labels``."""
    return {"id": item.id, "lang": item.lang, **label_dict(labels)}


def span_item(record: Record) -> SpanItem:
    """Read one item; see :func:`load_span_items`."""
    if "model_output_text" not in record.values and "context" in record.values:
        return _labelled_item(record)
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


def _labelled_item(record: Record) -> SpanItem:
    found = response_of(record)
    return SpanItem(
        id=record.get("id", str),
        lang=record.optional("lang", str) or "und",
        question=found.question,
        response=found.response,
        passages=tuple(passage for passage in found.passages if passage.strip()),
        generator=found.generator,
        labels=_marked_words(found),
    )


def _marked_words(response: LabelledResponse) -> SpanLabels | None:
    """Collect the unfaithful characters of a response; None if its labels do not say of each whether it is."""
    spans = response.spans
    if response.sentences is not None:
        asked = [s for s in response.sentences if is_checkable(response.response[s.start : s.end])]
        if any(s.label is None or (s.label is False and not s.spans) for s in asked):
            return None
        spans = tuple(span for sentence in asked for span in sentence.spans)
    if spans is None:
        return None
    marked = SpanLabels((), tuple((span.start, span.end) for span in spans)).marked(len(response.response))
    return labels_of(marked.astype(np.float64), marked)


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


def _labels(record: Record, characters: int) -> SpanLabels:
    soft, hard = record.values.get("soft_labels"), record.values.get("hard_labels")
    if soft is None and hard is None:
        raise record.error("missing; expected a list of objects (or hard_labels)", "soft_labels")
    spans = None if soft is None else tuple(_soft_span(entry, characters) for entry in record.objects("soft_labels"))
    marks = hard_spans(spans or ()) if hard is None else _hard_labels(record, characters)
    return SpanLabels(tuple(SoftSpan(*mark, 1.0) for mark in marks) if spans is None else spans, marks)


def _soft_span(entry: Record, characters: int) -> SoftSpan:
    span = entry.of(SoftSpan)
    if not 0 <= span.prob <= 1:
        raise entry.error(f"expected a number in [0, 1], found {span.prob!r}", "prob")
    if not 0 <= span.start <= span.end <= characters:
        place = f"{span.start} to {span.end}"
        raise entry.error(f"expected a span within the {characters} characters of the response; found {place}")
    return span


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


def span_iou(reference: Sequence[tuple[int, int]], predicted: Sequence[tuple[int, int]]) -> float:
    """Compute the intersection over union of the characters in two lists of spans, in [0, 1]; 1 if both are empty."""
    wanted, marked = ({place for span in spans for place in range(*span)} for spans in (reference, predicted))
    return len(wanted & marked) / len(wanted | marked) if wanted or marked else 1.0


_DECIMALS = 8  # decimals to which risks must agree to count as equal when a series is tested for being constant


def span_correlation(reference: Sequence[SoftSpan], predicted: Sequence[SoftSpan], *, characters: int) -> float:
    """Compute Spearman's rank correlation of the risks of all characters, in [-1, 1].

    If a series is constant, the correlation is undefined; the result is then 1 if both are constant, whatever their
    values, and 0 otherwise. Characters in no span have risk 0.
    """
    from scipy.stats import spearmanr

    risks = [risk_of(soft, characters) for soft in (reference, predicted)]
    constant = [len(np.unique(risk.round(_DECIMALS))) == 1 for risk in risks]
    return float(all(constant)) if any(constant) else float(spearmanr(*risks).statistic)


@dataclass(frozen=True, slots=True)
class LanguageScore:
    """Mean scores of the items of one language, or their mean over languages, with 95 % intervals.

    ``iou``, in [0, 1], is measured on hard labels, and ``correlation``, in [-1, 1], on soft ones.
    """

    lang: str
    items: int
    iou: float
    iou_interval: tuple[float, float]
    correlation: float
    correlation_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of the languages in alphabetical order, and their unweighted mean."""

    languages: tuple[LanguageScore, ...]
    mean: LanguageScore

    def to_text(self) -> str:
        """Write the table as plain text."""
        rows = [["language", "items", "IoU", "correlation"]]
        for row in (*self.languages, self.mean):
            iou = with_interval(row.iou, *row.iou_interval)
            rows.append([row.lang, str(row.items), iou, with_interval(row.correlation, *row.correlation_interval)])
        return "\n".join(aligned(rows))

    def to_dict(self) -> dict[str, Any]:
        """Convert the table to values that JSON can represent, by language and ``mean``."""
        rows = [asdict(row) for row in (*self.languages, self.mean)]
        return {row.pop("lang"): row for row in rows}


def score_spans(
    items: Sequence[SpanItem],
    predicted: Mapping[str, SpanLabels],
    *,
    languages: Sequence[str] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> SpanScores:
    """Score predicted labels, by id, against those of the items, in these languages or, for None, all.

    ``draws`` is the number of bootstrap resamples of items within their language. If an item has no labels or no
    prediction, or a language has no item, InputError is raised.
    """
    wanted = None if languages is None else {code.upper() for code in languages}
    by_language: dict[str, list[tuple[float, float]]] = {}
    for item in items:
        if wanted is None or item.lang.upper() in wanted:
            by_language.setdefault(item.lang.upper(), []).append(_score(item, predicted))
    missing = (wanted or set()) - set(by_language)
    if missing or not by_language:
        raise InputError(f"expected labelled items; found none of {sorted(missing) or 'any language'}")
    random = np.random.default_rng(seed)
    rows, drawn = [], []
    for lang in sorted(by_language):
        values = np.array(by_language[lang])  # (N, 2) IoU, correlation
        resampled = values[random.integers(len(values), size=(draws, len(values)))].mean(axis=1)  # (D, 2)
        rows.append(_row(lang, len(values), values.mean(axis=0), resampled))
        drawn.append(resampled)
    means = np.mean([[row.iou, row.correlation] for row in rows], axis=0)
    return SpanScores(tuple(rows), _row("mean", sum(row.items for row in rows), means, np.mean(drawn, axis=0)))


def _score(item: SpanItem, predicted: Mapping[str, SpanLabels]) -> tuple[float, float]:
    if item.labels is None:
        raise InputError(f"item {item.id!r} has no labels to score against; pass a reference with labels")
    if item.id not in predicted:
        raise InputError(f"item {item.id!r} has no prediction")
    labels = predicted[item.id]
    correlation = span_correlation(item.labels.soft, labels.soft, characters=len(item.response))
    return span_iou(item.labels.hard, labels.hard), correlation


def _row(lang: str, items: int, means: NDArray[np.float64], resampled: NDArray[np.float64]) -> LanguageScore:
    iou, correlation = (bootstrap_interval(resampled[:, column]) for column in range(2))
    return LanguageScore(lang, items, float(means[0]), iou, float(means[1]), correlation)
