"""Biographies in FActScore's layout: retrieved passages, an output, and propositions labelled faithful or not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, InputError, RecordError, TextGeneratorError
from syncheck.base.printable import progress
from syncheck.base.records import Record, read_records
from syncheck.labelling.passages import Passage, words_of
from syncheck.labelling.responses import LabelledResponse, LabelledSentence, PromptSource, found_in, labelled_sentences
from syncheck.prompts import biography_prompt

if TYPE_CHECKING:
    from syncheck.labelling.propositioners import Propositioner, PropositionJudge

BIOGRAPHY_QUESTION = "Tell me a bio of {topic}."  # Min et al. 2023; the paper's query too
BIOGRAPHY_PASSAGES = 10
"""Number of passages in ``ctxs`` from which a biography is written (appendix B.1 and the published code)."""

_PREFIX = "Question: "


@dataclass(frozen=True, slots=True)
class Proposition:
    """A statement of a response; ``faithful`` is True if the passages support it, None if that is not decided."""

    text: str
    faithful: bool | None = None


@dataclass(frozen=True, slots=True)
class _Biography:
    """A record with the passages that count, and its propositions or None."""

    record: Record
    passages: tuple[str, ...]
    given: tuple[Proposition, ...] | None

    @property
    def is_labelled(self) -> bool:
        return self.given is not None and all(p.faithful is not None for p in self.given)

    @property
    def key(self) -> str:
        """Digest of everything in the record that models read."""
        asked = [self.passages, self.record.get("output", str), self.record.values.get("propositions")]
        return f"sha256:{hashlib.sha256(json.dumps(asked).encode()).hexdigest()}"


def is_biography(record: Record) -> bool:
    """Tell whether a record has retrieved passages in ``ctxs``, or other fields that only a biography has."""
    given = record.values.keys()
    return "ctxs" in given or bool(given & {"output", "propositions"} and not given & {"spans", "sentences"})


def load_biographies(
    path: str | Path,
    *,
    propositioner: Propositioner | None = None,
    judge: PropositionJudge | None = None,
    max_passages: int = BIOGRAPHY_PASSAGES,
    prompts: PromptSource = "monitor",
    kept: str | Path | None = None,
    show_progress: bool | None = None,
) -> list[LabelledResponse]:
    """Read biographies from JSON Lines and label their sentences by propositions (paper, appendix B.2).

    Each line has ``ctxs``, a list of objects with ``text`` and usually ``title``, best first; ``output``, the response;
    and ``topic``, ``question`` or ``input``. Optional: ``propositions``, ``id``, ``group`` (default: the topic),
    ``generator``, ``split``, ``task``. A proposition is a string, or an object with ``text`` and, if it is labelled,
    ``label`` (1 faithful, 0 unfaithful).

    Parameters
    ----------
    propositioner
        Splits the outputs of records without ``propositions``; for example a :class:`SequencePropositioner`.
    judge
        Decides on propositions without a label; for example an :class:`AutoAis`.
    max_passages
        Number of passages in ``ctxs``, from the first, that the generator was shown.
    prompts
        ``task``: the published code's prompts, with the passages and the instruction only. ``monitor``: those of the
        monitor's template.
    kept
        File to which the propositions of each record are written at once; a later run labels only records that are
        new or changed. Use one file for each propositioner and judge, since it does not distinguish them.
    show_progress
        None shows a progress bar on a terminal.

    Returns
    -------
    list of LabelledResponse
        Responses with labels of sentences, which are those of NLTK's untrained Punkt.

    Raises
    ------
    CheckpointError
        If ``kept`` is damaged, or a file of another kind.
    InputError
        If the file is missing or empty, or a parameter is invalid.
    RecordError
        At the first record that cannot be used or labelled; before any is labelled, if a propositioner or judge is
        needed and missing.
    """
    check_choice(prompts, "prompts", PromptSource)
    if max_passages < 1:
        raise InputError(f"max_passages must be 1 or more; found {max_passages}")
    path = Path(path)
    known = _KeptPropositions(kept)
    biographies: list[_Biography] = []

    def read(record: Record) -> LabelledResponse:
        biography = _biography(record, max_passages)
        if not biography.is_labelled and biography.key not in known:
            _check_models(biography, propositioner, judge)
        biographies.append(biography)
        return _response(biography, path.stem, prompts)

    unlabelled = found_in(path, ((record, read(record)) for record in read_records(path)))
    asked = [pair for pair in zip(biographies, unlabelled, strict=True) if not pair[0].is_labelled]
    missing = [pair for pair in asked if pair[0].key not in known]
    shown = show_progress if missing else False
    done = len(asked) - len(missing)
    with progress(total=len(asked), initial=done, desc="labelling", unit=" responses", shown=shown) as bar:
        for biography, response in missing:
            if biography.key not in known:  # nor the same under another id
                known.add(biography.key, response.id, _labelled(biography, propositioner, judge))
            bar.update()
    propositions = [biography.given if biography.is_labelled else known[biography.key] for biography in biographies]
    return [
        replace(response, sentences=label_by_propositions(response.response, judged or ()))
        for response, judged in zip(unlabelled, propositions, strict=True)
    ]


def asks_models(path: str | Path, kept: str | Path) -> bool:
    """Tell whether :func:`load_biographies` needs a propositioner or judge for a record that is not in ``kept``."""
    known = _KeptPropositions(kept)
    biographies = (_biography(record, BIOGRAPHY_PASSAGES) for record in read_records(Path(path)))
    return any(not each.is_labelled and each.key not in known for each in biographies)


def label_by_propositions(response: str, propositions: Iterable[Proposition]) -> tuple[LabelledSentence, ...]:
    """Label the sentences of a response: the one with most of an unfaithful proposition is unfaithful.

    The response is cut with NLTK's untrained Punkt; propositions that are faithful, or undecided, have no effect.

    The measure is token recall (appendix B.2): the share of a proposition's words, with repetitions, that occur in the
    sentence. Of equal sentences, the first is unfaithful. A proposition without a word of the response has no effect.
    """
    sentences = labelled_sentences(response, (), with_letter=False)
    words = [Counter(words_of(response[s.start : s.end])) for s in sentences]
    unfaithful: set[int] = set()
    for proposition in propositions:
        if proposition.faithful is False:
            wanted = Counter(words_of(proposition.text))
            shared = [(wanted & held).total() for held in words]
            if any(shared):
                unfaithful.add(shared.index(max(shared)))
    return tuple(LabelledSentence(s.start, s.end, i not in unfaithful) for i, s in enumerate(sentences))


def _biography(record: Record, max_passages: int) -> _Biography:
    ctxs = [Passage(c.optional("title", str) or "", c.get("text", str)) for c in record.objects("ctxs")]
    if not any(passage.text.strip() for passage in ctxs):
        raise record.error("expected at least one passage with text", "ctxs")
    passages = tuple(str(passage) for passage in ctxs[:max_passages])
    if record.values.get("propositions") is None:
        return _Biography(record, passages, None)
    values = record.get("propositions", list)
    return _Biography(record, passages, tuple(_proposition(record, i, value) for i, value in enumerate(values)))


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


def _response(biography: _Biography, stem: str, prompts: PromptSource) -> LabelledResponse:
    """Read the response of a record, without labels."""
    record, question, own = biography.record, _question(biography.record), prompts == "task"
    return LabelledResponse(
        id=record.optional("id", str) or f"{stem}:{record.line}",
        question=question,
        passages=biography.passages,
        response=record.get("output", str),
        group=record.optional("group", str) or record.optional("topic", str) or question,
        generator=record.optional("generator", str) or "unknown",
        task=record.optional("task", str) or "Biography",
        carry_labels=True,  # its sentences are Punkt's, whatever cuts the monitor makes
        source=record.source,
        line=record.line,
        split=record.optional("split", str),
        prompt_with_context=biography_prompt(question, biography.passages) if own else None,
        prompt_without_context=biography_prompt(question, ()) if own else None,
    )


def _question(record: Record) -> str:
    """Read ``question``, or ``input`` without FActScore's prefix, or make the paper's question on the topic."""
    given = record.optional("question", str) or record.optional("input", str)
    if given is not None:
        return given.removeprefix(_PREFIX)
    return BIOGRAPHY_QUESTION.format(topic=record.get("topic", str))


def _check_models(biography: _Biography, propositioner: Propositioner | None, judge: PropositionJudge | None) -> None:
    if biography.given is None and propositioner is None:
        remedy = "give a list, or pass propositioner= (--propositioner) to have the output cut"
        raise biography.record.error(f"missing; {remedy}", "propositions")
    if biography.given is not None and judge is None:
        pending = next(index for index, p in enumerate(biography.given) if p.faithful is None)
        raise _unjudged(biography.record, f"propositions[{pending}].label")


def _unjudged(record: Record, place: str) -> RecordError:
    return record.error("not labelled; give 1 (faithful) or 0, or pass judge= (--judge) to have it judged", place)


def _labelled(
    biography: _Biography, propositioner: Propositioner | None, judge: PropositionJudge | None
) -> tuple[Proposition, ...]:
    """Label the propositions of a record: split from the output, and decided by the judge, if needed."""
    record, propositions = biography.record, biography.given
    if propositions is None:
        assert propositioner is not None
        with _naming(record, "output"):
            propositions = tuple(Proposition(text) for text in propositioner(record.get("output", str)))
    pending = [p.text for p in propositions if p.faithful is None]
    if not pending:
        return propositions
    if judge is None:
        raise _unjudged(record, "propositions")
    with _naming(record, "propositions"):
        verdicts = judge(biography.passages, pending)
    if len(verdicts) != len(pending):
        message = f"expected a verdict of the judge for each of {len(pending)} propositions, found {len(verdicts)}"
        raise record.error(message, "propositions")
    judged = iter(verdicts)
    return tuple(replace(p, faithful=bool(next(judged))) if p.faithful is None else p for p in propositions)


@contextmanager
def _naming(record: Record, field: str) -> Iterator[None]:
    """Add the record and field to the errors of a model that labels it."""
    try:
        yield
    except (InputError, TextGeneratorError) as error:
        raise record.error(str(error), field) from error


class _KeptPropositions(dict[str, tuple[Proposition, ...]]):
    """Labelled propositions by the key of their record, written to JSON Lines as they are added.

    An incomplete last line, left by a kill, is dropped. Without a path, they are only in memory.
    """

    _START = b'{"record": "'

    def __init__(self, path: str | Path | None) -> None:
        super().__init__()
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise InputError(
                f"{self._path}: labels cannot be saved there, because the folder does not exist; create it first"
            )
        if self._path.exists():
            self._read(self._path)

    def add(self, key: str, name: str, propositions: tuple[Proposition, ...]) -> None:
        """Store the propositions of a record; ``name`` is for human readers of the file."""
        self[key] = propositions
        if self._path is None:
            return
        judged = [{"text": p.text, "label": int(bool(p.faithful))} for p in propositions]
        line = json.dumps({"record": key, "id": name, "propositions": judged}, ensure_ascii=False)
        with self._path.open("ab") as file:
            file.write(f"{line}\n".encode(errors="surrogatepass"))  # as json.loads reads it

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            lines = list(file)
        for number, line in enumerate(lines, 1):
            try:
                entry = Record(dict(json.loads(line)), str(path), number)
                self[entry.get("record", str)] = tuple(map(_kept, entry.objects("propositions")))
            except (TypeError, ValueError) as error:
                if not line.endswith(b"\n") and line[: len(self._START)] == self._START[: len(line)]:
                    with path.open("r+b") as file:
                        file.truncate(sum(map(len, lines[:-1])))
                    return
                raise CheckpointError(
                    f"{path}:{number} is damaged ({type(error).__name__}: {error}); expected judged propositions. "
                    "Delete this line, and its record is labelled again"
                ) from error
        if lines and not lines[-1].endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")


def _kept(given: Record) -> Proposition:
    if (label := given.get("label", int)) not in (0, 1):
        raise given.error(f"expected 0 or 1, found {label}", "label")
    return Proposition(given.get("text", str), bool(label))
