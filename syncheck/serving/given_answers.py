"""Given answers: scored, and judged for LiteLLM's guardrail."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncheck.base.checks import check_share, check_texts
from syncheck.monitor import Monitor
from syncheck.reading import Claim
from syncheck.report.labels import contrast_lines
from syncheck.results import Report
from syncheck.results.types import SentenceScore
from syncheck.scoring import falls_below, report_of
from syncheck.serving.chat import ChatRequest, ServerConfig, ServiceError, read_chat, refusing, unsupported
from syncheck.serving.checked import NO_PASSAGES, Failing, is_checked, verifier_of
from syncheck.serving.limits import in_thread
from syncheck.text.markup import answer_start
from syncheck.text.sentences import AnswerSegmenter
from syncheck.verifier import Verifier

_SLICE = 8  # sentences with short passages that are scored at a time: a fraction of a second
_CHARACTERS_OF_SENTENCE = 20_000  # of passages that are compared in the time of such a sentence
_READ_AT_ONCE = 8_192  # characters of a given response


async def score_given(monitor: Monitor | Verifier, question: str, context: Sequence[str], response: str) -> Report:
    """Score a given response some sentences at a time, or at once if a language model reads it."""
    if not isinstance(monitor, Verifier) and monitor.reads_signals:
        prompt = await in_thread(monitor.prompt, question=question, context=context)
        response = response[await in_thread(answer_start, response) :]  # the model reads the answer alone
        return await in_thread(monitor.score, prompt, response)
    started = time.perf_counter()
    verifier = verifier_of(monitor)
    segmenter = AnswerSegmenter(verifier.config.segmenter)
    for start in range(0, len(response), _READ_AT_ONCE):
        await in_thread(segmenter.push, response[start : start + _READ_AT_ONCE])
    await in_thread(segmenter.finish)
    spans, sentences = segmenter.spans, list[SentenceScore]()
    scorer = await in_thread(verifier.scorer, verifier.query(question=question, passages=context))
    at_once = max(1, int(_SLICE / (1 + sum(map(len, context)) / _CHARACTERS_OF_SENTENCE)))
    for first in range(0, len(spans), at_once):
        claims = [Claim(response[span.start : span.end], span) for span in spans[first : first + at_once]]
        (scored,) = await in_thread(scorer.claims, [claims], earlier=[sentences])
        sentences += scored
    return report_of(scorer, response, sentences, stop=None, seconds=time.perf_counter() - started)


_MOST_CHARACTERS = 2**25  # of the newest requests, which are remembered
_NAMED = 3  # sentences that the reason of a refusal quotes


@dataclass(eq=False)
class Guardrail:
    """Guardrail for LiteLLM, which sends it each request before the model gets it, and then the answer."""

    score: Callable[[str, list[str], str], Awaitable[Report]]
    """Makes the report for question, passages and response."""
    at_least: float
    """Score that each sentence must reach if LiteLLM's ``additional_provider_specific_params`` do not say otherwise."""
    failing: Failing
    config: ServerConfig = field(default_factory=ServerConfig)
    _requests: OrderedDict[str, ChatRequest] = field(default_factory=OrderedDict)
    _characters: int = 0

    async def apply(self, values: object) -> dict[str, Any]:
        """Choose LiteLLM's ``action`` for a request or an answer: ``NONE``, or ``BLOCKED`` and the reason."""
        if not isinstance(values, dict) or values.get("input_type") not in ("request", "response"):
            raise ServiceError(400, "invalid_request", "expected an object with input_type request or response")
        call, options = values.get("litellm_call_id"), values.get("additional_provider_specific_params") or {}
        if not isinstance(options, dict):
            told = f"additional_provider_specific_params must be an object; found {type(options).__name__}"
            raise ServiceError(400, "invalid_request", told)
        request = await in_thread(self._request, values, options)
        if request is not None and isinstance(call, str):
            self._remember(call, request)
        if values["input_type"] == "request":
            return {"action": "NONE"}
        request = request or self._requests.get(str(call))
        if request is None or not request.passages:
            if self.failing == "open":
                return {"action": "NONE"}
            return {"action": "BLOCKED", "blocked_reason": NO_PASSAGES}
        with refusing():
            at_least = options.get("at_least", self.at_least)
            check_share(at_least, "at_least")
            answer_at_least = options.get("answer_at_least", 0.0)
            check_share(answer_at_least, "answer_at_least")
            texts = values.get("texts") or []
            check_texts(texts, "texts")
        reports = [await self.score(request.question, list(request.passages), text) for text in texts]
        reasons = [reason for report in reports for reason in self._reasons(report, at_least)]
        reasons += [reason for report in reports for reason in self._whole_answer(report, answer_at_least)]
        if not reasons:
            return {"action": "NONE"}
        more = [f"and {len(reasons) - _NAMED} more"] * (len(reasons) > _NAMED)
        told = "not faithful to the passages: " + "; ".join([*reasons[:_NAMED], *more])
        return {"action": "BLOCKED", "blocked_reason": told}

    def _reasons(self, report: Report, at_least: float) -> list[str]:
        closed = self.failing == "closed"
        below = [s for s in report.sentences if falls_below(s, at_least) and (closed or is_checked(s))]
        unread = [f"not read, after an end-of-text token: “{report.after_end}”"] if closed and report.after_end else []
        return [*map(_words, below), *unread]

    def _whole_answer(self, report: Report, at_least: float) -> list[str]:
        """Say that an answer as a whole does not pass; one without such a score is judged by its sentences alone."""
        if not at_least:
            return []
        if report.answer_scale is None:
            why = "answer_at_least needs scores of whole answers, which the server's monitor lacks; leave it out"
            raise unsupported(why)
        score = report.answer_score(allow_unscored=self.failing == "open")
        return [] if score is None or score >= at_least else [f"the whole answer ({score:.2f})"]

    def _request(self, values: Mapping[str, Any], options: Mapping[str, Any]) -> ChatRequest | None:
        messages = values.get("structured_messages")
        if not messages:
            return None
        body = {"messages": messages} | ({"context": options["context"]} if "context" in options else {})
        return read_chat(body, self.config)

    def _remember(self, call: str, request: ChatRequest) -> None:
        kept = self._requests
        if call in kept:
            self._characters -= _length(kept.pop(call))
        kept[call] = request
        self._characters += _length(request)
        while self._characters > _MOST_CHARACTERS and len(kept) > 1:
            self._characters -= _length(kept.popitem(last=False)[1])


def _length(request: ChatRequest) -> int:
    return 1000 + len(request.question) + sum(map(len, request.passages))


def _words(sentence: SentenceScore) -> str:
    score = sentence.reason or "no score" if sentence.score is None else f"{sentence.score:.2f}"
    why = ", ".join([score, *contrast_lines(sentence)])
    return f"“{sentence.text}” ({why})"
