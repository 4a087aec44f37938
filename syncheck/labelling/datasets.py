"""Labelled responses from files: JSON Lines, the detection of known layouts, and groups where none are named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from syncheck.base.checks import given_passages, passage_records
from syncheck.base.errors import InputError, RecordError, SyncheckError, WrongTypeError
from syncheck.base.printable import shortened
from syncheck.base.records import SHOWN, Record, fields_found, parsed_record, read_records
from syncheck.labelling.ragtruth import Selection, load_ragtruth
from syncheck.labelling.responses import (
    NO_CLAIM,
    Label,
    LabelledResponse,
    LabelledSentence,
    PromptSource,
    check_places,
    found_in,
    read_spans,
    with_own_ids,
)
from syncheck.prompts import question_of

_OWN_PROMPTS = ("prompt_with_context", "prompt_without_context", "messages", "messages_without_context", "system")
"""Fields with the prompts of a record."""
_LABELS = (1, 0, NO_CLAIM)
_Chat = Sequence[Mapping[str, str]]


def load_records(
    path: str | Path,
    selection: Selection | None = None,
    *,
    prompts: PromptSource = "monitor",
    carry_labels: bool = False,
) -> list[LabelledResponse]:
    """Read a RAGTruth folder, or a JSON Lines file of labelled responses; see :func:`~syncheck.labelling.load_jsonl`.

    ``selection`` has the responses and spans that count; None takes all. Of RAGTruth, None and a selection without
    tasks take only the questions. ``prompts`` are for RAGTruth, see :func:`~syncheck.labelling.load_ragtruth`, and
    ``carry_labels`` for labelled sentences. Nothing at ``path``, no response left, and an option that does not apply to
    the data raise InputError; the first record that cannot be used raises RecordError.
    """
    path, selection = Path(path), selection or Selection()
    if path.is_dir():
        return load_ragtruth(path, selection, prompts=prompts)
    if prompts != "monitor":
        raise InputError(
            f"{path}: RAGTruth has prompts of the paper, plain labelled responses do not; found prompts={prompts!r}."
            " Put prompt_with_context and prompt_without_context in the records"
        )
    return selection.of_responses(load_jsonl(path, carry_labels=carry_labels), source=path)


def load_jsonl(path: str | Path, *, carry_labels: bool = False) -> list[LabelledResponse]:
    """Read labelled responses from JSON Lines.

    Each line has ``question`` or ``messages``, ``context`` (a string, an object with ``text`` and perhaps ``id``,
    ``title`` and ``url``, or a list of these) and one of two kinds of labels: ``response`` with ``spans`` (objects with
    ``start`` and ``end``, the unfaithful characters), or ``sentences`` (strings, or the objects of ``syncheck score``
    and ``generate``) with ``labels``: 1 faithful, 0 unfaithful, ``"no claim"`` for a sentence that claims nothing, null
    for one without a label, ``[1, 0]`` for two readers who disagree; the last three do not count. The sentences must
    contain all letters and digits of the response. The response may be left out; it is then the sentences, joined with
    a space where there is no white space between two. ``spans`` may also mark words of unfaithful sentences, each
    within its sentence; a ``text`` in a span must be that of its characters.

    Optional: ``id``, ``group``, ``generator``, ``task``, ``split``, ``quality``, and one of these for the prompts:
    ``messages`` with or without ``messages_without_context``, ``prompt_with_context`` with ``prompt_without_context``,
    or ``system``. Records without ``group`` are in one group if they share the question and a passage.

    ``carry_labels`` carries labels over to sentences that a monitor cuts differently: those that overlap an unfaithful
    sentence are unfaithful. Otherwise, the labelled sentences are measured as they are. A file that is missing or empty
    raises InputError, and the first record that cannot be used RecordError.
    """
    path = Path(path)
    read = ((record, _response(record, path.stem, carry_labels)) for record in read_records(path))
    return with_groups(found_in(path, read))


def response_of(record: Record) -> LabelledResponse:
    """Read the response of a record (else RecordError), with its labels, if any, carried over to other sentences."""
    stem, has_labels = Path(record.source).stem, not {"spans", "labels"}.isdisjoint(record.values)
    return _response(record, stem, carry_labels=True) if has_labels else _unlabelled(record, stem)


def labelled_responses(
    records: Iterable[LabelledResponse | Mapping[str, Any]], *, carry_labels: bool = False
) -> list[LabelledResponse]:
    """Keep labelled responses as they are, and read dicts as :func:`load_jsonl` reads lines.

    A record that is neither raises WrongTypeError, and the first dict that cannot be used RecordError, whose ``line``
    is its number, from 1.
    """
    responses, dicts = [], []
    for number, given in enumerate(records, 1):
        if isinstance(given, LabelledResponse):
            responses.append(given)
            continue
        if not isinstance(given, Mapping):
            raise WrongTypeError(
                "records must be LabelledResponse objects, as syncheck.labelling.load_records reads them from a file, "
                f"or dicts of the same fields; found {type(given).__name__} as number {number}"
            )
        record = _of_mapping(given, number)
        responses.append(_response(record, record.source, carry_labels))
        dicts.append((record, responses[-1]))
    with_own_ids(dicts)
    return with_groups(responses)


def load_unlabelled(path: str | Path, *, asked: str | Path | None = None) -> list[LabelledResponse]:
    """Read the records of a JSON Lines file without their labels; see :func:`unlabelled_responses`.

    ``asked`` is a file of the records that were answered, from which answers without question or passages, as
    ``syncheck score`` and ``generate`` write them, get both, by ``id``.
    """
    path = Path(path)
    known = {} if asked is None else {str(record.values.get("id")): record for record in read_records(Path(asked))}

    def with_question(record: Record) -> Record:
        record = _without_message(record)
        lacking = [name for name in ("question", "context") if name not in record.values]
        if not lacking:
            return record
        if asked is None:
            raise record.error(
                "missing; an answer of `syncheck generate` or `score` gets question and passages from the records that "
                "were answered (--records, asked=)",
                lacking[0],
            )
        answered = known.get(str(record.values.get("id")))
        if answered is None:
            raise record.error(f"no record of {asked} has this id, and the answer has no {lacking[0]}", "id")
        return replace(record, values={**answered.values, **record.values, "id": str(record.values["id"])})

    given = (with_question(record) for record in read_records(path) if asked is None or "error" not in record.values)
    return with_groups(found_in(path, ((record, _unlabelled(record, path.stem)) for record in given)))


def _without_message(record: Record) -> Record:
    """Leave out of an answer what a decoder gave in place of more, as a quotation: the model did not write it."""
    response, trace = record.values.get("response"), record.values.get("trace")
    message = trace.get("message") if isinstance(trace, Mapping) else None
    if not isinstance(response, str) or not isinstance(message, str):
        return record
    return replace(record, values={**record.values, "response": response.removesuffix(message).rstrip()})


def unlabelled_responses(records: Iterable[Mapping[str, Any]]) -> list[LabelledResponse]:
    """Read questions with passages, and their responses (empty if missing), without labels.

    The fields are those of :func:`load_jsonl`.
    """
    read = (_of_mapping(given, number) for number, given in enumerate(records, 1))
    return with_groups(with_own_ids((record, _unlabelled(record, record.source)) for record in read))


def labelled_record(response: LabelledResponse) -> dict[str, Any]:
    """Write a response with labels of sentences as a record that :func:`load_jsonl` reads."""
    sentences, text = response.sentences or (), response.response
    marked = [
        {"start": span.start, "end": span.end, "text": text[span.start : span.end]}
        | {name: value for name, value in asdict(span).items() if value}
        for sentence in sentences
        for span in sentence.spans
    ]
    optional = {name: getattr(response, name) for name in ("task", "quality", "split", *_OWN_PROMPTS)}
    return {
        "id": response.id,
        "question": response.question,
        "context": passage_records(response.passages),
        "response": text,
        "sentences": [text[sentence.start : sentence.end] for sentence in sentences],
        "labels": [list(map(_value, s.readings)) if s.readings else _value(s.label) for s in sentences],
        **({"spans": marked} if marked else {}),
        "group": response.group,
        "generator": response.generator,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _value(label: Label) -> int | str | None:
    return int(label) if isinstance(label, bool) else label


def _of_mapping(given: Mapping[str, Any], number: int) -> Record:
    try:
        text = json.dumps(dict(given))
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"expected values that JSON can hold: {error}", source="records", line=number) from error
    return Record(parsed_record(text, "records", number), "records", number)


def _response(record: Record, stem: str, carry_labels: bool) -> LabelledResponse:
    has_sentences, has_labels, has_spans = (name in record.values for name in ("sentences", "labels", "spans"))
    labels: dict[str, Any]
    if has_spans and not has_sentences:
        response = record.get("response", str)
        labels = {"spans": read_spans(record, "spans", len(response))}
    elif has_sentences and (has_labels or not has_spans):
        response = record.optional("response", str) or _joined(_sentence_texts(record))
        labels = {"sentences": _sentences(record, response)}
    else:
        raise record.error("expected labels either as 'spans' or as 'sentences' with 'labels'", "spans")
    labelled = replace(_unlabelled(record, stem), response=response, carry_labels=carry_labels, **labels)
    if labelled.sentences is not None:
        check_places(labelled)
    return labelled


def _unlabelled(record: Record, stem: str) -> LabelledResponse:
    return LabelledResponse(
        id=record.optional("id", str) or f"{stem}:{record.line}",
        response=record.optional("response", str) or "",
        group=record.optional("group", str) or "",
        generator=record.optional("generator", str) or "unknown",
        task=record.optional("task", str),
        quality=record.optional("quality", str),
        split=record.optional("split", str),
        source=record.source,
        line=record.line,
        **what_was_asked(record),
    )


def what_was_asked(record: Record) -> dict[str, Any]:
    """Read what a record says of the prompts, by field of a :class:`LabelledResponse`."""
    passages, system = _passages(record), record.optional("system", str)
    chat, without = (_chat(record, name) for name in ("messages", "messages_without_context"))
    question = record.get("question", str) if chat is None else _question_in(record, chat, passages, without)
    prompts = {name: record.optional(name, str) for name in ("prompt_with_context", "prompt_without_context")}
    if len(missing := [name for name, prompt in prompts.items() if prompt is None]) == 1:
        raise record.error("missing; give both prompts, or none for the monitor's template", missing[0])
    replacing = {"messages": chat, "prompt_with_context": prompts["prompt_with_context"], "system": system}
    if len(given := [name for name, value in replacing.items() if value is not None]) > 1:
        said = f"found {given[1]!r} too; only one of them says what the prompts are, leave one out"
        raise record.error(said, given[0])
    asked = {"question": question, "passages": passages, "messages_without_context": without}
    return asked | replacing | prompts


def _passages(record: Record) -> tuple[str, ...]:
    """Read the context, whose passages may be objects with a text and the names that they are cited by."""
    given = record.values.get("context")
    if given is None:
        expected = "expected a string or a list of strings, '' if it is known that there are no passages"
        lacking = "null" if "context" in record.values else "missing"
        raise record.error(f"{lacking}; {expected}; {fields_found('context', record.values)}", "context")
    entries = [given] if isinstance(given, dict) else given
    if not isinstance(entries, list) or not any(isinstance(entry, dict) for entry in entries):
        return record.texts("context")
    try:
        return given_passages(entries, "context")
    except SyncheckError as error:
        raise record.error(str(error), "context") from error


def _chat(record: Record, name: str) -> _Chat | None:
    if record.values.get(name) is None:
        return None
    turns = []
    for turn in record.objects(name):
        if not isinstance(content := turn.values.get("content"), str):
            found = f"found {type(content).__name__}; join the texts of a list of parts, and give '' for none"
            raise turn.error(f"expected a string; {found}", "content")
        turns.append({**turn.values, "role": turn.get("role", str)})
    return tuple(turns)


def _question_in(record: Record, chat: _Chat, passages: Sequence[str], without: _Chat | None) -> str:
    """Read the question, or else find it in the chat; a chat from which no prompt can be made raises RecordError."""
    question = record.optional("question", str)
    try:
        return question_of(chat, passages, without) if question is None else question
    except SyncheckError as error:
        raise record.error(str(error), "messages") from error


def _sentence_texts(record: Record) -> tuple[str, ...]:
    """Read the texts of a record's sentences, which may be objects as `syncheck score` and `generate` write them."""
    values = record.get("sentences", list)
    if values and all(isinstance(value, dict) for value in values):
        return tuple(sentence.get("text", str) for sentence in record.objects("sentences"))
    return record.strings("sentences")


