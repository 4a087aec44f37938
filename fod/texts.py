"""Proposals of the next sentence as texts, by a server that continues the beginning of an answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from fod.config import FODConfig, RepairConfig
from fod.continuation import Continuation, WrittenText
from fod.proposers import Proposer
from fod.search import Beam, Candidate, Wanted
from syncheck.base.errors import InputError
from syncheck.decoding import check_count
from syncheck.results import ContinuationRequest, Piece

_USAGE_SECONDS = 2.0
"""How long the numbers of tokens are waited for after the end of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a server may spend on one answer, which ends with it, as its trace says; None is without limit."""

    samples: int | None = None
    """Number of sampled sentences."""
    rounds: int | None = None
    """Number of rounds of samples."""
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
    """Tokens of the prompts; none of a request whose tokens the server does not report."""
    completion_tokens: int = 0
    """Tokens that were written; a piece counts as one where the server does not report them."""

    def add(self, request: _Count) -> None:
        """Add the tokens of a request that is over."""
        self.prompt_tokens += request.prompt
        self.completion_tokens += request.total


class _Count:
    """Tokens of one request so far; those of a sample are what the server reports, or else its pieces."""

    def __init__(self) -> None:
        self.written: Counter[int | None] = Counter()  # by sample; under None, by all together
        self.is_whole = False  # if the server has reported those of all together
        self.prompt = 0

    @property
    def total(self) -> int:
        """Number of tokens of all samples."""
        return self.written[None] if self.is_whole else self.written.total()

    def add(self, piece: Piece) -> int:
        """Count a piece, and tell how many tokens its sample has."""
        self.written[piece.sample] += bool(piece.text)
        if (usage := piece.usage) is not None:
            self.prompt = max(self.prompt, _number(usage, "prompt_tokens"))
            self.written[piece.sample] = _number(usage, "completion_tokens")
            self.is_whole |= piece.sample is None
        return self.written[piece.sample]


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


class _Ended(Exception):
    """The budget has ended; says which."""


async def _read_usage(pieces: AsyncGenerator[object]) -> None:
    """Read what comes after the text, for the numbers of tokens."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_USAGE_SECONDS):
            async for _ in pieces:
                pass


async def _read(pieces: AsyncGenerator[tuple[Piece, int]], continuation: Continuation) -> None:
    """Read pieces until the next sentence is whole or there is none."""
    while not continuation.is_due:
        arrived = await anext(pieces, None)
        if arrived is None:
            continuation.end()
        else:
            continuation.add(*arrived)
    if continuation.stop is not None:
        await _read_usage(pieces)


