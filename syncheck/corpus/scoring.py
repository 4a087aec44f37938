"""Scoring of the responses in records, several in one forward pass if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from syncheck.base.errors import InputError
from syncheck.base.files import JsonDict, absence, field, fields_found, parsed_record
from syncheck.corpus.records import Line, answer
from syncheck.monitor import Monitor
from syncheck.prompts import prompt_from_texts
from syncheck.replay import GivenResponse
from syncheck.results import Report
from syncheck.results.types import RagPrompt

_SENTENCE_FIELDS = tuple(
    "text start end token_start token_end score status verdict remarks features reason evidence contrasts".split()
)


def sentence_dicts(report: Report) -> list[JsonDict]:
    """Return the sentences of a report with the fields that the command line writes."""
    return [{name: s[name] for name in _SENTENCE_FIELDS} for s in report.to_dict()["sentences"]]


def score_row(record: JsonDict, report: Report) -> JsonDict:
    """Return the row of a scored record."""
    row = {"id": record.get("id"), "monitor": report.monitor, "sentences": sentence_dicts(report)}
    return row | ({"after_end": report.after_end} if report.after_end else {})


def prompt_for(monitor: Monitor, record: JsonDict) -> RagPrompt:
    """Build the pair of prompts of an input record; prompts in the record replace the template.

    Fields that are missing or of the wrong type raise InputError or WrongTypeError.
    """
    question = field(record, "question", str)
    if "context" not in record or record["context"] is None:
        raise InputError(
            f"{absence('context', record)}; {fields_found('context', record)}; pass a string or a list of strings, '' "
            "if it is known to be empty"
        )
    context = field(record, "context", (str, list))
    with_context = field(record, "prompt_with_context", str, default=None)
    without_context = field(record, "prompt_without_context", str, default=None)
    if (with_context is None) != (without_context is None):
        raise InputError("prompt_with_context and prompt_without_context replace the template; pass both")
    system = field(record, "system", str, default=None)
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

    Parameters
    ----------
    monitor
        The monitor that scores them.
    given
        True takes the sentences given in a record instead of segmenting its response.
    row
        Function that returns the row of a record and its report.
    batch_tokens
        Largest number of tokens in a forward pass, padding included; a longer response is scored alone. None scores one
        response at a time, so that values do not depend on other records.

    Raises
    ------
    InputError
        If ``batch_tokens`` is below 1.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        given: bool = False,
        row: Callable[[JsonDict, Report], JsonDict] = score_row,
        batch_tokens: int | None = None,
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise InputError(f"batch_tokens must be at least 1; found {batch_tokens}")
        self.monitor = monitor
        self._given = given
        self._row = row
        self._batch_tokens = batch_tokens

    def __call__(self, lines: Sequence[Line]) -> list[JsonDict]:
        """Return the row of each line, in order."""
        reports = {} if self._batch_tokens is None else dict(self._replayed(lines, self._batch_tokens))
        return [answer(line, partial(self.one, report=reports.get(place))) for place, line in enumerate(lines)]

    def one(self, record: JsonDict, report: Report | None = None) -> JsonDict:
        """Return the row of a record, which is scored now unless its report is given."""
        if report is None:
            report = self.monitor.score(prompt_for(self.monitor, record), **self._response(record))
        return self._row(record, report)

    def _response(self, record: JsonDict) -> dict[str, Any]:
        """Return the response of a record as keyword arguments of :meth:`syncheck.Monitor.score`."""
        ids = field(record, "response_token_ids", list, default=None)
        if self._given:
            sentences = field(record, "sentences", list)
            if not all(isinstance(s, str) for s in sentences):
                raise InputError("field 'sentences' must be a list of strings")
            return {"sentences": sentences, "response_token_ids": ids}
        return {"response": field(record, "response", str)} if ids is None else {"response_token_ids": ids}

    def _replayed(self, lines: Sequence[Line], most: int) -> Iterator[tuple[int, Report]]:
        """Yield the reports of records that can be scored together; the others are scored alone, with their errors."""
        read: dict[int, tuple[RagPrompt, GivenResponse]] = {}
        signals = self.monitor.aggregator is None
        for place, line in enumerate(lines):
            with suppress(Exception):  # raised again where the line is answered alone
                record = parsed_record(line.content, line.source, line.number)
                prompt = prompt_for(self.monitor, record)
                read[place] = prompt, self.monitor.read(prompt, **self._response(record), signals=signals)
        for batch in _batches(read, most):
            prompts, responses = [read[i][0] for i in batch], [read[i][1] for i in batch]
            with suppress(Exception):
                answers = self.monitor.replay_batch(
                    prompts,
                    responses,
                    signals=signals,
                    batch_size=len(batch),
                    on_failure=lambda place, reason: None,
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
