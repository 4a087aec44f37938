"""Proposals of the next sentence as texts, by a server that continues the beginning of an answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any

from fod.config import FODConfig, RepairConfig, check_count
from fod.guards import Guards, altered_names, hidden_noun_pronoun
from fod.search import Beam, Candidate, CandidateStop, Handle, Wanted
from syncheck import SentenceScore
from syncheck.base.errors import InputError
from syncheck.results import ContinuationRequest, Piece

_USAGE_SECONDS = 2.0
"""How long the numbers of tokens are waited for after the end of a text."""
REASK = (
    "A sentence of your last answer is not supported by the passages: “{sentence}” {evidence}Answer again, and state "
    "only what the passages say."
)
"""The instruction of another try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a server may spend on one answer; None is without limit.

    When it ends, so does the answer: with the sentences that passed, and the reason in its trace.
    """

    samples: int | None = None
    """Number of sampled sentences."""
    rounds: int | None = None
    """Number of rounds of samples, or of further tries."""
    tokens: int | None = None
    """Number of tokens that are written, those of rejected sentences included."""
    seconds: float | None = None
    """Time for the answer, above 0."""

    def __post_init__(self) -> None:
        for name in ("samples", "rounds", "tokens"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"seconds must be above 0; found {self.seconds}")


@dataclass(slots=True)
class Spent:
    """What a server has spent on an answer, all requests together."""

    requests: int = 0
    samples: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of prompts that the server took from its cache, as far as it says so."""
    completion_tokens: int = 0
    is_exact: bool = True
    """False if the server did not report the tokens of a request that was left before its end; its pieces then count
    as one token each, and its prompt as none."""

    def add(self, request: _Count) -> None:
        """Add the tokens of a request that is over."""
        self.prompt_tokens += request.prompt
        self.cached_tokens += request.cached
        self.completion_tokens += request.total
        self.is_exact &= None in request.told or (bool(request.told) and request.told >= request.written.keys())


class _Count:
    """Tokens of one request so far; those of a sample are what the server reports, or else its pieces."""

    def __init__(self) -> None:
        self.written: Counter[int | None] = Counter()  # by sample; under None, by all together
        self.told: set[int | None] = set()  # of which the server has reported
        self.prompt = self.cached = 0

    @property
    def total(self) -> int:
        """Number of tokens of all samples."""
        return self.written[None] if None in self.told else self.written.total()

    def add(self, piece: Piece) -> int:
        """Count a piece, and tell how many tokens its sample has."""
        self.written[piece.sample] += bool(piece.text)
        if (usage := piece.usage) is not None:
            details = usage.get("prompt_tokens_details")
            self.prompt = max(self.prompt, _number(usage, "prompt_tokens"))
            self.cached = max(self.cached, _number(details, "cached_tokens"))
            self.written[piece.sample] = _number(usage, "completion_tokens")
            self.told.add(piece.sample)
        return self.written[piece.sample]


def _number(values: object, name: str) -> int:
    value = values.get(name) if isinstance(values, Mapping) else None
    return value if isinstance(value, int) else 0


class _Ended(Exception):
    """The budget has ended; says which."""


