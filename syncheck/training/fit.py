"""Labelled responses -> a trained monitor."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck.aggregators import Aggregator
from syncheck.alignment import Aligner, load_aligner
from syncheck.config import AggregatorKind, MonitorConfig
from syncheck.errors import InputError, LeftOutWarning
from syncheck.monitor import Monitor
from syncheck.training.datasets import LabelledResponse
from syncheck.training.extract import measure
from syncheck.training.kinds import best_aggregator
from syncheck.training.labels import Rule
from syncheck.training.left_out import left_out_lines
from syncheck.training.measured import MeasuredSentences
from syncheck.training.measured_by import check_measured_by
from syncheck.training.seen import question_digests
from syncheck.training.thresholds import choose_thresholds

__all__ = ["fit_measured", "fit_monitor"]

HELD_OUT_FOLDS = 5


def fit_monitor(
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    kind: AggregatorKind | Literal["best"] = "best",
    config: MonitorConfig | None = None,
    aligner: Aligner | None | Literal["bundled"] = "bundled",
    rule: Rule = "overlap",
    random_state: int = 0,
    show_progress: bool | None = None,
) -> Monitor:
    """Train a monitor for a model from labelled responses.

    Parameters
    ----------
    records
        Labelled responses, by this model or by others (it then acts as surrogate); also as dicts, see
        :func:`~syncheck.training.labelled_responses`.
    model, tokenizer
        The model to monitor.
    kind
        Which aggregator; ``"best"`` is that with the best grouped cross-validation, see :func:`best_aggregator`.
    config
        What is measured; None takes the schema ``syncheck.v3`` with the model's default layers.
    aligner
        None leaves ``align_score`` unmeasured.
    rule
        How spans become sentence labels.
    random_state
        Seed of the aggregator and of the folds that the thresholds are chosen on.
    show_progress
        None shows a bar on a terminal.

    Returns
    -------
    Monitor
        Its thresholds are chosen on out-of-fold scores; see :func:`choose_thresholds`.

    Raises
    ------
    InputError
        If the records cannot be used: none fits the window, or a label is absent.
    EvaluatorError
        If the aligner fails on a record.
    RecordError
        If a dict is not of the documented form, or a record has labels of sentences that the monitor cuts otherwise,
        and ``carry_labels`` is not set.

    Warns
    -----
    LeftOutWarning
        If responses are not trained on, since they do not fit the window, say, or have no context.
    """
    untrained = Monitor(
        model,
        tokenizer,
        config=config,
        aligner=load_aligner(aligner, device=model.device) if aligner == "bundled" else aligner,
    )
    measured = measure(untrained, records, show_progress=show_progress)
    lines = left_out_lines(measured)
    if lines:
        warnings.warn("not all responses are trained on\n" + "\n".join(lines), LeftOutWarning, stacklevel=2)
    return fit_measured(untrained, measured, kind=kind, rule=rule, random_state=random_state)


def fit_measured(
    untrained: Monitor,
    measured: MeasuredSentences,
    *,
    kind: AggregatorKind | Literal["best"] = "best",
    rule: Rule = "overlap",
    random_state: int = 0,
    held_out: NDArray[np.float64] | None = None,
) -> Monitor:
    """Train the aggregator of a monitor on sentences that it has measured; see :func:`fit_monitor`.

    Parameters
    ----------
    untrained
        Measured them; its aggregator and references, if it has any, are not used.
    measured
        At least as many groups, and sentences of either label, as folds.
    kind, rule, random_state
        As in :func:`fit_monitor`.
    held_out : ndarray of shape (N,), float64, or None
        Out-of-fold P(faithful) of the N checkable sentences by this kind, as :func:`best_aggregator` returns
        them; the thresholds are chosen on it. None fits the kind on folds to get it.

    Raises
    ------
    InputError
        If the sentences cannot be used: too few, or of one label only; or ``held_out`` is not one number for each,
        or comes without the kind it is of.
    MismatchError
        If they were measured by another model or aligner, or otherwise.
    """
    check_measured_by(measured, untrained)
    used = np.flatnonzero(measured.checkable)
    labels = measured.labels(rule=rule)
    features = measured.features(labels, used)
    y, groups = labels[used], measured.groups[used]
    if held_out is None:
        kind, _, (held_out,) = best_aggregator(
            lambda train: measured.features(labels, used[train])[used],
            y,
            groups,
            names=measured.schema.names,
            folds=HELD_OUT_FOLDS,
            repeats=1,
            seed=random_state,
            draws=1,
            kinds=None if kind == "best" else (kind,),
        )
    elif kind == "best":
        raise InputError("held_out are the scores of one kind of aggregator; name that kind, or pass neither")
    else:
        _check_held_out(held_out, len(y))
    thresholds = choose_thresholds(held_out, y)
    # What no sentence of these has, a number say, or no aligner measured, is NaN throughout.
    aggregator = Aggregator.fit(
        features[used], y, schema=measured.schema, kind=kind, random_state=random_state, allow_unmeasured=True
    )
    return Monitor(
        untrained.model,
        untrained.tokenizer,
        config=replace(untrained.config, backtrack_threshold=thresholds.backtrack, prune_threshold=thresholds.prune),
        aggregator=aggregator,
        bank=measured.bank(labels, used),
        aligner=untrained.aligner,
        trained_on=question_digests(measured.records[i] for i in np.unique(measured.owners[used])),
    )


def _check_held_out(scores: NDArray[np.float64], sentences: int) -> None:
    if scores.shape != (sentences,) or not np.isfinite(scores).all():
        raise InputError(
            f"held_out must be {sentences} numbers, one for each sentence that gets a score; found "
            f"{int(np.isfinite(scores).sum())} in an array of shape {scores.shape}. Pass one row of what "
            "best_aggregator returns for these sentences, or None"
        )
