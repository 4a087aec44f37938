"""Word features: features of each word of a response from the texts alone, without tagger or model, in any script.

The schema is ``spans.v1``; ``spans-rarity.v1`` adds the rarity of a word. A released schema never changes. W is the
number of words and F the number of features; NaN means not measured (no logits, no neighbour, a language without
counts).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from syncheck.base.checks import check_choice
from syncheck.results.spans import SpanItem
from syncheck.results.types import Floats
from syncheck.spans.words import Word, normalised, token_char_spans, word_rarity, words_of

SpanSchema = Literal["spans.v1", "spans-rarity.v1"]

_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f\u0964\u061f\u06d4]")
_QUOTES = frozenset('"\u00ab\u00bb\u201c\u201d\u201e')
_SNIPPET_BORDER = re.compile(r"\|\||\n")

_NEIGHBOURS = (-2, -1, 1, 2)
_OF_NEIGHBOURS = ("near_context", "near_question", "capital", "number", "logit", "length")
_KINDS = ("letters", "number", "ideograph", "symbol")
_SHORT = 3
"""Number of letters up to which words are taken for function words."""

_SHORTEST_NEAR = 3
"""Number of letters below which words are matched exactly or not at all."""


def span_feature_names(schema: SpanSchema) -> tuple[str, ...]:
    """Name a schema's features, in order; an unknown schema raises InputError."""
    check_choice(schema, "schema", SpanSchema)
    sample = SpanItem("", "en", "?", "word")
    return tuple(_columns(sample, words_of(sample.response), rarity=schema == "spans-rarity.v1"))


def word_features(item: SpanItem, words: Sequence[Word], schema: SpanSchema = "spans.v1") -> Floats:
    """Compute the features of the words of a response, (W, F) float64, in the order of :func:`span_feature_names`.

    ``words`` are all words of ``item.response``; ``spans-rarity.v1`` needs the extra ``rarity``.
    """
    if not words:
        return np.zeros((0, len(span_feature_names(schema))))
    columns = _columns(item, words, rarity=schema == "spans-rarity.v1")
    return np.stack(list(columns.values()), axis=1)


def _columns(item: SpanItem, words: Sequence[Word], *, rarity: bool) -> dict[str, Floats]:
    texts = [normalised(word.text) for word in words]
    columns = _support(item, texts) | _shape(words, texts) | _position(item.response, words)
    columns |= _logits(item, words)
    if rarity:
        columns["rarity"] = word_rarity([word.text for word in words], item.lang)
        columns["rarity_around"] = _around(columns["rarity"], 5)
        columns["rarity_mean"] = _same(_mean(columns["rarity"]), len(words))
    columns |= _whole(item, words, columns)
    for name in (*_OF_NEIGHBOURS, *(["rarity"] if rarity else [])):
        columns |= {f"{name}{offset:+d}": _shifted(columns[name], offset) for offset in _NEIGHBOURS}
    return columns


def _support(item: SpanItem, texts: Sequence[str]) -> dict[str, Floats]:
    """Compare each word with the retrieved texts and the question."""
    context, question = _WordEvidence("\n".join(item.passages)), _WordEvidence(item.question)
    parts = [
        {normalised(w.text) for w in words_of(part)} for text in item.passages for part in _SNIPPET_BORDER.split(text)
    ]
    columns = {
        "in_context": context.holds(texts),
        "in_question": question.holds(texts),
        "near_context": context.nearness(texts),
        "near_question": question.nearness(texts),
        "run_context": context.run_lengths(texts),
        "run_question": question.run_lengths(texts),
        "log_count_context": np.log1p([context.counts[text] for text in texts]),
        "parts_with": np.array([float(sum(text in part for part in parts)) for text in texts]),
        "log_words_context": _same(np.log1p(context.counts.total()), len(texts)),
        "numbers_context": _same(min(context.numbers, 10), len(texts)),
        "words_question": _same(question.counts.total(), len(texts)),
        "question_in_context": _same(
            _mean(context.holds([word for word in question.counts if len(word) > _SHORT])), len(texts)
        ),
    }
    for name in ("near_context", "near_question"):
        columns |= {f"{name}_around{radius}": _around(columns[name], radius) for radius in (2, 5)}
    return columns


class _WordEvidence:
    """Words of a text, normalised, for comparison with other words."""

    def __init__(self, text: str) -> None:
        words = [normalised(word.text) for word in words_of(text)]
        self.counts = Counter(words)
        self._pairs = set(pairwise(words))
        self._trigrams = [(len(w), _trigrams(w)) for w in self.counts if len(w) >= _SHORTEST_NEAR]
        self._nearest: dict[str, float] = {}

    @property
    def numbers(self) -> int:
        """Number of distinct words that begin with a digit."""
        return sum(word[0].isdecimal() for word in self.counts)

    def holds(self, words: Sequence[str]) -> Floats:
        """Mark each word that occurs in the text as 1 and the others as 0, (W,) float64."""
        return np.array([float(word in self.counts) for word in words])

    def nearness(self, words: Sequence[str]) -> Floats:
        """Compute the similarity of each word to the nearest word of the text, (W,) float64 in [0, 1].

        It is Dice's coefficient of the character trigrams, borders included, among words of similar length.
        """
        return np.array([self._near(word) for word in words])

    def run_lengths(self, words: Sequence[str]) -> Floats:
        """Measure the run of consecutive words of the text that each word is in, (W,) float64."""
        lengths = np.zeros(len(words))
        start = 0
        while start < len(words):
            stop = start
            while stop < len(words) and words[stop] in self.counts:
                stop += 1
                if stop < len(words) and (words[stop - 1], words[stop]) not in self._pairs:
                    break
            lengths[start:stop] = stop - start
            start = max(stop, start + 1)
        return lengths

    def _near(self, word: str) -> float:
        if word in self.counts:
            return 1.0
        if word not in self._nearest:
            wanted, size = _trigrams(word), len(word)
            near = (
                2 * len(wanted & known) / (len(wanted) + len(known))
                for length, known in self._trigrams
                if 2 * abs(length - size) <= max(length, size)
            )
            self._nearest[word] = max(near, default=0.0)
        return self._nearest[word]