def _joined(sentences: Sequence[str]) -> str:
    """Join sentences, with a space where there is no white space between two, so that they are cut there again."""
    text = ""
    for sentence in sentences:
        text += sentence if not text or text[-1].isspace() or sentence[:1].isspace() else f" {sentence}"
    return text


def _sentences(record: Record, response: str) -> tuple[LabelledSentence, ...]:
    """Find each sentence in the response, in order, without the white space around it."""
    texts, labels = _sentence_texts(record), record.get("labels", list)
    if len(labels) != len(texts):
        raise record.error(f"expected one label for each of {len(texts)} sentences, found {len(labels)}", "labels")
    sentences = []
    position = 0
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        pair = label if isinstance(label, list) else []
        disagree = len(pair) == 2 and pair[0] != pair[1] and all(one in _LABELS for one in pair)
        if label not in (*_LABELS, None) and not disagree:
            raise record.error(
                f"expected 1 (faithful), 0 (unfaithful), {NO_CLAIM!r}, null (no label), or two of the first three in a "
                f"list, of readers who disagree; found {label!r}",
                f"labels[{index}]",
            )
        start = response.find(text.strip(), position)
        if not text.strip() or start < 0:
            raise record.error(f"not found in the response after character {position}", f"sentences[{index}]")
        position = start + len(text.strip())
        sentence = LabelledSentence(start, position, None)
        if disagree:
            first, second = (sentence.labelled(one).label for one in pair)
            sentences.append(replace(sentence, readings=(first, second)))
        else:
            sentences.append(sentence.labelled(label))
    return _with_marked_words(record, response, sentences)


