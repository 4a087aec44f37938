"""Labelled responses from files: RAGTruth in its own layout, or JSON Lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from syncheck.errors import InputError
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan
from syncheck.training.records import Record, read_records

__all__ = ["LabelledResponse", "load_jsonl", "load_ragtruth", "load_records"]

_PASSAGE = re.compile(r"(?:\A|\n\n)passage \d+:")
_TASK = "QA"


@dataclass(frozen=True, slots=True)
class LabelledResponse:
    """A response to a question over passages, with what annotators found unfaithful in it.

    Attributes
    ----------
    id : str
        Unique within its file.
    question : str
    passages : tuple of str
    response : str
    group : str
        Responses of one group stay on one side of every split: those to the same question.
    generator : str
        The model that wrote the response, ``"unknown"`` if the file does not say.
    spans : tuple of UnfaithfulSpan or None
        Unfaithful characters; None when the labels are per sentence.
    sentences : tuple of LabelledSentence or None
        Labels per sentence; None when they are spans.
    task : str or None
    quality : str or None
        RAGTruth's remark on the response: ``good``, ``incorrect_refusal`` or ``truncated``.
    split : str or None
    prompt_with_context, prompt_without_context : str or None
        The prompts as the generator saw them, when the file has them.
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


def load_records(path: str | Path) -> list[LabelledResponse]:
    """Read a RAGTruth folder or a JSON Lines file.

    Raises
    ------
    InputError
        If there is nothing at ``path``.
    RecordError
        At the first record that cannot be used.
    """
    return load_ragtruth(path) if Path(path).is_dir() else load_jsonl(path)


def load_ragtruth(folder: str | Path) -> list[LabelledResponse]:
    """Read the question answering part of RAGTruth.

    Parameters
    ----------
    folder
        Has ``response.jsonl`` and ``source_info.jsonl`` as the corpus publishes them.

    Returns
    -------
    list of LabelledResponse
        In the order of ``response.jsonl``, grouped by ``source_id``. Responses of the corpus's other tasks are
        passed over: their sources are articles and tables, without question and passages.

    Raises
    ------
    InputError
        If a file is missing or no response is of the task.
    RecordError
        At the first record that cannot be used.
    """
    folder = Path(folder)
    tasks: dict[str, str] = {}
    sources: dict[str, tuple[str, tuple[str, ...]]] = {}
    for record in read_records(folder / "source_info.jsonl"):
        source_id = record.get("source_id", str)
        tasks[source_id] = record.get("task_type", str)
        if tasks[source_id] == _TASK:
            sources[source_id] = _ragtruth_source(record)
    responses = _Unique()
    for record in read_records(folder / "response.jsonl"):
        source_id = record.get("source_id", str)
        if source_id not in tasks:
            raise record.error(f"{source_id!r} is not in source_info.jsonl", "source_id")
        if tasks[source_id] == _TASK:
            responses.add(_ragtruth_response(record, source_id, *sources[source_id]), record)
    return responses.found_in(folder)


def _ragtruth_source(record: Record) -> tuple[str, tuple[str, ...]]:
    info = record.get("source_info", dict)
    source = Record(info, record.source, record.line, "source_info.")
    text = source.get("passages", str)
    before, *passages = _PASSAGE.split(text)
    if before.strip() or not passages:
        raise source.error("expected 'passage 1:...', blank line, 'passage 2:...' and so on", "passages")
    return source.get("question", str), tuple(passage.strip() for passage in passages)


def _ragtruth_response(record: Record, source_id: str, question: str, passages: tuple[str, ...]) -> LabelledResponse:
    generator = record.get("model", str)
    return LabelledResponse(
        id=record.optional("id", str) or f"{source_id}/{generator}",
        question=question,
        passages=passages,
        response=record.get("response", str),
        group=source_id,
        generator=generator,
        spans=_spans(record, "labels", len(record.get("response", str))),
        task=_TASK,
        quality=record.optional("quality", str),
        split=record.optional("split", str),
    )


