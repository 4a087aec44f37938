"""Evaluation of spans: scores by language, baselines, and labels from regressions trained on other responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import bootstrap_interval
from syncheck.evaluation.tables import aligned, with_interval
from syncheck.results.spans import SoftSpan, SpanItem, SpanLabels, labels_of, risk_of
from syncheck.spans.mikani import MAX_WORDS, RegressorKind, SpanRegressor
from syncheck.spans.word_features import SpanSchema
from syncheck.spans.word_sources import WordSource, regression_features


def span_iou(reference: Sequence[tuple[int, int]], predicted: Sequence[tuple[int, int]]) -> float:
    """Compute the intersection over union of the characters in two lists of spans, in [0, 1]; 1 if both are empty."""
    wanted, found = ({place for span in spans for place in range(*span)} for spans in (reference, predicted))
    return len(wanted & found) / len(wanted | found) if wanted or found else 1.0


_DECIMALS = 8
"""Number of decimals to which risks must agree to count as equal when a series is tested for being constant."""


def span_correlation(reference: Sequence[SoftSpan], predicted: Sequence[SoftSpan], *, characters: int) -> float:
    """Compute Spearman's rank correlation of the risks of all characters, in [-1, 1].

    If a series is constant, the correlation is undefined; the result is then 1 if both are constant, whatever their
    values, and 0 otherwise. Spans lie within a response of ``characters`` characters, and characters in no span have
    risk 0.
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
            iou, correlation = row.iou_interval, row.correlation_interval
            cells = with_interval(row.iou, *iou), with_interval(row.correlation, *correlation)
            rows.append([row.lang, str(row.items), *cells])
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
    """Score predicted labels against those of the items.

    Parameters
    ----------
    items
        Responses, all with labels.
    predicted
        Predicted labels by id, for each item in these languages.
    languages
        Codes of languages in upper or lower case; None takes all.
    draws, seed
        Number of bootstrap resamples of items within their language, and their seed.

    Raises
    ------
    InputError
        If an item has no labels or no prediction, or a language has no item.
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
    found = predicted[item.id]
    correlation = span_correlation(item.labels.soft, found.soft, characters=len(item.response))
    return span_iou(item.labels.hard, found.hard), correlation


def _row(lang: str, items: int, means: NDArray[np.float64], resampled: NDArray[np.float64]) -> LanguageScore:
    iou, correlation = (bootstrap_interval(resampled[:, column]) for column in range(2))
    return LanguageScore(lang, items, float(means[0]), iou, float(means[1]), correlation)


@dataclass(frozen=True, slots=True)
class MarkAll:
    """Baseline of the shared task that marks every character, with risk 1."""

    name: str = "mark-all"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Mark one span over the whole response; see :class:`~syncheck.spans.SpanDetector`."""
        size = len(item.response)
        return labels_of(np.ones(size), np.ones(size, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class MarkNone:
    """Baseline of the shared task that marks nothing."""

    name: str = "mark-none"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Mark no span; see :class:`~syncheck.spans.SpanDetector`."""
        return SpanLabels((), ())


SpanFolds = Literal["question", "language"]


def question_of(item: SpanItem) -> str:
    """Choose the key by which the question of an item is recognised: the title of its page, or else its words.

    A question in several languages is recognised if its page has the same title in all of them.
    """
    return unquote(item.source.rpartition("/")[2]) or item.question


def held_out_folds(
    items: Sequence[SpanItem], *, by: SpanFolds, folds: int = 5, seed: int = 0
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split into pairs of indices to train on and to hold out; each item is held out once.

    By ``question``, there are ``folds`` parts, drawn with ``seed``, with all items of a question in the same part. By
    ``language``, there is one part for each language, whose questions are not trained on in any language. If ``by`` is
    unknown, or there are fewer than two parts, InputError is raised.
    """
    check_choice(by, "by", SpanFolds)
    questions = np.array([question_of(item) for item in items])
    names, number = np.unique(questions, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names))[number] % folds
    if by == "language":
        part = np.unique([item.lang.upper() for item in items], return_inverse=True)[1]
    parts = np.unique(part)
    if len(parts) < 2:
        raise InputError(f"expected two or more parts by {by} to hold one out; found {len(parts)}")
    found = []
    for number in parts:
        held = np.flatnonzero(part == number)
        found.append((np.flatnonzero((part != number) & ~np.isin(questions, questions[held])), held))
    return found


def held_out_labels(
    items: Sequence[SpanItem],
    *,
    by: SpanFolds,
    schema: SpanSchema = "spans.v1",
    kind: RegressorKind = "xgb",
    folds: int = 5,
    seed: int = 0,
    max_words: int = MAX_WORDS,
    sources: Sequence[WordSource] = (),
    on_fold: Callable[[], object] = lambda: None,
) -> dict[str, SpanLabels]:
    """Label each item, by id, with a regression that was trained without its fold.

    Parameters
    ----------
    items
        Responses, all with labels.
    by, folds, seed
        As in :func:`held_out_folds`; the seed is used for the trees too.
    schema, kind, max_words, sources
        As in :meth:`SpanRegressor.fit`; every item is measured once.
    on_fold
        Called after each fold, for a progress bar.
    """
    options: dict[str, Any] = {"schema": schema, "kind": kind, "seed": seed, "max_words": max_words}
    measured = [regression_features(item, schema, sources) for item in items]
    found: dict[str, SpanLabels] = {}
    for train, held in held_out_folds(items, by=by, folds=folds, seed=seed):
        fitted = SpanRegressor.fit([items[i] for i in train], measured=[measured[i] for i in train], **options)
        found |= {items[i].id: fitted.detect(items[i], measured=measured[i]) for i in held}
        on_fold()
    return found
