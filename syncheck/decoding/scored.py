"""Answers that are scored while they grow: a decoding session with a scorer for every row."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack

import numpy as np
import torch

from syncheck.decoding.generation import GenerationSetup
from syncheck.decoding.loop import StopReason, decode
from syncheck.decoding.measuring import Transcript
from syncheck.decoding.scoped import Scoped
from syncheck.decoding.session import DecodingSession
from syncheck.report import Report
from syncheck.scoring import SentenceScorer
from syncheck.types import SentenceScore, SentenceSignals, SentenceSpan, TokenSignals

__all__ = ["ScoredAnswer", "ScoredSession"]


class ScoredAnswer:
    """One answer as far as it is scored.

    Attributes
    ----------
    scorer : SentenceScorer
    sentences : list of SentenceScore
    signals : list of SentenceSignals
        What they were scored by, one for each.
    """

    def __init__(self, scorer: SentenceScorer) -> None:
        self.scorer = scorer
        self.sentences: list[SentenceScore] = []
        self.signals: list[SentenceSignals] = []

    def keep(self, signals: Sequence[SentenceSignals], sentences: Sequence[SentenceScore]) -> None:
        """Add scored sentences."""
        self.signals += signals
        self.sentences += sentences

    def report(self, transcript: Transcript, *, stop: str | None, seconds: float | None) -> Report:
        """Return the answer as scored so far."""
        return Report(
            prompt=self.scorer.prompt,
            response=transcript.text,
            sentences=tuple(self.sentences),
            tokens=_joined(transcript, self.signals),
            stop=stop,
            seconds=seconds,
        )


class ScoredSession(Scoped):
    """A decoding session whose sentences are scored; a context manager.

    Parameters
    ----------
    decoding
        The session.
    scorers
        That of each of its rows; rows of one prompt share theirs, and its sentences are then scored together.

    Attributes
    ----------
    decoding : DecodingSession
    answers : list of ScoredAnswer
        One for each row that the session began with.
    """

    def __init__(self, decoding: DecodingSession, scorers: Sequence[SentenceScorer]) -> None:
        self.decoding = decoding
        self.answers = [ScoredAnswer(scorer) for scorer in scorers]
        self._due_since: float | None = None

    @property
    def scorer(self) -> SentenceScorer:
        """The scorer of a session of one prompt."""
        return self.answers[0].scorer

    def decode(
        self, plan: GenerationSetup, *, generator: torch.Generator | None = None
    ) -> Generator[list[list[SentenceScore]], None, Sequence[StopReason | None]]:
        """Decode until every row is over; see :func:`decode`.

        Yields
        ------
        list of list of SentenceScore
            What each row has closed in a round.

        Returns
        -------
        sequence of StopReason
            Why each row has stopped.
        """
        stops: Sequence[StopReason | None] = ()
        for step in decode(self.decoding, plan, generator=generator):
            stops = step.stops
            if self.is_due():
                yield self.score_round()
        return stops

    def is_due(self) -> bool:
        """Whether :meth:`score_round` should be called; ask after each token."""
        if self._due_since is None and any(row.closed for row in self.decoding.rows):
            self._due_since = time.perf_counter()
        return self.decoding.due()

    def score_round(self) -> list[list[SentenceScore]]:
        """Measure and score what the rows closed in this round, and go on behind it; one list per row."""
        since = self._due_since or time.perf_counter()
        measured = self.decoding.measure()
        self.decoding.advance()
        self._due_since = None
        return self._score(dict(enumerate(measured)), since=since)

    def replay(
        self,
        token_ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[SentenceSpan]],
        transcripts: Sequence[Transcript],
    ) -> None:
        """Measure and score a given response of each row."""
        measured: dict[int, list[SentenceSignals]] = {row: [] for row in range(len(token_ids))}
        for row, sentences in self.decoding.replay(token_ids, spans, transcripts):
            measured[row] += sentences
        self._score(measured, since=None)

    def reports(self, *, stops: Sequence[str | None], seconds: float | None) -> list[Report]:
        """Return what the rows decoded, as scored so far."""
        return [
            answer.report(Transcript(row.text, row.char_spans), stop=stop, seconds=seconds)
            for answer, row, stop in zip(self.answers, self.decoding.rows, stops, strict=True)
        ]

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self.decoding)

    def _score(self, measured: dict[int, list[SentenceSignals]], *, since: float | None) -> list[list[SentenceScore]]:
        scored: list[list[SentenceScore]] = [[] for _ in self.answers]
        for scorer in dict.fromkeys(answer.scorer for answer in self.answers):
            rows = [row for row, answer in enumerate(self.answers) if answer.scorer is scorer]
            earlier = [self.answers[row].sentences for row in rows]
            found = scorer.answers([measured[row] for row in rows], earlier=earlier, since=since)
            for row, sentences in zip(rows, found, strict=True):
                scored[row] = sentences
                self.answers[row].keep(measured[row], sentences)
        return scored


def _joined(transcript: Transcript, signals: Sequence[SentenceSignals]) -> TokenSignals:
    count = sum(len(s.token_ids) for s in signals)
    spans = np.asarray(transcript.char_spans[:count], np.int64).reshape(count, 2)

    def column(name: str, dtype: type) -> np.ndarray:
        parts = [getattr(s, name) for s in signals]
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    return TokenSignals(
        text=transcript.text,
        token_ids=column("token_ids", np.int64),
        char_spans=spans,
        log_prob=column("log_prob", np.float32),
        log_prob_without_context=column("log_prob_without_context", np.float32),
        entropy=column("entropy", np.float32),
        kl=column("kl", np.float32),
    )