def _with_marked_words(
    record: Record, response: str, sentences: Sequence[LabelledSentence]
) -> tuple[LabelledSentence, ...]:
    """Put the spans of a record into its unfaithful sentences; one that does not lie in such a sentence is refused."""
    marked = list(sentences)
    has_spans = record.values.get("spans") is not None
    for index, span in enumerate(read_spans(record, "spans", len(response)) if has_spans else ()):
        place, words = f"spans[{index}]", response[span.start : span.end]
        text = record.values["spans"][index].get("text")
        if text is not None and text != words:
            raise record.error(
                f"expected the characters {span.start} to {span.end} of the response, {shortened(words, SHOWN)!r}, "
                f"found {text!r}; count characters from 0, and let the end be one after the last",
                f"{place}.text",
            )
        within = [i for i, s in enumerate(marked) if s.start <= span.start and span.end <= s.end]
        if not within:
            raise record.error(
                f"expected words of one sentence, found {shortened(words, SHOWN)!r}, which lies in none; mark words of "
                "several sentences by several spans",
                place,
            )
        sentence = marked[within[0]]
        if False not in (sentence.readings or (sentence.faithful,)):
            raise record.error(
                f"expected words of an unfaithful sentence, found {shortened(words, SHOWN)!r} in one with the label "
                f"{_value(sentence.label)!r}; label the sentence 0, or leave the span out",
                place,
            )
        marked[within[0]] = replace(sentence, spans=(*sentence.spans, span))
    return tuple(marked)


