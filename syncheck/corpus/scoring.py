"""Scoring of the responses in records, several in one forward pass if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from syncheck.base.errors import InputError
from syncheck.base.records import JsonDict, Record, parsed_record
from syncheck.corpus.records import Line, answer
from syncheck.labelling.datasets import what_was_asked
from syncheck.labelling.responses import LabelledResponse, prompt_of
from syncheck.results import Report
from syncheck.results.types import Query, RagPrompt
from syncheck.text.markup import reasoning_length
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor
    from syncheck.replay import GivenResponse


_SENTENCE_FIELDS = (
    *("text", "start", "end", "token_start", "token_end", "score", "status", "verdict", "remarks", "features"),
    *("reason", "evidence", "contrasts", "citations"),
)


def sentence_dicts(report: Report) -> list[JsonDict]:
    """List the sentences of a report with the fields that the command line writes; relevance if it was rated."""
    rated = ("relevance",) if any(sentence.relevance is not None for sentence in report.sentences) else ()
    return [{name: s[name] for name in (*_SENTENCE_FIELDS, *rated)} for s in report.to_dict()["sentences"]]


def score_row(record: JsonDict, report: Report) -> JsonDict:
    """Make the row of a scored record."""
    row = {"id": record.get("id"), "question": report.prompt.question, "monitor": report.monitor}
    row |= {"answer_score": report.answer_score(), "sentences": sentence_dicts(report)}
    if reasoning := reasoning_length(report.response, (sentence.start for sentence in report.sentences)):
        row["reasoning"] = reasoning
    return row | ({"after_end": report.after_end} if report.after_end else {})


@overload
def prompt_for(monitor: ModelMonitor, record: JsonDict) -> RagPrompt: ...


@overload
def prompt_for(monitor: Verifier, record: JsonDict) -> Query: ...


def prompt_for(monitor: ModelMonitor | Verifier, record: JsonDict) -> Query:
    """Build the pair of prompts of an input record, or its query for a verifier.

    The record's ``messages``, a chat with the passages in it, or its prompts replace the template. A verifier reads
    neither, but of messages the question, the last of the user's, where the record has none. Fields that are missing,
    of the wrong type or exclude each other raise InputError.
    """
    if isinstance(monitor, Verifier):
        unread = {"system"} if record.get("question") is None else {"system", "messages", "messages_without_context"}
        asked = what_was_asked(Record({name: value for name, value in record.items() if name not in unread}))
        return monitor.query(question=asked["question"], passages=asked["passages"])
    unlabelled = LabelledResponse(id="", response="", group="", generator="", **what_was_asked(Record(record)))
    return prompt_of(monitor, unlabelled)


@dataclass(frozen=True, slots=True)
class RecordScorer:
    """Scores the responses of records; a :data:`~syncheck.corpus.records.Worker`.

    With ``given``, the sentences in a record are taken instead of segmenting its response; ``signals`` measures those
    of the monitored model even if no score needs them. ``row`` makes the row of a record and its report.
    ``batch_tokens`` is the largest number of tokens in a forward pass, padding included; a longer response is scored
    alone. None scores one response at a time, so that values do not depend on other records. ``citation`` is as in
    :meth:`syncheck.Verifier.check`, and refused with InputError for a monitor that reads signals.
    """

    monitor: ModelMonitor | Verifier
    _: KW_ONLY
    given: bool = False
    signals: bool = False
    row: Callable[[JsonDict, Report], JsonDict] = score_row
    batch_tokens: int | None = None
    citation: str | None = None

    def __post_init__(self) -> None:
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise InputError(f"batch_tokens must be at least 1; found {self.batch_tokens}")
        if self.citation is not None and not isinstance(self.monitor, Verifier):
            raise InputError("a pattern of citations needs a monitor that reads text alone; leave the model out")

    def __call__(self, lines: Sequence[Line]) -> list[JsonDict]:
        """Score each line and make its row, in order."""
        reports = {} if self.batch_tokens is None else dict(self._replayed(lines, self.batch_tokens))
        return [answer(line, partial(self.one, report=reports.get(place))) for place, line in enumerate(lines)]

    def one(self, record: JsonDict, report: Report | None = None) -> JsonDict:
        """Make the row of a record, which is scored now unless its report is given."""
        return self.row(record, self._report(record) if report is None else report)

    def _report(self, record: JsonDict) -> Report:
        given = self._response(record)
        if isinstance(self.monitor, Verifier):
            if given.pop("response_token_ids", None) is not None:
                raise InputError("response_token_ids are of a language model's tokenizer; pass --model, or the text")
            return self.monitor.answer(prompt_for(self.monitor, record), citation=self.citation, **given)
        return self.monitor.score(prompt_for(self.monitor, record), signals=self.signals, **given)

    def _response(self, record: JsonDict) -> dict[str, Any]:
        """Read the response of a record as keyword arguments of :meth:`syncheck.Monitor.score`."""
        given = Record(record)
        ids = given.optional("response_token_ids", list)
        if self.given:
            return {"sentences": given.strings("sentences"), "response_token_ids": ids}
        return {"response": given.get("response", str)} if ids is None else {"response_token_ids": ids}

    def _replayed(self, lines: Sequence[Line], most: int) -> Iterator[tuple[int, Report]]:
        """Yield the reports of records that a model reads together; the others are scored alone, with their errors."""
        monitor = self.monitor
        if isinstance(monitor, Verifier) or not (self.signals or monitor.reads_signals):
            return
        read: dict[int, tuple[RagPrompt, GivenResponse]] = {}
        for place, line in enumerate(lines):
            with suppress(Exception):  # raised again where the line is answered alone
                record = parsed_record(line.content, line.source, line.number)
                prompt = prompt_for(monitor, record)
                read[place] = prompt, monitor.read(prompt, **self._response(record))
        for batch in _batches(read, most):
            prompts, responses = [read[i][0] for i in batch], [read[i][1] for i in batch]
            with suppress(Exception):
                answers = monitor.replay_batch(
                    prompts, responses, batch_size=len(batch), on_failure=lambda place, reason: None
                )
                for i, scored in answers:
                    yield batch[i], scored.report(responses[i].transcript, stop=None, seconds=None)


def _batches(read: Mapping[int, tuple[RagPrompt, GivenResponse]], most: int) -> Iterator[list[int]]:
    """Yield batches of indices with similar lengths, as many as fit into ``most`` tokens with padding."""
    lengths = {i: len(prompt.with_context_ids) + len(given.token_ids) for i, (prompt, given) in read.items()}
    batch: list[int] = []
    for i in sorted(lengths, key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[i] > most:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
