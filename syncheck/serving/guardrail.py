"""LiteLLM's generic guardrail: answers are checked against the passages of their requests."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from syncheck.base.checks import check_share, check_texts
from syncheck.report.labels import after_end_words, contrast_lines
from syncheck.results import Report
from syncheck.results.types import SentenceScore
from syncheck.scoring import falls_below
from syncheck.serving.chat import ChatRequest, PassagesFrom, ServiceError, read_chat, refusing
from syncheck.serving.checked import NO_PASSAGES, Failing, is_checked
from syncheck.serving.limits import in_thread

_MOST_CHARACTERS = 2**25
"""Number of characters of the newest requests that are remembered."""
_NAMED = 3
"""Number of sentences that the reason of a refusal quotes."""


class Guardrail:
    """Guardrail for LiteLLM, which sends it each request before the model gets it, and then the answer.

    ``score`` makes the report for question, passages and response. Each sentence must reach ``at_least``, if LiteLLM's
    ``additional_provider_specific_params`` do not say otherwise. ``passages_from`` and ``most`` are
    as for :func:`syncheck.serving.chat.read_chat`.
    """

    def __init__(
        self,
        score: Callable[[str, list[str], str], Awaitable[Report]],
        *,
        at_least: float,
        failing: Failing,
        passages_from: PassagesFrom = "messages",
        most: float = math.inf,
    ) -> None:
        self._score = score
        self._at_least = at_least
        self._failing = failing
        self._passages_from = passages_from
        self._most = most
        self._requests: OrderedDict[str, ChatRequest] = OrderedDict()
        self._characters = 0

    async def apply(self, values: object) -> dict[str, Any]:
        """Choose LiteLLM's ``action`` for a request or an answer: ``NONE``, or ``BLOCKED`` and the reason."""
        if not isinstance(values, dict) or values.get("input_type") not in ("request", "response"):
            raise ServiceError(400, "invalid_request", "expected an object with input_type request or response")
        call, options = values.get("litellm_call_id"), values.get("additional_provider_specific_params") or {}
        if not isinstance(options, dict):
            raise ServiceError(
                400,
                "invalid_request",
                f"additional_provider_specific_params must be an object; found {type(options).__name__}",
            )
        request = await in_thread(self._request, values, options)
        if request is not None and isinstance(call, str):
            self._remember(call, request)
        if values["input_type"] == "request":
            return {"action": "NONE"}
        request = request or self._requests.get(str(call))
        if request is None or not request.passages:
            return self._blocked(NO_PASSAGES) if self._failing == "closed" else {"action": "NONE"}
        with refusing():
            at_least = options.get("at_least", self._at_least)
            check_share(at_least, "at_least")
            answer_at_least = options.get("answer_at_least", 0.0)
            check_share(answer_at_least, "answer_at_least")
            texts = values.get("texts") or []
            check_texts(texts, "texts")
        reports = [await self._score(request.question, list(request.passages), text) for text in texts]
        reasons = [reason for report in reports for reason in self._reasons(report, at_least)]
        reasons += [reason for report in reports for reason in self._whole_answer(report, answer_at_least)]
        if not reasons:
            return {"action": "NONE"}
        more = [f"and {len(reasons) - _NAMED} more"] * (len(reasons) > _NAMED)
        return self._blocked("not faithful to the passages: " + "; ".join([*reasons[:_NAMED], *more]))

    def _reasons(self, report: Report, at_least: float) -> list[str]:
        """Quote what does not pass, each part with the reason."""
        closed = self._failing == "closed"
        below = [s for s in report.sentences if falls_below(s, at_least) and (closed or is_checked(s))]
        unread = after_end_words(report.after_end) if closed else ""
        return [*map(_words, below), *([unread] if unread else [])]

    def _whole_answer(self, report: Report, at_least: float) -> list[str]:
        """Say that an answer as a whole does not pass; one without such a score is judged by its sentences alone."""
        if not at_least:
            return []
        if report.answer_scale is None:
            why = "answer_at_least needs scores of whole answers, which the server's monitor lacks; leave it out"
            raise ServiceError(400, "unsupported", why)
        score = report.answer_score(allow_unscored=self._failing == "open")
        return [] if score is None or score >= at_least else [f"the whole answer ({score:.2f})"]

    def _request(self, values: Mapping[str, Any], options: Mapping[str, Any]) -> ChatRequest | None:
        """Read question and passages, if LiteLLM sends the messages."""
        messages = values.get("structured_messages")
        if not messages:
            return None
        body = {"messages": messages, **{name: options[name] for name in ("context",) if name in options}}
        return read_chat(body, reveal="verified", stop_below=None, passages_from=self._passages_from, most=self._most)

    def _remember(self, call: str, request: ChatRequest) -> None:
        kept = self._requests
        if (old := kept.pop(call, None)) is not None:
            self._characters -= _length(old)
        kept[call] = request
        self._characters += _length(request)
        while self._characters > _MOST_CHARACTERS and len(kept) > 1:
            self._characters -= _length(kept.popitem(last=False)[1])

    def _blocked(self, reason: str) -> dict[str, Any]:
        return {"action": "BLOCKED", "blocked_reason": reason}


def _length(request: ChatRequest) -> int:
    return 1000 + len(request.question) + sum(map(len, request.passages))


def _words(sentence: SentenceScore) -> str:
    """Quote a sentence with the reason why it does not pass."""
    score = sentence.reason or "no score" if sentence.score is None else f"{sentence.score:.2f}"
    why = ", ".join([score, *contrast_lines(sentence)])
    return f"“{sentence.text}” ({why})"
