"""RAGTruth in its own layout, with spans marked by annotators, and the selection of what counts of such data."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.base.records import Record, read_records
from syncheck.labelling.responses import LabelledResponse, PromptSource, UnfaithfulSpan, found_in, read_spans
from syncheck.prompts import ragtruth_qa_prompt
from syncheck.text.sentences.rules import Punkt

RagTruthTask = Literal["QA", "Summary", "Data2txt"]
Quality = Literal["good", "incorrect_refusal", "truncated"]
"""``incorrect_refusal``: the model says that the passages do not have the answer, although they do. ``truncated``: the
response was cut at the generator's limit."""

QUESTIONS_ONLY: tuple[RagTruthTask, ...] = ("QA",)
DATA2TXT_INSTRUCTION = (
    "Write an objective overview about the following local business based only on the provided structured data."
)
DATA2TXT_OPENING = f"Instruction:\n{DATA2TXT_INSTRUCTION.removesuffix('.')} in the JSON format."
DATA2TXT_PROMPT = (
    f"{DATA2TXT_OPENING} You should include details and cover the information mentioned in the customers' review. The "
    "overview should be 100 - 200 words. Don't make up information.\nStructured data:\n{}\nOverview:"
)
SUMMARY_INSTRUCTION = "Summarize the following news:"
"""Instruction for a source without ``prompt``, where the allowed number of words is otherwise stated."""

REVIEWS = "review_info"
"""Key of the customer reviews in business records."""

_PASSAGE = re.compile(r"(?:\A|\n\n)passage \d+:")

_FIELDS = {"tasks": "task", "split": "split", "quality": "quality", "generators": "generator"}
"""Criteria of a selection, and the field of a response that each is compared with."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of the labelled responses, and of their spans, that count."""

    tasks: Collection[str] | None = None
    """Tasks to take; None takes all, here and below."""
    split: str | None = None
    """Part of the corpus to take, such as ``train``."""
    quality: Collection[str] | None = None
    """Remarks on the quality of responses to take; None also takes responses without a remark."""
    generators: Collection[str] | None = None
    """Models whose responses to take."""
    implicit_true: bool = True
    """True counts spans that are true of the world although the context does not say so."""
    due_to_null: bool = True
    """True counts spans that are caused by a null in a business record."""

    def counts(self, span: UnfaithfulSpan) -> bool:
        """Tell whether a span makes a sentence unfaithful."""
        return (self.implicit_true or not span.implicit_true) and (self.due_to_null or not span.due_to_null)

    def of_responses(self, responses: Sequence[LabelledResponse], *, source: object) -> list[LabelledResponse]:
        """Select responses, with the spans that count."""
        return [self.counted(responses[index]) for index in self.kept(responses, source)]

    def kept(self, responses: Sequence[LabelledResponse], source: object) -> list[int]:
        """List the indices of the selected responses; an unknown fact (None) matches no criterion.

        Names that no response has, alone or together, raise InputError.
        """
        given = {name: getattr(self, name) for name in _FIELDS}
        asked = {name: [names] if isinstance(names, str) else list(names or ()) for name, names in given.items()}
        there = {name: [getattr(response, of) for response in responses] for name, of in _FIELDS.items()}
        missing = {
            name: [value for value in values if value not in there[name]]
            for name, values in asked.items()
            if name != "quality"  # remarks are rare, and allowing one requires none
        }
        if not any(missing.values()):
            criteria = [name for name, names in given.items() if names is not None]
            if kept := [i for i in range(len(responses)) if all(there[name][i] in asked[name] for name in criteria)]:
                return kept
            missing = asked
        wanted = "; ".join(f"{name} {_listed(values)}" for name, values in missing.items() if values)
        raise InputError(
            f"{source} has no response of {wanted}. It has "
            f"{'; '.join(f'{name} {_listed(set(values))}' for name, values in there.items())}"
        )

    def counted(self, response: LabelledResponse) -> LabelledResponse:
        """Keep only the spans of a response that count."""
        spans = response.spans
        return response if spans is None else replace(response, spans=tuple(filter(self.counts, spans)))


def _listed(values: Collection[str | None]) -> str:
    return ", ".join(sorted("none" if value is None else repr(value) for value in values)) or "none"


