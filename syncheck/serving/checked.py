"""Checked text: one answer on its way through a server, checked, or passed on and marked as unchecked."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict

from syncheck.base.errors import InputError, describe_failure
from syncheck.monitor import Monitor
from syncheck.reading.records import json_leaves
from syncheck.results.protocol import VERSION, Append, Final, Notice, ProtocolEvent, Retract, Verified, fold, to_dict
from syncheck.results.report import sentence_dict
from syncheck.results.types import WITHOUT_CLAIM, SentenceScore
from syncheck.serving.chat import ChatRequest, ServiceError, unverifiable
from syncheck.serving.limits import in_thread, slices
from syncheck.verifier import Verifier
from syncheck.watching.text_watch import TextWatch

logger = logging.getLogger(__name__)

Failing = Literal["closed", "open"]
"""Treatment of text that cannot be checked: ``closed`` answers with an error, ``open`` passes it on and marks it."""

NO_PASSAGES = (
    "expected passages to check the answer against; found none in the request. Send them in its field 'context' or "
    "'documents', as strings or objects with text, or in its messages, as tool messages or <context> elements"
)
_JSON = re.compile(r"\s*(?:```\w*\s*)?(?=[{\[])")
NOTHING_CLAIMED = "no sentence of the answer claims anything, so nothing was checked"
OutcomeStatus = Literal["verified", "checked", "stopped", "unverified", "no_text"]


class Outcome(TypedDict):
    """Outcome of the check of an answer, with the fields of ``syncheck`` that :doc:`serving` describes."""

    status: OutcomeStatus
    reason: str | None
    faithfulness: float | None
    lowest: float | None
    unscored: int
    answer_score: float | None


class CheckedText:
    """Checks the text of one answer, between :meth:`open` and :meth:`leave`; none is accepted once it ``is_over``."""

    def __init__(self, monitor: Monitor | Verifier, request: ChatRequest, *, failing: Failing) -> None:
        self._monitor = monitor
        self._request = request
        self._failing = failing
        self.has_passages = bool(request.passages)
        self.events: list[ProtocolEvent] = []
        self.is_over = False
        self._begin()

    def _begin(self) -> None:
        self._watch: TextWatch | None = None
        self.received = ""
        self._shown = 0
        self._reason: str | None = None
        self._given_up = False

    def open(self) -> None:
        """Read the passages; events then have a notice if the answer will not be checked."""
        if not self._request.passages:
            return self._failed(ServiceError(400, "no_passages", NO_PASSAGES))
        try:
            self._watch = watch_over(self._monitor, self._request)
            self._watch.__enter__()
        except Exception as error:  # of the aligner or the model, whatever it is
            self._broken(error, 400 if isinstance(error, InputError) else 500)

    async def feed(self, text: str) -> None:
        """Add text, which is checked slice by slice, so that other requests have their turns."""
        self.received += text
        for piece in slices(text, sum(map(len, self._request.passages))):
            if self.is_over:
                break
            await in_thread(self._feed, piece)

    def _feed(self, piece: str) -> None:
        if self._given_up or self._watch is None:
            return self._pass_on()
        try:
            if not self._watch.is_over:
                self._take(self._watch.feed(piece))
            if self._watch.is_over:
                self._end_early(self._watch)
        except Exception as error:
            self._broken(error)

    def close(self) -> None:
        """End the answer, which is complete."""
        self.is_over = True
        if not self._given_up and self._watch is not None:
            try:
                return self._take(self._watch.close())
            except Exception as error:
                self._broken(error)
        self._pass_on()
        self._finish()

    def break_off(self, why: str, text: str = "") -> None:
        """End an answer that is not complete, after its last text: with a notice, and without a final event."""
        self.received += text
        self.is_over = self._given_up = True
        self._reason = why if self._reason is None else f"{self._reason}; {why}"
        self._notice(f"Incomplete: {why}")

    def restart(self, why: str) -> None:
        """Take back all text, which was no part of the answer; the check begins anew with what follows."""
        if self._shown:
            self._add(Retract(0, 0, self._shown, why))
        self.leave()
        self._begin()
        self.open()

    def leave(self) -> None:
        """Release the resources of the check."""
        if self._watch is not None:
            self._watch.__exit__(None, None, None)
            if self._watch.withheld is not None:
                self._request.tell_withheld(self._watch.withheld)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the check; known after :meth:`close`."""
        asked = self._request.stop_below
        return outcome_of(self.events, stop_below=asked, stopped=self.is_stopped, reason=self._reason)

    @property
    def is_stopped(self) -> bool:
        """True if a sentence fell below ``stop_below``."""
        report = None if self._watch is None else self._watch.report
        return report is not None and report.stop is not None

    def _take(self, events: Sequence[ProtocolEvent]) -> None:
        """Keep events; failing closed, refuse a sentence that was not checked before its text is sent."""
        assert self._watch is not None
        unchecked = why_unchecked([*events, self._watch.withheld], self._failing)
        self._reason = self._reason or unchecked
        for event in events:
            self._add(event)

    def _add(self, event: ProtocolEvent) -> None:
        """Keep an event, numbered in the order of this answer."""
        if isinstance(event, Append):
            self._shown += len(event.text)
        elif isinstance(event, Retract):
            self._shown = event.start
        self.events.append(replace(event, id=len(self.events) + 1))

    def _end_early(self, watch: TextWatch) -> None:
        """End the answer, since the watch accepts no more text: it stopped, or found the end."""
        events = watch.close()
        if self.is_stopped:
            self.is_over = True
            return self._take(events)
        self._take([event for event in events if not isinstance(event, Final)])
        self._failed(unverifiable("the answer holds text that the monitored model ends an answer with"))

    def _broken(self, error: Exception, status: int = 502) -> None:
        if isinstance(error, ServiceError):
            raise error
        logger.warning("an answer could not be checked: %s", describe_failure(error))
        self._failed(unverifiable(f"the answer could not be checked: {describe_failure(error)}", status))

    def _failed(self, error: ServiceError) -> None:
        if self._failing == "closed":
            raise error
        why = error.args[0]
        if self._request.stop_below is not None:
            why += "; stop_below has no effect on text that is not checked"
        self._reason, self._given_up = why, True
        self._notice(f"Not checked: {why}")

    def _notice(self, text: str) -> None:
        self._add(Notice(0, text, "warning"))
        self._pass_on()

    def _pass_on(self) -> None:
        if text := self.received[self._shown :]:
            self._add(Append(0, text))

    def _finish(self) -> None:
        """Add the final event of an answer whose check was given up; its report has the sentences before that."""
        known = len(fold(self.events).sentences)
        report: dict[str, Any] = {
            "question": self._request.question,
            "response": self.received,
            "faithfulness": self.outcome["faithfulness"],
            **dict.fromkeys(("answer_score", "citation_precision", "citation_recall", "stop", "seconds")),
            "monitor": self._monitor.name,
            "sentences": [sentence_dict(s) for s in self._watch.sentences[:known]] if self._watch and known else [],
        }
        self._add(Final(0, {**report, "hidden": [], "after_end": ""}))


