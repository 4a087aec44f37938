"""From measured sentences to scores: features, support, aggregator, status."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import numpy as np

from syncheck.aggregators import Aggregator
from syncheck.alignment import Aligner, QuestionAligner
from syncheck.features import EarlierSentences, sentence_features
from syncheck.lexical import ContextLexicon, content_words
from syncheck.segments import is_checkable
from syncheck.types import (
    FeatureSchema,
    RagPrompt,
    SentenceFeatures,
    SentenceScore,
    SentenceSignals,
    Status,
    Support,
)

__all__ = ["SentenceJudge"]

logger = logging.getLogger(__name__)


class SentenceJudge:
    """Scores the sentences of answers to one prompt.

    Parameters
    ----------
    prompt
        Whose passages the sentences are held against.
    schema
        The features to compute.
    aggregator
        None leaves the status ``no_aggregator``.
    aligner
        None leaves ``align_score`` unmeasured.
    """

    def __init__(
        self,
        prompt: RagPrompt,
        *,
        schema: FeatureSchema,
        aggregator: Aggregator | None,
        aligner: Aligner | None,
    ) -> None:
        self.prompt = prompt
        self._schema = schema
        self._aggregator = aggregator
        self._aligner = aligner.about(prompt.question) if isinstance(aligner, QuestionAligner) else aligner
        self._question_words = frozenset(content_words(prompt.question))
        self._lexicon = ContextLexicon.from_passages(prompt.passages) if prompt.has_context else None

    def __call__(
        self,
        sentences: Sequence[SentenceSignals],
        *,
        earlier: Sequence[SentenceScore] = (),
        since: float | None = None,
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
        """Score the next sentences of several answers together, with one batch for the aligner.

        Parameters
        ----------
        answers
            The sentences of each answer, in order.
        earlier
            What each answer's sentences before them were scored as.
        since
            The ``time.perf_counter()`` at which they were known to be complete, None for given responses.

        Returns
        -------
        list of list of SentenceScore
            As ``answers``.
        """
        sentences = [sentence for answer in answers for sentence in answer]
        if not sentences:
            return [[] for _ in answers]
        supports, failure = self._supports([s.text for s in sentences])
        before = self._earlier(answers, earlier, supports)
        features = [self.features(*found) for found in zip(sentences, supports, before, strict=True)]
        statuses = [self._status(s, failure) for s in sentences]
        scores, attributions = self._aggregate(features, statuses)
        latency_ms = None if since is None else (time.perf_counter() - since) * 1e3
        scored = iter(
            SentenceScore(
                text=sentence.text,
                start=sentence.span.char_start,
                end=sentence.span.char_stop,
                token_start=sentence.span.token_start,
                token_end=sentence.span.token_stop,
                score=score,
                status=status,
                features=values.to_dict(),
                reason=_reason(sentence, status, failure),
                attribution=attribution,
                evidence=support.evidence if support else None,
                latency_ms=latency_ms,
                truncated=sentence.span.truncated,
            )
            for sentence, support, values, status, score, attribution in zip(
                sentences, supports, features, statuses, scores, attributions, strict=True
            )
        )
        return [[next(scored) for _ in answer] for answer in answers]

    def features(
        self, sentence: SentenceSignals, support: Support | None, earlier: EarlierSentences
    ) -> SentenceFeatures:
        """Compute the features of one sentence."""
        return sentence_features(
            self._schema,
            sentence,
            support=support,
            lexicon=self._lexicon,
            question_words=self._question_words,
            earlier=earlier,
        )

    def _earlier(
        self,
        answers: Sequence[Sequence[SentenceSignals]],
        earlier: Sequence[Sequence[SentenceScore]],
        supports: Sequence[Support | None],
    ) -> list[EarlierSentences]:
        """Return what came before each sentence in its answer."""
        found = []
        own = iter(supports)
        for answer, scored in zip(answers, earlier, strict=True):
            before = EarlierSentences()
            for score in scored:
                before = before.followed_by(score.text, score.features.get("align_score"))
            for sentence in answer:
                found.append(before)
                support = next(own)
                before = before.followed_by(sentence.text, None if support is None else support.score)
        return found

    def _supports(self, texts: Sequence[str]) -> tuple[list[Support | None], str | None]:
        """Align what can be checked; a failing aligner is reported as the sentences' reason, not raised."""
        supports: list[Support | None] = [None] * len(texts)
        wanted = [i for i, text in enumerate(texts) if is_checkable(text)]
        if self._aligner is None or not self.prompt.has_context or not wanted:
            return supports, None
        try:
            found = self._aligner.align(self.prompt.passages, [texts[i] for i in wanted])
        except Exception as error:  # an aligner is the user's code: generation must survive it
            logger.exception("aligner %r failed; its sentences get the status 'failed'", self._aligner.name)
            return supports, f"aligner {self._aligner.name!r} failed: {type(error).__name__}: {error}"
        for i, support in zip(wanted, found, strict=True):
            supports[i] = support
        return supports, None

    def _status(self, sentence: SentenceSignals, failure: str | None) -> Status:
        if not self.prompt.has_context:
            return "no_context"
        if not is_checkable(sentence.text) or not len(sentence.token_ids):
            return "not_checkable"
        if failure is not None:
            return "failed"
        return "scored" if self._aggregator is not None else "no_aggregator"

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


def _reason(sentence: SentenceSignals, status: Status, failure: str | None) -> str | None:
    if status == "not_checkable":
        return "no token of its own" if is_checkable(sentence.text) else "no letter or digit"
    return {"failed": failure, "no_context": "the context is empty"}.get(status)