DIGITS = 12
"""Hexadecimal digits of the digest of passages: among 100,000 texts with one question, two have the same with a
probability of 2e-5."""


def with_groups(responses: Sequence[LabelledResponse]) -> list[LabelledResponse]:
    """Assign a group to each response that has none (``""``).

    Such responses are in one group if they have the same question and a passage in common: where the passages were
    retrieved anew for each answer, one that differs must not put the answers on both sides of a split. The name is the
    question of the first of them, with a digest of its passages, so that it is the same in every file.
    """
    unnamed = [response for response in responses if not response.group]
    names = iter(first_names((_name(r), [(_plain(r.question), p) for p in _texts(r)]) for r in unnamed))
    return [response if response.group else replace(response, group=next(names)) for response in responses]


def first_names(named: Iterable[tuple[str, Iterable[Hashable]]]) -> list[str]:
    """Map each name, which comes with its keys, to the first of the names that keys connect it to."""
    from scipy.cluster.hierarchy import DisjointSet

    names, joined = [], DisjointSet()
    for name, keys in named:
        names.append(name)
        joined.add(("name", name))
        for key in keys:
            joined.add(("key", key))
            joined.merge(("name", name), ("key", key))
    first: dict[Hashable, str] = {}
    return [first.setdefault(joined["name", name], name) for name in names]


def _name(response: LabelledResponse) -> str:
    digest = hashlib.sha256("\0".join(_texts(response)).encode()).hexdigest()
    return f"{_plain(response.question)} [{digest[:DIGITS]}]"


def _texts(response: LabelledResponse) -> list[str]:
    return [plain for passage in response.passages if (plain := _plain(passage))]


def _plain(text: str) -> str:
    return " ".join(text.split())
