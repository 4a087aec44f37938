"""Labelled responses: their records, and the labels of their sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from syncheck.base.checks import given_passages, passage_records
from syncheck.base.errors import InputError, RecordError
from syncheck.base.printable import shortened
from syncheck.base.records import SHOWN, Record
from syncheck.prompts import prompt_from_texts
from syncheck.results.types import Query, RagPrompt
from syncheck.text.markup import answer_parts
from syncheck.text.sentences import is_checkable

if TYPE_CHECKING:
    from syncheck.monitor_base import MonitorParts

PromptSource = Literal["monitor", "task"]
"""``monitor``: the monitor's template writes the prompts. ``task``: the prompts that the paper gave the generators."""


@dataclass(frozen=True, slots=True)
class UnfaithfulSpan:
    """Characters ``start`` to ``end`` of a response, half-open, that an annotator marked as unfaithful.

    In RAGTruth, a span may be true of the world although the context does not say so (``implicit_true``), or be caused
    by a null in structured data (``due_to_null``); ``label_type`` is the annotators' category.
    """

    start: int
    end: int
    implicit_true: bool = False
    due_to_null: bool = False
    label_type: str | None = None


NO_CLAIM: Final = "no claim"
"""Label of a sentence that claims nothing, so that it is neither faithful nor unfaithful; it counts nowhere."""
Label = bool | Literal["no claim"] | None


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """Characters ``start`` to ``end`` of a response, half-open and without white space around them, with a label.

    ``faithful`` is None without a label, and if the label is that it claims nothing (``no_claim``).
    """

    start: int
    end: int
    faithful: bool | None
    no_claim: bool = False
    spans: tuple[UnfaithfulSpan, ...] = ()
    """Words of an unfaithful sentence that are not supported, if they were marked, in characters of the response."""
    readings: tuple[Label, Label] | None = None
    """The labels of two readers who disagree, so that the sentence has none."""

    @property
    def label(self) -> Label:
        """The label in one value: faithful or not, :data:`NO_CLAIM`, or None without one."""
        return NO_CLAIM if self.no_claim else self.faithful

    def labelled(self, label: Label, spans: Iterable[UnfaithfulSpan] = ()) -> LabelledSentence:
        """Copy this sentence with another label, and with marked words if that is unfaithful."""
        faithful = None if label is None or label == NO_CLAIM else bool(label)
        marked = tuple(spans) if faithful is False else ()
        return LabelledSentence(self.start, self.end, faithful, label == NO_CLAIM, marked)


@dataclass(frozen=True, slots=True)
class LabelledResponse:
    """A response to a question or instruction over passages, with the annotators' labels."""

    id: str
    """Unique within its file."""
    question: str
    passages: tuple[str, ...]
    response: str
    group: str
    """Group of responses, in practice to the same question, that stay on one side of every split."""
    generator: str
    """The model that wrote the response, or ``"unknown"``."""
    spans: tuple[UnfaithfulSpan, ...] | None = None
    """Unfaithful characters; None if the labels are per sentence."""
    sentences: tuple[LabelledSentence, ...] | None = None
    """Labels per sentence, which contain all letters and digits of the response but those of reasoning; None if the
    labels are spans."""
    task: str | None = None
    quality: str | None = None
    """RAGTruth's remark on the response: ``good``, ``incorrect_refusal`` or ``truncated``."""
    split: str | None = None
    prompt_with_context: str | None = None
    prompt_without_context: str | None = None
    """The prompts as the generator saw them; None for both leaves them to the monitor."""
    user_turns: bool = False
    """True if these prompts are user turns for the model's chat template, if it has one."""
    messages: tuple[Mapping[str, str], ...] | None = None
    messages_without_context: tuple[Mapping[str, str], ...] | None = None
    """The chat that the generator saw, with the passages in it, and the same without them; None for the first leaves
    the prompts to the monitor, None for the second takes the passages out of the first."""
    system: str | None = None
    """System prompt of the monitor's template; None leaves it to the template."""
    carry_labels: bool = False
    """True if labels may be carried over to sentences that are cut differently."""
    source: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)
    """File and line that it was read from, for messages."""

    @property
    def has_context(self) -> bool:
        """True if any passage has more than white space; without one, no sentence gets a score."""
        return any(passage.strip() for passage in self.passages)


_LATER_FIELDS = ("messages", "messages_without_context", "system")
_LATER_OF_SENTENCES = ("spans", "readings")
"""Fields that are written only where a response or sentence has them, so that digests of files without them stay."""


def response_to_json(response: LabelledResponse) -> str:
    """Write a labelled response, with the name of its source file, as one line of JSON."""
    source = None if response.source is None else Path(response.source).name
    entry = asdict(response) | {"source": source, "passages": passage_records(response.passages)}
    written = {name: value for name, value in entry.items() if value is not None or name not in _LATER_FIELDS}
    for sentence in entry["sentences"] or ():
        for name in _LATER_OF_SENTENCES:
            if not sentence[name]:
                del sentence[name]
    return json.dumps(written, ensure_ascii=False)


