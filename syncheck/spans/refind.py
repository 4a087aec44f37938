"""REFIND (Lee and Yu, SemEval-2025 Task 3): tokens whose probability the retrieved texts change most.

``CSR(t) = log p(t | D, q, t<i) / (log p(t | q, t<i) + 1e-8)``; a token is hallucinated if its CSR is at least delta.
Both logarithms are negative: above 1, the references made the token less likely than it was by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.spans.items import SpanItem, SpanLabels, labels_of
from syncheck.spans.tokens import token_char_spans
from syncheck.types import TokenSignals

__all__ = ["RefindDetector", "RefindForm", "Thresholds", "choose_thresholds", "given_log_prob", "marked_from"]


RefindForm = Literal["replay", "mixed"]

DEFAULT_DELTA = 0.2
"""The paper sets none; of 0.1 to 0.4, its Figure 3, results are steadiest here."""

_FLOOR = 1e-8
_CANDIDATES = 60

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A delta for each language, and one for every other."""

    default: float = DEFAULT_DELTA
    by_language: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for value in (self.default, *self.by_language.values()):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise InputError(f"a threshold of a ratio must be a number of at least 0; found {value!r}")

    def of(self, lang: str) -> float:
        """Return the delta of a language, by its code in any case."""
        return self.by_language.get(lang.upper(), self.default)


class RefindDetector:
    """Marks the characters of tokens whose context sensitivity ratio reaches a threshold.

    Parameters
    ----------
    measure
        :class:`~syncheck.spans.TokenReplay`, or anything that gives the signals of an item's tokens.
    thresholds
        Fixed, or from :func:`choose_thresholds`.
    form
        ``replay``: both log-probabilities are the measuring model's. ``mixed``, as in the paper: the one without
        references is that of the model that wrote the response, from :func:`given_log_prob`.

    Notes
    -----
    The soft label of a token is CSR / (1 + CSR), which keeps the order. Without passages nothing can change: the ratio
    is 1 by its own formula, and every token is marked under the usual thresholds.
    """

    def __init__(
        self,
        measure: Callable[[SpanItem], TokenSignals],
        *,
        thresholds: Thresholds | None = None,
        form: RefindForm = "replay",
    ) -> None:
        if form not in get_args(RefindForm):
            raise InputError(f"form must be one of {get_args(RefindForm)}; found {form!r}")
        self._measure = measure
        self._thresholds = thresholds or Thresholds()
        self._form = form
        self.name = f"refind-{form}"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Return the labels of a response; see :class:`~syncheck.spans.SpanDetector`.

        Raises
        ------
        InputError
            If the form is ``mixed`` and the item has no tokens with logits.
        PromptError
            As :class:`~syncheck.spans.TokenReplay`.
        """
        return marked_from(self.ratios(item), self._thresholds.of(item.lang))

    def ratios(self, item: SpanItem) -> Floats:
        """Return the ratio of every character, (C,) float64, >= 0: the highest of the tokens it belongs to."""
        signals = self._measure(item)
        without = signals.log_prob_without_context.astype(np.float64)  # (T,)
        if self._form == "mixed":
            without = _spread(given_log_prob(item), signals.char_spans, len(item.response))
        with_context = signals.log_prob.astype(np.float64)
        known = np.isfinite(with_context) & np.isfinite(without)
        ratio = np.divide(with_context, without + _FLOOR, out=np.ones(len(signals)), where=known & (without != -_FLOOR))
        found = np.zeros(len(item.response))
        for (start, stop), value in zip(signals.char_spans, ratio, strict=True):
            # The floor turns the sign of a log-probability that is nearly 0.
            found[start:stop] = np.maximum(found[start:stop], max(value, 0.0))
        return found


def given_log_prob(item: SpanItem) -> Floats:
    """Return an estimate of the log-probability of every character from the generator's raw logits, (C,), nats, <= 0.

    Raw logits lack the normaliser ln sum exp, which differs from step to step and is not in the data. Where a model is
    certain of a token, its logit is that normaliser; so the highest logit of the response stands for it at all
    steps, and a token's log-probability is its logit minus that. A token's value is shared evenly by its characters.

    Raises
    ------
    InputError
        If the item has no tokens with logits.
    """
    if item.tokens is None or item.logits is None or len(item.logits) < len(item.tokens):
        raise InputError(
            f"item {item.id!r} lacks model_output_tokens with a logit each, which form 'mixed' needs; use form 'replay'"
        )
    spans = token_char_spans(item.response, item.tokens)
    logits = np.array(item.logits[: len(item.tokens)])
    found = np.zeros(len(item.response))
    for (start, stop), value in zip(spans, logits - logits.max(initial=-np.inf), strict=True):
        found[start:stop] += value / max(1, stop - start)
    return found


def marked_from(ratios: Floats, delta: float) -> SpanLabels:
    """Return the labels of characters with these ratios: hard ones where the ratio is at least delta."""
    return labels_of(ratios / (1 + ratios), ratios >= delta)


def choose_thresholds(items: Sequence[SpanItem], ratios: Mapping[str, Floats]) -> Thresholds:
    """Choose the delta with the best mean IoU, for each language and, for all others, over the mean of languages.

    Parameters
    ----------
    items
        All with labels.
    ratios
        What :meth:`RefindDetector.ratios` gave, by id.

    Raises
    ------
    InputError
        If there is no item, or one has no labels.
    """
    if not items:
        raise InputError("expected labelled items to choose thresholds on; found none")
    pooled = np.concatenate([ratios[item.id] for item in items])
    deltas = np.unique([0.0, *np.quantile(pooled, np.linspace(0, 1, _CANDIDATES))])  # (K,)
    found: dict[str, list[Floats]] = {}
    for item in items:
        found.setdefault(item.lang.upper(), []).append(_overlaps(item, ratios[item.id], deltas))
    means = {lang: np.mean(values, axis=0) for lang, values in found.items()}  # (K,) each
    default = float(deltas[np.argmax(np.mean(list(means.values()), axis=0))])
    return Thresholds(default, {lang: float(deltas[np.argmax(values)]) for lang, values in means.items()})


def _overlaps(item: SpanItem, ratios: Floats, deltas: Floats) -> Floats:
    """Return the IoU under each delta, (K,)."""
    if item.labels is None:
        raise InputError(f"item {item.id!r} has no labels; thresholds are chosen on labelled items")
    wrong = np.zeros(len(ratios), dtype=np.bool_)
    for start, stop in item.labels.hard:
        wrong[start:stop] = True
    marked = ratios >= deltas[:, None]  # (K, C)
    union = (marked | wrong).sum(axis=1)
    overlaps = np.ones(len(deltas))
    np.divide((marked & wrong).sum(axis=1), union, out=overlaps, where=union > 0)
    return overlaps


def _spread(characters: Floats, spans: NDArray[np.int64], size: int) -> Floats:
    """Return the sum of the characters of each span, (T,); NaN for an empty span."""
    sums = np.concatenate([[0.0], np.cumsum(characters)])
    return np.where(spans[:, 1] > spans[:, 0], sums[spans[:, 1]] - sums[spans[:, 0]], np.nan)