def load_jsonl(path: str | Path) -> list[LabelledResponse]:
    """Read labelled responses from JSON Lines.

    Each line has ``question``, ``context`` (a string or a list of strings) and one of two kinds of labels:
    ``response`` with ``spans`` (objects with ``start`` and ``end``, the unfaithful characters, none if empty), or
    ``sentences`` (strings) with ``labels`` (1 faithful, 0 unfaithful). With sentences the response may be left
    out: they are then concatenated. Optional: ``id``, ``group`` (else the question), ``generator``, ``task``,
    ``split``, ``prompt_with_context``, ``prompt_without_context``.

    Raises
    ------
    InputError
        If the file is missing or empty.
    RecordError
        At the first record that cannot be used.
    """
    path = Path(path)
    responses = _Unique()
    for record in read_records(path):
        responses.add(_response(record, path.stem), record)
    return responses.found_in(path)


def _response(record: Record, stem: str) -> LabelledResponse:
    question = record.get("question", str)
    if ("spans" in record.values) == ("sentences" in record.values):
        raise record.error("expected labels either as 'spans' or as 'sentences' with 'labels'", "spans")
    if "spans" in record.values:
        response = record.get("response", str)
        spans, sentences = _spans(record, "spans", len(response)), None
    else:
        response = record.optional("response", str) or "".join(record.strings("sentences"))
        spans, sentences = None, _sentences(record, response)
    return LabelledResponse(
        id=record.optional("id", str) or f"{stem}:{record.line}",
        question=question,
        passages=_context(record),
        response=response,
        group=record.optional("group", str) or question,
        generator=record.optional("generator", str) or "unknown",
        spans=spans,
        sentences=sentences,
        task=record.optional("task", str),
        split=record.optional("split", str),
        prompt_with_context=record.optional("prompt_with_context", str),
        prompt_without_context=record.optional("prompt_without_context", str),
    )


def _context(record: Record) -> tuple[str, ...]:
    if isinstance(record.values.get("context"), str):
        return (record.get("context", str),)
    return record.strings("context")


def _spans(record: Record, field: str, length: int) -> tuple[UnfaithfulSpan, ...]:
    spans = []
    for label in record.objects(field):
        start, end = label.get("start", int), label.get("end", int)
        if not 0 <= start < end <= length:
            raise label.error(f"characters {start} to {end} do not lie in a response of {length}")
        spans.append(
            UnfaithfulSpan(
                start,
                end,
                implicit_true=label.optional("implicit_true", bool) or False,
                due_to_null=label.optional("due_to_null", bool) or False,
                label_type=label.optional("label_type", str),
            )
        )
    return tuple(spans)


def _sentences(record: Record, response: str) -> tuple[LabelledSentence, ...]:
    """Find each sentence in the response, in order; the white space around it is left out."""
    texts, labels = record.strings("sentences"), record.get("labels", list)
    if len(labels) != len(texts):
        raise record.error(f"expected one label for each of {len(texts)} sentences, found {len(labels)}", "labels")
    sentences = []
    position = 0
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        if label not in (0, 1):
            raise record.error(f"expected 1 (faithful) or 0 (unfaithful), found {label!r}", f"labels[{index}]")
        start = response.find(text.strip(), position)
        if not text.strip() or start < 0:
            raise record.error(f"not found in the response after character {position}", f"sentences[{index}]")
        position = start + len(text.strip())
        sentences.append(LabelledSentence(start, position, bool(label)))
    return tuple(sentences)


class _Unique:
    """Collects responses and refuses the second of an id."""

    def __init__(self) -> None:
        self._by_id: dict[str, LabelledResponse] = {}

    def add(self, response: LabelledResponse, record: Record) -> None:
        if response.id in self._by_id:
            raise record.error(f"another response has the id {response.id!r}; give each its own", "id")
        self._by_id[response.id] = response

    def found_in(self, path: Path) -> list[LabelledResponse]:
        if not self._by_id:
            raise InputError(f"{path} has no labelled response to a question")
        return list(self._by_id.values())
