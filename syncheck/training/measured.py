"""Measured sentences with their labels: joined, selected, and checked against the monitor that uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from syncheck.base.errors import InputError, MismatchError
from syncheck.base.printable import shortened
from syncheck.base.records import SHOWN
from syncheck.config import LID_REFERENCES
from syncheck.features.schemas import TEXT_FEATURES
from syncheck.labelling.ragtruth import Selection
from syncheck.labelling.responses import (
    NO_CLAIM,
    Label,
    LabelledResponse,
    Rule,
    check_cut,
    label_sentences,
    needs_label,
)
from syncheck.reading import Claim
from syncheck.results.types import FeatureSchema, SentenceSpan
from syncheck.signals import LidReferences
from syncheck.text.sentences import is_checkable
from syncheck.text.sentences.boundaries import SegmenterConfig
from syncheck.text.words import has_letter
from syncheck.training.provenance import UnloadedMonitor, check_same_instrument, instrument_of
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor

UNLABELLED = -1


@dataclass(frozen=True, slots=True)
class MeasuredSentences:
    """N sentences of labelled responses, as a monitor measured them."""

    schema: FeatureSchema
    values: NDArray[np.float64]
    """(N, F) float64: features, with LID against the monitor's references, NaN if it has none."""
    activations: Mapping[int, NDArray[np.float32]]
    """By decoder block, (N, H) float32: NaN for a sentence without a token of its own."""
    bounds: NDArray[np.int64]
    """(N, 2) int64: characters of each sentence in its response."""
    texts: tuple[str, ...]
    owners: NDArray[np.int64]
    """(N,) int64: index of each sentence's response in ``records``."""
    records: tuple[LabelledResponse, ...]
    """The responses that were measured."""
    left_out: Mapping[str, str]
    """Reasons why records were not measured, by id."""
    max_references: int = LID_REFERENCES
    """Largest number of sentences that serve as LID references."""
    segmenter: SegmenterConfig = SegmenterConfig()
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Model, aligner and other known facts of the measurement, by name."""

    def bounds_of(self, record: int) -> list[tuple[int, int]]:
        """List the characters, half-open, of each sentence of the record with this index."""
        return [(int(start), int(end)) for start, end in self.bounds[self.owners == record]]

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each sentence, (N,)."""
        return np.array([self.records[i].group for i in self.owners])

    @property
    def generators(self) -> NDArray[np.str_]:
        """Model that wrote each sentence, (N,)."""
        return np.array([self.records[i].generator for i in self.owners])

    @property
    def tasks(self) -> NDArray[np.str_]:
        """Task of each sentence, (N,); ``"unknown"`` if the file does not say."""
        return np.array([self.records[i].task or "unknown" for i in self.owners])

    @property
    def with_letter(self) -> NDArray[np.bool_]:
        """True for sentences that contain a letter: the strict benchmark set, (N,)."""
        return np.array([has_letter(text) for text in self.texts], dtype=np.bool_)

    @property
    def checkable(self) -> NDArray[np.bool_]:
        """True for sentences with a letter or digit and a context, (N,)."""
        return np.array([is_checkable(text) for text in self.texts], dtype=np.bool_) & self.with_context

    @property
    def claims(self) -> NDArray[np.bool_]:
        """True for checkable sentences that claim something, as far as their text tells, (N,)."""
        earlier: dict[int, list[str]] = {}
        claimless = []
        for text, owner in zip(self.texts, self.owners.tolist(), strict=True):
            before = earlier.setdefault(owner, [])
            claimless.append(Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(before).without_claim is not None)
            before.append(text)
        return self.checkable & ~np.array(claimless, dtype=np.bool_)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """True for sentences with a label, (N,): all but those that the record's own labels leave out."""
        return np.asarray(self.labels() != UNLABELLED)

    @property
    def no_claim(self) -> NDArray[np.bool_]:
        """True for sentences that are labelled as claiming nothing, (N,)."""
        places = zip(self.owners, self.bounds.tolist(), strict=True)
        return np.array([_given_label(self.records[i], *place) == NO_CLAIM for i, place in places], np.bool_)

    @property
    def with_context(self) -> NDArray[np.bool_]:
        """True for sentences of a response with a context, (N,)."""
        return np.array([self.records[i].has_context for i in self.owners], dtype=np.bool_)

    def labels(self, *, rule: Rule = "overlap", implicit_true: bool = True) -> NDArray[np.int64]:
        """Label the sentences, (N,), by :func:`label_sentences`: 1 faithful, 0 unfaithful, -1 none."""
        labels = np.ones(len(self.texts), np.int64)
        for index, record in enumerate(self.records):
            own, bounds = self.owners == index, self.bounds_of(index)
            if record.spans is not None:
                labels[own] = label_sentences(bounds, record.spans, rule=rule, implicit_true=implicit_true)
            else:
                check_cut(record, bounds)
                given = [_given_label(record, start, end) for start, end in bounds]
                labels[own] = [label if isinstance(label, bool) else UNLABELLED for label in given]
        return labels

    def references(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> NDArray[np.int64]:
        """Choose the sentences whose activations serve as LID references: the first faithful ones of ``train``."""
        has_state = np.isfinite(next(iter(self.activations.values()))[train]).all(1) if self.activations else True
        return np.asarray(train[(labels[train] == 1) & has_state][: self.max_references])

    def features(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute features (N, F), with LID among references from the sentences ``train`` of other groups."""
        values = self.values.copy()
        references = self.references(labels, train)
        _, groups = np.unique(self.groups, return_inverse=True)  # numbers: N x T strings take fifty times as long
        own = groups[:, None] == groups[references][None, :]  # (N, T)
        for layer, states in self.activations.items():
            column = self.schema.names.index(f"lid_layer_{layer}")
            values[:, column] = LidReferences({layer: states[references]}).lid_of(layer, states, excluded=own)
        return values

    def lid_references(self, labels: NDArray[np.int64], train: NDArray[np.int64]) -> LidReferences | None:
        """Build the LID references for new sentences, in half precision if that suffices; None without LID."""
        if not self.activations:
            return None
        kept = self.references(labels, train)
        full = {layer: states[kept] for layer, states in self.activations.items()}
        fits = all(np.abs(states).max(initial=0) <= np.finfo(np.float16).max for states in full.values())
        return LidReferences({k: v.astype(np.float16) for k, v in full.items()} if fits else full)


def joined(parts: Sequence[MeasuredSentences]) -> MeasuredSentences:
    """Join measured sentences of several parts or files, in order.

    No parts raise InputError; parts of different models, widths, aligners, schemas, segmentations, templates or numbers
    of references raise MismatchError.
    """
    if not parts:
        raise InputError("expected at least one file of measured sentences; found none")
    first = next((part for part in parts if len(part.texts)), parts[0])
    for part in parts:
        _check_alike(first, part)
    starts = np.cumsum([0, *(len(part.records) for part in parts)])
    shared = {n: v for n, v in first.provenance.items() if all(part.provenance.get(n) == v for part in parts)}
    return MeasuredSentences(
        schema=first.schema,
        values=np.concatenate([part.values for part in parts]),
        # A part without sentences has no activations, not even of width 0.
        activations={
            layer: np.concatenate([part.activations[layer] for part in parts if len(part.texts)])
            for layer in first.activations
        },
        bounds=np.concatenate([part.bounds for part in parts]),
        texts=tuple(text for part in parts for text in part.texts),
        owners=np.concatenate([part.owners + start for part, start in zip(parts, starts[:-1], strict=True)]),
        records=tuple(record for part in parts for record in part.records),
        left_out={name: reason for part in parts for name, reason in part.left_out.items()},
        max_references=first.max_references,
        segmenter=first.segmenter,
        provenance=shared,
    )


def _check_alike(first: MeasuredSentences, other: MeasuredSentences) -> None:
    widths, other_widths = (
        {layer: states.shape[1] for layer, states in part.activations.items()} if len(other.texts) else None
        for part in (first, other)
    )
    references, other_references = first.max_references, other.max_references
    remedy = "Measure all of them with one model and the same options"
    for what, pair in {
        "features": schemas_apart(first.schema, other.schema),
        "segmentation": segmenters_apart(first.segmenter, other.segmenter),
        "LID references": None if references == other_references else (references, other_references),
        "width of the activations by layer": None if widths == other_widths else (widths, other_widths),
    }.items():
        if pair is not None:
            raise MismatchError(
                f"measured sentences can be joined only if they were measured in the same way; expected {what} "
                f"{pair[0]}, found {pair[1]}. {remedy}"
            )
    what = "measured sentences can be joined if they were measured alike; some were"
    check_same_instrument(first.provenance, other.provenance, what=what, remedy=remedy)


def _given_label(record: LabelledResponse, start: int, end: int) -> Label:
    """Label a part by the record's own sentences that overlap it: unfaithful wins, then no label, no claim loses."""
    if record.sentences is None:
        return None
    shared = [s for s in record.sentences if start < s.end and s.start < end]
    if not shared and is_checkable(record.response[start:end]):
        if not needs_label(record.response, start, end):
            return None  # reasoning
        raise InputError(
            f"expected labels of all sentences of {record.id!r}, found none for characters {start} to {end}; label the "
            "text there too, or mark unfaithful spans instead"
        )
    labels = {sentence.faithful for sentence in shared if not sentence.no_claim}
    if shared and not labels:
        return NO_CLAIM
    return False if False in labels else None if None in labels else True


_SHOWN = 5
_NUMBER = re.compile(r"\d+")


def left_out_lines(measured: MeasuredSentences) -> list[str]:
    """Describe the responses that do not count, with their ids, in one line for reasons that differ only in numbers."""
    alike: dict[str, list[str]] = {}
    for name, reason in measured.left_out.items():
        alike.setdefault(_NUMBER.sub("0", reason), []).append(name)
    without = [record.id for record in measured.records if not record.has_context]
    lines = [f"{_listed(without)}: not counted: the context is empty, so there is no score"] if without else []
    for names in alike.values():
        first = f"{names[0]}: " if len(names) > 1 else ""
        lines.append(f"{_listed(names)}: left out: {first}{measured.left_out[names[0]]}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    total = f" ({len(names)} responses)" if len(names) > 1 else ""
    return f"{', '.join(names[:_SHOWN])}{more}{total}"


def select_sentences(measured: MeasuredSentences, selection: Selection, *, source: object) -> MeasuredSentences:
    """Select sentences of the selected responses, labelled by the spans that count; ``left_out`` stays as it is."""
    kept = selection.kept(measured.records, source)
    chosen = np.flatnonzero(np.isin(measured.owners, kept))
    return replace(
        measured,
        values=measured.values[chosen],
        activations={layer: states[chosen] for layer, states in measured.activations.items()},
        bounds=measured.bounds[chosen],
        texts=tuple(measured.texts[index] for index in chosen),
        owners=np.searchsorted(kept, measured.owners[chosen]),
        records=tuple(selection.counted(measured.records[index]) for index in kept),
    )


def narrowed(measured: MeasuredSentences, schema: FeatureSchema) -> MeasuredSentences:
    """Keep only the features of a schema that has those of text, if all were measured; otherwise change nothing.

    Without the features of text, lexical ones are measured in another way.
    """
    names = measured.schema.names
    if schema == measured.schema or not set(TEXT_FEATURES) <= set(schema.names) <= set(names):
        return measured
    layers = [layer for layer in measured.activations if f"lid_layer_{layer}" in schema.names]
    return replace(
        measured,
        schema=schema,
        values=measured.values[:, [names.index(name) for name in schema.names]],
        activations={layer: measured.activations[layer] for layer in layers},
    )


def against_references(measured: MeasuredSentences, monitor: ModelMonitor | Verifier) -> MeasuredSentences:
    """Recompute LID against a monitor's own references; NaN at layers without references."""
    values = measured.values.copy()
    references = (None if isinstance(monitor, Verifier) else monitor.lid_references) or LidReferences({})
    for layer, states in measured.activations.items():
        column = measured.schema.names.index(f"lid_layer_{layer}")
        values[:, column] = references.lid_of(layer, states) if layer in references.layers else np.nan
    return replace(measured, values=values)


def check_measured_by(
    measured: MeasuredSentences,
    monitor: ModelMonitor | Verifier | UnloadedMonitor,
    *,
    source: object = "the data",
    remedy: str = "Pass the monitor that measured it, or measure it again with this one",
) -> None:
    """Check that sentences were measured with a monitor's model, aligner, template, segmentation and features.

    If not, as far as the provenance tells, MismatchError is raised. ``source`` names the sentences in the message, and
    ``remedy`` ends it if segmentation or features differ.
    """
    if measured.provenance:
        check_same_instrument(
            instrument_of(monitor),
            measured.provenance,
            what=f"{source} was",
            remedy="Pass the model and the aligner that measured it, or measure it again with these",
        )
    for what, differing in (
        ("segmentation", segmenters_apart(monitor.config.segmenter, measured.segmenter)),
        ("features", schemas_apart(monitor.schema, measured.schema)),
    ):
        if differing is not None:
            raise MismatchError(
                f"{source} was measured with another {what} than the monitor's: expected {differing[0]}, found "
                f"{differing[1]}. {remedy}"
            )


def segmenters_apart(expected: SegmenterConfig, found: SegmenterConfig) -> tuple[str, str] | None:
    """List the fields in which two segmentations differ, with the values of each; None if there are none."""
    names = [f.name for f in fields(SegmenterConfig) if getattr(expected, f.name) != getattr(found, f.name)]
    first, second = (
        " and ".join(f"{name}={shortened(repr(getattr(one, name)), SHOWN)}" for name in names)
        for one in (expected, found)
    )
    return (first, second) if names else None


def schemas_apart(expected: FeatureSchema, found: FeatureSchema) -> tuple[str, str] | None:
    """Name the versions of two schemas or, within one version, the features that only one has; None if equal."""
    if expected.version != found.version:
        return repr(expected.version), repr(found.version)
    first, second = (
        f"{one.version!r} with {', '.join(n for n in one.names if n not in other.names) or 'no more'}"
        for one, other in ((expected, found), (found, expected))
    )
    return None if expected == found else (first, second)
