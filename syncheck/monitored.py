"""Answers that are judged while they grow: a decoding session with a judge for every row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from syncheck.decoding import DecodingSession, Transcript
from syncheck.judging import SentenceJudge
from syncheck.report import Report
from syncheck.scoped import Scoped
from syncheck.types import SentenceScore, SentenceSignals, SentenceSpan, TokenSignals

__all__ = ["JudgedAnswer", "MonitoredSession"]


class JudgedAnswer:
    """One answer as far as it is judged.

    Attributes
    ----------
    judge : SentenceJudge
    sentences : list of SentenceScore
    signals : list of SentenceSignals
        What they were judged by, one for each.
    """

    def __init__(self, judge: SentenceJudge) -> None:
        self.judge = judge
        self.sentences: list[SentenceScore] = []
        self.signals: list[SentenceSignals] = []

    def keep(self, signals: Sequence[SentenceSignals], sentences: Sequence[SentenceScore]) -> None:
        """Add judged sentences."""
        self.signals += signals
        self.sentences += sentences

    def report(self, transcript: Transcript, *, stop: str | None, seconds: float | None) -> Report:
        """Return the answer as judged so far."""
        return Report(
            prompt=self.judge.prompt,
            response=transcript.text,
            sentences=tuple(self.sentences),
            tokens=_joined(transcript, self.signals),
            stop=stop,
            seconds=seconds,
        )


class MonitoredSession(Scoped):
    """A decoding session whose sentences are judged; a context manager.

    Parameters
    ----------
    decoding
        The session.
    judges
        That of each of its rows; rows of one prompt share theirs, and its sentences are then judged together.

    Attributes
    ----------
    decoding : DecodingSession
    answers : list of JudgedAnswer
        One for each row that the session began with.
    """

    def __init__(self, decoding: DecodingSession, judges: Sequence[SentenceJudge]) -> None:
        self.decoding = decoding
        self.answers = [JudgedAnswer(judge) for judge in judges]
        self._due_since: float | None = None

    @property
    def judge(self) -> SentenceJudge:
        """The judge of a session of one prompt."""
        return self.answers[0].judge

    def is_due(self) -> bool:
        """Whether :meth:`judge_round` should be called; ask after each token."""
        if self._due_since is None and any(row.closed for row in self.decoding.rows):
            self._due_since = time.perf_counter()
        return self.decoding.due()

    def judge_round(self) -> list[list[SentenceScore]]:
        """Measure and judge what the rows closed in this round, and go on behind it; one list per row."""
        since = self._due_since or time.perf_counter()
        measured = self.decoding.measure()
        self.decoding.advance()
        self._due_since = None
        return self._judge(dict(enumerate(measured)), since=since)

    def replay(
        self,
        token_ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[SentenceSpan]],
        transcripts: Sequence[Transcript],
    ) -> None:
        """Measure and judge a given response of each row."""
        measured: dict[int, list[SentenceSignals]] = {row: [] for row in range(len(token_ids))}
        for row, sentences in self.decoding.replay(token_ids, spans, transcripts):
            measured[row] += sentences
        self._judge(measured, since=None)

    def reports(self, *, stops: Sequence[str | None], seconds: float | None) -> list[Report]:
        """Return what the rows decoded, as judged so far."""
        return [
            answer.report(Transcript(row.text, row.char_spans), stop=stop, seconds=seconds)
            for answer, row, stop in zip(self.answers, self.decoding.rows, stops, strict=True)
        ]

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self.decoding)

    def _judge(self, measured: dict[int, list[SentenceSignals]], *, since: float | None) -> list[list[SentenceScore]]:
        judged: list[list[SentenceScore]] = [[] for _ in self.answers]
        for judge in dict.fromkeys(answer.judge for answer in self.answers):
            rows = [row for row, answer in enumerate(self.answers) if answer.judge is judge]
            earlier = [self.answers[row].sentences for row in rows]
            found = judge.answers([measured[row] for row in rows], earlier=earlier, since=since)
            for row, sentences in zip(rows, found, strict=True):
                judged[row] = sentences
                self.answers[row].keep(measured[row], sentences)
        return judged


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