def response_from_json(text: str) -> LabelledResponse:
    """Read the labelled response in a line that :func:`response_to_json` wrote."""
    return LabelledResponse(**_with_tuples(dict(json.loads(text)), sentences=LabelledSentence))


def _with_tuples(entry: dict[str, Any], **kinds: type) -> dict[str, Any]:
    """Turn the lists in an object of JSON into tuples, with the passages, spans and sentences that they hold."""
    read: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    if "passages" in read:
        read["passages"] = given_passages(read["passages"], "passages")
    for name, kind in {"spans": UnfaithfulSpan, **kinds}.items():
        if read.get(name) is not None:
            read[name] = tuple(kind(**_with_tuples(one)) for one in read[name])
    return read


def query_of(record: LabelledResponse) -> Query:
    """Read the question and the passages of a record; a verifier reads nothing else of its prompts."""
    return Query(record.question, tuple(record.passages))


def prompt_of(monitor: MonitorParts, record: LabelledResponse) -> RagPrompt:
    """Build the prompts of a record: its own, or the monitor's template."""
    if record.prompt_with_context is not None and record.prompt_without_context is not None:
        return prompt_from_texts(
            monitor.tokenizer,
            question=record.question,
            context=record.passages,
            with_context=record.prompt_with_context,
            without_context=record.prompt_without_context,
            user_turns=record.user_turns,
        )
    own: dict[str, Any] = {"messages": record.messages, "without": record.messages_without_context}
    return monitor.prompt(question=record.question, context=record.passages, system=record.system, **own)


def with_own_ids(read: Iterable[tuple[Record, LabelledResponse]]) -> list[LabelledResponse]:
    """Read the responses of records, in order; a second one with the same id raises RecordError."""
    by_id: dict[str, LabelledResponse] = {}
    for record, response in read:
        if by_id.setdefault(response.id, response) is not response:
            raise record.error(f"another response has the id {response.id!r}; give each its own", "id")
    return list(by_id.values())


def found_in(path: Path, read: Iterable[tuple[Record, LabelledResponse]]) -> list[LabelledResponse]:
    """Read the responses of a file, whose ids must differ; none at all raises InputError."""
    if responses := with_own_ids(read):
        return responses
    raise InputError(f"{path} has no labelled response")


def read_spans(record: Record, field: str, length: int) -> tuple[UnfaithfulSpan, ...]:
    """Read the marked spans of a response of ``length`` characters."""
    spans = []
    for label in record.objects(field):
        start, end = label.get("start", int), label.get("end", int)
        if not 0 <= start < end <= length:
            raise label.error(f"characters {start} to {end} do not lie in a response of {length}")
        implicit, due_to_null = (label.optional(name, bool) or False for name in ("implicit_true", "due_to_null"))
        spans.append(UnfaithfulSpan(start, end, implicit, due_to_null, label.optional("label_type", str)))
    return tuple(spans)


Rule = Literal["overlap", "paper"]
"""``overlap``: a sentence is unfaithful if it shares a character with a span. ``paper``: only if one of the two
contains the other (the published benchmark)."""


def label_sentences(
    bounds: Sequence[tuple[int, int]],
    spans: Sequence[UnfaithfulSpan],
    *,
    rule: Rule = "overlap",
    implicit_true: bool = True,
) -> NDArray[np.int64]:
    """Label sentences, (N,) int64, by the spans that annotators marked: 1 faithful, 0 unfaithful.

    ``bounds`` are the characters of each sentence, half-open, without the white space around it; :data:`Rule` describes
    the rules. ``implicit_true`` counts spans that are true of the world although the context does not say so.
    """
    counted = [span for span in spans if implicit_true or not span.implicit_true]

    def is_marked(start: int, end: int, span: UnfaithfulSpan) -> bool:
        if rule == "overlap":
            return span.start < end and start < span.end
        return (start <= span.start and span.end <= end) or (span.start <= start and end <= span.end)

    return np.array([not any(is_marked(*one, span) for span in counted) for one in bounds], dtype=np.int64)


REMEDY = (
    "measure the responses again, which takes labelled sentences as they are, or accept that labels are carried over "
    "(carry_labels=True, --carry-labels): what overlaps an unfaithful sentence is then unfaithful"
)

Bounds = Sequence[tuple[int, int]]
"""Start and end of sentences in a response, in order."""