def watch_over(monitor: Monitor | Verifier, request: ChatRequest) -> TextWatch:
    """Begin the watch over an answer without reasoning, whose citations are checked at its end."""
    asked = ("reveal", "stop_below", "stop_after", "passage_ids")
    options: dict[str, Any] = {name: getattr(request, name) for name in asked}
    options["finish"] = verifier_of(monitor).cited
    if isinstance(monitor, Verifier):
        query = monitor.query(question=request.question, passages=request.passages)
        return monitor.watched(query, reasoning=False, **options)
    more = {} if monitor.reads_signals else {"reasoning": False}
    return monitor.watch_text(monitor.prompt(question=request.question, context=request.passages), **more, **options)


def verifier_of(monitor: Monitor | Verifier) -> Verifier:
    """Take the verifier of a monitor, or the verifier itself."""
    return monitor if isinstance(monitor, Verifier) else monitor.verifier


def is_checked(sentence: Verified | SentenceScore) -> bool:
    """Tell whether a sentence has a score, makes no claim, or repeats itself, which needs no score to fail."""
    return sentence.status in ("scored", "degenerate") or sentence.status in WITHOUT_CLAIM


def why_unchecked(events: Sequence[ProtocolEvent | SentenceScore | None], failing: Failing) -> str | None:
    """Say why a sentence among events was not checked, if one was not; failing closed, raise ServiceError."""
    for event in events:
        if isinstance(event, Verified | SentenceScore) and not is_checked(event):
            why = f"a sentence was not checked: {event.reason or event.status}"
            if failing == "closed":
                raise unverifiable(why)
            return why
    return None


def outcome_of(
    events: Sequence[ProtocolEvent], *, stop_below: float | None, stopped: bool, reason: str | None
) -> Outcome:
    """Sum up the check of an answer; ``reason`` says why it is unverified, if it is."""
    answer = fold(events)
    scores = [sentence.score for sentence in answer.sentences if sentence.score is not None]
    repeats = any(sentence.status == "degenerate" for sentence in answer.sentences)
    if not (reason or stopped or scores or repeats) and answer.text.strip():
        reason = NOTHING_CLAIMED
    passed = not repeats and all(
        s.verdict == "supported" if stop_below is None else s.score >= stop_below
        for s in answer.sentences
        if s.score is not None
    )
    checked: OutcomeStatus = "verified" if passed else "checked"
    ended: OutcomeStatus = "stopped" if stopped else checked if scores or repeats else "no_text"
    report = None if reason or ended == "no_text" else answer.report
    return {
        "status": "unverified" if reason else ended,
        "reason": reason or None,
        "faithfulness": math.fsum(scores) / len(scores) if scores else None,
        "lowest": min(scores, default=None),
        "unscored": len(answer.sentences) - len(scores),
        "answer_score": None if report is None else report["answer_score"],
    }


def shown_text(events: Sequence[ProtocolEvent]) -> str:
    """Join the text that events append."""
    return "".join(event.text for event in events if isinstance(event, Append))


def whole_answer(events: Sequence[ProtocolEvent], outcome: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Collect the text of an answer, and its outcome with that of each sentence, with its citations and JSON paths."""
    answer = fold(events)
    begun = _JSON.match(answer.text)
    leaves, stop = json_leaves(answer.text, begun.end()) if begun is not None else (None, 0)
    is_json = not answer.text[stop:].strip("`\n ")  # and nothing else, in a block of code or not
    sentences = []
    reported = [] if answer.report is None else answer.report["sentences"]
    citations = {sentence["start"]: sentence["citations"] for sentence in reported}
    for sentence in answer.sentences:
        told = {"text": answer.text[sentence.start : sentence.end], **to_dict(sentence)}
        told["citations"] = citations.get(sentence.start, [])
        if leaves and is_json:
            own = (leaf.path for leaf in leaves if leaf.start < sentence.end and leaf.end > sentence.start)
            told["paths"] = list(dict.fromkeys(own))
        sentences.append({name: value for name, value in told.items() if name not in ("v", "type", "id")})
    notices = [notice.text for notice in answer.notices]
    return answer.text, {"v": VERSION, **outcome, "sentences": sentences, "notices": notices}
