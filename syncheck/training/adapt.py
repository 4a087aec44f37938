"""Training without labels: the model's answers, labels that a teacher is sure of, and planted errors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import torch

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.aligners import Aligner, AskedAligner, SpanAligner, TextGenerator, Unaligned
from syncheck.base.errors import InputError, PromptError, TextGeneratorError, WrongTypeError
from syncheck.base.printable import progress
from syncheck.base.records import read_records
from syncheck.config import MonitorConfig
from syncheck.evaluation.tables import EvaluationRow
from syncheck.labelling.datasets import labelled_record, unlabelled_responses
from syncheck.labelling.planting import Scored, Spoiler
from syncheck.labelling.responses import LabelledResponse, LabelledSentence, prompt_of, query_of
from syncheck.model_monitor import ModelMonitor
from syncheck.reading import EvidenceIndex
from syncheck.text.sentences import is_checkable
from syncheck.training.calibrate import sentences_needed
from syncheck.training.extract import measure
from syncheck.training.fit import train_measured, untrained_monitor
from syncheck.training.measured import MeasuredSentences
from syncheck.training.parquet import measure_to_parquet
from syncheck.training.provenance import instrument_of
from syncheck.training.sets import LabelledSet, check_enough, check_labels, check_questions, thresholds_of
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ANSWER = "answer"
DOUBT = 1e-3
"""Share of the teacher's surest scores that are assumed to be wrong."""
MORE_PROMPTS = "Add prompts with other questions or about other texts"
MORE_SURE = "Add prompts, draw more answers (samples, --samples), or let the teacher be less sure (sure, --sure)"
EXPECTED = 0.5
"""Share of faithful sentences that the scores assume; that among the made-up labels means nothing."""


