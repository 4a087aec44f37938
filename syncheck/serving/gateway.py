"""Gateway: answers of an OpenAI-compatible server, checked on their way to the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from syncheck.monitor import Monitor
from syncheck.results.protocol import VERSION, fold, to_dict
from syncheck.serving.allowed import REASONING, REASONINGS, Allowed, Logprobs, Treatment, invalid, is_opened
from syncheck.serving.chat import ChatRequest, ServiceError, unsupported
from syncheck.serving.checked import NO_PASSAGES, CheckedText, Failing, shown_text, whole_answer
from syncheck.serving.limits import Deadline, in_thread
from syncheck.serving.upstream import Upstream, choices_of, incomplete, index_of
from syncheck.text.markup import Reasoning
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    import httpx

_ANSWERS = frozenset({"refusal", "tool_calls", "function_call"})
"""Parts of a message that are an answer as its text is; without one of them, the answer was filtered."""


@dataclass(eq=False)
class Choice:
    """One of the answers to a request; its ``logprobs`` wait for the text that their tokens write, or are None."""

    checked: CheckedText
    allowed: Allowed
    reasoning: Reasoning
    logprobs: Logprobs | None
    finished: bool = False
    stopped: bool = False
    _unfed: str = ""  # text that arrived while the passages were read
    _sent: int = 0  # events
    _calls: list[dict[str, Any]] = field(default_factory=list)
    _is_open: bool = False
    _has_calls: bool = False
    _lacks_answer: bool = False
    _lacks_any: bool = False
    _unchecked: set[str] = field(default_factory=set)

    async def whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check a choice of a whole answer, and convert it to the form in which it is passed on."""
        passed, message, has_content = await self._take(values, "message")
        if "logprobs" in values:
            if self.logprobs is None:
                passed["logprobs"] = values["logprobs"]
            else:
                passed["logprobs"] = self.logprobs.due(fold(self.checked.events).text)
        shown, told = self._outcome(passed)
        return {**passed, "message": {**message, "content": shown if has_content else None}, "syncheck": told}

    async def next(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Do the same for its next chunk, which then has the new events."""
        passed, delta, _ = await self._take(values, "delta")
        if self.logprobs is None and values.get("logprobs"):
            passed["logprobs"] = values["logprobs"]
        return self._told(passed, delta)

    async def broken(self, index: int, why: str) -> dict[str, Any] | None:
        """Make the last part of a choice that broke off; None if nothing is left to tell.

        Failing open, it has the text that was held back, marked as unchecked.
        """
        delta: dict[str, Any] = {}
        if self.allowed.is_open:
            self.finished = True
            text, _ = await self._divide("", delta, is_last=True)
            await in_thread(self.checked.break_off, why, self._unfed + text)
        elif self._sent == len(self.checked.events):
            return None
        return self._told({"index": index, "finish_reason": None}, delta)

    async def _take(self, values: Mapping[str, Any], part: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
        """Check the text of a message or a delta; return the choice, that part without its text, and if it has one."""
        passed, unchecked = self.allowed.choice(values, part=part)
        if "finish_reason" in passed:
            passed["finish_reason"] = passed["finish_reason"] or None
        message, content, beside = self.allowed.message(values.get(part))
        if not self.allowed.is_open:
            self._lacks_any |= bool(beside - REASONINGS)
            self._lacks_answer |= any(name in beside and not message.get(name) for name in _ANSWERS)
        is_last = part == "message" or passed.get("finish_reason") is not None
        text, thought = await self._divide(content or "", message, is_last=is_last)
        self._unchecked |= unchecked | beside
        if self.logprobs is not None and part == "delta":
            self.logprobs.add(values.get("logprobs"), text, is_beside=bool(beside or thought))
        elif self.logprobs is not None and values.get("logprobs"):
            self.logprobs.whole(values["logprobs"], text)
        self._unfed += text
        if not self._is_open and (text or (part == "delta" and self.checked.has_passages)):
            self._is_open = True
            await in_thread(self.checked.open)
        text, self._unfed = self._unfed, ""
        if text:
            await self.checked.feed(text)
        if is_last and not self.checked.is_over:
            await in_thread(self.checked.close)
        self.stopped = self.checked.is_stopped
        self.finished = is_last or self.stopped
        self._hold_calls(message)
        return passed, message, content is not None

    async def _divide(self, content: str, message: dict[str, Any], *, is_last: bool) -> tuple[str, str]:
        """Divide content into text and reasoning; the latter goes into the message, if it passes."""
        text = thought = ""
        for kind, part, _ in self.reasoning.read(content, is_last=is_last):
            if kind == "text":
                text += part
                continue
            thought += part
            if kind == "not_text":
                text = ""
                if self.checked.received:
                    await in_thread(self.checked.restart, "it was reasoning, and no part of the answer")
        if thought:
            self._unchecked.add(REASONING)
            if self.allowed.has_reasoning:
                message[REASONING] = message.get(REASONING, "") + thought
        return text, thought

    def _hold_calls(self, message: dict[str, Any]) -> None:
        """Hold back calls of tools after text until that is checked, since they may repeat it."""
        held = {name: message.pop(name) for name in ("tool_calls", "function_call") if message.get(name)}
        if held:
            self._calls.append(held)
        if self.stopped or (self.checked.received and not (self.allowed.is_open or self.finished)):
            return
        calls, self._calls = self._calls, []
        self._has_calls = self._has_calls or bool(calls)
        for name, value in (call for each in calls for call in each.items()):
            if isinstance(value, list):
                message[name] = [*message.get(name, []), *value]
            else:  # pieces of the call of a function
                known = message.get(name) or {}
                arguments = {"arguments": (known.get("arguments") or "") + (value.get("arguments") or "")}
                message[name] = {**known, **{k: v for k, v in value.items() if v}, **arguments}

    def _told(self, passed: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
        """Make a chunk of the events that are new; the last one has the outcome, too."""
        events, self._sent = self.checked.events[self._sent :], len(self.checked.events)
        if shown := shown_text(events):
            delta["content"] = shown
        told: dict[str, Any] = {"v": VERSION, "events": [to_dict(event) for event in events]}
        if self.logprobs is not None and (logprobs := self.logprobs.due(shown)):
            passed["logprobs"] = logprobs
        if self.finished:
            own = self._outcome(passed)[1]
            delta["syncheck"] = own  # clients that join chunks keep only what is in the deltas
            told |= {name: value for name, value in own.items() if name not in ("sentences", "notices")}
        return {**passed, "delta": delta, "syncheck": told}

    def _outcome(self, passed: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Collect the text of the answer and its outcome, once it is over, and say why it ended."""
        text, own = whole_answer(self.checked.events, self.checked.outcome)
        is_done = passed.get("finish_reason") in ("stop", "tool_calls", "function_call")
        is_empty = not text and not self._has_calls
        if self.stopped or (is_done and (self._lacks_answer or (is_empty and self._lacks_any))):
            passed["finish_reason"] = "content_filter"
        if self.logprobs is not None:
            self._unchecked |= self.logprobs.close()
        if not text and self._has_calls:
            own["reason"] = own["reason"] or "the answer calls tools, which is not checked"
        return text, own | ({"unchecked": sorted(self._unchecked)} if self._unchecked else {})


_USAGE_SECONDS = 10.0  # how long the upstream's numbers of tokens are waited for after an answer was ended early
_GRACE_SECONDS = 5.0  # for the check of what arrived before the deadline of a stream
_SAME = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier"})
"""Fields that all chunks of an answer share; those of the first one count."""


class Gateway:
    """Source of answers that asks an :class:`~syncheck.serving.upstream.Upstream` server and checks its answers.

    A monitor that reads text alone runs no language model. ``reasoning`` says what becomes of the model's reasoning; by
    default it passes failing open, and is dropped failing closed. With ``opens_reasoning``, the chat template opens it,
    so that no answer has the opening tag. The other options are those of the upstream server.
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
        self.close = self.upstream.close

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """Ask for the upstream server's list of models."""
        async with self.upstream.asked("/models", authorization) as answer:
            return await answer.object()

    async def complete(self, request: ChatRequest, deadline: Deadline) -> dict[str, Any]:
        """Fetch a whole answer, in which each choice has its outcome as ``syncheck``."""
        self.require_usable(request)
        async with deadline.waiting():
            async with self.upstream.asked("/chat/completions", request.authorization, request.body) as answer:
                whole = await answer.object()
            allowed, choices = self.allowed(request), choices_of(whole)
            if not choices:
                raise invalid("it has no choices")
            passed, unchecked = allowed.answer({**whole, "choices": []})
            for values in choices:
                index, choice = index_of(values, request.body.get("n") or 1), self.choice(request, allowed)
                try:
                    passed["choices"].append({**await choice.whole(values), "index": index})
                finally:
                    choice.checked.leave()
            if len({choice["index"] for choice in passed["choices"]}) < len(choices):
                raise invalid("two choices have the same index")
        return passed | _own(unchecked)

    async def stream(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``; what came before the deadline is checked."""
        self.require_usable(request)
        stream = _Stream(self, request, deadline)
        try:
            asked = self.upstream.streamed("/chat/completions", request.body, request.authorization, deadline)
            async with aclosing(asked) as chunks:
                async for chunk in stream.chunks(chunks):
                    yield chunk
        except ServiceError as error:
            async for chunk in stream.broken(str(error)):
                yield chunk
            raise
        finally:
            for choice in stream.choices.values():
                choice.checked.leave()

    def choice(self, request: ChatRequest, allowed: Allowed) -> Choice:
        """Begin a choice of an answer."""
        checked = CheckedText(self.monitor, request, failing=self.failing)
        reasoning = Reasoning(is_open=self.opens_reasoning or is_opened(request.body["messages"][-1]))
        holds_logprobs = not allowed.is_open or request.stop_below is not None or not allowed.has_reasoning
        return Choice(checked, allowed, reasoning, Logprobs() if holds_logprobs else None)

    def allowed(self, request: ChatRequest) -> Allowed:
        """Say what may pass beside the text that is checked."""
        return Allowed(request.body, is_open=self.failing == "open", has_reasoning=self._reasoning == "pass")

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder is not None:
            raise unsupported("the upstream writes the answer, so that no decoder can be chosen; leave decoder out")
        if self.failing == "closed" and not request.passages and not request.awaits_passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)


class _Stream:
    """The chunks of one answer of the upstream server, with text held back until it is checked."""

    def __init__(self, gateway: Gateway, request: ChatRequest, deadline: Deadline) -> None:
        self._deadline = deadline
        self._allowed = gateway.allowed(request)
        self._begin = partial(gateway.choice, request, self._allowed)
        self.choices: dict[int, Choice] = {}
        self._wanted = request.body.get("n") or 1
        self._last: dict[str, Any] | None = None
        self._same: dict[str, Any] = {}
        self._unchecked: set[str] = set()
        self._named: set[str] = set()
        self._owes_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
        self._usage: Any = None

    async def chunks(self, source: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a whole answer; once all choices ended early, only its numbers of tokens are read."""
        ended: float | None = None
        try:
            async for values in source:
                async for chunk in self._of(values):
                    yield chunk
                if len(self.choices) >= self._wanted and all(choice.stopped for choice in self.choices.values()):
                    now = asyncio.get_running_loop().time()
                    ended = ended or now
                    if not self._owes_usage or now - ended > _USAGE_SECONDS:
                        break
        except ServiceError:
            if ended is None:
                raise
        if not self.choices or not all(choice.finished for choice in self.choices.values()):
            raise incomplete("it ended before its last chunk")
        if self._owes_usage:
            yield self._with([], usage=self._usage)

    async def broken(self, why: str) -> AsyncIterator[dict[str, Any]]:
        """Yield what comes before the error of an answer that broke off; see :meth:`Choice.broken`."""
        if self._last is None:
            return
        for index, choice in self.choices.items():
            if not choice.finished and (last := await choice.broken(index, why)) is not None:
                yield self._with([last])
        if self._owes_usage:
            yield self._with([], usage=self._usage)

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
            choice = self.choices.get(index) or self.choices.setdefault(index, self._begin())
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
