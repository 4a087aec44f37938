"""Scored sessions: answers that are scored while they grow, with a scorer for each row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

import torch

from syncheck.base.printable import counted, quoted, summary
from syncheck.decoding.generation import GenerationSetup
from syncheck.decoding.loop import Adjust, Step, decode
from syncheck.decoding.measuring import Transcript
from syncheck.decoding.rows import Scoped
from syncheck.decoding.search import SearchSession
from syncheck.decoding.session import GivenSession, RoundSession, Session
from syncheck.reading import Claim
from syncheck.results import Report
from syncheck.results.types import SentenceScore, SentenceSignals, SentenceSpan, TokenSignals
from syncheck.scoring import SentenceScorer, first_below


class ScoredAnswer:
    """One answer as scored so far.

    Attributes
    ----------
    scorer : SentenceScorer
    sentences : list of SentenceScore
    signals : list of SentenceSignals
        Signals of each sentence.
    """

    def __init__(self, scorer: SentenceScorer) -> None:
        self.scorer = scorer
        self.sentences: list[SentenceScore] = []
        self.signals: list[SentenceSignals] = []

    def __repr__(self) -> str:
        return summary(self, f"{counted(len(self.sentences), 'sentence')} to {quoted(self.scorer.query.question)}")

    def keep(self, signals: Sequence[SentenceSignals], sentences: Sequence[SentenceScore]) -> None:
        """Add sentences with their signals and scores."""
        self.signals += signals
        self.sentences += sentences

    def cut(self, sentences: int) -> None:
        """End the answer after this many of its sentences."""
        del self.sentences[sentences:], self.signals[sentences:]

    def report(self, transcript: Transcript, *, stop: str | None, seconds: float | None) -> Report:
        """Build the report of the answer as scored so far.

        ``transcript`` is its text with the characters of its tokens; ``stop`` and ``seconds`` are as in
        :class:`syncheck.Report`.
        """
        count = sum(len(signals.token_ids) for signals in self.signals)
        return Report(
            prompt=self.scorer.query,
            response=transcript.text,
            sentences=tuple(self.sentences),
            tokens=TokenSignals.concatenate(
                self.signals, text=transcript.text, char_spans=transcript.char_spans[:count]
            ),
            stop=stop,
            seconds=seconds,
            monitor=self.scorer.monitor,
            answer_scale=self.scorer.answer_scale,
            after_end=transcript.after_end,
        )


def scored_answers(
    scorers: Sequence[SentenceScorer], measured: Sequence[Sequence[SentenceSignals]]
) -> list[ScoredAnswer]:
    """Score measured answers; those of one scorer are scored together."""
    answers = [ScoredAnswer(scorer) for scorer in scorers]
    _score(answers, dict(enumerate(measured)), since=None)
    return answers


S = TypeVar("S", bound=Session)
R = TypeVar("R", bound=RoundSession)


class ScoredRows(Scoped, Generic[S]):
    """A session whose sentences are scored, and a context manager; the base of those below.

    There is one of ``scorers`` for each row. Rows with the same prompt should share one: their sentences are then
    scored together. ``stops`` say why each row is over, as far as the session knows.
    """

    def __init__(self, decoding: S, scorers: Sequence[SentenceScorer]) -> None:
        self.decoding = decoding
        self.answers = [ScoredAnswer(scorer) for scorer in scorers]
        self.stops: Sequence[str | None] = [None] * len(scorers)
        self._cut: set[int] = set()  # rows that a score has ended

    @property
    def scorer(self) -> SentenceScorer:
        """Scorer of the first row; of all rows if they have the same prompt."""
        return self.answers[0].scorer

    def claim(self, text: str, earlier: Sequence[str] = ()) -> Claim:
        """Read a sentence of an answer after those before it, as far as its text alone tells."""
        return Claim(text, SentenceSpan(len(earlier), 0, len(text), 0, 0)).after(earlier)

    def reports(self, *, stops: Sequence[str | None] | None = None, seconds: float | None) -> list[Report]:
        """Build the report of each row as scored so far; ``stops`` replaces what the session knows of them."""
        stops = self.stops if stops is None else stops
        return [
            answer.report(
                Transcript(row.text, row.char_spans),
                stop="below_threshold" if index in self._cut else stop,
                seconds=seconds,
            )
            for index, (answer, row, stop) in enumerate(zip(self.answers, self.decoding.rows, stops, strict=True))
        ]

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self.decoding)


class ScoredGiven(ScoredRows[GivenSession]):
    """Given responses that are scored; a context manager."""

    def replay(
        self,
        token_ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[SentenceSpan]],
        transcripts: Sequence[Transcript],
    ) -> None:
        """Measure and score a given response for each row; see :meth:`GivenSession.replay`."""
        measured: dict[int, list[SentenceSignals]] = {row: [] for row in range(len(token_ids))}
        for row, sentences in self.decoding.replay(token_ids, spans, transcripts):
            measured[row] += sentences
        _score(self.answers, dict(measured), since=None)

    def extend(
        self, token_ids: Sequence[int], spans: Sequence[SentenceSpan], transcript: Transcript, *, since: float
    ) -> list[SentenceScore]:
        """Measure and score the next sentences of one given response; see :meth:`GivenSession.extend`."""
        return _score(self.answers, {0: self.decoding.extend(token_ids, spans, transcript)}, since=since)[0]


class ScoredRounds(ScoredRows[R]):
    """Rows that grow and are scored round by round; a context manager."""

    _due_since: float | None = None

    def cut_below(self, threshold: float | None) -> None:
        """End each row after its first sentence that falls below a score, also if the row has ended with it."""
        for index, (answer, row) in enumerate(zip(self.answers, self.decoding.rows, strict=True)):
            below = None if index in self._cut else first_below(answer.sentences, threshold)
            if below is not None:
                answer.cut(below + 1)
                row.stop_after(tokens=answer.signals[-1].span.token_end, sentences=below + 1)
                self._cut.add(index)

    def is_due(self) -> bool:
        """Tell whether :meth:`score_round` should be called; ask after each token."""
        if self._due_since is None and any(row.closed for row in self.decoding.rows):
            self._due_since = time.perf_counter()
        return self.decoding.due()

    def score_round(self) -> list[list[SentenceScore]]:
        """Measure and score the sentences that the rows closed in this round, and begin the next round.

        Returns the scores of each row's sentences.
        """
        since = self._due_since or time.perf_counter()
        measured = self.decoding.measure()
        self.decoding.advance()
        self._due_since = None
        return _score(self.answers, dict(enumerate(measured)), since=since)


class ScoredSession(ScoredRounds[SearchSession]):
    """Rows that a decoder writes, with its sentences scored; a context manager made by ``Monitor.session``."""

    def steps(
        self,
        plan: GenerationSetup,
        *,
        generator: torch.Generator | None = None,
        adjust: Adjust | None = None,
        stop_below: float | None = None,
    ) -> Iterator[tuple[Step, list[list[SentenceScore]] | None]]:
        """Decode until every row is over or has a sentence that falls below a score; see :func:`decode`.

        Yields
        ------
        step : Step
        sentences : list of list of SentenceScore or None
            The sentences that each row has closed in a round, if the step ends one.
        """
        for step in decode(self.decoding, plan, generator=generator, adjust=adjust):
            self.stops, sentences = step.stops, None
            if self.is_due():
                known = [len(answer.sentences) for answer in self.answers]
                self.score_round()
                self.cut_below(stop_below)
                sentences = [answer.sentences[n:] for answer, n in zip(self.answers, known, strict=True)]
            yield step, sentences

    def decode(self, plan: GenerationSetup, **options: Any) -> Iterator[list[list[SentenceScore]]]:  # noqa: ANN401
        """Decode as :meth:`steps` does, with its arguments, and yield the sentences of each round."""
        for _, sentences in self.steps(plan, **options):
            if sentences is not None:
                yield sentences


def _score(
    answers: Sequence[ScoredAnswer], measured: dict[int, Sequence[SentenceSignals]], *, since: float | None
) -> list[list[SentenceScore]]:
    """Score and keep the next sentences of each answer; answers of one scorer are scored together."""
    scored: list[list[SentenceScore]] = [[] for _ in answers]
    for scorer in dict.fromkeys(answer.scorer for answer in answers):
        rows = [row for row, answer in enumerate(answers) if answer.scorer is scorer]
        earlier = [answers[row].sentences for row in rows]
        sentences_of_rows = scorer.answers([measured[row] for row in rows], earlier=earlier, since=since)
        for row, sentences in zip(rows, sentences_of_rows, strict=True):
            scored[row] = sentences
            answers[row].keep(measured[row], sentences)
    return scored