def _trigrams(word: str) -> frozenset[str]:
    bordered = f"^{word}$"
    return frozenset(bordered[i : i + 3] for i in range(len(bordered) - 2))


def _shape(words: Sequence[Word], texts: Sequence[str]) -> dict[str, Floats]:
    """Compute features of each word alone."""
    capital = np.array([float(word.text[0].isupper()) for word in words])
    number = np.array([float(any(c.isdecimal() for c in text)) for text in texts])
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    return {
        "kind": np.array([float(_KINDS.index(word.kind)) for word in words]),
        "length": np.array([float(len(word.text)) for word in words]),
        "capital": capital,
        "number": number,
        "capital_around": _around(capital, 2),
        "number_around": _around(number, 3),
        "repeated": np.array([float(first[text] < i) for i, text in enumerate(texts)]),
    }


def _position(response: str, words: Sequence[Word]) -> dict[str, Floats]:
    """Compute the position of each word in the response and its sentence, and the gaps around it."""
    gaps = [response[a:b] for a, b in zip([0, *(w.end for w in words)], [w.start for w in words], strict=False)]
    sentence = np.cumsum([bool(i) and bool(_SENTENCE_END.search(gap)) for i, gap in enumerate(gaps)])
    first = np.searchsorted(sentence, sentence, side="left")
    size = np.searchsorted(sentence, sentence, side="right") - first
    place = np.arange(len(words), dtype=np.float64)
    before = np.array([0.0, *(2.0 if gap.strip() else 1.0 for gap in gaps[1:])])
    return {
        "position": place / len(words),
        "index": place,
        "from_end": len(words) - 1 - place,
        "index_sentence": place - first,
        "words_sentence": size.astype(np.float64),
        "position_sentence": (place - first) / size,
        "sentence": sentence.astype(np.float64),
        "sentences": _same(float(sentence[-1] + 1), len(words)),
        "quoted": np.cumsum([sum(c in _QUOTES for c in gap) for gap in gaps]) % 2.0,
        "gap_before": before,
        "gap_after": np.array([*before[1:], 3.0]),
    }


def _logits(item: SpanItem, words: Sequence[Word]) -> dict[str, Floats]:
    """Collect the raw logits of each word's tokens, as they are and relative to the response's mean and deviation."""
    none = np.full(len(words), np.nan)
    if item.tokens is None or item.logits is None:
        return dict.fromkeys(("logit", "logit_min", "logit_mean", "logit_raw", "logit_all", "logit_around"), none)
    # Some files have one more logit, that of the end of the text.
    spans, logits = token_char_spans(item.response, item.tokens), np.array(item.logits[: len(item.tokens)])
    spans = spans[: len(logits)]
    shown = spans[:, 1] > spans[:, 0]
    centre, spread = _mean(logits[shown]), float(np.std(logits[shown])) + 1e-6 if shown.any() else np.nan
    of_words = np.full((len(words), 3), np.nan)  # first, least, mean
    for index, word in enumerate(words):
        own = logits[(spans[:, 0] < word.end) & (spans[:, 1] > word.start)]
        if len(own):
            of_words[index] = own[0], own.min(), own.mean()
    first = (of_words[:, 0] - centre) / spread
    return {
        "logit": first,
        "logit_min": (of_words[:, 1] - centre) / spread,
        "logit_mean": (of_words[:, 2] - centre) / spread,
        "logit_raw": of_words[:, 0],
        "logit_all": _same(centre, len(words)),
        "logit_around": _around(first, 2),
    }


def _whole(item: SpanItem, words: Sequence[Word], columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """Compute features of the whole response: its length, and how much of it occurs in the texts."""
    content = (columns["length"] > _SHORT) | (columns["number"] > 0) | (columns["kind"] == _KINDS.index("ideograph"))
    unknown = (columns["in_context"] == 0) & (columns["in_question"] == 0)
    new = np.flatnonzero(content & (columns["near_question"] < 0.6))
    size = len(words)
    return {
        "number_unknown": columns["number"] * unknown,
        "words": _same(size, size),
        "log_characters": _same(np.log1p(len(item.response)), size),
        "share_context": _same(_mean(columns["near_context"]), size),
        "share_question": _same(_mean(columns["near_question"]), size),
        "share_unknown": _same(float((unknown & content).sum() / max(1, content.sum())), size),
        "share_numbers": _same(_mean(columns["number"]), size),
        "since_new": np.arange(size, dtype=np.float64) - (new[0] if len(new) else size),
    }


def _same(value: float, count: int) -> Floats:
    return np.full(count, float(value))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _around(values: Floats, radius: int) -> Floats:
    """Average the known values at most ``radius`` words away; NaN if there is none."""
    known = ~np.isnan(values)
    window = np.ones(2 * radius + 1)
    sums, counts = (np.convolve(v, window)[radius:-radius] for v in (np.where(known, values, 0), known))
    means = np.full(len(values), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _shifted(values: Floats, offset: int) -> Floats:
    """Shift the values to the words ``offset`` words earlier; NaN beyond the ends."""
    places = np.arange(len(values)) + offset
    inside = (places >= 0) & (places < len(values))
    return np.asarray(np.where(inside, values[places.clip(0, len(values) - 1)], np.nan), dtype=np.float64)
