"""Whether sentences were measured as a monitor measures them, and their LID as it measures it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from syncheck.errors import MismatchError
from syncheck.training.measured import MeasuredSentences
from syncheck.training.provenance import check_same_instrument, instrument_of

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

__all__ = ["against_references", "check_measured_by"]


def against_references(measured: MeasuredSentences, monitor: Monitor) -> MeasuredSentences:
    """Return the sentences with LID against a monitor's own references, as its aggregator is to be evaluated.

    Parameters
    ----------
    measured
        With this monitor's model; a file of features may have been written with other references, or without.
    monitor
        At a layer that it has no references for LID is NaN, as in its own measurements.

    Raises
    ------
    InputError
        If the activations are not as wide as the references.
    """
    values, lid_references = measured.values.copy(), monitor.lid_references
    for layer, states in measured.activations.items():
        column = measured.schema.names.index(f"lid_layer_{layer}")
        values[:, column] = (
            lid_references.lid_of(layer, states)
            if lid_references is not None and layer in lid_references.references
            else np.nan
        )
    return replace(measured, values=values)


def check_measured_by(measured: MeasuredSentences, monitor: Monitor, *, source: object = "what is given") -> None:
    """Check that sentences were measured with a monitor's model, aligner, template, segmentation and features.

    Parameters
    ----------
    measured
        What its provenance does not say is not compared.
    monitor
    source
        Where the sentences are from, for the message.

    Raises
    ------
    MismatchError
        If they were not: an aggregator means nothing on the signals of another model.
    """
    if measured.provenance:
        check_same_instrument(
            instrument_of(monitor),
            measured.provenance,
            what=f"{source} was",
            remedy="Pass the model and the aligner that measured it, or measure it again with these",
        )
    if measured.segmenter != monitor.config.segmenter:
        raise MismatchError(
            f"{source} was cut with {measured.segmenter}; the monitor cuts with {monitor.config.segmenter}. "
            "Measure again, or pass the same segmentation options"
        )
    if measured.schema != monitor.schema:
        raise MismatchError(
            f"{source} holds features {measured.schema.version!r} {measured.schema.names}; the monitor reads "
            f"{monitor.schema.version!r} {monitor.schema.names}. Measure again with the same model and schema"
        )
