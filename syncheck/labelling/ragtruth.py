"""RAGTruth in its own layout, with spans marked by annotators, and the selection of what counts of such data."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

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

    def wants(self, facts: Mapping[str, str | None]) -> bool:
        """Tell whether a response with these facts is selected; an unknown fact (None) matches no criterion."""
        return all(getattr(self, name) is None or facts[of] in self._asked(name) for name, of in _FIELDS.items())

    def check_names(self, facts: Iterable[Mapping[str, str | None]], *, source: object) -> None:
        """Refuse, with an InputError, names that no response, whose facts these are, has, alone or together."""
        responses = list(facts)
        there = {name: {response[of] for response in responses} for name, of in _FIELDS.items()}
        asked = {name: self._asked(name) for name in _FIELDS}
        missing = {
            name: [value for value in values if value not in there[name]]
            for name, values in asked.items()
            if name != "quality"  # remarks are rare, and allowing one requires none
        }
        if not any(missing.values()):
            if any(map(self.wants, responses)):
                return
            missing = asked
        wanted = "; ".join(f"{name} {_listed(values)}" for name, values in missing.items() if values)
        raise InputError(
            f"{source} has no response of {wanted}. It has "
            f"{'; '.join(f'{name} {_listed(values)}' for name, values in there.items())}"
        )

    def counts(self, span: UnfaithfulSpan) -> bool:
        """Tell whether a span makes a sentence unfaithful."""
        return (self.implicit_true or not span.implicit_true) and (self.due_to_null or not span.due_to_null)

    def of_responses(self, responses: Sequence[LabelledResponse], *, source: object) -> list[LabelledResponse]:
        """Select responses, with the spans that count."""
        return [self.counted(responses[index]) for index in self.kept(responses, source)]

    def kept(self, responses: Sequence[LabelledResponse], source: object) -> list[int]:
        """List the indices of the selected responses."""
        facts = [{of: getattr(response, of) for of in _FIELDS.values()} for response in responses]
        self.check_names(facts, source=source)
        return [index for index, response in enumerate(facts) if self.wants(response)]

    def _asked(self, name: str) -> list[str]:
        asked = getattr(self, name)
        return [asked] if isinstance(asked, str) else list(asked or ())

    def counted(self, response: LabelledResponse) -> LabelledResponse:
        """Keep only the spans of a response that count."""
        if response.spans is None:
            return response
        return replace(response, spans=tuple(filter(self.counts, response.spans)))


def _listed(values: Collection[str | None]) -> str:
    return ", ".join(sorted("none" if value is None else repr(value) for value in values)) or "none"


@dataclass(frozen=True, slots=True)
class _Source:
    """A source: the question over its passages, and both prompts."""

    task: str
    question: str
    passages: tuple[str, ...]
    with_context: str
    without_context: str


def load_ragtruth(
    folder: str | Path, selection: Selection | None = None, *, prompts: PromptSource = "monitor"
) -> list[LabelledResponse]:
    """Read RAGTruth (Niu et al., 2024): ``response.jsonl`` and ``source_info.jsonl`` as the corpus publishes them.

    Parameters
    ----------
    folder
        Folder with both files.
    selection
        The responses and spans that count. Tasks are ``QA`` (the default), ``Summary`` and ``Data2txt``; the split is
        ``train`` or ``test``; remarks on the quality are ``good``, ``incorrect_refusal`` and ``truncated``. The paper's
        counts of unfaithful sentences result from ``implicit_true=False``.
    prompts
        For ``QA``, ``monitor`` takes the monitor's template and ``task`` the prompts of the corpus, as the paper does.
        The other two tasks are not questions and have their own prompts either way.

    Notes
    -----
    The group is the ``source_id``. Passages are those of ``QA``, the article of ``Summary``, and pieces of the record
    of ``Data2txt`` in JSON: one for the plain fields, one for each nested field, one for each review. Prompts are user
    turns: with the context the source's ``prompt``, or the corpus's wording if it has none; without it those of the
    published code: the question; the instruction and the article's first sentence; the record without its reviews.

    A missing file, an option with a value that is unknown or that no response has, and an empty selection raise
    InputError; the first record that cannot be used raises RecordError.
    """
    chosen = selection or Selection()
    tasks = QUESTIONS_ONLY if chosen.tasks is None else chosen.tasks
    chosen = replace(chosen, tasks=tasks)
    _check_choices(chosen, prompts)
    folder = Path(folder)
    sources: dict[str, _Source | None] = {}
    task_types: dict[str, str] = {}
    for record in read_records(folder / "source_info.jsonl"):
        source_id = record.get("source_id", str)
        if source_id in sources:
            raise record.error(f"another source has the id {source_id!r}", "source_id")
        sources[source_id] = _source(record, tasks)
        task_types[source_id] = record.get("task_type", str)
    responses, all_facts = [], []
    for record in read_records(folder / "response.jsonl"):
        source_id = record.get("source_id", str)
        if source_id not in sources:
            raise record.error(f"{source_id!r} is not in source_info.jsonl", "source_id")
        source = sources[source_id]
        facts = _facts(record, task_types[source_id], split_known=source is not None and chosen.split is not None)
        all_facts.append(facts)
        if source is None or not chosen.wants(facts):
            continue
        spans = read_spans(record, "labels", len(record.get("response", str)), counts=chosen.counts)
        responses.append((record, _response(record, source, spans, source.task != "QA" or prompts == "task")))
    chosen.check_names(all_facts, source=folder)
    return found_in(folder, responses)


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


def _facts(record: Record, task: str, *, split_known: bool) -> dict[str, Any]:
    """Read the facts of a response on which a selection is based."""
    remark = record.optional("quality", str)
    if remark is not None and remark not in get_args(Quality):
        raise record.error(f"expected one of {get_args(Quality)}, found {remark!r}", "quality")
    return {
        "task": task,
        "split": record.get("split", str) if split_known else record.optional("split", str),
        "quality": remark,
        "generator": record.get("model", str),
    }


def _source(record: Record, tasks: Collection[str]) -> _Source | None:
    """Read a source; None if it is of another task."""
    readers = {"QA": _questioned, "Summary": _summarised, "Data2txt": _described}
    task = record.get("task_type", str)
    if task not in readers:
        raise record.error(f"expected one of {tuple(readers)}, found {task!r}", "task_type")
    return readers[task](record) if task in tasks else None


def _questioned(record: Record) -> _Source:
    source = Record(record.get("source_info", dict), record.source, record.line, "source_info.")
    question, text = source.get("question", str), source.get("passages", str)
    before, *passages = _PASSAGE.split(text)
    if before.strip() or not passages:
        raise source.error("expected 'passage 1:...', blank line, 'passage 2:...' and so on", "passages")
    stripped = tuple(passage.strip() for passage in passages)
    prompt = record.optional("prompt", str) or ragtruth_qa_prompt(question, stripped)
    return _Source("QA", question, stripped, prompt, ragtruth_qa_prompt(question, ()))


def _summarised(record: Record) -> _Source:
    article = record.get("source_info", str)
    if not article.strip():
        raise record.error("expected an article, found nothing but white space", "source_info")
    prompt = record.optional("prompt", str) or ragtruth_summary_prompt(SUMMARY_INSTRUCTION, article)
    if article.split() != prompt.split()[-1 - len(article.split()) : -1]:
        raise record.error("expected the instruction in a line, the article of source_info, and 'output:'", "prompt")
    instruction = prompt.split("\n", 1)[0]
    without = ragtruth_summary_prompt(instruction, first_sentence(article))
    return _Source("Summary", instruction, (article,), prompt, without)


def _described(record: Record) -> _Source:
    business = record.get("source_info", dict)
    if not business:
        raise record.error("expected a business record, found an object without fields", "source_info")
    prompt = record.optional("prompt", str) or ragtruth_data2txt_prompt(business)
    without = ragtruth_data2txt_prompt(business, reviews=False)
    return _Source("Data2txt", DATA2TXT_INSTRUCTION, _pieces(business), prompt, without)


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


def _response(
    record: Record, source: _Source, spans: tuple[UnfaithfulSpan, ...], own_prompts: bool
) -> LabelledResponse:
    source_id, generator = record.get("source_id", str), record.get("model", str)
    return LabelledResponse(
        id=record.optional("id", str) or f"{source_id}/{generator}",
        question=source.question,
        passages=source.passages,
        response=record.get("response", str),
        group=source_id,
        generator=generator,
        spans=spans,
        task=source.task,
        quality=record.optional("quality", str),
        split=record.optional("split", str),
        prompt_with_context=source.with_context if own_prompts else None,
        prompt_without_context=source.without_context if own_prompts else None,
        user_turns=own_prompts,
    )


def ragtruth_summary_prompt(instruction: str, article: str) -> str:
    """Write RAGTruth's prompt for a summary; its counterpart has only the :func:`first_sentence` of the article.

    The instruction is one line, such as ``Summarize the following news within 60 words:``.
    """
    return f"{instruction}\n{article}\noutput:"


def first_sentence(text: str) -> str:
    """Find the first sentence of a text, by untrained Punkt; a blank text gives ``""``.

    The published code uses NLTK's English model, which has to be downloaded; untrained Punkt, unlike that model, may
    end the sentence at an abbreviation.
    """
    return next(iter(Punkt().texts(text.strip())), "")


def ragtruth_data2txt_prompt(record: Mapping[str, Any], *, reviews: bool = True) -> str:
    """Write RAGTruth's prompt for an overview of a business, or its counterpart without ``reviews``.

    The counterpart, from the published code, is shorter and lacks the record's ``review_info``. The corpus calls the
    data JSON but writes them in Python's notation (single quotes, ``True``, ``None``), and so does this function.
    """
    opening = (
        "Instruction:\nWrite an objective overview about the following local business based only on the provided "
        "structured data in the JSON format."
    )
    if not reviews:
        return f"{opening}\n{ {k: v for k, v in record.items() if k != REVIEWS} }\noutput:"
    return (
        f"{opening} You should include details and cover the information mentioned in the customers' review. The "
        "overview should be 100 - 200 words. Don't make up information.\n"
        f"Structured data:\n{dict(record)}\nOverview:"
    )
