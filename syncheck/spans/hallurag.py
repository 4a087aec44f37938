"""HalluRAG-RUG (Abdi et al., SemEval-2025 Task 3): unlikely words, sentences far from the sources, spans from a model.

Each of the three systems is optional; a character is marked if any of them marks it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np

from syncheck.aligners.evaluators import TextGenerator
from syncheck.base.errors import InputError, PromptError, TextGeneratorError
from syncheck.base.files import asset_text
from syncheck.reading.evidence import split_passages
from syncheck.results.spans import SpanItem, SpanLabels, labels_of
from syncheck.results.types import TokenSignals
from syncheck.spans.refind import Measure, SentenceEncoder
from syncheck.spans.words import words_of
from syncheck.text.sentences import Punkt
from syncheck.text.sentences.segmenter import visible

LOWEST_PROBABILITY = 0.01
LOWEST_SIMILARITY = 0.5
"""Thresholds of a token's probability and of a sentence's similarity (section 4.3)."""

JOINED_GAP = 3
"""Distance in characters below which spans are joined; the paper joins those that overlap, and calls that a fault."""
_CONTENT_LETTERS = 4

Spans = list[tuple[int, int]]


class HalluRagDetector:
    """Detector that marks the union of the spans from up to three systems; None omits one, but not all.

    ``measure`` finds unlikely words, ``encoder`` far sentences, and the instruct model ``asked`` lists spans. The soft
    label of a character is the share of systems that mark it; if the item does not fit the measuring model's window
    and there is another system, unlikely words do not count. The paper prompts Llama 3 and computes probabilities with
    it, embeds with MPNet, and first summarises whole pages; here the knowledge is the item's passages as they are.
    """

    def __init__(
        self,
        measure: Measure | None = None,
        *,
        encoder: SentenceEncoder | None = None,
        asked: TextGenerator | None = None,
    ) -> None:
        if measure is None and encoder is None and asked is None:
            raise InputError("expected at least one of measure, encoder and asked; found none")
        self._measure, self._encoder, self._asked = measure, encoder, asked
        self.name = "hallurag"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Label a response; see :class:`~syncheck.results.SpanDetector`.

        An answer of ``asked`` without a list raises TextGeneratorError. If unlikely words are the only system,
        PromptError is raised as by :class:`~syncheck.spans.TokenReplay`.
        """
        systems: list[Spans] = []
        if self._measure is not None:
            try:
                systems.append(unlikely_words(item.response, self._measure(item)))
            except PromptError:
                if self._encoder is None and self._asked is None:
                    raise
        if self._encoder is not None:
            systems.append(far_sentences(item.response, item.passages, self._encoder))
        if self._asked is not None:
            systems.append(asked_spans(item, self._asked))
        votes = np.zeros(len(item.response))
        for spans in systems:
            for start, stop in joined_spans(spans, item.response):
                votes[start:stop] += 1
        return labels_of(votes / len(systems), votes > 0)


def unlikely_words(response: str, signals: TokenSignals) -> Spans:
    """Find the content words that have a token with a probability below 0.01, given the passages.

    They are numbers, capitalised words, ideographs and words of at least four letters; the paper takes entities,
    numbers and nouns, which would need a tagger.
    """
    unlikely = signals.char_spans[signals.log_prob < math.log(LOWEST_PROBABILITY)]
    return [
        (word.start, word.end)
        for word in words_of(response)
        if (word.kind in ("number", "ideograph") or word.text[0].isupper() or len(word.text) >= _CONTENT_LETTERS)
        and any(start < word.end and stop > word.start for start, stop in unlikely)
    ]


def far_sentences(response: str, passages: Sequence[str], encoder: SentenceEncoder) -> Spans:
    """Find the sentences with a similarity below 0.5 to every sentence of the passages; all without passages."""
    sentences = list(Punkt().spans(response))
    known = [chunk.text for chunk in split_passages(passages)]
    if not sentences or not known:
        return sentences
    vectors = encoder([*(response[start:stop] for start, stop in sentences), *known])  # (S + K, D), of length 1
    best = (vectors[: len(sentences)] @ vectors[len(sentences) :].T).max(axis=1)
    return [span for span, similarity in zip(sentences, best, strict=True) if similarity < LOWEST_SIMILARITY]


def asked_spans(item: SpanItem, asked: TextGenerator) -> Spans:
    """Find every literal occurrence of the spans that an instruct model lists as inconsistent with the passages."""
    spans = listed_spans(
        asked(asset_text("prompts/hallurag.txt").format(text=item.response, knowledge="\n".join(item.passages)))
    )
    patterns = [re.escape(span.strip()) for span in spans if span.strip()]
    return [match.span() for pattern in patterns for match in re.finditer(pattern, item.response)]


def listed_spans(answer: str) -> list[str]:
    """Read the first JSON list of strings in an answer, or raise TextGeneratorError."""
    for match in re.finditer(r"\[.*?\]", answer, re.DOTALL):
        try:
            spans = json.loads(match[0])
        except ValueError:
            continue
        if all(isinstance(span, str) for span in spans):
            return list(spans)
    raise TextGeneratorError(f'expected an answer with a list ["word", ...]; found {answer[:200]!r}')


def joined_spans(spans: Spans, response: str) -> Spans:
    """Sort spans, without white space at their ends, and join those closer than three characters."""
    joined: Spans = []
    for start, stop in sorted(spans):
        if joined and start - joined[-1][1] < JOINED_GAP:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return [visible(response, start, stop) for start, stop in joined if response[start:stop].strip()]
