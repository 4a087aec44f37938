"""Biographies as FActScore lays them out: retrieved passages, an output, and propositions judged faithful or not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from syncheck.errors import InputError
from syncheck.templates import biography_prompt
from syncheck.training.labels import LabelledSentence, labelled_sentences
from syncheck.training.propositions import Propositioner, PropositionJudge
from syncheck.training.records import Record, read_records
from syncheck.training.responses import LabelledResponse, PromptSource, ResponseCollection

__all__ = ["Passage", "Proposition", "is_biography", "label_by_propositions", "load_biographies"]

BIOGRAPHY_QUESTION = "Tell me a bio of {topic}."  # Min et al. 2023; the paper's query too
BIOGRAPHY_PASSAGES = 10
"""Passages of ``ctxs`` that a biography is written from (appendix B.1 and the published code)."""

_WORD = re.compile(r"\w+")
_PREFIX = "Question: "


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a corpus, under the title of its page."""

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Proposition:
    """A statement of a response, and whether the passages support it; None if nobody has said."""

    text: str
    faithful: bool | None = None


def is_biography(record: Record) -> bool:
    """Whether a record has retrieved passages in ``ctxs``, or what else only a biography has."""
    given = record.values.keys()
    return "ctxs" in given or bool(given & {"output", "propositions"} and not given & {"spans", "sentences"})


def load_biographies(
    path: str | Path,
    *,
    propositioner: Propositioner | None = None,
    judge: PropositionJudge | None = None,
    max_passages: int = BIOGRAPHY_PASSAGES,
    prompts: PromptSource = "monitor",
) -> list[LabelledResponse]:
    """Read biographies from JSON Lines and label their sentences by propositions (paper, appendix B.2).

    Each line has ``ctxs``, a list of objects with ``text`` and, mostly, ``title``, best first; ``output``, the
    response; and ``topic``, or else ``question`` or ``input``. Optional: ``propositions``, ``id``, ``group`` (else the
    topic), ``generator``, ``split``, ``task``. A proposition is a string, or an object with ``text`` and, where it was
    judged, ``label`` (1 faithful, 0 unfaithful).

    Parameters
    ----------
    path
        The file.
    propositioner
        Cuts the outputs of records without ``propositions``; for instance a :class:`SequencePropositioner`.
    judge
        Judges propositions without a label; for instance an :class:`AutoAis`.
    max_passages
        How many of ``ctxs`` count, from the first; the others were not shown to the generator.
    prompts
        ``task``: the published code's prompts, with the passages and the instruction only. ``monitor``: those of the
        monitor's template.

    Returns
    -------
    list of LabelledResponse
        With sentences of NLTK's untrained Punkt and their labels.

    Raises
    ------
    InputError
        If the file is missing or empty, or a parameter is of no use.
    RecordError
        At the first record that cannot be used, also one whose propositions or labels are missing while there is no
        propositioner or judge.
    """
    if prompts not in get_args(PromptSource):
        raise InputError(f"prompts must be one of {get_args(PromptSource)}; found {prompts!r}")
    if max_passages < 1:
        raise InputError(f"max_passages must be 1 or more; found {max_passages}")
    path = Path(path)
    responses = ResponseCollection()
    for record in read_records(path):
        passages = tuple(str(passage) for passage in _ctxs(record)[:max_passages])
        propositions = _judged(record, passages, _propositions(record, propositioner), judge)
        responses.add(_response(record, path.stem, passages, propositions, prompts), record)
    return responses.found_in(path)