def own_sentences(record: LabelledResponse, bounds: Bounds) -> list[str] | None:
    """Cut a response into its labelled sentences if a monitor, whose ``bounds`` these are, cuts it otherwise.

    Joined, the sentences are the response: each has the white space around it, and what is between two and makes no
    claim, such as a bullet, is one of its own. None if the monitor's sentences are those that are labelled, if the
    labels are spans, or with ``carry_labels``. The sentences are checked as by :func:`check_places`.
    """
    if record.sentences is None or record.carry_labels:
        return None
    check_places(record)
    if _cut_otherwise(record, bounds) is None:
        return None
    text = record.response
    places = sorted({0, len(text), *(place for s in record.sentences for place in (s.start, s.end))})
    sentences: list[str] = []
    for start, end in pairwise(places):
        if sentences and (text[start:end].isspace() or sentences[-1].isspace()):
            sentences[-1] += text[start:end]
        else:
            sentences.append(text[start:end])
    return sentences


def check_places(record: LabelledResponse) -> None:
    """Refuse labelled sentences that overlap, do not lie in the response, or leave out letters or digits of it.

    The error is RecordError if the record was read from a file, else InputError.
    """
    before = 0
    for sentence in record.sentences or ():
        if not before <= sentence.start < sentence.end <= len(record.response):
            raise _error(
                record,
                f"expected labelled sentences one after the other in a response of {len(record.response)} characters, "
                f"found one at {sentence.start} to {sentence.end} after one that ends at {before}; give each sentence "
                "its own part of the response",
            )
        before = sentence.end
    places = [0, *(place for s in record.sentences or () for place in (s.start, s.end)), len(record.response)]
    for start, stop in zip(places[::2], places[1::2], strict=True):
        if needs_label(record.response, start, stop):
            raise _error(
                record,
                "expected a sentence and its label for all text of the response, found none for "
                f"{shortened(record.response[start:stop].strip(), SHOWN)!r}; label it too, with null if it does not "
                "count, or mark unfaithful spans instead",
            )


def needs_label(response: str, start: int, end: int) -> bool:
    """Tell whether characters of a response have a letter or digit of the answer, of which reasoning is no part."""
    if not is_checkable(response[start:end]):
        return False
    return any(is_checkable(response[max(a, start) : min(b, end)]) for a, b in answer_parts(response))


def check_cut(record: LabelledResponse, bounds: Bounds) -> None:
    """Check that each labelled sentence of a response was measured as one sentence of its own, at these ``bounds``.

    Sentences without a letter or digit do not count, and a record with spans or with ``carry_labels`` may be cut in any
    way. Otherwise a difference raises an error as in :func:`check_places`.
    """
    difference = None if record.carry_labels else _cut_otherwise(record, bounds)
    if difference is not None:
        raise _error(record, f"expected each labelled sentence to be measured as one, but {difference}; {REMEDY}")


def _error(record: LabelledResponse, fault: str) -> InputError:
    message = f"record {record.id!r}: {fault}"
    if record.source is None or record.line is None:
        return InputError(message)
    return RecordError(message, source=record.source, line=record.line, field="sentences")


def carried_line(measured: Iterable[tuple[LabelledResponse, Bounds]]) -> str | None:
    """Describe how many labels were carried over to other sentences; None if each labelled one was measured as one.

    ``measured`` has each response with the bounds of its measured sentences.
    """
    carried = [(record, bounds) for record, bounds in measured if _cut_otherwise(record, bounds) is not None]
    if not carried:
        return None
    given = sum(len(_labelled(record)) for record, _ in carried)
    became, first = sum(len(_checkable(record, bounds)) for record, bounds in carried), carried[0][0].id
    return f"labels carried over: in {len(carried)} responses, {first} first, {given} sentences became {became}"


def _cut_otherwise(record: LabelledResponse, bounds: Bounds) -> str | None:
    """Describe the first difference between the labelled and the measured sentences; None if they are the same."""
    if record.sentences is None:
        return None
    given, measured = _labelled(record), _checkable(record, bounds)
    for one in measured:
        if len(shared := _overlapping(one, given)) > 1:
            return f"{len(shared)}, {_shown(record, shared[0])} first, would be one: {_shown(record, one)}"
    for one in given:
        if len(parts := _overlapping(one, measured)) > 1:
            return f"{_shown(record, one)} would be {len(parts)}, {_shown(record, parts[0])} first"
    return None


def _labelled(record: LabelledResponse) -> Bounds:
    return _checkable(record, [(sentence.start, sentence.end) for sentence in record.sentences or ()])


def _checkable(record: LabelledResponse, bounds: Bounds) -> Bounds:
    return [(start, end) for start, end in bounds if is_checkable(record.response[start:end])]


def _overlapping(one: tuple[int, int], others: Bounds) -> Bounds:
    return [(start, end) for start, end in others if one[0] < end and start < one[1]]


def _shown(record: LabelledResponse, one: tuple[int, int]) -> str:
    return repr(shortened(record.response[slice(*one)], SHOWN))