def load_ragtruth(
    folder: str | Path, selection: Selection | None = None, *, prompts: PromptSource = "monitor"
) -> list[LabelledResponse]:
    """Read RAGTruth (Niu et al., 2024): ``response.jsonl`` and ``source_info.jsonl`` as the corpus publishes them.

    The ``selection`` has the responses and spans that count. Tasks are ``QA`` (the default), ``Summary`` and
    ``Data2txt``; the split is ``train`` or ``test``. The paper's counts of unfaithful sentences result from
    ``implicit_true=False``. For ``QA``, the ``prompts`` are those of the ``monitor``'s template or of the ``task``, as
    in the corpus and the paper; the other two tasks are not questions and have their own prompts either way.

    The group is the ``source_id``. Passages are those of ``QA``, the article of ``Summary``, and pieces of the record
    of ``Data2txt`` in JSON: one for the plain fields, one for each nested field, one for each review. Prompts are user
    turns: with the context the source's ``prompt``, or the corpus's wording if it has none; without it those of the
    published code: the question; the instruction and the article's first sentence; the record without its reviews.

    A missing file, an option with a value that is unknown or that no response has, and an empty selection raise
    InputError; the first record that cannot be used raises RecordError.
    """
    chosen = selection or Selection()
    chosen = replace(chosen, tasks=QUESTIONS_ONLY if chosen.tasks is None else chosen.tasks)
    _check_choices(chosen, prompts)
    folder = Path(folder)
    sources: dict[str, LabelledResponse] = {}
    for record in read_records(folder / "source_info.jsonl"):
        source = _source(record, prompts)
        if sources.setdefault(source.group, source) is not source:
            raise record.error(f"another source has the id {source.group!r}", "source_id")
    read = []
    for record in read_records(folder / "response.jsonl"):
        source_id = record.get("source_id", str)
        if source_id not in sources:
            raise record.error(f"{source_id!r} is not in source_info.jsonl", "source_id")
        read.append((record, _response(record, sources[source_id], has_split=chosen.split is not None)))
    return chosen.of_responses(found_in(folder, read), source=folder)


def _check_choices(chosen: Selection, prompts: PromptSource) -> None:
    for name in ("tasks", "quality", "generators"):
        if isinstance(names := getattr(chosen, name), str):
            raise InputError(f"{name} must be a list of names; found {names!r}")
    for task in chosen.tasks or ():
        check_choice(task, "tasks", RagTruthTask)
    for remark in chosen.quality or ():
        check_choice(remark, "quality", Quality)
    if chosen.split:
        check_choice(chosen.split, "split", Literal["train", "test"])
    check_choice(prompts, "prompts", PromptSource)


def _source(record: Record, prompts: PromptSource) -> LabelledResponse:
    """Read a source as a response to it that is still empty."""
    readers = {"QA": _questioned, "Summary": _summarised, "Data2txt": _described}
    task = record.choice("task_type", RagTruthTask)
    question, passages, with_context, without_context = readers[task](record)
    source = LabelledResponse("", question, passages, "", group=record.get("source_id", str), generator="", task=task)
    if task == "QA" and prompts == "monitor":
        return source
    return replace(source, prompt_with_context=with_context, prompt_without_context=without_context, user_turns=True)


def _response(record: Record, source: LabelledResponse, *, has_split: bool) -> LabelledResponse:
    generator, response = record.get("model", str), record.get("response", str)
    return replace(
        source,
        id=record.optional("id", str) or f"{source.group}/{generator}",
        response=response,
        generator=generator,
        spans=read_spans(record, "labels", len(response)),
        quality=None if record.values.get("quality") is None else record.choice("quality", Quality),
        split=record.get("split", str) if has_split else record.optional("split", str),
    )


_Texts = tuple[str, tuple[str, ...], str, str]
"""Question, passages, and the prompts with and without the context."""


def _questioned(record: Record) -> _Texts:
    source = record.nested("source_info")
    question, text = source.get("question", str), source.get("passages", str)
    before, *passages = _PASSAGE.split(text)
    if before.strip() or not passages:
        raise source.error("expected 'passage 1:...', blank line, 'passage 2:...' and so on", "passages")
    stripped = tuple(passage.strip() for passage in passages)
    prompt = record.optional("prompt", str) or ragtruth_qa_prompt(question, stripped)
    return question, stripped, prompt, ragtruth_qa_prompt(question, ())


def _summarised(record: Record) -> _Texts:
    article = record.get("source_info", str)
    if not article.strip():
        raise record.error("expected an article, found nothing but white space", "source_info")
    prompt = record.optional("prompt", str) or f"{SUMMARY_INSTRUCTION}\n{article}\noutput:"
    if article.split() != prompt.split()[-1 - len(article.split()) : -1]:
        raise record.error("expected the instruction in a line, the article of source_info, and 'output:'", "prompt")
    instruction = prompt.split("\n", 1)[0]
    # The published code uses NLTK's English model, which has to be downloaded; untrained Punkt may end at "Dr.".
    first = next(iter(Punkt().texts(article.strip())))
    return instruction, (article,), prompt, f"{instruction}\n{first}\noutput:"


def _described(record: Record) -> _Texts:
    business = record.get("source_info", dict)
    if not business:
        raise record.error("expected a business record, found an object without fields", "source_info")
    # The corpus calls the data JSON but writes them in Python's notation (single quotes, ``True``, ``None``).
    prompt = record.optional("prompt", str) or DATA2TXT_PROMPT.format(business)
    without = {key: value for key, value in business.items() if key != REVIEWS}
    return DATA2TXT_INSTRUCTION, _pieces(business), prompt, f"{DATA2TXT_OPENING}\n{without}\noutput:"


def _pieces(business: Mapping[str, Any]) -> tuple[str, ...]:
    """Cut a record into parts that can be compared with a sentence; each value is in one of them."""
    plain = {key: value for key, value in business.items() if not isinstance(value, dict | list)}
    parts: list[Mapping[str, Any]] = [plain] if plain else []
    for key, value in business.items():
        if key == REVIEWS and isinstance(value, list):
            parts += [{key: review} for review in value]
        elif key not in plain:
            parts.append({key: value})
    return tuple(json.dumps(part, ensure_ascii=False) for part in parts)