async def _read_usage(pieces: AsyncGenerator[object]) -> None:
    """Read what comes after the text, for the numbers of tokens."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_USAGE_SECONDS):
            async for _ in pieces:
                pass


@dataclass(frozen=True, slots=True)
class _Written:
    """A part of a continuation: its sentences, in the text that the model has written."""

    text: str
    start: int
    end: int
    spans: tuple[Any, ...]
    stop: CandidateStop | None = None
    is_cut_off: bool = False
    tokens: int = 0

    @property
    def own(self) -> str:
        return self.text[self.start : self.end]

    def without_last(self) -> _Written:
        """Leave out the last sentence, and the text after the one before."""
        *kept, _ = self.spans
        return replace(self, spans=tuple(kept), end=kept[-1].end if kept else self.start)


class _Continuation:
    """A continuation while it arrives."""

    def __init__(self, segmenter: Any) -> None:  # noqa: ANN401 - of Verifier.continuations
        self._segmenter = segmenter
        self._at = len(segmenter.text)  # where the text begins that was not taken yet
        self._closed: list[Any] = []  # sentences that what follows has closed
        self._last: tuple[Any, ...] = ()  # those that the end of the text closes
        self._tokens = self._taken = 0  # that have arrived, and those of what was taken
        self.stop: CandidateStop | None = None

    def add(self, piece: Piece, tokens: int) -> None:
        """Add a piece, unless the text has ended; with it, the text has so many tokens."""
        if self.stop is None:
            self._closed += self._segmenter.push(piece.text)
            self._tokens = tokens
            if piece.stop is not None:
                self.end(piece.stop)

    def end(self, stop: CandidateStop = "end_of_text") -> None:
        """End the text, unless it has ended."""
        if self.stop is None:
            self.stop, self._last = stop, tuple(self._segmenter.finish())

    @property
    def is_due(self) -> bool:
        """True if the next sentence is whole, or there is none."""
        return bool(self._closed) or self.stop is not None

    @property
    def unfinished(self) -> str:
        """The text that was not taken."""
        return str(self._segmenter.text[self._at :]).strip()

    def take(self) -> _Written:
        """Take the next sentence; at the end of the text, all that it closes."""
        text, start, stop = self._segmenter.text, self._at, None
        if self._closed:
            spans: tuple[Any, ...] = (self._closed.pop(0),)
            self._at = spans[0].end
        else:
            spans, stop, self._at = self._last, self.stop, len(text)
        is_cut_off = stop == "length" and bool(spans) and self._segmenter.breaks_off
        tokens, self._taken = self._tokens - self._taken, self._tokens
        return _Written(text, start, self._at, spans, stop, is_cut_off, tokens)


class TextProposer:
    """Proposes sentences that a server writes; what :class:`fod.search.Wanted` asks for.

    ``reader`` is a verifier's ``continuations`` of the question, ``ask`` gives the pieces of a request and is closed to
    cancel it, and ``in_thread`` runs the scoring. With ``reasks``, a sentence in place of a failing one is asked for.

    Attributes
    ----------
    spent : Spent
        What the server has spent so far.
    ended : str or None
        Why the budget has ended; then nothing more is proposed.
    unfinished : str
        Text of the stream that was not proposed when the budget ended.
    """

    def __init__(
        self,
        reader: Any,  # noqa: ANN401 - of Verifier.continuations
        ask: Callable[[ContinuationRequest], AsyncGenerator[Piece]],
        config: FODConfig | RepairConfig,
        budget: Budget,
        *,
        seed: int,
        reasks: bool,
        in_thread: Callable[..., Awaitable[Any]],
    ) -> None:
        self._reader = reader
        self._ask = ask
        self._config = config
        self._budget = budget
        self._seed = seed
        self._reasks = reasks
        self._in_thread = in_thread
        self._until = None if budget.seconds is None else time.monotonic() + budget.seconds
        self._stream: tuple[AsyncGenerator[tuple[Piece, int]], _Continuation] | None = None
        self._texts: dict[Handle, str] = {}
        self._tokens: dict[Handle, int] = {}
        self._counts: list[_Count] = []  # of open requests
        self._round = 0
        self._greedy: Candidate | None = None  # the last one, which others may replace
        self.spent = Spent()
        self.ended: str | None = None
        self.unfinished = ""

    async def __call__(self, wanted: Wanted) -> list[Candidate] | None:
        """Propose candidates; None if the budget has ended."""
        left = None if self._until is None else self._until - time.monotonic()
        limit = asyncio.timeout(left)
        try:
            async with limit:
                return await self._proposed(wanted)
        except _Ended as ended:
            self.ended = str(ended)
        except TimeoutError:
            if not limit.expired():
                raise
            self.ended = f"the budget of {self._budget.seconds:g} seconds has ended"
        if self._stream is not None:
            self.unfinished = self._stream[1].unfinished
        return None

    async def close(self) -> None:
        """Cancel the stream, if one is open."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream[0].aclose()

    def hidden(self, beam: Beam) -> list[tuple[int, str]]:
        """List the texts that the model has written and the answer leaves out, with their places in the answer."""
        hidden, at = [], 0
        for handle in beam.handles:
            if handle in beam.skipped:
                hidden.append((at, self._texts[handle]))
            else:
                at += len(self._texts[handle])
        return hidden

    async def _proposed(self, wanted: Wanted) -> list[Candidate]:
        self._round += 1
        if wanted.in_place and not self._reasks:
            return []
        if wanted.samples is None and not wanted.in_place:
            self._greedy = None
            written = [(0, await self._next(wanted.beams[0]))]
            (self._greedy,) = candidates = await self._in_thread(self._candidates, wanted.beams, written, guards=False)
            return list(candidates)
        await self.close()
        each = wanted.samples or 1
        self._begin_round(each * len(wanted.beams))
        tasks = [asyncio.create_task(self._samples(beam, each, wanted)) for beam in wanted.beams]
        try:
            sampled = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        different = {(parent, w.own, w.stop): w for parent, samples in enumerate(sampled) for w in samples}
        written = [(parent, w) for (parent, *_), w in different.items()]
        return list(await self._in_thread(self._candidates, wanted.beams, written, guards=self._config.guards))

    def _begin_round(self, samples: int) -> None:
        spent, budget = self.spent, self._budget
        if budget.rounds is not None and spent.rounds >= budget.rounds:
            raise _Ended(f"the budget of {budget.rounds} rounds has ended")
        if budget.samples is not None and spent.samples + samples > budget.samples:
            raise _Ended(f"the budget of {budget.samples} samples has ended")
        spent.rounds += 1
        spent.samples += samples

    async def _next(self, beam: Beam) -> _Written:
        """Read the next sentence of the stream, which is opened if it is not."""
        if self._stream is None:
            request = self._request(beam, temperature=self._config.temperature if self._config.sample_first else None)
            self._stream = self._pieces(request), _Continuation(self._reader.segmenter(request.beginning))
        pieces, continuation = self._stream
        while not continuation.is_due:
            arrived = await anext(pieces, None)
            if arrived is None:
                continuation.end()
            else:
                continuation.add(*arrived)
        if continuation.stop is not None:
            await _read_usage(pieces)
        return continuation.take()

    async def _samples(self, beam: Beam, each: int, wanted: Wanted) -> list[_Written]:
        """Ask for sentences after a beam, in place of the last greedy one with ``wanted.in_place``."""
        if wanted.in_place:
            request = replace(self._request(beam), samples=1, instruction=self._instruction())
        else:
            config = self._config
            request = replace(self._request(beam), samples=each, temperature=config.temperature, top_p=config.top_p)
        samples: dict[int, _Continuation] = {}
        async with aclosing(self._pieces(request)) as pieces:
            async for piece, tokens in pieces:
                if (sample := piece.sample) is None:
                    continue
                if not 0 <= sample < each:
                    raise InputError(f"the server was asked for {each} samples; found a piece of sample {sample}")
                if sample not in samples:
                    samples[sample] = _Continuation(self._reader.segmenter(request.beginning))
                samples[sample].add(piece, tokens)
                if len(samples) == each and all(one.is_due for one in samples.values()):
                    break
            if len(samples) == each and all(one.stop is not None for one in samples.values()):
                await _read_usage(pieces)
        arrived = [samples[number] for number in sorted(samples)]  # a server may have given fewer
        for one in arrived:
            if not one.is_due:
                one.end()
        return [one.take() for one in arrived]

    def _request(self, beam: Beam, *, temperature: float | None = None) -> ContinuationRequest:
        """Ask for what comes after the text of a beam, hidden sentences included."""
        self.spent.requests += 1
        top_p = None if temperature is None else self._config.top_p
        beginning = "".join(self._texts[handle] for handle in beam.handles)
        tokens = sum(self._tokens[handle] for handle in beam.handles)
        seed = self._seed + self.spent.requests - 1
        return ContinuationRequest(beginning, None, seed, temperature, top_p, tokens=tokens)

    async def _pieces(self, request: ContinuationRequest) -> AsyncGenerator[tuple[Piece, int]]:
        """Read the pieces of a request, each with the number of tokens that its sample then has."""
        count = _Count()
        self._counts.append(count)
        try:
            async with aclosing(self._ask(request)) as pieces:
                async for piece in pieces:
                    yield piece, count.add(piece)
                    most = self._budget.tokens
                    if most is not None and self.spent.completion_tokens + sum(c.total for c in self._counts) >= most:
                        raise _Ended(f"the budget of {most} tokens has ended")
        finally:
            self._counts.remove(count)
            self.spent.add(count)

    def _instruction(self) -> str:
        assert self._greedy is not None
        evidence = next((s.evidence.text for s in self._greedy.sentences if s.evidence is not None), None)
        told = "" if evidence is None else f"The passages say: “{evidence}” "
        return REASK.format(sentence=self._greedy.text.strip(), evidence=told)

    def _candidates(
        self, beams: Sequence[Beam], written: Sequence[tuple[int, _Written]], *, guards: bool
    ) -> list[Candidate]:
        """Score what continues each beam, in one batch."""
        since = time.perf_counter()
        scored = self._reader.scores(
            [w.text for _, w in written],
            [w.spans for _, w in written],
            earlier=[beams[parent].sentences for parent, _ in written],
            since=since,
        )
        read = [self._guards(beam) if guards else None for beam in beams]
        return [
            self._candidate(beams[parent], (self._round, row), parent, one, sentences, read[parent])
            for row, ((parent, one), sentences) in enumerate(zip(written, scored, strict=True))
        ]

    def _candidate(
        self,
        beam: Beam,
        handle: Handle,
        parent: int,
        written: _Written,
        scored: Sequence[SentenceScore],
        guards: Guards | None,
    ) -> Candidate:
        config, by = self._config, len(beam.text) - written.start
        sentences = [sentence.moved(characters=by, tokens=0) for sentence in scored]
        unfinished: tuple[SentenceScore, ...] = ()
        if isinstance(config, RepairConfig) and config.guards and written.is_cut_off:
            unfinished, written = (replace(sentences.pop(), truncated=True),), written.without_last()
        self._texts[handle] = written.own
        self._tokens[handle] = written.tokens
        sources, loose = (self._reader.query.question, *self._reader.query.passages), None
        if isinstance(config, RepairConfig) and config.clear_pronouns:
            replaced = None if self._greedy is None else self._greedy.text
            loose = hidden_noun_pronoun(written.own, beam, self._texts.__getitem__, replaced=replaced, sources=sources)
        candidate = Candidate(
            parent,
            tuple(sentences),
            (),
            written.stop,
            handle,
            written.own,
            altered=tuple(altered_names(written.own, sources)) if config.exact_names else (),
            loose=loose,
            unfinished=unfinished,
        )
        is_cut_off = written.is_cut_off and not (unfinished and sentences)
        return candidate if guards is None else guards.judged(candidate, is_cut_off=is_cut_off)

    def _guards(self, beam: Beam) -> Guards:
        replaced = () if self._greedy is None else self._greedy.sentences
        return Guards(self._reader, earlier=beam.sentences, replaced=replaced, refusal=self._config.message)
