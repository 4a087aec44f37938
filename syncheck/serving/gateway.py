"""Gateway: answers of an OpenAI-compatible server, checked on their way to the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

from syncheck.monitor import Monitor
from syncheck.results.protocol import VERSION
from syncheck.serving.allowed import Allowed, invalid
from syncheck.serving.chat import ChatRequest, ServiceError
from syncheck.serving.checked import NO_PASSAGES, CheckedText, Failing
from syncheck.serving.choice import Choice
from syncheck.serving.limits import Deadline
from syncheck.serving.reasoning import Treatment, is_opened
from syncheck.serving.upstream import Upstream, choices_of, incomplete, index_of
from syncheck.text.reasoning import Reasoning
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    import httpx

_USAGE_SECONDS = 10.0
"""How long the upstream's numbers of tokens are waited for after an answer was ended early."""
_GRACE_SECONDS = 5.0
"""Time for the check of what arrived before the deadline of a stream."""
_SAME = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier"})
"""Fields that all chunks of an answer share; those of the first one count."""


class Gateway:
    """Source of answers that asks an :class:`~syncheck.serving.upstream.Upstream` server and checks its answers.

    A monitor that reads text alone runs no language model. ``/chat/completions`` is added to the address of the
    upstream server. ``reasoning`` says what becomes of the model's reasoning; by default it passes failing open, and is
    dropped failing closed. With ``opens_reasoning``, the chat template opens it, so that no answer has the opening tag.
    """

    def __init__(
        self,
        monitor: Monitor | Verifier,
        upstream: str,
        *,
        failing: Failing = "closed",
        reasoning: Treatment | None = None,
        opens_reasoning: bool = False,
        api_key: str | None = None,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.monitor = monitor
        self.decoders: tuple[str, ...] = ()
        self.failing = failing
        self._reasoning = reasoning or ("pass" if failing == "open" else "drop")
        self.opens_reasoning = opens_reasoning
        self.upstream = Upstream(upstream, api_key=api_key, timeout=timeout, transport=transport)
        self.address: str | None = self.upstream.address

    async def close(self) -> None:
        """Close the connections to the upstream server."""
        await self.upstream.close()

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """Ask for the upstream server's list of models."""
        async with self.upstream.asked("GET", "/models", None, authorization) as asked:
            return await asked.object()

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Fetch a whole answer, in which each choice has its outcome as ``syncheck``."""
        self.require_usable(request)
        async with deadline.waiting():
            async with self.upstream.asked("POST", "/chat/completions", request.body, authorization) as asked:
                answer = await asked.object()
            allowed, choices = self.allowed(request), choices_of(answer)
            if not choices:
                raise invalid("it has no choices")
            passed, unchecked = allowed.answer({**answer, "choices": []})
            passed["choices"] = [await self._checked_choice(request, allowed, values) for values in choices]
            if len({choice["index"] for choice in passed["choices"]}) < len(choices):
                raise invalid("two choices have the same index")
        return passed | _own(unchecked)

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``.

        The deadline ends the reading from the upstream server; what arrived before it is still checked.
        """
        self.require_usable(request)
        stream = _Stream(self, request, deadline)
        try:
            async with AsyncExitStack() as opened:
                async with deadline.waiting():
                    asked = await opened.enter_async_context(
                        self.upstream.asked("POST", "/chat/completions", request.body, authorization)
                    )
                try:
                    async with aclosing(asked.chunks(deadline)) as chunks:
                        async for chunk in stream.chunks(chunks):
                            yield chunk
                except ServiceError as error:
                    async for chunk in stream.broken(str(error)):
                        yield chunk
                    raise
        finally:
            stream.leave()

    def choice(self, request: ChatRequest, allowed: Allowed) -> Choice:
        """Begin a choice of an answer."""
        checked = CheckedText(self.monitor, request, failing=self.failing)
        is_closed = self.failing == "closed"
        is_open = self.opens_reasoning or is_opened(request.body["messages"][-1])
        holds_logprobs = is_closed or request.stop_below is not None or not allowed.has_reasoning
        return Choice(checked, allowed, Reasoning(is_open=is_open), is_closed=is_closed, holds_logprobs=holds_logprobs)

    def allowed(self, request: ChatRequest) -> Allowed:
        """Say what may pass beside the text that is checked."""
        return Allowed(request.body, is_open=self.failing == "open", has_reasoning=self._reasoning == "pass")

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder is not None:
            raise ServiceError(
                400,
                "unsupported",
                "the upstream writes the answer, so that no decoder can be chosen; leave decoder out",
            )
        if self.failing == "closed" and not request.passages and not request.awaits_passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)

    async def _checked_choice(self, request: ChatRequest, allowed: Allowed, values: dict[str, Any]) -> dict[str, Any]:
        index, choice = index_of(values, request.body.get("n") or 1), self.choice(request, allowed)
        try:
            return {**await choice.whole(values), "index": index}
        finally:
            choice.checked.leave()


