"""Scoring of the responses in records, several in one forward pass if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from syncheck.base.errors import InputError
from syncheck.base.records import JsonDict, absence, field, fields_found, parsed_record
from syncheck.corpus.records import Line, answer
from syncheck.prompts import prompt_from_texts, question_of
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
    row = {"id": record.get("id"), "monitor": report.monitor, "answer_score": report.answer_score()}
    row["sentences"] = sentence_dicts(report)
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
    neither, but of messages the question, the last of the user's, where the record has none.

    Fields that are missing or of the wrong type raise InputError or WrongTypeError.
    """
    messages = field(record, "messages", list, default=None)
    question = field(record, "question", str, **({} if messages is None else {"default": None}))
    if "context" not in record or record["context"] is None:
        raise InputError(
            f"{absence('context', record)}; {fields_found('context', record)}; pass a string or a list of strings, '' "
            "if it is known to be empty"
        )
    context = field(record, "context", (str, dict, list))
    with_context = field(record, "prompt_with_context", str, default=None)
    without_context = field(record, "prompt_without_context", str, default=None)
    if (with_context is None) != (without_context is None):
        raise InputError("prompt_with_context and prompt_without_context replace the template; pass both")
    if messages is not None and with_context is not None:
        raise InputError("fields 'messages' and 'prompt_with_context' both replace the template; leave one out")
    system = field(record, "system", str, default=None)
    without = field(record, "messages_without_context", list, default=None)
    if isinstance(monitor, Verifier):
        asked = question_of(messages, context, without) if question is None else question
        return monitor.query(question=asked, passages=context)
    if messages is not None:
        if system is not None:
            raise InputError("field 'system' is one of the messages; leave it out")
        return monitor.prompt(messages=messages, without=without, question=question, context=context)
    if with_context is None:
        return monitor.prompt(question=question, context=context, system=system)
    if system is not None:
        raise InputError(
            "field 'system' is part of the template, which the prompts of the record replace; leave it out"
        )
    return prompt_from_texts(
        monitor.tokenizer,
        question=question,
        context=context,
        with_context=with_context,
        without_context=without_context,
    )


class RecordScorer:
    """Scores the responses of records; a :data:`~syncheck.corpus.records.Worker`.

    With ``given``, the sentences in a record are taken instead of segmenting its response; ``signals`` measures those
    of the monitored model even if no score needs them. ``row`` makes the row of a record and its report.
    ``batch_tokens`` is the largest number of tokens in a forward pass, padding included; a longer response is scored
    alone. None scores one response at a time, so that values do not depend on other records. ``citation`` is as in
    :meth:`syncheck.Verifier.check`; with a monitor that reads signals, and with less than one token, InputError.
    """

    def __init__(
        self,
        monitor: ModelMonitor | Verifier,
        *,
        given: bool = False,
        signals: bool = False,
        row: Callable[[JsonDict, Report], JsonDict] = score_row,
        batch_tokens: int | None = None,
        citation: str | None = None,
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise InputError(f"batch_tokens must be at least 1; found {batch_tokens}")
        self.monitor = monitor
        self._given = given
        self._signals = signals
        self._row = row
        if citation is not None and not isinstance(monitor, Verifier):
            raise InputError("a pattern of citations needs a monitor that reads text alone; leave the model out")
        self._batch_tokens = batch_tokens
        self._citation = citation

    def __call__(self, lines: Sequence[Line]) -> list[JsonDict]:
        """Score each line and make its row, in order."""
        reports = {} if self._batch_tokens is None else dict(self._replayed(lines, self._batch_tokens))
        return [answer(line, partial(self.one, report=reports.get(place))) for place, line in enumerate(lines)]

    def one(self, record: JsonDict, report: Report | None = None) -> JsonDict:
        """Make the row of a record, which is scored now unless its report is given."""
        if report is None:
            report = self._report(record)
        return self._row(record, report)

    def _report(self, record: JsonDict) -> Report:
        given = self._response(record)
        if isinstance(self.monitor, Verifier):
            if given.pop("response_token_ids", None) is not None:
                raise InputError("response_token_ids are of a language model's tokenizer; pass --model, or the text")
            return self.monitor.answer(prompt_for(self.monitor, record), citation=self._citation, **given)
        return self.monitor.score(prompt_for(self.monitor, record), signals=self._signals, **given)

    def _response(self, record: JsonDict) -> dict[str, Any]:
        """Read the response of a record as keyword arguments of :meth:`syncheck.Monitor.score`."""
        ids = field(record, "response_token_ids", list, default=None)
        if self._given:
            sentences = field(record, "sentences", list)
            if not all(isinstance(s, str) for s in sentences):
                raise InputError("field 'sentences' must be a list of strings")
            return {"sentences": sentences, "response_token_ids": ids}
        return {"response": field(record, "response", str)} if ids is None else {"response_token_ids": ids}

    def _replayed(self, lines: Sequence[Line], most: int) -> Iterator[tuple[int, Report]]:
        """Yield the reports of records that a model reads together; the others are scored alone, with their errors."""
        monitor = self.monitor
        if isinstance(monitor, Verifier) or not (self._signals or monitor.reads_signals):
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
    for i in sorted(lengths, key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[i] > most:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
