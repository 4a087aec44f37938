"""Scored sessions: answers that are scored while they grow, with a scorer for each row, and text read as it arrives."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from syncheck.base.printable import counted, quoted, summary
from syncheck.decoding.generation import GenerationSetup, after_end, check_response, end_tokens_of
from syncheck.decoding.loop import Step, decode
from syncheck.decoding.rows import Scoped, Transcript
from syncheck.decoding.search import SearchSession
from syncheck.decoding.session import GivenSession, RoundSession
from syncheck.results import Report
from syncheck.results.types import RagPrompt, SentenceScore, SentenceSignals, SentenceSpan, TokenSignals
from syncheck.scoring import SentenceScorer, first_below
from syncheck.signals import check_window
from syncheck.text.sentences import BoundaryFinder, IncrementalSegmenter, SegmenterConfig, TextTokens, ends_of
from syncheck.watching.growing import GrowingText, SentenceReader, WholeCharacters

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(eq=False, repr=False)
class ScoredAnswer:
    """One answer as scored so far."""

    scorer: SentenceScorer
    sentences: list[SentenceScore] = field(default_factory=list)
    signals: list[SentenceSignals] = field(default_factory=list)
    """Signals of each sentence."""

    def __repr__(self) -> str:
        return summary(self, f"{counted(len(self.sentences), 'sentence')} to {quoted(self.scorer.query.question)}")

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
    _score(answers, measured, since=None)
    return answers


R = TypeVar("R", bound=RoundSession)


class ScoredRounds(Scoped, SentenceReader, Generic[R]):
    """Rows that grow and are scored round by round; a context manager.

    There is one of ``scorers`` for each row. Rows with the same prompt should share one: their sentences are then
    scored together. ``stops`` say why each row is over, as far as the session knows.
    """

    def __init__(self, decoding: R, scorers: Sequence[SentenceScorer]) -> None:
        self.decoding = decoding
        self.scorer = scorers[0]  # of all rows if they have the same prompt
        self.answers = [ScoredAnswer(scorer) for scorer in scorers]
        self.stops: Sequence[str | None] = [None] * len(scorers)
        self._cut: set[int] = set()  # rows that a score has ended
        self._due_since: float | None = None

    def reports(self, *, stops: Sequence[str | None] | None = None, seconds: float | None) -> list[Report]:
        """Build the report of each row as scored so far; ``stops`` replaces what the session knows of them."""
        stops = self.stops if stops is None else stops
        return [
            answer.report(
                row.transcript(),
                stop="below_threshold" if index in self._cut else stop,
                seconds=seconds,
            )
            for index, (answer, row, stop) in enumerate(zip(self.answers, self.decoding.rows, stops, strict=True))
        ]

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self.decoding)

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
        return _score(self.answers, measured, since=since)


class ScoredSession(ScoredRounds[SearchSession]):
    """Rows that a decoder writes, with its sentences scored; a context manager made by ``Monitor.session``."""

    def steps(
        self,
        plan: GenerationSetup,
        *,
        stop_below: float | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Iterator[tuple[Step, list[list[SentenceScore]] | None]]:
        """Decode until every row is over or has a sentence that falls below a score; options as of :func:`decode`.

        Yields
        ------
        step : Step
        sentences : list of list of SentenceScore or None
            The sentences that each row has closed in a round, if the step ends one.
        """
        for step in decode(self.decoding, plan, **options):
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
    answers: Sequence[ScoredAnswer], measured: Sequence[Sequence[SentenceSignals]], *, since: float | None
) -> list[list[SentenceScore]]:
    """Score and keep the next sentences of each answer; answers of one scorer are scored together."""
    scored: list[list[SentenceScore]] = [[] for _ in answers]
    for scorer in dict.fromkeys(answer.scorer for answer in answers):
        rows = [row for row, answer in enumerate(answers) if answer.scorer is scorer]
        earlier = [answers[row].sentences for row in rows]
        sentences_of_rows = scorer.answers([measured[row] for row in rows], earlier=earlier, since=since)
        for row, sentences in zip(rows, sentences_of_rows, strict=True):
            scored[row] = sentences
            answers[row].signals += measured[row]
            answers[row].sentences += sentences
    return scored


_OVERLAP = 16
"""Number of tokens that are made again when more text is tokenised, so that the tokenizer sees the text before it."""
_SAME = 4
"""Number of these tokens, at the end, that must come out as before."""
_UNREAD = 512
"""Number of characters after which text is tokenised although no sentence seems to end."""
_LONG_WORD = 32
"""Number of characters, at the end of a run without white space, whose tokens may still change."""
_CERTAIN = re.compile(r"\s+(?=\S)|(?<=[。！？｡，、；：])(?=\S)")
"""Position before which later text cannot change the tokens."""


class GrowingResponse:
    """Growing text of a response, with its tokens and sentences as soon as more text cannot change them.

    Only the tail of the text is tokenised, once for each sentence, so that the work grows with the text and not with
    its square. (A slow tokenizer, which does not report the positions of its tokens, gets the whole text each time.)
    ``text``, which may be given whole, lacks half a character at its end, ``token_ids`` are the tokens that are
    certain, and ``after_end`` is what has come after an end-of-text token and is not read.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompt: RagPrompt,
        *,
        segmenter: SegmenterConfig,
        text: str = "",
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._ends = end_tokens_of(model, tokenizer)
        self._tokens = TextTokens(tokenizer, prompt.with_context_ids)
        self._segmenter = IncrementalSegmenter(segmenter)
        self._finder = BoundaryFinder(segmenter)
        self._pieces = WholeCharacters()
        self._wanted: list[int] = []  # characters up to which tokens close a sentence
        self._skipped: int | None = None  # characters before the first token; None until there is text
        self._places: list[tuple[int, int]] = []  # of each token, as the tokenizer reports them
        self._read = 0  # characters whose tokens are certain
        self.text = text
        self.token_ids: list[int] = []
        self.after_end = ""
        self.is_over = False

    @property
    def char_spans(self) -> list[tuple[int, int]]:
        """Characters of each token in :attr:`text`, half-open."""
        return self._segmenter.char_spans

    @property
    def transcript(self) -> Transcript:
        """Text and tokens so far."""
        return Transcript(self.text, self.char_spans, self.after_end)

    def feed(self, piece: str) -> list[SentenceSpan]:
        """Add text and return the sentences that it closes."""
        if self.is_over:
            return []
        self.text += self._pieces.add(piece)
        self._wanted += [boundary.seen for boundary in self._finder.find(self.text)]
        if not self._wanted and len(self.text) - self._read < _UNREAD:
            return []
        certain = self._certain()
        if certain - self._read < _UNREAD and not any(place <= certain for place in self._wanted):
            return []
        closed = self._take(certain)
        self._wanted = [place for place in self._wanted if place > self._read]
        return closed

    def finish(self) -> list[SentenceSpan]:
        """Close and return the sentences that are open at the end of the response."""
        self._pieces.finish()
        closed = [] if self.is_over else self._take(None)
        if not self.token_ids:
            return closed
        return closed + self._segmenter.finish(self.text[len(self._segmenter.text) :])

    def _certain(self) -> int:
        """Find the end of the text whose tokens are certain."""
        begin = max(self._read, len(self.text) - 8 * _LONG_WORD)
        places = [match.start() for match in _CERTAIN.finditer(self.text, begin)]
        return max([*places[-1:], len(self.text) - _LONG_WORD, self._read])

    def _take(self, certain: int | None) -> list[SentenceSpan]:
        """Read the tokens that end before a character (None: all) and return the sentences that they close."""
        start = self._read
        every, places = self._unread()
        count = len(every)
        if certain is not None:
            count = next((i for i, (_, end) in enumerate(places) if end > certain), count)
        over = next((i for i, token in enumerate(every[:count]) if token in self._ends), None)
        read = len(self.text) if certain is None else places[count - 1][1] if count else start
        if over is not None:
            count, self.is_over = over, True
            first, last = places[over]
            read = first if first < last else read
            self.after_end, self.text = after_end(self._model, self._tokenizer, every[over + 1 :]), self.text[:read]
        if not count:
            self._read = read if certain is None or self.is_over else start
            return []
        model, prompt, known = self._model, self._prompt, len(self.token_ids) + count
        check_window(model, len(prompt.with_context_ids) + known)
        check_response(model, prompt, known)
        spans: list[SentenceSpan] = []
        end = len(self._segmenter.text)
        for token, stop in zip(every[:count], ends_of(places[:count], start=end), strict=True):
            spans += self._segmenter.push(self._tokens.as_read(token, self.text[end:stop]))
            end = stop
        self.token_ids += every[:count]
        self._places += places[:count]
        self._read = read
        return spans

    def _unread(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokenise the text after the known tokens, and locate its tokens."""
        if self._skipped is None:
            self._skipped = self._tokens.skipped(self.text)
        known = self.token_ids
        overlap = self._places[-_OVERLAP][0] if self._tokenizer.is_fast and len(known) > _OVERLAP else None
        if overlap is not None:
            ids, places = self._tokens(self.text, overlap)
            for i in range(_SAME, len(ids) + 1):
                if places[i - 1] == self._places[-1] and ids[i - _SAME : i] == known[-_SAME:]:
                    return ids[i:], places[i:]
        ids, places = self._tokens(self.text, self._skipped)
        if ids[: len(known)] == known:
            return ids[len(known) :], places[len(known) :]
        first = next((i for i, (start, _) in enumerate(places) if start >= self._read), len(ids))
        return ids[first:], places[first:]


class MeasuredText(GrowingText):
    """A growing answer that a language model reads; its ``session``, for the prompt, is closed with it."""

    def __init__(self, session: GivenSession, scorer: SentenceScorer, reading: GrowingResponse) -> None:
        self._session = session
        self._reading = reading
        self._answer = ScoredAnswer(scorer)
        self._scope = ExitStack()
        self._waiting: list[SentenceSpan] = []
        self.sentences = self._answer.sentences

    def __enter__(self) -> Self:
        self._scope.enter_context(self._session)
        return self

    def __exit__(self, *raised: object) -> None:
        self._scope.close()

    @property
    def text(self) -> str:  # noqa: D102
        return self._reading.text

    @property
    def is_over(self) -> bool:
        """True if an end-of-text token was found in the text."""
        return self._reading.is_over

    def feed(self, piece: str) -> int:  # noqa: D102
        self._waiting += self._reading.feed(piece)
        return len(self._waiting)

    def finish(self) -> int:  # noqa: D102
        self._waiting += self._reading.finish()
        return len(self._waiting)

    def score(self, *, since: float) -> None:
        """Measure and score the complete sentences."""
        spans, self._waiting = self._waiting, []
        first = self._answer.signals[-1].span.token_end if self._answer.signals else 0
        ids = self._reading.token_ids[first : spans[-1].token_end]
        measured = self._session.extend(ids, spans, self._reading.transcript)
        _score([self._answer], [measured], since=since)

    def cut(self, sentences: int) -> None:  # noqa: D102
        super().cut(sentences)
        self._answer.cut(sentences)

    def report(self, *, stop: str | None, seconds: float) -> Report:  # noqa: D102
        read = self._reading.transcript
        cut = read if self._stop is None else Transcript(read.text[: self._stop], read.char_spans)
        return self._answer.report(cut, stop=stop, seconds=seconds)