class _Stream:
    """The chunks of one answer of the upstream server, with text held back until it is checked."""

    def __init__(self, gateway: Gateway, request: ChatRequest, deadline: Deadline) -> None:
        self._gateway = gateway
        self._request = request
        self._deadline = deadline
        self._allowed = gateway.allowed(request)
        self._choices: dict[int, Choice] = {}
        self._wanted = request.body.get("n") or 1
        self._last: dict[str, Any] | None = None
        self._same: dict[str, Any] = {}
        self._unchecked: set[str] = set()
        self._named: set[str] = set()
        options = request.body.get("stream_options") or {}
        self._owes_usage = bool(options.get("include_usage"))
        self._usage: Any = None

    async def chunks(self, source: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a whole answer.

        After all choices have been ended early, only the numbers of tokens are read, if the client asked for them.
        """
        ended: float | None = None
        try:
            async for values in source:
                async for chunk in self._of(values):
                    yield chunk
                if self._all(lambda choice: choice.stopped):
                    now = asyncio.get_running_loop().time()
                    ended = now if ended is None else ended
                    if not self._owes_usage or now - ended > _USAGE_SECONDS:
                        break
        except ServiceError:
            if ended is None:
                raise
        if not self._all(lambda choice: choice.finished):
            raise incomplete("it ended before its last chunk")
        if self._owes_usage:
            yield self._with([], usage=self._usage)

    async def broken(self, why: str) -> AsyncIterator[dict[str, Any]]:
        """Yield what comes before the error of an answer that broke off.

        Failing open, that is the text that was held back, marked as unchecked.
        """
        if self._last is None:
            return
        for index, choice in self._choices.items():
            if not choice.finished and (last := await choice.broken(index, why)) is not None:
                yield self._with([last])
        if self._owes_usage:
            yield self._with([], usage=self._usage)

    def leave(self) -> None:
        """Release the resources of the checks."""
        for choice in self._choices.values():
            choice.checked.leave()

    def _all(self, holds: Callable[[Choice], bool]) -> bool:
        return len(self._choices) >= self._wanted and all(holds(choice) for choice in self._choices.values())

    async def _of(self, values: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        choices = choices_of(values)
        chunk, unchecked = self._allowed.answer({**values, "choices": []})
        self._unchecked |= unchecked
        usage = chunk.pop("usage", None)
        self._usage = usage or self._usage
        for name in _SAME.intersection(chunk):  # otherwise each chunk could bring the next word of what is withheld
            chunk[name] = self._same.setdefault(name, chunk[name])
        self._last = chunk
        more = {"usage": usage} if "usage" in values else {}
        self._owes_usage = self._owes_usage and not (usage and not choices)
        for each in choices:
            index = index_of(each, self._wanted)
            if index not in self._choices:
                self._choices[index] = self._gateway.choice(self._request, self._allowed)
            choice = self._choices[index]
            if not choice.finished:
                async with self._deadline.waiting(at_least=_GRACE_SECONDS):
                    v = await choice.next(each)
                if v["delta"] or v["syncheck"]["events"] or v.get("finish_reason") or v.get("logprobs") or usage:
                    yield self._with([{**v, "index": index}], **more)
        if not choices:
            yield self._with([], **more)

    def _with(self, choices: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        new = self._unchecked - self._named
        self._named |= new
        return {**(self._last or {}), "choices": choices, **fields} | _own(new)


def _own(unchecked: set[str]) -> dict[str, Any]:
    """Make our own field of an answer or a chunk, which is there only if a field is not checked."""
    return {"syncheck": {"v": VERSION, "unchecked": sorted(unchecked)}} if unchecked else {}
