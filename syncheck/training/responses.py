"""A labelled response, also as JSON, and the collecting of them from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from syncheck.errors import InputError
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan
from syncheck.training.records import Record

__all__ = [
    "LabelledResponse",
    "PromptSource",
    "ResponseCollection",
    "read_spans",
    "response_from_json",
    "response_to_json",
]

PromptSource = Literal["monitor", "task"]
"""``monitor``: the monitor's template writes the prompts. ``task``: those the paper gave the generators."""


@dataclass(frozen=True, slots=True)
class LabelledResponse:
    """A response to a question over passages, with what annotators found unfaithful in it.

    Attributes
    ----------
    id : str
        Unique within its file.
    question : str
        The question or instruction.
    passages : tuple of str
        What sentences are held against.
    response : str
    group : str
        Responses of one group stay on one side of every split: those to the same question.
    generator : str
        The model that wrote the response, ``"unknown"`` if the file does not say.
    spans : tuple of UnfaithfulSpan or None
        Unfaithful characters; None when the labels are per sentence.
    sentences : tuple of LabelledSentence or None
        Labels per sentence, which hold all letters and digits of the response; None when they are spans.
    task : str or None
    quality : str or None
        RAGTruth's remark on the response: ``good``, ``incorrect_refusal`` or ``truncated``.
    split : str or None
    prompt_with_context, prompt_without_context : str or None
        The prompts as the generator saw them, when the file has them; None for both leaves them to the monitor.
    user_turns : bool
        Whether these prompts are what a user says, to be put in the chat template of a model that has one.
    carry_labels : bool
        Whether labels of sentences may be carried over to sentences that are cut otherwise; see
        :func:`~syncheck.training.recut.check_cut`.
    source, line : str and int, or None
        Where it was read, for messages; equal responses may be of different lines.
    """

    id: str
    question: str
    passages: tuple[str, ...]
    response: str
    group: str
    generator: str
    spans: tuple[UnfaithfulSpan, ...] | None = None
    sentences: tuple[LabelledSentence, ...] | None = None
    task: str | None = None
    quality: str | None = None
    split: str | None = None
    prompt_with_context: str | None = None
    prompt_without_context: str | None = None
    user_turns: bool = False
    carry_labels: bool = False
    source: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)

    @property
    def has_context(self) -> bool:
        """Whether any passage holds more than white space; without, no sentence gets a score."""
        return any(passage.strip() for passage in self.passages)


def response_to_json(response: LabelledResponse) -> str:
    """Return all of a labelled response in one line, of its source the file's name; see :func:`response_from_json`."""
    source = None if response.source is None else Path(response.source).name
    return json.dumps(asdict(response) | {"source": source}, ensure_ascii=False)


def response_from_json(text: str) -> LabelledResponse:
    """Return the labelled response that :func:`response_to_json` wrote.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it wrote something else.
    """
    entry = dict(json.loads(text))
    spans, sentences = entry.pop("spans"), entry.pop("sentences")
    return LabelledResponse(
        **{**entry, "passages": tuple(entry["passages"])},
        spans=None if spans is None else tuple(UnfaithfulSpan(**span) for span in spans),
        sentences=None if sentences is None else tuple(LabelledSentence(**s) for s in sentences),
    )


class ResponseCollection:
    """Collects the responses of a file and refuses the second of an id."""

    def __init__(self) -> None:
        self._by_id: dict[str, LabelledResponse] = {}

    def add(self, response: LabelledResponse, record: Record) -> None:
        """Add what a record holds.

        Raises
        ------
        RecordError
            If there is one with this id.
        """
        if response.id in self._by_id:
            raise record.error(f"another response has the id {response.id!r}; give each its own", "id")
        self._by_id[response.id] = response

    def found_in(self, path: Path) -> list[LabelledResponse]:
        """Return the responses in the order they came.

        Raises
        ------
        InputError
            If there is none.
        """
        if not self._by_id:
            raise InputError(f"{path} has no labelled response")
        return list(self._by_id.values())


def read_spans(
    record: Record, field: str, length: int, *, counts: Callable[[UnfaithfulSpan], bool] = lambda span: True
) -> tuple[UnfaithfulSpan, ...]:
    """Read the marked characters of a response of ``length``; those that do not count are checked and left out.

    Raises
    ------
    RecordError
        If one is no object with ``start`` and ``end`` inside the response.
    """
    spans = []
    for label in record.objects(field):
        start, end = label.get("start", int), label.get("end", int)
        if not 0 <= start < end <= length:
            raise label.error(f"characters {start} to {end} do not lie in a response of {length}")
        span = UnfaithfulSpan(
            start,
            end,
            implicit_true=label.optional("implicit_true", bool) or False,
            due_to_null=label.optional("due_to_null", bool) or False,
            label_type=label.optional("label_type", str),
        )
        if counts(span):
            spans.append(span)
    return tuple(spans)
