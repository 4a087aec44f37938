"""Fitting: measured sentences become a trained monitor with its thresholds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators import Aggregator
from syncheck.aggregators.estimators import ProbabilisticClassifier, check_classifier
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.aligners import Aligner
from syncheck.base.checks import labels_found, real_numbers
from syncheck.base.errors import InputError, LeftOutWarning
from syncheck.checkpoint import generic_aligner
from syncheck.config import MonitorConfig, Template
from syncheck.evaluation.crossval import Folding, cross_validate
from syncheck.evaluation.systems import best_aggregator
from syncheck.features.schemas import needs_signals
from syncheck.labelling.datasets import labelled_responses
from syncheck.labelling.labels import Rule
from syncheck.labelling.responses import LabelledResponse
from syncheck.model_monitor import ModelMonitor
from syncheck.training.extract import measure
from syncheck.training.measured import MeasuredSentences, check_measured_by, left_out_lines
from syncheck.training.provenance import model_of, question_digests
from syncheck.training.sets import HELD_OUT_FOLDS, MORE_LABELS, LabelledSet, check_enough, check_questions
from syncheck.training.unloaded import UnloadedMonitor
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BACKTRACK_ALARMS = 0.1
PRUNE_ALARMS = 0.25
"""Largest shares of faithful sentences that may fall below each threshold. Backtracking costs a search, so it must be
rare; pruning only chooses among existing samples, so it may be stricter."""


Kind = TypeVar("Kind", bound=ModelMonitor)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """FOD's tau_1 and tau_2: scores below which a sentence is taken back or a sample dropped; ``backtrack <= prune``.

    The recalls are the shares of unfaithful sentences below each threshold, in [0, 1].
    """

    backtrack: float
    prune: float
    backtrack_recall: float
    prune_recall: float


def choose_thresholds(scores: ArrayLike, y: ArrayLike) -> Thresholds:
    """Choose both thresholds by the share of faithful sentences that may fall below them.

    Each is the largest score of a faithful sentence that has at most 10 % (backtrack) or 25 % (prune) of the faithful
    sentences below it. The rule does not need calibrated scores, and a stricter aggregator causes no more alarms.

    ``scores`` (N,) are P(faithful) of sentences that the aggregator was not trained on, and ``y`` (N,) their labels: 1
    faithful, 0 unfaithful. A sentence without a label may have a calibrated probability, in (0, 1), in its place.
    Different shapes, a value outside its range, and a missing label raise InputError.
    """
    values, labels = real_numbers(scores, "scores").astype(np.float64), real_numbers(y, "labels").astype(np.float64)
    if not ((labels >= 0) & (labels <= 1)).all() or not labels.any() or (labels == 1).all():
        raise InputError(
            f"thresholds need sentences of both labels, but found {labels_found(labels)}; hold out more sentences"
        )
    order = np.argsort(values, kind="stable")
    order = order[labels[order] > 0]
    below = np.cumsum(labels[order]) - labels[order]
    backtrack, prune = (
        float(values[order[np.searchsorted(below, share * labels.sum(), side="right") - 1]])
        for share in (BACKTRACK_ALARMS, PRUNE_ALARMS)
    )
    return Thresholds(
        backtrack,
        prune,
        backtrack_recall=float(np.average(values < backtrack, weights=1 - labels)),
        prune_recall=float(np.average(values < prune, weights=1 - labels)),
    )


def fit_monitor(
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    aggregator: AggregatorKind | ProbabilisticClassifier | Literal["best"] = "best",
    config: MonitorConfig | None = None,
    aligner: Aligner | None | Literal["generic"] = "generic",
    rule: Rule = "overlap",
    seed: int = 0,
    show_progress: bool | None = None,
    kind: type[ModelMonitor] = ModelMonitor,
) -> ModelMonitor:
    """Train a monitor for a model from labelled responses.

    Parameters
    ----------
    records
        Labelled responses, by this model or by others (it then acts as surrogate), also as dicts; see
        :func:`~syncheck.labelling.labelled_responses`. They need at least five groups, five faithful sentences and five
        unfaithful ones, because the thresholds are chosen by cross-validation with five folds.
    aggregator
        Kind of aggregator; ``"best"`` takes the one that is best in grouped cross-validation, see
        :func:`syncheck.evaluation.best_aggregator`. Or a scikit-learn classifier with ``predict_proba`` that accepts
        NaN; see :meth:`Aggregator.fit`.
    config
        Measurements of the monitor; None takes the schema ``syncheck.v3`` with the model's default layers.
    aligner
        Aligner of the monitor. ``"generic"`` takes that of the bundled verifier, as ``Verifier()`` does: the reader if
        its encoder is installed or in the cache of Hugging Face, otherwise the bundled one, with a warning. None leaves
        ``align_score`` unmeasured.
    rule
        How spans become sentence labels; see :func:`syncheck.labelling.label_sentences`.
    seed
        Seed of the aggregator, and of the folds on which the thresholds are chosen.
    show_progress
        None shows a progress bar on a terminal.
    kind
        Class of the monitor: :class:`syncheck.Monitor`.

    Returns
    -------
    Monitor
        Its thresholds are chosen on out-of-fold scores; see :func:`choose_thresholds`.

    Raises
    ------
    InputError
        If the records cannot be used: there are too few, or none fits the window.
    TextGeneratorError
        If the aligner fails on a record.
    RecordError
        If a dict is not of the documented form, or labelled sentences of a record overlap or do not lie in its
        response.

    Warns
    -----
    LeftOutWarning
        If responses are left out of training, for example because they do not fit the window or have no context.
    """
    _check_aggregator(aggregator)
    given = labelled_responses(records)
    check_questions(given, remedy=MORE_LABELS)
    untrained = untrained_monitor(model, tokenizer, config, aligner, kind=kind)
    measured = measure(untrained, given, show_progress=show_progress)
    if lines := left_out_lines(measured):
        warnings.warn("not all responses are trained on\n" + "\n".join(lines), LeftOutWarning, stacklevel=2)
    trained = fit_measured(untrained, measured, aggregator=aggregator, rule=rule, seed=seed)
    assert isinstance(trained, ModelMonitor)
    return trained


def _check_aggregator(aggregator: object) -> None:
    """Refuse, before anything is measured, what cannot be trained."""
    if not isinstance(aggregator, str):
        check_classifier(aggregator)
    elif aggregator not in (kinds := ("best", *get_args(AggregatorKind))):
        named = ", ".join(map(repr, kinds))
        raise InputError(f"aggregator must be one of {named}, or a scikit-learn classifier; found {aggregator!r}")


def untrained_monitor(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    config: MonitorConfig | None,
    aligner: Aligner | None | Literal["generic"],
    *,
    kind: type[Kind],
) -> Kind:
    """Make the monitor that measures the training data; parameters as in :func:`fit_monitor`."""
    aligner = generic_aligner(model.device) if aligner == "generic" else aligner
    return kind(model, tokenizer, config=config or MonitorConfig(), aligner=aligner)


def monitor_of(
    measured: MeasuredSentences,
    *,
    aligner: Aligner | None,
    model: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None,
    source: object = "the data",
    kind: type[ModelMonitor] = ModelMonitor,
) -> ModelMonitor | Verifier | UnloadedMonitor:
    """Make the untrained monitor that measured sentences are of: schema, segmentation and template are theirs.

    Parameters
    ----------
    measured
        The sentences, in practice of a file of features.
    aligner
        The aligner that measured them.
    model
        The model that measured them, with its tokenizer. Without it, features of text alone make a verifier, and other
        features a monitor that is not loaded: it can be trained and saved, with the fingerprint in the provenance.
    source
        Name of the sentences in messages.
    kind
        Class of the monitor, if there is a model.

    Raises
    ------
    InputError
        If a model is needed, and neither given nor named by the sentences.
    MismatchError
        If they were measured with another model or aligner.
    """
    lid = [name.rpartition("_")[2] for name in measured.schema.names if name.startswith("lid_layer_")]
    config = MonitorConfig(
        schema=measured.schema.version,
        layers=tuple(map(int, lid)),
        segmenter=measured.segmenter,
        template=cast(Template, measured.provenance.get("template", "auto")),
    )
    fingerprint = model_of(measured.provenance)
    untrained: ModelMonitor | Verifier | UnloadedMonitor
    if model is not None:
        untrained = kind(*model, config=config, aligner=aligner)
    elif not needs_signals(config.schema):
        untrained = Verifier(aligner, config=config)
    elif fingerprint is not None:
        untrained = UnloadedMonitor(fingerprint, config, aligner)
    else:
        raise InputError(
            f"{source} does not name the model that measured it, which a monitor with features of a model must name; "
            "pass that model (--model)"
        )
    check_measured_by(measured, untrained, source=source)
    return untrained


def fit_measured(
    untrained: ModelMonitor | Verifier | UnloadedMonitor,
    measured: MeasuredSentences,
    *,
    aggregator: AggregatorKind | ProbabilisticClassifier | Literal["best"] = "best",
    rule: Rule = "overlap",
    seed: int = 0,
    held_out: NDArray[np.float64] | None = None,
) -> ModelMonitor | Verifier | UnloadedMonitor:
    """Train the aggregator of a monitor or a verifier on sentences that it has measured; see :func:`fit_monitor`.

    Parameters
    ----------
    untrained
        The monitor that measured them; its aggregator and references, if it has any, are not used. See
        :func:`monitor_of` for a file of features.
    measured
        The sentences, with at least as many groups, and sentences of either label, as folds.
    aggregator, rule, seed
        As in :func:`fit_monitor`.
    held_out : ndarray of shape (N,), float64, or None
        Out-of-fold P(faithful) of the N labelled sentences that get a score, by an aggregator of this kind, on which
        the thresholds are chosen; :func:`syncheck.evaluation.best_aggregator` returns them. None computes them.

    Raises
    ------
    InputError
        If the sentences cannot be used, or ``held_out`` does not fit them.
    MismatchError
        If they were measured with another model, aligner or configuration.
    """
    check_measured_by(measured, untrained)
    chosen = LabelledSet.scored(measured, rule=rule)
    if held_out is None:
        check_enough(chosen, remedy=MORE_LABELS)
        folds = Folding(folds=HELD_OUT_FOLDS, repeats=1, seed=seed)
        if isinstance(aggregator, str):
            kinds = None if aggregator == "best" else (aggregator,)
            aggregator, _, (held_out,) = best_aggregator(
                *chosen.data, names=measured.schema.names, draws=1, aggregators=kinds, **folds
            )
        else:
            (held_out,) = cross_validate(*chosen.data, aggregator=aggregator, **folds)
    elif aggregator == "best":
        raise InputError("held_out has the scores of one kind of aggregator; name that kind, or pass neither")
    elif held_out.shape != chosen.y.shape or not np.isfinite(held_out).all():
        raise InputError(
            f"held_out must be {len(chosen.y)} numbers, one for each sentence that gets a score; found "
            f"{int(np.isfinite(held_out).sum())} in an array of shape {held_out.shape}. Pass one row of what "
            "best_aggregator returns for these sentences, or None"
        )
    thresholds = choose_thresholds(held_out, chosen.y)
    # A feature that none of these sentences has, such as a number, or that no aligner measured, is NaN throughout.
    trained = Aggregator.fit(
        chosen.features(np.arange(len(chosen.y))),
        chosen.y,
        schema=measured.schema,
        kind=aggregator,
        seed=seed,
        allow_unmeasured=True,
    )
    measures = not isinstance(untrained, Verifier)
    references = {"lid_references": measured.lid_references(chosen.labels, chosen.used)} if measures else {}
    return untrained.replaced(
        config=replace(untrained.config, backtrack_threshold=thresholds.backtrack, prune_threshold=thresholds.prune),
        aggregator=trained,
        **references,
        name=None,
        trained_on=question_digests(chosen.records),
    )
