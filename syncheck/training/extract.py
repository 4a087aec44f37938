"""Labelled responses -> measured sentences, by replaying them through a monitor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from syncheck.errors import InputError, PromptError, SyncheckError, TextGeneratorError
from syncheck.failures import describe_failure
from syncheck.labelling.datasets import LabelledResponse, labelled_responses
from syncheck.labelling.recut import check_cut
from syncheck.prompts import prompt_from_texts
from syncheck.replay import GivenResponse
from syncheck.scoring import not_finite
from syncheck.training.measured import MeasuredSentences
from syncheck.training.provenance import instrument_of
from syncheck.types import RagPrompt

if TYPE_CHECKING:
    from syncheck.decoding.scored import ScoredAnswer
    from syncheck.monitor import Monitor

__all__ = ["check_sentences", "measure", "measure_records"]


def measure(
    monitor: Monitor,
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    *,
    batch_size: int = 1,
    show_progress: bool | None = None,
) -> MeasuredSentences:
    """Replay labelled responses and measure their sentences.

    Parameters
    ----------
    monitor
        Its scores, if it has an aggregator, are not used.
    records
        Also as dicts, see :func:`~syncheck.labelling.labelled_responses`. A record's own prompts are used when it has
        them, the monitor's template otherwise.
    batch_size
        Responses replayed at once, those of like length together; the values agree with those of 1 up to rounding.
    show_progress
        None shows a bar on a terminal.

    Returns
    -------
    MeasuredSentences
        Records whose prompts cannot be used, or do not fit the model's window or memory, or for which the model puts
        out something that is not finite, are in ``left_out``, with the reason. A batch for which memory runs out is
        measured in halves, which is logged.

    Raises
    ------
    InputError
        If no record has a sentence, or ``batch_size`` is below 1.
    TextGeneratorError
        If the aligner fails on a record: its sentences would lack a feature for good.
    RecordError
        If a record has labels of sentences that the monitor cuts otherwise, and ``carry_labels`` is not set.
    WrongTypeError
        If a record is neither a :class:`LabelledResponse` nor a dict.
    """
    records = labelled_responses(records)
    check_sentences(monitor, records)
    disable = None if show_progress is None else not show_progress
    with tqdm(total=len(records), desc="responses", unit=" responses", disable=disable) as bar:
        measured = measure_records(monitor, records, batch_size=batch_size, bar=bar)
    if not measured.texts:
        raise InputError(
            f"none of the records has a sentence that fits the model's window; left out: {dict(measured.left_out)}"
        )
    return replace(measured, provenance=instrument_of(monitor))


def check_sentences(monitor: Monitor, records: Iterable[LabelledResponse]) -> None:
    """Check, before any is measured, that each labelled sentence will be measured as one.

    Raises
    ------
    RecordError
        See :func:`~syncheck.labelling.recut.check_cut`.
    """
    for record in records:
        if record.sentences is not None and not record.carry_labels:
            with suppress(PromptError):  # it will be left out
                given = monitor.read(_prompt_of(monitor, record), record.response)
                check_cut(record, [(span.char_start, span.char_stop) for span in given.spans])


def measure_records(
    monitor: Monitor, records: Sequence[LabelledResponse], *, batch_size: int, bar: tqdm
) -> MeasuredSentences:
    """Measure some of the records, advancing a bar; as :func:`measure`, but there may be no sentence in them."""
    kept: list[LabelledResponse] = []
    left_out: dict[str, str] = {}
    prompts: list[RagPrompt] = []
    given: list[GivenResponse] = []
    for record in records:
        try:
            prompt = _prompt_of(monitor, record)
            response = monitor.read(prompt, record.response)
        except Exception as error:  # a chat template or a tokenizer may fail on one text in any way
            if isinstance(error, SyncheckError) and not isinstance(error, PromptError):
                raise
            left_out[record.id] = describe_failure(error)
            bar.update()
            continue
        kept.append(record)
        prompts.append(prompt)
        given.append(response)
    answers: dict[int, ScoredAnswer] = {}

    def leave_out(place: int, reason: str) -> None:
        left_out[kept[place].id] = reason
        bar.update()

    for place, answer in monitor.replay_batch(
        prompts, given, signals=False, batch_size=batch_size, on_failure=leave_out
    ):
        broken = _not_finite(answer)
        if broken is not None:
            leave_out(place, broken)
            continue
        _check_aligned(kept[place], answer)
        answers[place] = answer
        bar.update()
    done = sorted(answers)
    return _measured(monitor, [kept[i] for i in done], left_out, [answers[i] for i in done])


def _not_finite(answer: ScoredAnswer) -> str | None:
    has_context = answer.scorer.prompt.has_context
    return next(
        filter(None, (not_finite(signals, has_context=has_context) for signals in answer.signals if signals.measured)),
        None,
    )


def _check_aligned(record: LabelledResponse, answer: ScoredAnswer) -> None:
    reason = next((sentence.reason for sentence in answer.sentences if sentence.status == "failed"), None)
    if reason is not None:
        raise TextGeneratorError(
            f"record {record.id!r}: expected support for each of its sentences; found that the {reason}. Mend that, or "
            "take the record out, and measure again"
        )


def _measured(
    monitor: Monitor,
    records: Sequence[LabelledResponse],
    left_out: Mapping[str, str],
    answers: Sequence[ScoredAnswer],
) -> MeasuredSentences:
    signals = [signal for answer in answers for signal in answer.signals]
    rows = [list(sentence.features.values()) for answer in answers for sentence in answer.sentences]
    bounds = [(s.span.char_start, s.span.char_stop) for s in signals]
    owners = [index for index, answer in enumerate(answers) for _ in answer.signals]
    return MeasuredSentences(
        schema=monitor.schema,
        values=np.array(rows, np.float64).reshape(len(rows), len(monitor.schema.names)),
        activations=_stacked([s.activations for s in signals]),
        bounds=np.array(bounds, np.int64).reshape(len(bounds), 2),
        texts=tuple(s.text for s in signals),
        owners=np.array(owners, np.int64),
        records=tuple(records),
        left_out=left_out,
        segmenter=monitor.config.segmenter,
    )


def _stacked(activations: Sequence[Mapping[int, NDArray[np.float32]]]) -> dict[int, NDArray[np.float32]]:
    """By layer (N, H); NaN for a sentence that has no token of its own."""
    found = next((a for a in activations if a), {})
    return {
        layer: np.stack([a.get(layer, np.full_like(example, np.nan)) for a in activations])
        for layer, example in found.items()
    }


def _prompt_of(monitor: Monitor, record: LabelledResponse) -> RagPrompt:
    """Build a record's prompts: its own, or the monitor's template."""
    if record.prompt_with_context is not None and record.prompt_without_context is not None:
        return prompt_from_texts(
            monitor.tokenizer,
            question=record.question,
            context=record.passages,
            with_context=record.prompt_with_context,
            without_context=record.prompt_without_context,
            user_turns=record.user_turns,
        )
    return monitor.prompt(question=record.question, context=record.passages)
