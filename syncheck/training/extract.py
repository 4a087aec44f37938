"""Labelled responses -> measured sentences, by replaying them through a monitor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from syncheck.config import LID_REFERENCES, SegmenterConfig
from syncheck.errors import InputError, PromptError, WrongTypeError
from syncheck.prompts import prompt_from_texts
from syncheck.signals import ReferenceBank
from syncheck.training.datasets import LabelledResponse
from syncheck.training.labels import Rule, label_sentences
from syncheck.types import FeatureSchema, RagPrompt

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

__all__ = ["MeasuredSentences", "measure"]


@dataclass(frozen=True, slots=True)
class MeasuredSentences:
    """N sentences of labelled responses, as a monitor measured them.

    Attributes
    ----------
    schema : FeatureSchema
    values : ndarray of shape (N, F), float64
        Features as the monitor has them: LID against its own references, NaN without any; :meth:`features` takes
        references from a part of these sentences instead.
    activations : mapping of int to ndarray of shape (N, H), float32
        By decoder block; NaN for a sentence without a token of its own.
    bounds : ndarray of shape (N, 2), int64
        Characters of each sentence in its response.
    texts : tuple of str
    owners : ndarray of shape (N,), int64
        Index of each sentence's response in ``records``.
    records : tuple of LabelledResponse
        The responses that were measured.
    left_out : mapping of str to str
        Record id -> why it was not measured; only those that do not fit the model's window.
    max_references : int
        Most sentences that serve as LID references.
    segmenter : SegmenterConfig
        How the responses were cut.
    """

    schema: FeatureSchema
    values: NDArray[np.float64]
    activations: Mapping[int, NDArray[np.float32]]
    bounds: NDArray[np.int64]
    texts: tuple[str, ...]
    owners: NDArray[np.int64]
    records: tuple[LabelledResponse, ...]
    left_out: Mapping[str, str]
    max_references: int = LID_REFERENCES
    segmenter: SegmenterConfig = SegmenterConfig()

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each sentence, (N,)."""
        return np.array([self.records[i].group for i in self.owners])

    @property
    def generators(self) -> NDArray[np.str_]:
        """Model that wrote each sentence, (N,)."""
        return np.array([self.records[i].generator for i in self.owners])

    @property
    def with_letter(self) -> NDArray[np.bool_]:
        """Which sentences contain a letter: the strict benchmark set, (N,)."""
        return np.array([any(c.isalpha() for c in text) for text in self.texts], dtype=np.bool_)

    def labels(self, *, rule: Rule = "overlap", implicit_true: bool = True) -> NDArray[np.int64]:
        """Return (N,) labels, 1 faithful; see :func:`syncheck.training.label_sentences`."""
        labels = np.ones(len(self.texts), np.int64)
        for index, record in enumerate(self.records):
            own = np.flatnonzero(self.owners == index)
            if record.spans is not None:
                bounds = [(int(a), int(b)) for a, b in self.bounds[own]]
                labels[own] = label_sentences(bounds, record.spans, rule=rule, implicit_true=implicit_true)
            else:
                labels[own] = _given_labels(record, self.bounds[own])
        return labels

    def references(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sentences whose activations serve as LID references: the first faithful ones of ``train``."""
        has_state = np.isfinite(next(iter(self.activations.values()))[train]).all(1) if self.activations else True
        kept: NDArray[np.int64] = train[(labels[train] == 1) & has_state][: self.max_references]
        return kept

    def features(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (N, F) features whose LID references come from the sentences ``train`` alone.

        A sentence is never held against references of its own group, so that a training sentence is measured as
        a new one will be.
        """
        values = self.values.copy()
        references = self.references(labels, train)
        groups = self.groups
        own = groups[:, None] == groups[references][None, :]  # (N, T)
        for layer, states in self.activations.items():
            column = self.schema.names.index(f"lid_layer_{layer}")
            values[:, column] = ReferenceBank({layer: states[references]}).lid_of(layer, states, excluded=own)
        return values

    def bank(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> ReferenceBank | None:
        """Return the references to measure new sentences by; None when the schema has no LID.

        They are rounded to half precision, which halves their file, unless an activation is too large for it.
        """
        if not self.activations:
            return None
        kept = self.references(labels, train)
        full = {layer: states[kept] for layer, states in self.activations.items()}
        fits = all(np.abs(states).max(initial=0) <= np.finfo(np.float16).max for states in full.values())
        return ReferenceBank({k: v.astype(np.float16) for k, v in full.items()} if fits else full)


def measure(
    monitor: Monitor, records: Iterable[LabelledResponse], *, show_progress: bool | None = None
) -> MeasuredSentences:
    """Replay labelled responses and measure their sentences.

    Parameters
    ----------
    monitor
        Its aggregator, if any, is not asked.
    records
        A record's own prompts are used when it has them, the monitor's template otherwise.
    show_progress
        None shows a bar on a terminal.

    Returns
    -------
    MeasuredSentences
        Records that do not fit the model's window are in ``left_out``, with the reason.

    Raises
    ------
    InputError
        If no record has a sentence.
    WrongTypeError
        If a record is no :class:`LabelledResponse`.
    """
    kept: list[LabelledResponse] = []
    left_out: dict[str, str] = {}
    signals, rows, owners = [], [], []
    disable = None if show_progress is None else not show_progress
    records = list(records)
    if not all(isinstance(record, LabelledResponse) for record in records):
        raise WrongTypeError("records must be LabelledResponse objects; make them with syncheck.training.load_records")
    for record in tqdm(records, desc="responses", unit=" responses", disable=disable):
        try:
            answer = monitor.replay(_prompt_of(monitor, record), record.response)
        except PromptError as error:
            left_out[record.id] = str(error)
            continue
        owners += [len(kept)] * len(answer.signals)
        signals += answer.signals
        rows += [list(sentence.features.values()) for sentence in answer.sentences]
        kept.append(record)
    if not signals:
        raise InputError(f"none of the records has a sentence that fits the model's window; left out: {left_out}")
    return MeasuredSentences(
        schema=monitor.schema,
        values=np.array(rows, dtype=np.float64),
        activations=_stacked([s.activations for s in signals]),
        bounds=np.array([(s.span.char_start, s.span.char_stop) for s in signals], np.int64),
        texts=tuple(s.text for s in signals),
        owners=np.array(owners, np.int64),
        records=tuple(kept),
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
        )
    return monitor.prompt(question=record.question, context=record.passages)


def _given_labels(record: LabelledResponse, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Carry the labels of a record's own sentences over: unfaithful where one that is overlaps."""
    marked = [(s.start, s.end) for s in record.sentences or () if not s.faithful]
    return np.array([not any(a < e and s < b for s, e in marked) for a, b in bounds], np.int64)
