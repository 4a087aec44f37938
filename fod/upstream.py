"""FOD before a server: search and repair over sentences of a model that is only asked to continue a text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Protocol

from fod.config import FODConfig, RepairConfig, Thresholds, decoder_thresholds
from fod.repair import repair_steps
from fod.reveal import VerifiedReveal, drawn
from fod.search import Progress, SearchResult, Wanted, search_steps
from fod.texts import Budget, Spent, TextProposer
from syncheck import EndEvent, Event, NoticeEvent, Report, SentenceScore, Verifier
from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.decoding import check_choice
from syncheck.results import ContinuationRequest, HiddenSpan, Piece, TraceNode

RepairPolicy = Literal["search", "drop", "mark"]
"""What follows a sentence of the stream below tau_1. ``search``: stage 2 of Algorithm 1. ``drop``: it is left
out, and the model goes on after it. ``mark``: it is kept and marked."""


class ContinueFrom(Protocol):
    """Protocol: asks a server to continue an answer, and gives its pieces as they come.

    It belongs to one question. The iterable is closed, if it can be, when no more of it is needed, which should cancel
    the work of the server. A blocking one suits the methods that are not asynchronous. With an attribute ``takes_n``
    that is False, it is asked for one sample at a time.
    """

    def __call__(self, request: ContinuationRequest) -> AsyncIterable[Piece] | Iterable[Piece]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class UpstreamOutput:
    """What became of an answer, as ``output`` of the last event."""

    report: Report
    """The answer with its scores; ``stop`` is ``budget`` if a budget ended it."""
    search: SearchResult
    trace: tuple[TraceNode, ...]
    """The search as a tree; see :func:`fod.trace_of`. The reason of a budget that ended is its last node."""
    dropped: tuple[SentenceScore, ...]
    """Sentences of the stream that were taken back, replaced or left out."""
    marked: tuple[int, ...]
    """Indices of sentences that were kept although they did not pass."""
    message: str | None
    """The text of the config at the end or in place of an answer; None if it was not needed."""
    thresholds: Thresholds
    spent: Spent
    """What the server has spent."""


@dataclass(eq=False, repr=False)
class UpstreamFOD:
    """Decodes with a server so that every released sentence reaches a score; reads text alone.

    The answer is streamed and scored sentence by sentence. At the first one below tau_1 the stream is cancelled, and
    continuations of the verified sentences are asked for and searched as by :func:`fod.search`; or another ``repair``
    takes its place, as in :func:`fod.repair`.

    A config that does not belong to ``repair`` raises InputError; a verifier without an aggregator, NotReadyError.

    Examples
    --------
    >>> def continue_from(request):
    ...     yield Piece("It is in Spain." if request.samples is None else "It is in France.", stop="end_of_text")
    >>> fod = UpstreamFOD(Verifier(), continue_from)  # doctest: +SKIP
    >>> fod.generate(question="Where is Lyon?", passages=["Lyon is in France."]).report.response  # doctest: +SKIP
    'It is in France.'
    """

    verifier: Verifier
    """Scores the sentences."""
    continue_from: ContinueFrom
    """The server."""
    _: KW_ONLY
    repair: RepairPolicy = "search"
    """What follows a failing sentence."""
    config: FODConfig | RepairConfig | None = None
    """A :class:`fod.FODConfig` for ``search``, a :class:`fod.RepairConfig` for the others, of which ``max_skips``
    limits the sentences that are left out; None takes the defaults. The parameters about tokens have no
    effect."""
    budget: Budget | None = None
    """What the server may spend on one answer; None is without limit."""
    in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread
    """Runs the scoring beside the event loop."""

    def __post_init__(self) -> None:
        if not isinstance(self.verifier, Verifier):
            found = type(self.verifier).__name__
            raise WrongTypeError(f"verifier must be a Verifier, as Verifier() makes; found {found}")
        if self.verifier.aggregator is None:
            raise NotReadyError("the verifier has no aggregator, so no sentence has a score; train one first")
        check_choice(self.repair, "repair", RepairPolicy)
        kind: type[FODConfig] | type[RepairConfig] = FODConfig if self.repair == "search" else RepairConfig
        if not isinstance(self.config, kind | None):
            found = type(self.config).__name__
            raise InputError(f"repair={self.repair!r} takes a {kind.__name__}; found a {found}")
        chosen: FODConfig | RepairConfig = self.config or kind()
        self.config = self._config = replace(chosen, on_exhausted="annotate") if self.repair == "mark" else chosen
        self.thresholds = decoder_thresholds(self.verifier, self._config)

    async def stream_async(self, *, passages: Any, question: str = "", seed: int = 0) -> AsyncGenerator[Event]:
        """Yield the sentences of an answer, each when it can no longer be taken back.

        Closing the stream cancels the work of the server. Arguments are as in :meth:`syncheck.Verifier.check` and
        :meth:`fod.FODGenerator.stream`.

        Yields
        ------
        SentenceEvent, NoticeEvent, EndEvent
            One :class:`syncheck.EndEvent`, the last, with an :class:`fod.UpstreamOutput`.
        """
        show = VerifiedReveal()
        started = time.perf_counter()
        query = self.verifier.query(question=question, passages=passages)
        reader = await self.in_thread(self.verifier.continuations, query)
        propose = TextProposer(
            reader,
            self._pieces,
            self._config,
            self.budget or Budget(),
            seed=seed,
            takes_n=getattr(self.continue_from, "takes_n", True),
            in_thread=self.in_thread,
        )
        try:
            config, limits, reply = self._config, self.thresholds, None
            steps = search_steps(config, limits) if isinstance(config, FODConfig) else repair_steps(config, limits)
            while True:
                try:
                    step = steps.send(reply)
                except StopIteration as ended:
                    result: SearchResult = ended.value
                    break
                if isinstance(step, Wanted):
                    reply = await propose(step)
                else:
                    reply = None
                    for event in show(step):
                        yield event
        finally:
            await propose.close()
        for event in show(Progress((result.beam,))):
            yield event
        hidden = tuple(HiddenSpan(at, 0, text, ()) for at, text in propose.hidden(result.beam))
        report = replace(reader.report(result.beam.text, result.beam.sentences, stop=result.stop), hidden=hidden)
        message, stop = self._message(result, report)
        if message is not None:
            said = f" {message.lstrip()}" if report.response else message
            report = replace(report, response=report.response + said, stop=stop)
            yield NoticeEvent(said, ())
        report = replace(report, seconds=time.perf_counter() - started)
        trace = drawn(result, self._config, self.thresholds)
        if propose.ended is not None:
            trace = (*trace, TraceNode(propose.unfinished, None, "taken_back", propose.ended))
        how = result, trace, result.dropped, result.beam.marked, message, self.thresholds, propose.spent
        yield EndEvent(report, UpstreamOutput(report, *how))

    def stream(self, **options: Any) -> Iterator[Event]:
        """Yield what :meth:`stream_async` does, with its arguments; it cannot be called where an event loop runs."""
        with asyncio.Runner() as runner:
            events = self.stream_async(**options)

            async def following() -> Event | None:
                return await anext(events, None)

            try:
                while (event := runner.run(following())) is not None:
                    yield event
            finally:
                runner.run(events.aclose())

    async def generate_async(self, **options: Any) -> UpstreamOutput:
        """Write a whole answer; arguments as in :meth:`stream_async`."""
        async with aclosing(self.stream_async(**options)) as events:
            async for event in events:
                if isinstance(event, EndEvent):
                    output: UpstreamOutput = event.output
        return output

    def generate(self, **options: Any) -> UpstreamOutput:
        """Write a whole answer, as :meth:`stream` does; arguments as in :meth:`generate_async`."""
        return asyncio.run(self.generate_async(**options))

    def _message(self, result: SearchResult, report: Report) -> tuple[str | None, str]:
        """Choose the text that ends an answer after which nothing passed, or claims nothing."""
        is_stuck = result.stop == "nothing_passed" and result.beam.stop is None
        message, stop = ("", "") if result.stop == "budget" else self._config.completion(report)
        if not message and is_stuck and self._config.on_exhausted == "abstain":
            message, stop = self._config.message, "abstained"
        return message or None, stop

    async def _pieces(self, request: ContinuationRequest) -> AsyncGenerator[Piece]:
        """Ask the server; close what it gives with this iterator."""
        source = self.continue_from(request)
        try:
            if isinstance(source, AsyncIterable):
                async for piece in source:
                    yield piece
            else:
                for piece in source:
                    yield piece
        finally:
            if (close := getattr(source, "aclose", None)) is not None:
                await close()
            elif (close := getattr(source, "close", None)) is not None:
                close()