async def _together(asked: Sequence[Coroutine[Any, Any, list[WrittenText]]]) -> list[list[WrittenText]]:
    """Await all, and cancel them together."""
    tasks = [asyncio.create_task(one) for one in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class TextProposer(Proposer[FODConfig | RepairConfig]):
    """Proposes sentences that a server writes; what :class:`fod.search.Wanted` asks for.

    ``reader`` is a verifier's ``continuations`` of the question, ``ask`` gives the pieces of a request and is closed to
    cancel it, and ``in_thread`` runs the scoring. Nothing is proposed in place of a failing sentence.
    Unless the server ``takes_n``, each sample is a request.

    ``ended`` says why the budget has ended, if it has; ``unfinished`` is then the text of the stream that was not
    proposed.
    """

    def __init__(
        self,
        reader: Any,  # noqa: ANN401 - of Verifier.continuations
        ask: Callable[[ContinuationRequest], AsyncGenerator[Piece]],
        config: FODConfig | RepairConfig,
        budget: Budget,
        *,
        seed: int,
        takes_n: bool = True,
        in_thread: Callable[..., Awaitable[Any]],
    ) -> None:
        super().__init__(reader, reader.query, config)
        self._ask = ask
        self._budget = budget
        self._seed = seed
        self._takes_n = takes_n
        self._in_thread = in_thread
        self._until = None if budget.seconds is None else time.monotonic() + budget.seconds
        self._stream: tuple[AsyncGenerator[tuple[Piece, int]], Continuation] | None = None
        self._counts: list[_Count] = []  # of open requests
        self.spent = Spent()
        self.ended: str | None = None
        self.unfinished = ""

    async def __call__(self, wanted: Wanted) -> list[Candidate] | None:
        """Propose candidates; None if the budget has ended."""
        limit = asyncio.timeout(None if self._until is None else self._until - time.monotonic())
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
        hidden, at = list[tuple[int, str]](), 0
        for handle in beam.handles:
            if handle in beam.skipped:
                hidden += [(at, text)] if (text := self._text_of(handle)) else []
            else:
                at += len(self._text_of(handle))
        return hidden

    async def _proposed(self, wanted: Wanted) -> list[Candidate]:
        self._round += 1
        if wanted.in_place:
            return []
        if wanted.samples is None:
            self._greedy = None
            (beam,) = wanted.beams
            one = await self._next(beam)
            if beam.skipped and not beam.text:  # the sentence opens the answer, since those before it are left out
                one = one.without_lead()
            written = [(0, one)]
            (self._greedy,) = candidates = await self._in_thread(self._judged, wanted.beams, written, guards=False)
            return list(candidates)
        await self.close()
        each = wanted.samples
        self._begin_round(each * len(wanted.beams))
        size, count = (each, 1) if self._takes_n else (1, each)
        asked = [self._samples(beam, size) for beam in wanted.beams for _ in range(count)]
        texts = await _together(asked)
        sampled = [list(chain(*texts[first : first + count])) for first in range(0, len(texts), count)]
        different: dict[tuple[int, str, object], WrittenText] = {}
        for parent, samples in enumerate(sampled):
            for one in samples:
                different.setdefault((parent, one.own, one.stop), one)
        written = [(parent, one) for (parent, *_), one in different.items()]
        return list(await self._in_thread(self._judged, wanted.beams, written, guards=self._config.guards))

    def _begin_round(self, samples: int) -> None:
        spent, budget = self.spent, self._budget
        if budget.rounds is not None and spent.rounds >= budget.rounds:
            raise _Ended(f"the budget of {budget.rounds} rounds has ended")
        if budget.samples is not None and spent.samples + samples > budget.samples:
            raise _Ended(f"the budget of {budget.samples} samples has ended")
        spent.rounds += 1
        spent.samples += samples

    async def _next(self, beam: Beam) -> WrittenText:
        """Read the next sentence of the stream, which is opened if it is not."""
        if self._stream is None:
            request = self._request(beam)
            self._stream = self._pieces(request), Continuation(self._reader.segmenter(request.beginning))
        pieces, continuation = self._stream
        await _read(pieces, continuation)
        return continuation.take()

    async def _samples(self, beam: Beam, each: int) -> list[WrittenText]:
        """Ask for sentences after a beam."""
        config = self._config
        assert isinstance(config, FODConfig)  # repair asks for no samples
        request = replace(self._request(beam), samples=each, temperature=config.temperature, top_p=config.top_p)
        samples: dict[int, Continuation] = {}
        async with aclosing(self._pieces(request)) as pieces:
            async for piece, tokens in pieces:
                if (sample := piece.sample) is None:
                    continue
                if not 0 <= sample < each:
                    raise InputError(f"the server was asked for {each} samples; found a piece of sample {sample}")
                if sample not in samples:
                    samples[sample] = Continuation(self._reader.segmenter(request.beginning))
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

    def _request(self, beam: Beam) -> ContinuationRequest:
        """Ask for what comes after the text of a beam, hidden sentences included."""
        self.spent.requests += 1
        beginning = "".join(map(self._text_of, beam.handles))
        tokens = sum(self._written[handle].count for handle in beam.handles)
        seed = self._seed + self.spent.requests - 1
        return ContinuationRequest(beginning, seed=seed, tokens=tokens)

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

    def _judged(
        self, beams: Sequence[Beam], written: Sequence[tuple[int, WrittenText]], *, guards: bool
    ) -> list[Candidate]:
        """Score what continues each beam, in one batch."""
        since = time.perf_counter()
        scored = self._reader.scores(
            [w.text for _, w in written],
            [w.spans for _, w in written],
            earlier=[beams[parent].sentences for parent, _ in written],
            since=since,
        )
        moved = [
            [sentence.moved(characters=len(beams[parent].text) - w.start, tokens=0) for sentence in sentences]
            for (parent, w), sentences in zip(written, scored, strict=True)
        ]
        return self._candidates(beams, [(row, *one) for row, one in enumerate(written)], moved, guards=guards)