def label_by_propositions(response: str, propositions: Iterable[Proposition]) -> tuple[LabelledSentence, ...]:
    """Label a response's sentences: the one that holds most of an unfaithful proposition is unfaithful.

    Parameters
    ----------
    response
        Cut with NLTK's untrained Punkt.
    propositions
        Judged ones; those that are faithful, or not judged, mark nothing.

    Notes
    -----
    Token recall (appendix B.2): the share of a proposition's words, repeated ones counted as often, that the sentence
    holds; words are runs of letters and digits, case aside. The first of equals is marked. A proposition without
    a word in common with the response marks none.
    """
    sentences = labelled_sentences(response, (), with_letter=False)
    words = [Counter(_words(response[s.start : s.end])) for s in sentences]
    unfaithful: set[int] = set()
    for proposition in propositions:
        if proposition.faithful is False:
            wanted = Counter(_words(proposition.text))
            shared = [(wanted & held).total() for held in words]
            if any(shared):
                unfaithful.add(shared.index(max(shared)))
    return tuple(LabelledSentence(s.start, s.end, i not in unfaithful) for i, s in enumerate(sentences))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _ctxs(record: Record) -> list[Passage]:
    passages = [Passage(c.optional("title", str) or "", c.get("text", str)) for c in record.objects("ctxs")]
    if not any(passage.text.strip() for passage in passages):
        raise record.error("expected at least one passage with text", "ctxs")
    return passages


def _propositions(record: Record, propositioner: Propositioner | None) -> list[Proposition]:
    if record.values.get("propositions") is not None:
        values = record.get("propositions", list)
        return [_proposition(record, index, value) for index, value in enumerate(values)]
    if propositioner is None:
        raise record.error(
            "missing; give a list, or pass propositioner= (--propositioner) to have the output cut", "propositions"
        )
    try:
        return [Proposition(text) for text in propositioner(record.get("output", str))]
    except InputError as error:
        raise record.error(str(error), "output") from error


def _proposition(record: Record, index: int, value: object) -> Proposition:
    place = f"propositions[{index}]"
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        raise record.error(f"expected a string or an object, found {json.dumps(value)}", place)
    inner = Record(value, record.source, record.line, f"{place}.")
    text, label = inner.get("text", str), value.get("label")
    if not text.strip():
        raise inner.error("expected a statement, found nothing but white space", "text")
    if label not in (None, 0, 1):
        raise inner.error(f"expected 1 (faithful) or 0 (unfaithful), found {json.dumps(label)}", "label")
    return Proposition(text, None if label is None else bool(label))


def _judged(
    record: Record, passages: Sequence[str], propositions: list[Proposition], judge: PropositionJudge | None
) -> list[Proposition]:
    """Have those judged that have no label yet."""
    pending = [index for index, p in enumerate(propositions) if p.faithful is None]
    if not pending:
        return propositions
    if judge is None:
        place = f"propositions[{pending[0]}].label" if record.values.get("propositions") is not None else "propositions"
        raise record.error("not labelled; give 1 (faithful) or 0, or pass judge= (--judge) to have it judged", place)
    try:
        verdicts = judge(passages, [propositions[index].text for index in pending])
    except InputError as error:
        raise record.error(str(error), "propositions") from error
    if len(verdicts) != len(pending):
        raise record.error(
            f"expected of judge a verdict for each of {len(pending)} propositions, found {len(verdicts)}",
            "propositions",
        )
    judged = list(propositions)
    for index, verdict in zip(pending, verdicts, strict=True):
        judged[index] = Proposition(propositions[index].text, bool(verdict))
    return judged


def _response(
    record: Record, stem: str, passages: tuple[str, ...], propositions: list[Proposition], prompts: PromptSource
) -> LabelledResponse:
    question = _question(record)
    response = record.get("output", str)
    own = prompts == "task"
    return LabelledResponse(
        id=record.optional("id", str) or f"{stem}:{record.line}",
        question=question,
        passages=passages,
        response=response,
        group=record.optional("group", str) or record.optional("topic", str) or question,
        generator=record.optional("generator", str) or "unknown",
        sentences=label_by_propositions(response, propositions),
        task=record.optional("task", str) or "Biography",
        split=record.optional("split", str),
        prompt_with_context=biography_prompt(question, passages) if own else None,
        prompt_without_context=biography_prompt(question, ()) if own else None,
    )


def _question(record: Record) -> str:
    """Return ``question``, or ``input`` without FActScore's prefix, or the paper's question on the topic."""
    given = record.optional("question", str) or record.optional("input", str)
    if given is not None:
        return given.removeprefix(_PREFIX)
    return BIOGRAPHY_QUESTION.format(topic=record.get("topic", str))
