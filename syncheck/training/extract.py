"""Extraction of features: labelled responses are replayed and measured."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from syncheck.base.errors import InputError, PromptError, SyncheckError, TextGeneratorError, describe_failure
from syncheck.base.printable import progress
from syncheck.labelling.datasets import labelled_responses
from syncheck.labelling.responses import LabelledResponse, own_sentences, prompt_of, query_of
from syncheck.model_monitor import ModelMonitor
from syncheck.replay import GivenResponse
from syncheck.results.types import RagPrompt, SentenceScore, SentenceSpan
from syncheck.scoring import not_finite
from syncheck.training.measured import MeasuredSentences
from syncheck.training.provenance import instrument_of
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from tqdm import tqdm

    from syncheck.decoding.scored import ScoredAnswer

logger = logging.getLogger(__name__)


def measure(
    monitor: ModelMonitor | Verifier,
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    *,
    batch_size: int = 1,
    show_progress: bool | None = None,
) -> MeasuredSentences:
    """Replay labelled responses and measure their sentences.

    Labelled sentences are measured as they are, even where the monitor would cut the response otherwise, as the log
    says once, unless ``carry_labels`` is set. A record's own prompts are used if it has them, otherwise the monitor's
    template. ``batch_size`` responses of similar length are replayed at once; values agree with those of a batch of 1
    up to rounding, and a batch for which memory runs out is halved.

    ``left_out`` of the result has the reasons for records whose prompts cannot be used or do not fit the model's window
    or memory, or for which the model's outputs are not finite. If no record has a sentence, InputError is raised; if
    the aligner fails on a record, TextGeneratorError. Errors of records are those of
    :func:`~syncheck.labelling.labelled_responses`.
    """
    records = labelled_responses(records)
    check_sentences(monitor, records)
    with progress(total=len(records), desc="responses", unit=" responses", shown=show_progress) as bar:
        measured = measure_records(monitor, records, batch_size=batch_size, bar=bar)
    check_any(measured)
    return replace(measured, provenance=instrument_of(monitor))


def check_any(measured: MeasuredSentences) -> None:
    """Refuse, with an InputError, what has no sentence."""
    if not measured.texts:
        raise InputError(
            f"none of the records has a sentence that fits the model's window; left out: {dict(measured.left_out)}"
        )


def check_sentences(monitor: ModelMonitor | Verifier, records: Iterable[LabelledResponse]) -> None:
    """Check the labelled sentences, before measuring, and log how many responses this monitor would cut otherwise."""
    count, others = 0, []
    for record in records:
        if record.sentences is not None and not record.carry_labels:
            count += 1
            with suppress(PromptError):  # it will be left out
                if own_sentences(record, bounds_of(monitor, record)) is not None:
                    others.append(record.id)
    if others:
        logger.warning(
            "%d of %d responses have labelled sentences that this monitor would cut otherwise, %s first. They are "
            "measured as they are labelled; a monitor is better trained on sentences as it will cut them: label those, "
            "pass the options that cut them so, or carry the labels over (--carry-labels, carry_labels=True)",
            len(others),
            count,
            others[0],
        )


def bounds_of(monitor: ModelMonitor | Verifier, record: LabelledResponse) -> list[tuple[int, int]]:
    """Find the characters of the sentences into which a monitor cuts a response."""
    instrument = _instrument(monitor)
    if isinstance(instrument, Verifier):
        return _bounds(instrument.cut(record.response))
    return _bounds(instrument.read(prompt_of(instrument, record), record.response).spans)


def _instrument(monitor: ModelMonitor | Verifier) -> ModelMonitor | Verifier:
    """Take what measures: a monitor's verifier, unless the model's signals are read."""
    return monitor if isinstance(monitor, Verifier) or monitor.reads_signals else monitor.verifier


def _bounds(spans: Iterable[SentenceSpan | SentenceScore]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


def measure_records(
    monitor: ModelMonitor | Verifier, records: Sequence[LabelledResponse], *, batch_size: int, bar: tqdm
) -> MeasuredSentences:
    """Measure some records and advance a progress bar; as :func:`measure`, but they may have no sentence."""
    instrument = _instrument(monitor)
    if isinstance(instrument, Verifier):
        return _read_as_text(monitor, instrument, records, bar=bar)
    kept: list[tuple[LabelledResponse, RagPrompt, GivenResponse]] = []
    left_out: dict[str, str] = {}
    for record in records:
        try:
            prompt = prompt_of(instrument, record)
            kept.append((record, prompt, _read_response(instrument, prompt, record)))
        except Exception as error:  # a chat template or a tokenizer may fail on one text in any way
            if isinstance(error, SyncheckError) and not isinstance(error, PromptError):
                raise
            left_out[record.id] = describe_failure(error)
            bar.update()
    answers: dict[int, ScoredAnswer] = {}

    def leave_out(place: int, reason: str) -> None:
        left_out[kept[place][0].id] = reason
        bar.update()

    for place, answer in instrument.replay_batch(
        [prompt for _, prompt, _ in kept], [given for _, _, given in kept], batch_size=batch_size, on_failure=leave_out
    ):
        has_context = answer.scorer.query.has_context
        broken = next(filter(None, (not_finite(signals, has_context=has_context) for signals in answer.signals)), None)
        if broken is not None:
            leave_out(place, broken)
            continue
        _require_support(kept[place][0], answer.sentences)
        answers[place] = answer
        bar.update()
    done = [(kept[place][0], answer) for place, answer in sorted(answers.items())]
    activations = _stacked([signals.activations for _, answer in done for signals in answer.signals])
    measured = [(record, answer.sentences) for record, answer in done]
    return _measured(monitor, measured, left_out, activations)


def _read_response(monitor: ModelMonitor, prompt: RagPrompt, record: LabelledResponse) -> GivenResponse:
    """Read a response, cut as it is labelled, up to an end-of-text token that is written in it."""
    given = monitor.read(prompt, record.response)
    sentences = own_sentences(record, _bounds(given.spans))
    if sentences is None:
        return given
    text = given.transcript.text
    if not record.response.startswith(text):
        raise PromptError("the tokenizer rewrites the response, so the labelled sentences have no place in it")
    starts = accumulate(map(len, sentences), initial=0)
    cut = [s[: len(text) - start] for s, start in zip(sentences, starts, strict=False) if start < len(text)]
    return monitor.read(prompt, sentences=cut)


def _read_as_text(
    monitor: ModelMonitor | Verifier, verifier: Verifier, records: Sequence[LabelledResponse], *, bar: tqdm
) -> MeasuredSentences:
    """Measure the features of text alone."""
    measured = []
    for record in records:
        given = own_sentences(record, bounds_of(verifier, record))
        response = record.response if given is None else None
        measured.append((record, verifier.answer(query_of(record), response, sentences=given).sentences))
        _require_support(*measured[-1])
        bar.update()
    return _measured(monitor, measured, {}, {})


def _require_support(record: LabelledResponse, sentences: Sequence[SentenceScore]) -> None:
    reason = next((sentence.reason for sentence in sentences if sentence.status == "failed"), None)
    if reason is not None:
        raise TextGeneratorError(
            f"record {record.id!r}: expected support for each sentence, but the {reason}. Fix that, or remove the "
            "record, and measure again"
        )


def _measured(
    monitor: ModelMonitor | Verifier,
    measured: Sequence[tuple[LabelledResponse, Sequence[SentenceScore]]],
    left_out: Mapping[str, str],
    activations: Mapping[int, NDArray[np.float32]],
) -> MeasuredSentences:
    sentences = [sentence for _, answer in measured for sentence in answer]
    rows = [list(sentence.features.values()) for sentence in sentences]
    return MeasuredSentences(
        schema=monitor.schema,
        values=np.array(rows, np.float64).reshape(len(rows), len(monitor.schema.names)),
        activations=activations,
        bounds=np.array(_bounds(sentences), np.int64).reshape(len(sentences), 2),
        texts=tuple(sentence.text for sentence in sentences),
        owners=np.array([index for index, (_, answer) in enumerate(measured) for _ in answer], np.int64),
        records=tuple(record for record, _ in measured),
        left_out=left_out,
        segmenter=monitor.config.segmenter,
    )


def _stacked(activations: Sequence[Mapping[int, NDArray[np.float32]]]) -> dict[int, NDArray[np.float32]]:
    """By layer (N, H); NaN for a sentence without its own token."""
    examples = next((a for a in activations if a), {})
    return {
        layer: np.stack([a.get(layer, np.full_like(example, np.nan)) for a in activations])
        for layer, example in examples.items()
    }