Teacher: TypeAlias = ModelMonitor | Aligner | TextGenerator | Literal["generic"]
"""Source of labels for :func:`adapt_monitor`: a monitor, an aligner, a language model that is prompted for judgements,
or ``"generic"``, the bundled verifier."""


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """A monitor that was trained on made-up labels, with the labels and their evaluation."""

    monitor: ModelMonitor
    records: tuple[LabelledResponse, ...]
    """``task`` says how each came about: ``answer``, ``planted number``, ``planted name``, ``planted opposite``,
    ``planted negation``, ``planted ending``, ``transplanted`` or ``exchanged passages``."""
    left_out: Mapping[str, str]
    """Reasons why prompts or responses were not used, by id."""
    teacher: str
    sure: float
    held_out: EvaluationRow
    """How well a monitor of this kind separates the made-up labels on held-out questions; it says nothing about real
    labels."""

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Count the faithful, unfaithful and unlabelled sentences, by ``task``."""
        by_task: dict[str, Counter[bool | None]] = {}
        for record in self.records:
            by_task.setdefault(str(record.task), Counter()).update(s.faithful for s in record.sentences or ())
        return {task: (labels[True], labels[False], labels[None]) for task, labels in sorted(by_task.items())}

    def card(self) -> str:
        """Write a model card in Markdown."""
        rows = [f"| {task} | {yes} | {no} | {none} |" for task, (yes, no, none) in self.counts().items()]
        aggregator = self.monitor.aggregator
        assert aggregator is not None
        return (
            (files("syncheck") / "training" / "card.md")
            .read_text(encoding="utf-8")
            .format(
                of=self,
                model=_name_of(self.monitor),
                questions=len({record.group for record in self.records}),
                answers=sum(record.task == ANSWER for record in self.records),
                writers=", ".join(sorted({record.generator for record in self.records})),
                unsure=1 - self.sure,
                rows="\n".join(rows),
                left_out=len(self.left_out),
                config=self.monitor.config,
                aggregator=aggregator,
                expected=aggregator.base_rate if aggregator.prior is None else aggregator.prior,
                row=self.held_out,
                none=sentences_needed(),
                two=sentences_needed(2),
            )
        )


TITLE = "# A monitor adapted without labels"
"""First line of the card."""


def adapt_monitor(
    prompts: Iterable[Mapping[str, Any]] | Sequence[LabelledResponse],
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    teacher: Teacher = "generic",
    aggregator: AggregatorKind = "monotone",
    config: MonitorConfig | None = None,
    aligner: Aligner | None | Literal["generic"] = "generic",
    samples: int = 1,
    max_new_tokens: int = 256,
    sure: float = 0.8,
    seed: int = 0,
    folder: str | Path | None = None,
    show_progress: bool | None = None,
    kind: type[ModelMonitor] = ModelMonitor,
) -> Adapted:
    """Train a monitor for a model from questions with passages, without labels.

    Parameters
    ----------
    prompts
        Records with ``question`` and ``context``, of at least five groups, because the thresholds are chosen by
        cross-validation with five folds; see :func:`~syncheck.labelling.unlabelled_responses`. The model answers those
        without a ``response``; a given response is used as it is, without its labels, and the model acts as surrogate.
    teacher
        Source of labels for sentences of which it is sure: a monitor, an aligner, a language model that is prompted for
        judgements, or ``"generic"`` for the bundled monitor.
    aggregator
        Kind of aggregator; ``monotone`` keeps the known directions of features, whatever the made-up labels say.
    config, aligner, kind
        As in :func:`fit_monitor`.
    samples
        Number of answers drawn at random for each prompt, in addition to the greedy one.
    sure
        Score of the teacher, in (0.5, 1], from which a sentence counts as faithful; at ``1 - sure`` and below, it
        counts as unfaithful.
    seed
        Seed of the answers, the errors, the folds and the aggregator.
    folder
        Folder for the answers, the made-up labels and the measurements, from which a killed run continues. None stores
        nothing.
    show_progress
        None shows progress bars on a terminal.

    Raises
    ------
    InputError
        If there are not enough questions, labels or sentences of both labels, or an argument is outside its range.
    RecordError
        At the first record that cannot be used.
    TextGeneratorError
        If the teacher or the aligner fails.
    MismatchError
        If the folder has measurements of another run.
    """
    if not 0.5 < sure <= 1 or samples < 0:
        raise InputError(f"expected 0.5 < sure <= 1 and samples >= 0; found {sure} and {samples}")
    given = list(prompts)
    asked = [record for record in given if isinstance(record, LabelledResponse)]
    if len(asked) < len(given):
        asked = unlabelled_responses(cast("list[Mapping[str, Any]]", given))
    check_questions(asked, remedy=MORE_PROMPTS)
    untrained = untrained_monitor(model, tokenizer, config, aligner, kind=kind)
    name, judge = _judge(teacher, untrained)
    kept = None if folder is None else Path(folder)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    left_out: dict[str, str] = {}
    answers = _answered(
        untrained, asked, left_out, kept, samples=samples, max_new_tokens=max_new_tokens, seed=seed, shown=show_progress
    )
    why = f" (left out: {left_out})" if left_out else ""
    check_questions(answers, remedy=f"{MORE_PROMPTS}{why}")
    scored = {
        answer.id: judge(answer) for answer in progress(answers, desc="teacher", unit=" answers", shown=show_progress)
    }
    spoil = Spoiler(answers, scored, judge, sure, seed)
    records = [record for answer in answers for record in (_taught(answer, scored[answer.id], sure), *spoil(answer))]
    if kept is not None:
        lines = (json.dumps(labelled_record(record), ensure_ascii=False) for record in records)
        (kept / "labels.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    labels = Counter(sentence.faithful for record in records for sentence in record.sentences or ())
    check_labels(labels[True], labels[False], remedy=MORE_SURE)
    measured = (
        measure(untrained, records, show_progress=show_progress)
        if kept is None
        else measure_to_parquet(untrained, records, kept / "features.parquet", show_progress=show_progress)
    )
    assert measured is not None  # there is one shard
    monitor, held_out = _fitted(untrained, measured, scored, aggregator, seed)
    return Adapted(monitor, tuple(records), left_out | dict(measured.left_out), name, sure, held_out)


def _judge(teacher: Teacher, untrained: ModelMonitor) -> tuple[str, Callable[[LabelledResponse], Scored]]:
    """Name a teacher, and make the function that scores every sentence of a response by it."""
    if isinstance(teacher, ModelMonitor):
        if teacher.config.segmenter != untrained.config.segmenter:
            raise InputError(
                f"expected a teacher with the sentence rules of the monitor, {untrained.config.segmenter}; found "
                f"{teacher.config.segmenter}"
            )
        return teacher.name or "a monitor", partial(_by_monitor, teacher)
    if teacher == "generic":
        verifier = Verifier(device=untrained.model.device)
        return verifier.name or teacher, partial(_by_verifier, verifier, untrained)
    if isinstance(teacher, str):
        raise InputError(
            f"the only teacher with a name is 'generic'; found {teacher!r}. Load the teacher and pass the object"
        )
    if not callable(getattr(teacher, "align", teacher)):
        raise WrongTypeError(
            f"teacher must be a Monitor, an aligner or a TextGenerator; found {type(teacher).__name__}"
        )
    aligner = cast("Aligner", teacher) if hasattr(teacher, "align") else SpanAligner(teacher)
    return aligner.name, partial(_by_aligner, aligner, untrained)


def _by_monitor(monitor: ModelMonitor, response: LabelledResponse) -> Scored:
    prompt = monitor.prompt(question=response.question, context=response.passages)
    sentences = monitor.score(prompt, response.response).sentences
    return [(LabelledSentence(s.start, s.end, None), s.score) for s in sentences]


def _by_verifier(verifier: Verifier, untrained: ModelMonitor, response: LabelledResponse) -> Scored:
    own = _sentences(untrained, response)
    places = [0, *(sentence.start for sentence in own[1:]), len(response.response)]
    pieces = [response.response[start:stop] for start, stop in pairwise(places)]
    sentences = verifier.answer(query_of(response), sentences=pieces).sentences
    return list(zip(own, (s.score for s in sentences), strict=True))


def _by_aligner(aligner: Aligner, untrained: ModelMonitor, response: LabelledResponse) -> Scored:
    scored: Scored = [(sentence, None) for sentence in _sentences(untrained, response)]
    texts = [response.response[s.start : s.end] for s, _ in scored]
    claims = {i: text for i, text in enumerate(texts) if is_checkable(text)}
    if response.has_context and claims:
        asked = AskedAligner(aligner, response.question, EvidenceIndex(response.passages))
        for i, support in zip(claims, asked(response.passages, list(claims.values())), strict=True):
            if isinstance(support, Unaligned):
                raise TextGeneratorError(f"record {response.id!r}: {support.reason}")
            scored[i] = scored[i][0], support.score
    return scored


def _sentences(monitor: ModelMonitor, response: LabelledResponse) -> list[LabelledSentence]:
    given = monitor.read(prompt_of(monitor, response), response.response)
    return [LabelledSentence(span.start, span.end, None) for span in given.spans]


def _name_of(monitor: ModelMonitor) -> str:
    name = monitor.model.config.name_or_path or type(monitor.model).__name__
    return Path(name).name if Path(name).exists() else str(name)


def _answered(
    untrained: ModelMonitor,
    asked: Sequence[LabelledResponse],
    left_out: dict[str, str],
    folder: Path | None,
    *,
    samples: int,
    max_new_tokens: int,
    seed: int,
    shown: bool | None,
) -> list[LabelledResponse]:
    """Collect the given answers and those of the model; an answer that was stored is not generated again."""
    quick = ModelMonitor(untrained.model, untrained.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
    facts = [instrument_of(quick), samples, max_new_tokens, seed]
    kept = {} if folder is None else dict(_kept_answers(folder / "answers.jsonl"))
    answers = []
    for given in progress(asked, desc="answers", unit=" prompts", shown=shown):
        record = replace(given, task=ANSWER, spans=None, sentences=None)
        content = json.dumps([*facts, record.question, record.passages, record.prompt_with_context])
        digest = hashlib.sha256(content.encode()).hexdigest()
        try:
            if record.response:
                untrained.read(prompt_of(untrained, record), record.response)
                answers.append(replace(record, id=f"{record.id}/given"))
                continue
            texts = kept.get(digest) or _write(quick, record, digest, samples=samples, max_new_tokens=max_new_tokens)
        except PromptError as error:
            left_out[record.id] = str(error)
            continue
        if folder is not None and digest not in kept:
            with (folder / "answers.jsonl").open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({'digest': digest, 'answers': texts}, ensure_ascii=False)}\n")
        for number, text in enumerate(dict.fromkeys(filter(str.strip, texts))):
            name = "greedy" if text == texts[0] else f"sample-{number}"
            answers.append(replace(record, id=f"{record.id}/{name}", response=text, generator=_name_of(untrained)))
    return answers


def _kept_answers(path: Path) -> Iterator[tuple[str, list[str]]]:
    if path.exists():
        content = path.read_bytes()
        with path.open("r+b") as file:  # a kill may have cut off the last line
            file.truncate(content.rfind(b"\n") + 1)
        for entry in read_records(path):
            yield entry.get("digest", str), list(entry.strings("answers"))


def _write(
    quick: ModelMonitor, record: LabelledResponse, digest: str, *, samples: int, max_new_tokens: int
) -> list[str]:
    """Generate a greedy answer, then random ones; a prompt with the same options gets the same answers in any run."""
    prompt = prompt_of(quick, record)
    texts = [quick.generate(prompt, do_sample=False, max_new_tokens=max_new_tokens).response]
    source = torch.Generator(quick.model.device).manual_seed(int(digest[:12], 16))
    for _ in range(samples):
        report = quick.generate(prompt, do_sample=True, generator=source, max_new_tokens=max_new_tokens)
        texts.append(report.response)
    return texts


def _taught(answer: LabelledResponse, scored: Scored, sure: float) -> LabelledResponse:
    """Label an answer where the teacher is sure."""
    sentences = tuple(
        replace(s, faithful=None if score is None or 1 - sure < score < sure else score >= sure) for s, score in scored
    )
    return replace(answer, sentences=sentences)


def _fitted(
    untrained: ModelMonitor,
    measured: MeasuredSentences,
    scored: Mapping[str, Scored],
    aggregator: AggregatorKind,
    seed: int,
) -> tuple[ModelMonitor, EvaluationRow]:
    """Train, and choose the thresholds on all sentences of the answers, with the teacher's scores as expectation."""
    chosen = LabelledSet.scored(measured, rule="overlap")
    check_enough(chosen, remedy=MORE_SURE)
    trained = train_measured(untrained, measured, aggregator=aggregator, seed=seed)
    monitor = trained.monitor
    assert isinstance(monitor, ModelMonitor) and monitor.aggregator is not None
    adapted = replace(monitor.aggregator, prior=EXPECTED)
    expected = {(name, s.start): score for name, answer in scored.items() for s, score in answer}
    owners = [measured.records[owner] for owner in measured.owners]
    rows = [
        expected.get((record.id, start)) if record.task == ANSWER else None
        for record, start in zip(owners, measured.bounds[:, 0].tolist(), strict=True)
    ]
    known = np.flatnonzero([score is not None for score in rows])
    y = np.clip(np.array([rows[i] for i in known], np.float64), DOUBT, 1 - DOUBT)
    features = measured.features(chosen.labels, chosen.used)[known]
    config = replace(monitor.config, **thresholds_of(adapted.score(features), y))
    return monitor.replaced(config=config, aggregator=adapted), trained.row
