"""One choice of an upstream's answer, whole or in chunks: its text is held back until it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncheck.results.protocol import VERSION, fold, to_dict
from syncheck.serving.allowed import Allowed, Logprobs, size_of
from syncheck.serving.checked import CheckedText, shown_text, whole_answer
from syncheck.serving.limits import in_thread
from syncheck.serving.reasoning import FIELD, FIELDS
from syncheck.text.reasoning import Reasoning

_ANSWERS = frozenset({"refusal", "tool_calls", "function_call"})
"""Parts of a message that are an answer as its text is; without one of them, the answer was filtered."""


class Choice:
    """One of the answers to a request.

    ``checked`` checks its text. Failing closed (``is_closed``), what is not checked is withheld as ``allowed`` says;
    ``holds_logprobs`` is True if log-probabilities wait for the text that their tokens write.
    """

    def __init__(
        self, checked: CheckedText, allowed: Allowed, reasoning: Reasoning, *, is_closed: bool, holds_logprobs: bool
    ) -> None:
        self.checked = checked
        self._allowed = allowed
        self._reasoning = reasoning
        self._is_closed = is_closed
        self._logprobs = Logprobs() if holds_logprobs else None
        self._unfed = ""  # text that arrived while the passages were read
        self._sent = 0  # events
        self._shown = 0  # bytes
        self._calls: list[dict[str, Any]] = []
        self._is_open = self._has_text = self._has_calls = False
        self._lacks_answer = self._lacks_any = False
        self._unchecked: set[str] = set()
        self.finished = False
        self.stopped = False

    async def whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check a choice of a whole answer, and convert it to the form in which it is passed on."""
        passed, message, has_content = await self._take(values, "message")
        logprobs = values.get("logprobs")
        if self._logprobs is not None:
            logprobs = self._logprobs.due(size_of(fold(self.checked.events).text))
        if "logprobs" in values:
            passed["logprobs"] = logprobs
        shown, told = self._outcome(passed)
        return {**passed, "message": {**message, "content": shown if has_content else None}, "syncheck": told}

    async def next(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Do the same for its next chunk, which then has the new events."""
        passed, delta, _ = await self._take(values, "delta")
        if self._logprobs is None and values.get("logprobs"):
            passed["logprobs"] = values["logprobs"]
        return self._told(passed, delta)

    async def broken(self, index: int, why: str) -> dict[str, Any] | None:
        """Make the last part of a choice that is not complete; None if nothing is left to tell.

        Failing open, that is the text that was held back, marked as unchecked.
        """
        delta: dict[str, Any] = {}
        if not self._is_closed:
            self.finished = True
            text, _ = await self._divide("", delta, is_last=True)
            await in_thread(self.checked.break_off, why, self._unfed + text)
        elif self._sent == len(self.checked.events):
            return None
        return self._told({"index": index, "finish_reason": None}, delta)

    async def _take(self, values: Mapping[str, Any], part: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
        """Check the text of a message or a delta; return the choice, that part without its text, and if it has one."""
        passed, unchecked = self._allowed.choice(values, part=part)
        if "finish_reason" in passed:
            passed["finish_reason"] = passed["finish_reason"] or None
        message, content, beside = self._allowed.message(values.get(part))
        if self._is_closed:
            self._lacks_any |= bool(beside - FIELDS)
            self._lacks_answer |= any(name in beside and not message.get(name) for name in _ANSWERS)
        is_last = part == "message" or passed.get("finish_reason") is not None
        text, thought = await self._divide(content or "", message, is_last=is_last)
        self._unchecked |= unchecked | beside
        self._take_logprobs(values.get("logprobs"), text, part, is_beside=bool(beside or thought))
        self._unfed += text
        if not self._is_open and (text or (part == "delta" and self.checked.has_passages)):
            self._is_open = True
            await in_thread(self.checked.open)
        text, self._unfed = self._unfed, ""
        if text:
            self._has_text = True
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
        for kind, part, _ in self._reasoning.read(content, is_last=is_last):
            if kind == "text":
                text += part
                continue
            thought += part
            if kind == "not_text":
                text = ""
                if self._has_text:
                    self._has_text = False
                    await in_thread(self.checked.restart, "it was reasoning, and no part of the answer")
        if thought:
            self._unchecked.add(FIELD)
            if self._allowed.has_reasoning:
                message[FIELD] = message.get(FIELD, "") + thought
        return text, thought

    def _take_logprobs(self, logprobs: object, text: str, part: str, *, is_beside: bool) -> None:
        if self._logprobs is None:
            return
        if part == "delta":
            self._logprobs.add(logprobs, text, is_beside=is_beside)
        elif logprobs:
            self._logprobs.whole(logprobs, text)

    def _hold_calls(self, message: dict[str, Any]) -> None:
        """Hold back calls of tools after text until that is checked, since they may repeat it."""
        held = {name: message.pop(name) for name in ("tool_calls", "function_call") if message.get(name)}
        if held:
            self._calls.append(held)
        if self.stopped or (self._is_closed and self._has_text and not self.finished):
            return
        calls, self._calls = self._calls, []
        self._has_calls = self._has_calls or bool(calls)
        for each in calls:
            for name, value in each.items():
                is_list = isinstance(value, list)
                message[name] = [*message.get(name, []), *value] if is_list else _joined(message, name, value)

    def _told(self, passed: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
        """Make a chunk of the events that are new; the last one has the outcome, too."""
        events, self._sent = self.checked.events[self._sent :], len(self.checked.events)
        if shown := shown_text(events):
            delta["content"] = shown
        told: dict[str, Any] = {"v": VERSION, "events": [to_dict(event) for event in events]}
        self._shown += size_of(shown)
        if self._logprobs is not None and (logprobs := self._logprobs.due(self._shown)):
            passed["logprobs"] = logprobs
        if self.finished:
            own = self._outcome(passed)[1]
            delta["syncheck"] = own  # clients that join chunks keep only what is in the deltas
            told |= {name: value for name, value in own.items() if name not in ("sentences", "notices")}
        return {**passed, "delta": delta, "syncheck": told}

    def _outcome(self, passed: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Collect the text of the answer and its outcome, once it is over, and say why it ended."""
        text, own = whole_answer(self.checked.events, self.checked.outcome.to_dict())
        is_done = passed.get("finish_reason") in ("stop", "tool_calls", "function_call")
        is_empty = not text and not self._has_calls
        if self.stopped or (is_done and (self._lacks_answer or (is_empty and self._lacks_any))):
            passed["finish_reason"] = "content_filter"
        if self._logprobs is not None:
            self._logprobs.close()
            self._unchecked |= self._logprobs.withheld
        if not text and self._has_calls:
            own["reason"] = own["reason"] or "the answer calls tools, which is not checked"
        return text, own | ({"unchecked": sorted(self._unchecked)} if self._unchecked else {})


def _joined(delta: Mapping[str, Any], name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Join the call of a function into one piece."""
    known = delta.get(name) or {}
    arguments = {"arguments": (known.get("arguments") or "") + (value.get("arguments") or "")}
    return {**known, **{k: v for k, v in value.items() if v}, **arguments}
