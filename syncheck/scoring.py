"""Scoring of measured sentences: features, support, aggregator and status."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache, partial
from math import log, log1p

import numpy as np

from syncheck.aggregators import Aggregator
from syncheck.aligners import Aligner, AskedAligner, Unaligned, languages_of
from syncheck.config import BACKTRACK_THRESHOLD, PRUNE_THRESHOLD
from syncheck.contrasts.contrast import contrast_with, with_answers
from syncheck.contrasts.parsing import parse
from syncheck.contrasts.rules import Difference
from syncheck.features.conversation import is_bare_answer, is_conversation, is_heading, is_reference
from syncheck.features.groundedness import BEST_CHUNKS, ContextChunks, says_not_stated
from syncheck.features.schemas import TEXT_FEATURES, EarlierSentences, SentenceText, needs_signals
from syncheck.features.sentence import read_log_odds, sentence_features, statement, text_features
from syncheck.reading import EvidenceIndex
from syncheck.results.types import (
    Contrast,
    FeatureSchema,
    RagPrompt,
    Remark,
    SentenceFeatures,
    SentenceScore,
    SentenceSignals,
    Status,
    Support,
    Verdict,
)
from syncheck.text.languages import foreign_language, readable
from syncheck.text.rarity import packaged_rarity
from syncheck.text.sentences import SentenceCutter, is_checkable
from syncheck.text.words import LexicalShares, content_words, stem

CONTRADICTED_ABOVE = 0.8
"""P(contradicted) above which a sentence below both thresholds gets the verdict ``contradicted``; the reader is then
right about 85 % of held-out claims, and above 0.5 about 78 %."""
SMALLEST_SUPPORT = 1e-6
"""Least distance from 0 and 1 of a support that is turned into log-odds, for aligners that report none."""
TEXTS_KEPT = 256
"""Number of sentences and chunks of a prompt that are cached in the form that the contrast rules read, and compared."""
_TEXT_ONLY = frozenset(TEXT_FEATURES) - {field.name for field in fields(LexicalShares)}


class SentenceScorer:
    """Scores the sentences of answers to one prompt.

    Without an aggregator, sentences get the status ``no_aggregator``; without an aligner, ``align_score`` is not
    measured. ``abbreviations`` end no sentence of the passages, as in
    :attr:`~syncheck.SegmenterConfig.abbreviations`. ``doubtful_below`` and ``unsupported_below`` are the thresholds of
    verdicts, see :class:`~syncheck.results.types.SentenceScore`. ``monitor`` is the name of a bundled monitor, for the report.
    """

    def __init__(
        self,
        prompt: RagPrompt,
        *,
        schema: FeatureSchema,
        aggregator: Aggregator | None,
        aligner: Aligner | None,
        abbreviations: Sequence[str] = (),
        doubtful_below: float = PRUNE_THRESHOLD,
        unsupported_below: float = BACKTRACK_THRESHOLD,
        monitor: str | None = None,
    ) -> None:
        self.prompt = prompt
        self.monitor = monitor
        self._thresholds = (doubtful_below, unsupported_below)
        self._schema = schema
        self._needs_signals = needs_signals(schema.version)
        self._aggregator = aggregator
        self._languages = None if aligner is None else languages_of(aligner)
        self._passages, self._context_language = readable(prompt.passages, self._languages)
        self._index = EvidenceIndex(self._passages, cut=SentenceCutter(abbreviations).texts)
        self._aligner = None if aligner is None else AskedAligner(aligner, prompt.question, self._index)
        self._question_words = frozenset(content_words(prompt.question))
        self._lexicon = self._index.lexicon if prompt.has_context else None
        reads_text = prompt.has_context and not _TEXT_ONLY.isdisjoint(schema.names)
        self._compare = lru_cache(TEXTS_KEPT)(partial(contrast_with, read=lru_cache(TEXTS_KEPT)(parse)))
        self._chunks = ContextChunks.from_texts([c.text for c in self._index.chunks]) if reads_text else None

    @property
    def has_scores(self) -> bool:
        """True if there is an aggregator, without which no sentence has a score."""
        return self._aggregator is not None

    def __call__(
        self, sentences: Sequence[SentenceSignals], *, earlier: Sequence[SentenceScore] = (), since: float | None = None
    ) -> list[SentenceScore]:
        """Score the next sentences of one answer; see :meth:`answers`."""
        return self.answers([sentences], earlier=[earlier], since=since)[0]

    def answers(
        self,
        answers: Sequence[Sequence[SentenceSignals]],
        *,
        earlier: Sequence[Sequence[SentenceScore]],
        since: float | None = None,
    ) -> list[list[SentenceScore]]:
        """Score the next sentences of several answers together, in one batch of the aligner.

        Parameters
        ----------
        answers
            The next sentences of each answer, as measured.
        earlier
            Scores of all earlier sentences of each answer.
        since
            Value of ``time.perf_counter()`` when the sentences were known to be complete; None for given responses.
        """
        sentences = [sentence for answer in answers for sentence in answer]
        if not sentences:
            return [[] for _ in answers]
        foreign = [self._foreign(s.text) for s in sentences]
        supports, unaligned = self._supports([s.text for s in sentences], foreign)
        before = self._earlier(answers, earlier, supports)
        features = [self.features(*found) for found in zip(sentences, supports, before, strict=True)]
        found = [self._status(*each) for each in zip(sentences, foreign, unaligned, strict=True)]
        statuses = [status for status, _ in found]
        scores, attributions = self._aggregate(features, statuses)
        contrasts = [
            self._contrasts_with(sentence.text, *each)
            for sentence, each in zip(sentences, zip(scores, supports, strict=True), strict=True)
        ]
        remarks = [self._remarks_on(s.text) for s in sentences]
        verdicts = [self._verdict_on(*each) for each in zip(scores, supports, contrasts, remarks, strict=True)]
        remarks = [self._with_unread(*each) for each in zip(remarks, verdicts, strict=True)]
        latency_ms = None if since is None else (time.perf_counter() - since) * 1e3
        scored = iter(
            SentenceScore(
                text=sentence.text,
                start=sentence.span.start,
                end=sentence.span.end,
                token_start=sentence.span.token_start,
                token_end=sentence.span.token_end,
                score=score,
                status=status,
                features=values.to_dict(),
                reason=reason,
                attribution=attribution,
                evidence=support.evidence if support else None,
                latency_ms=latency_ms,
                truncated=sentence.span.truncated,
                verdict=verdict,
                remarks=remarked,
                contrasts=differences,
            )
            for sentence, support, values, (status, reason), score, attribution, verdict, differences, remarked in zip(
                sentences, supports, features, found, scores, attributions, verdicts, contrasts, remarks, strict=True
            )
        )
        return [[next(scored) for _ in answer] for answer in answers]

    def features(
        self, sentence: SentenceSignals, support: Support | None, earlier: EarlierSentences
    ) -> SentenceFeatures:
        """Compute the features of one sentence."""
        text = SentenceText(
            sentence.text, len(sentence.token_ids), self._question_words, self._lexicon, support, earlier
        )
        return sentence_features(self._schema, sentence, text, text_values=self._text_values(sentence.text, support))

    def _text_values(self, sentence: str, support: Support | None) -> dict[str, float] | None:
        if self._chunks is None or self._lexicon is None:
            return None
        return text_features(
            sentence,
            logit=None if support is None else _log_odds(support),
            read=read_log_odds(support),
            chunks=self._chunks,
            best=self._index.best(statement(sentence), BEST_CHUNKS),
            lexicon=self._lexicon,
            rarity=packaged_rarity(),
            compare=self._compare,
        ).values

    def _earlier(
        self,
        answers: Sequence[Sequence[SentenceSignals]],
        earlier: Sequence[Sequence[SentenceScore]],
        supports: Sequence[Support | None],
    ) -> list[EarlierSentences]:
        """Return the earlier sentences of the answer for each sentence."""
        found = []
        own = iter(supports)
        for answer, scored in zip(answers, earlier, strict=True):
            before = EarlierSentences.of((score.text, score.features.get("align_score")) for score in scored)
            for sentence in answer:
                found.append(before)
                support = next(own)
                before = before.followed_by(sentence.text, None if support is None else support.score)
        return found

    def _foreign(self, sentence: str) -> str | None:
        """Return the reason if the aligner does not read the language of the sentence or the context, else None."""
        if self._languages is None or not is_checkable(sentence):
            return None
        name, language = "context", self._context_language
        if language is None:
            name, language = "sentence", foreign_language(sentence, self._languages)
        read = ", ".join(sorted(self._languages))
        return None if language is None else f"the {name} is in {language!r}; the aligner reads {read}"

    def _supports(
        self, texts: Sequence[str], foreign: Sequence[str | None]
    ) -> tuple[list[Support | None], list[str | None]]:
        """Return the support of each text that can be checked, and the reason where the aligner found none."""
        supports: list[Support | None] = [None] * len(texts)
        unaligned: list[str | None] = [None] * len(texts)
        wanted = [i for i, text in enumerate(texts) if is_checkable(text) and foreign[i] is None]
        if self._aligner is None or not self.prompt.has_context or not wanted:
            return supports, unaligned
        for i, found in zip(wanted, self._aligner(self._passages, [texts[i] for i in wanted]), strict=True):
            if isinstance(found, Unaligned):
                unaligned[i] = found.reason
            else:
                supports[i] = found
        return supports, unaligned

    def _verdict_on(
        self,
        score: float | None,
        support: Support | None,
        contrasts: tuple[Contrast, ...],
        remarks: tuple[Remark, ...],
    ) -> Verdict | None:
        if score is None:
            return None
        if score >= min(self._thresholds):
            return "supported" if score >= max(self._thresholds) else "doubtful"
        against = None if support is None else support.contradicted
        told = against is not None and against > CONTRADICTED_ABOVE and "no_passage_touches" not in remarks
        return "contradicted" if contrasts or told else "unsupported"

    def _remarks_on(self, sentence: str) -> tuple[Remark, ...]:
        if self._lexicon is None or not is_checkable(sentence):
            return ()
        if says_not_stated(sentence):
            return ("says_not_stated",)
        stems = {stem(word) for word in content_words(statement(sentence))}
        return ("no_passage_touches",) if stems and stems.isdisjoint(self._lexicon.stems) else ()

    def _with_unread(self, remarks: tuple[Remark, ...], verdict: Verdict | None) -> tuple[Remark, ...]:
        """Add that passages were not read, if they might support the sentence."""
        is_open = verdict not in (None, "supported") and self._passages != self.prompt.passages
        return (*remarks, "passages_not_read") if is_open else remarks

    def _contrasts_with(self, sentence: str, score: float | None, support: Support | None) -> tuple[Contrast, ...]:
        """Return the contrasts with the context, if the score depends on them or is below ``supported``."""
        if score is None or says_not_stated(sentence):
            return ()
        if score >= max(self._thresholds) and "contrasts" not in self._schema.names:
            return ()
        if foreign_language(sentence, {"en"}):
            return ()
        stated = statement(sentence)
        best = self._index.best(stated, BEST_CHUNKS)
        compared = self._compare(stated, with_answers([chunk.text for chunk in self._index.chunks], best))
        nearest = self._index.chunks[best[compared.chunk]].passage if best else 0
        found = compared.that_speak(read_log_odds(support))
        return tuple(
            Contrast(one.kind, one.sentence, one.evidence, nearest)
            for one in found
            if not any(_is_within(one, other) for other in found)
        )

    def _status(
        self, sentence: SentenceSignals, foreign: str | None, unaligned: str | None
    ) -> tuple[Status, str | None]:
        """Return the status, and the reason why there is no score."""
        broken = not_finite(sentence, has_context=self.prompt.has_context) if sentence.measured else None
        if broken is not None:
            return "failed", broken
        if not self.prompt.has_context:
            return "no_context", "the context is empty"
        if not is_checkable(sentence.text):
            return "not_checkable", "no letter or digit"
        if not len(sentence.token_ids):
            return "not_checkable", "no token of its own"
        nothing = None if self._needs_signals else self._claims_nothing(sentence.text)
        if nothing is not None:
            return "not_checkable", nothing
        if foreign is not None:
            return "unsupported_language", foreign
        if unaligned is not None:
            return "failed", unaligned
        return ("scored" if self._aggregator is not None else "no_aggregator"), None

    def _claims_nothing(self, sentence: str) -> str | None:
        """Return what a sentence is that claims nothing, as far as text alone tells, else None."""
        if is_bare_answer(sentence):
            return "a bare yes or no, which says nothing without its question"
        if is_reference(sentence):
            return "a reference to passages, which claims nothing"
        if "no_passage_touches" in self._remarks_on(sentence):
            if is_conversation(sentence):
                return "a phrase of conversation, which claims nothing"
            if is_heading(sentence):
                return "a heading, which claims nothing"
        return None

    def _aggregate(
        self, features: Sequence[SentenceFeatures], statuses: Sequence[Status]
    ) -> tuple[list[float | None], list[dict[str, float]]]:
        scores: list[float | None] = [None] * len(features)
        attributions: list[dict[str, float]] = [{} for _ in features]
        wanted = [i for i, status in enumerate(statuses) if status == "scored"]
        if self._aggregator is not None and wanted:
            rows = np.stack([features[i].values for i in wanted])
            for i, score in zip(wanted, self._aggregator.score(rows), strict=True):
                scores[i] = float(score)
                attributions[i] = self._aggregator.attribution(features[i].values)
        return scores, attributions


def _is_within(found: Difference, other: Difference) -> bool:
    """Return True if another difference, such as exchanged names, has the words of this one and more on both sides."""
    words, others = (set(f" {side.sentence} {side.evidence} ".split()) for side in (found, other))
    return words < others and found.sentence in other.sentence and found.evidence in other.evidence


def _log_odds(support: Support) -> float:
    if support.log_odds is not None:
        return support.log_odds
    score = min(max(support.score, SMALLEST_SUPPORT), 1 - SMALLEST_SUPPORT)
    return log(score) - log1p(-score)


def not_finite(sentence: SentenceSignals, *, has_context: bool) -> str | None:
    """Return which of the model's outputs for a sentence are not finite, so that it gets no score; None if all are.

    All are finite if each token was predicted by a row of logits that is a distribution, in both branches if there is a
    context, and the tapped hidden states have no NaN or infinity. A distribution has no NaN or +inf; -inf may exclude
    entries, such as padding of the vocabulary, but not the token itself.
    """
    branches = {"": sentence.log_prob}
    if has_context:
        branches[" without the context"] = sentence.log_prob_without_context
    for branch, log_prob in branches.items():
        if not np.isfinite(log_prob).all():
            token = sentence.span.token_start + int(np.argmin(np.isfinite(log_prob)))
            return f"the model's logits{branch} of token {token} are not finite"
    for layer, states in sentence.activations.items():
        if not np.isfinite(states).all():
            return f"the model's hidden states after block {layer} are not finite"
    return None
