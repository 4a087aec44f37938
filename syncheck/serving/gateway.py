"""Gateway: answers of an OpenAI-compatible server, checked on their way to the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

from syncheck.monitor import Monitor
from syncheck.results.protocol import VERSION, FoldedAnswer, ProtocolEvent, fold, to_dict
from syncheck.serving.allowed import Allowed, Logprobs, invalid
from syncheck.serving.chat import ChatRequest, ServiceError
from syncheck.serving.checked import NO_PASSAGES, CheckedText, Failing, Outcome, shown_text, whole_answer
from syncheck.serving.limits import Deadline, in_thread
from syncheck.serving.upstream import Upstream, incomplete
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    import httpx

_USAGE_SECONDS = 10.0
"""How long the upstream's numbers of tokens are waited for after an answer was ended early."""
_SAME = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier"})
"""Fields that all chunks of an answer share; those of the first one count."""


class Gateway:
    """Source of answers that asks an :class:`~syncheck.serving.upstream.Upstream` server and checks its answers.

    A monitor that reads text alone runs no language model. ``/chat/completions`` is added to the address of the
    upstream server.
    """

    def __init__(
        self,
        monitor: Monitor | Verifier,
        upstream: str,
        *,
        failing: Failing = "closed",
        api_key: str | None = None,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.monitor = monitor
        self.decoders: tuple[str, ...] = ()
        self.failing = failing
        self._upstream = Upstream(upstream, api_key=api_key, timeout=timeout, transport=transport)

    async def close(self) -> None:
        """Close the connections to the upstream server."""
        await self._upstream.close()

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """Ask for the upstream server's list of models."""
        async with self._upstream.asked("GET", "/models", None, authorization) as asked:
            return await asked.object()

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Fetch a whole answer, in which each choice has its outcome as ``syncheck``."""
        self.require_usable(request)
        async with deadline.waiting():
            async with self._upstream.asked("POST", "/chat/completions", request.body, authorization) as asked:
                answer = await asked.object()
            allowed, choices = self.allowed(request), _choices(answer)
            if not choices:
                raise invalid("it has no choices")
            passed, unchecked = allowed.answer({**answer, "choices": []})
            passed["choices"] = [await self._checked_choice(request, allowed, choice) for choice in choices]
            if len({choice["index"] for choice in passed["choices"]}) < len(choices):
                raise invalid("two choices have the same index")
        return passed | _own(unchecked)

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``.

        The deadline ends the reading from the upstream server; what arrived before it is still checked.
        """
        self.require_usable(request)
        stream = _Stream(self, request)
        try:
            async with AsyncExitStack() as opened:
                async with deadline.waiting():
                    asked = await opened.enter_async_context(
                        self._upstream.asked("POST", "/chat/completions", request.body, authorization)
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

    def check(self, request: ChatRequest) -> CheckedText:
        """Make a new check of the text of one choice."""
        return CheckedText(self.monitor, request, failing=self.failing)

    def allowed(self, request: ChatRequest) -> Allowed:
        """Say what may pass beside the text that is checked."""
        return Allowed(request.body, is_open=self.failing == "open")

    def withholds(self, request: ChatRequest) -> bool:
        """Tell whether some text of the answer may be withheld."""
        return self.failing == "closed" or request.stop_below is not None

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder is not None:
            raise ServiceError(
                400,
                "unsupported",
                "the upstream writes the answer, so that no decoder can be chosen; leave decoder out",
            )
        if self.failing == "closed" and not request.passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)

    async def _checked_choice(self, request: ChatRequest, allowed: Allowed, values: dict[str, Any]) -> dict[str, Any]:
        choice, unchecked = allowed.choice(values, part="message")
        choice["index"] = _require_index(values, request)
        message, text, beside = allowed.message(values.get("message"))
        unchecked |= beside
        if text is None:
            shown, own = whole_answer((), Outcome("no_text", None, None, None).to_dict())
            is_stopped = False
        else:
            checked = self.check(request)
            try:
                await _whole(checked, text)
            finally:
                checked.leave()
            shown, own = whole_answer(checked.events, checked.outcome.to_dict())
            is_stopped = checked.is_stopped
        logprobs = values.get("logprobs")
        if logprobs and self.withholds(request):
            kept = Logprobs()
            kept.whole(logprobs, text or "")
            logprobs = kept.due(len(shown.encode("utf-8", "surrogatepass")))
            kept.close()
            unchecked |= kept.withheld
        if is_stopped:
            for name in ("tool_calls", "function_call"):
                message.pop(name, None)
        choice["finish_reason"] = _finish_reason(
            choice.get("finish_reason"),
            is_stopped=is_stopped,
            is_empty=not shown and not message.get("tool_calls") and not message.get("function_call"),
            is_withheld=self.failing == "closed" and bool(beside),
        )
        if "logprobs" in values:
            choice["logprobs"] = logprobs
        content = {"content": None if text is None else shown}
        return {**choice, "message": {**message, **content}, "syncheck": own | _named(unchecked)}


class _Stream:
    """The chunks of one answer of the upstream server, with text held back until it is checked."""

    def __init__(self, gateway: Gateway, request: ChatRequest) -> None:
        self._gateway = gateway
        self._request = request
        self._allowed = gateway.allowed(request)
        self._choices: dict[int, _Choice] = {}
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
        if self._gateway.failing == "open":
            for index, choice in self._choices.items():
                if not choice.finished:
                    yield self._with([await choice.broken(index, why)])
        if self._owes_usage:
            yield self._with([], usage=self._usage)

    def leave(self) -> None:
        """Release the resources of the checks."""
        for choice in self._choices.values():
            choice.checked.leave()

    def _all(self, holds: Callable[[_Choice], bool]) -> bool:
        return len(self._choices) >= self._wanted and all(holds(choice) for choice in self._choices.values())

    async def _of(self, values: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        choices = _choices(values)
        chunk, unchecked = self._allowed.answer({**values, "choices": []})
        self._unchecked |= unchecked
        usage = chunk.pop("usage", None)
        self._usage = usage or self._usage
        for name in _SAME.intersection(chunk):  # otherwise each chunk could bring the next word of what is withheld
            chunk[name] = self._same.setdefault(name, chunk[name])
        self._last = chunk
        taken = [choice for each in choices if (choice := await self._taken(each)) is not None]
        told = [
            v for v in taken if v["delta"] or v["syncheck"]["events"] or v.get("finish_reason") or v.get("logprobs")
        ]
        if told or usage or not choices:
            self._owes_usage = self._owes_usage and not (usage and not choices)
            yield self._with(told, **({"usage": usage} if "usage" in values else {}))

    async def _taken(self, values: dict[str, Any]) -> dict[str, Any] | None:
        """Convert a choice of a chunk to the form in which it is passed on; None if it is over already."""
        passed, unchecked = self._allowed.choice(values, part="delta")
        index = passed["index"] = _require_index(values, self._request)
        if index not in self._choices:
            choice = self._choices[index] = _Choice(self._gateway, self._request, self._allowed)
            await choice.open()
        choice = self._choices[index]
        return None if choice.finished else await choice.take(passed, unchecked, values)

    def _with(self, choices: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        new = self._unchecked - self._named
        self._named |= new
        return {**(self._last or {}), "choices": choices, **fields} | _own(new)


class _Choice:
    """One of the answers to a request, while it is streamed."""

    def __init__(self, gateway: Gateway, request: ChatRequest, allowed: Allowed) -> None:
        self.checked = gateway.check(request)
        self._is_closed = gateway.failing == "closed"
        self._allowed = allowed
        self._answer = FoldedAnswer()
        self._logprobs = Logprobs() if gateway.withholds(request) else None
        self._told = 0
        self._calls: list[dict[str, Any]] = []
        self._has_text = self._has_calls = False
        self._unchecked: set[str] = set()
        self._beside = False
        self._opening: list[ProtocolEvent] = []
        self.finished = False
        self.stopped = False

    async def open(self) -> None:
        self._opening = await in_thread(self.checked.open)

    async def take(self, passed: dict[str, Any], unchecked: set[str], values: dict[str, Any]) -> dict[str, Any]:
        """Convert a choice of a chunk to the form in which it is passed on."""
        delta, text, beside = self._allowed.message(values.get("delta"))
        self._unchecked |= unchecked | beside
        self._beside = self._beside or bool(beside)
        logprobs = values.get("logprobs")
        if self._logprobs is None:
            passed |= {"logprobs": logprobs} if logprobs else {}
        else:
            self._logprobs.add(logprobs, text or "", is_beside=bool(beside))
        events, self._opening = self._opening, []
        if text:
            self._has_text = True
            events += await self.checked.feed_in_turns(text)
        close = values.get("finish_reason") is not None
        if close and not self.checked.is_over:
            events += await in_thread(self.checked.close)
        self.stopped = self.checked.is_stopped
        self.finished = close or self.stopped
        return self._passed({**passed, "delta": self._with_calls(delta)}, events)

    async def broken(self, index: int, why: str) -> dict[str, Any]:
        """Make the last part of a choice that is not complete."""
        self.finished = True
        opening, self._opening = self._opening, []
        events = opening + await in_thread(self.checked.break_off, why)
        return self._passed({"index": index, "delta": {}, "finish_reason": None}, events)

    def _with_calls(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Hold back calls of tools after text until that is checked, since they may repeat it."""
        if not self._is_closed:
            return delta
        held = {name: delta.pop(name) for name in ("tool_calls", "function_call") if delta.get(name)}
        if held:
            self._calls.append(held)
        if self._has_text and not self.finished:
            return delta
        calls, self._calls = self._calls, []
        if self.stopped:
            return delta
        self._has_calls = self._has_calls or bool(calls)
        for each in calls:
            for name, value in each.items():
                delta[name] = [*delta.get(name, []), *value] if isinstance(value, list) else _joined(delta, name, value)
        return delta

    def _passed(self, passed: dict[str, Any], events: list[ProtocolEvent]) -> dict[str, Any]:
        fold(events, self._answer)
        shown = shown_text(events)
        self._told += len(shown.encode("utf-8", "surrogatepass"))
        passed["syncheck"] = {"v": VERSION, "events": [to_dict(event) for event in events]}
        if shown:
            passed["delta"] = {**passed["delta"], "content": shown}
        if self._logprobs is not None:
            if logprobs := self._logprobs.due(self._told):
                passed["logprobs"] = logprobs
            if self.finished:
                self._logprobs.close()
                self._unchecked |= self._logprobs.withheld
        if self.finished:
            if self.stopped or passed.get("finish_reason"):
                passed["finish_reason"] = _finish_reason(
                    passed.get("finish_reason"),
                    is_stopped=self.stopped,
                    is_empty=not self._answer.text and not self._has_calls,
                    is_withheld=self._is_closed and self._beside,
                )
            passed["syncheck"] |= self.checked.outcome.to_dict() | _named(self._unchecked)
        return passed


def _finish_reason(reason: str | None, *, is_stopped: bool, is_empty: bool, is_withheld: bool) -> str | None:
    """Say why an answer ended; the filter counts as the reason, too, if nothing is left beside what is withheld."""
    is_done = reason in ("stop", "tool_calls", "function_call")
    return "content_filter" if is_stopped or (is_done and is_empty and is_withheld) else reason


def _joined(delta: Mapping[str, Any], name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Join the call of a function into one piece."""
    known = delta.get(name) or {}
    arguments = {"arguments": (known.get("arguments") or "") + (value.get("arguments") or "")}
    return {**known, **{k: v for k, v in value.items() if v}, **arguments}


def _choices(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    choices = values.get("choices")
    if not isinstance(choices, list | None) or not all(isinstance(choice, dict) for choice in choices or ()):
        raise invalid("its choices are no list of objects")
    return choices or []


def _require_index(choice: Mapping[str, Any], request: ChatRequest) -> int:
    """Read the index of a choice, which must be below the number that was asked for."""
    index, wanted = choice.get("index", 0), request.body.get("n") or 1
    if not 0 <= index < wanted:
        raise invalid(f"it has a choice with the index {index}, and n is {wanted}")
    return int(index)


async def _whole(checked: CheckedText, text: str) -> None:
    await in_thread(checked.open)
    await checked.feed_in_turns(text)
    if not checked.is_over:
        await in_thread(checked.close)


def _named(unchecked: set[str]) -> dict[str, Any]:
    return {"unchecked": sorted(unchecked)} if unchecked else {}


def _own(unchecked: set[str]) -> dict[str, Any]:
    """Make our own field of an answer or a chunk, which is there only if a field is not checked."""
    return {"syncheck": {"v": VERSION, **_named(unchecked)}} if unchecked else {}
