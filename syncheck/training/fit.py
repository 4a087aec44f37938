"""Fitting: measured sentences become a trained monitor with its thresholds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aggregators.kinds import AggregatorKind, GivenKind, check_kind, shrunk_towards
from syncheck.aggregators.models import Network
from syncheck.aligners import Aligner
from syncheck.base.errors import InputError
from syncheck.config import DEFAULT_SCHEMA, KEPT, PRECISION, MonitorConfig, Template
from syncheck.evaluation import EvaluationTable, System, aggregator_systems, auroc_table, out_of_fold_scores
from syncheck.evaluation.metrics import Folding, fold_numbers, json_number, with_interval
from syncheck.evaluation.tables import EvaluationRow
from syncheck.features.schemas import needs_signals
from syncheck.labelling.responses import Rule
from syncheck.model_monitor import ModelMonitor
from syncheck.results.types import Floats
from syncheck.training.measured import MeasuredSentences, check_measured_by
from syncheck.training.provenance import UnloadedMonitor, model_of, question_digests
from syncheck.training.sets import HELD_OUT_FOLDS, LabelledSet, check_enough, thresholds_of, warn_of_one_label_each
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GENERIC_ROW, ALIGNER_ROW, SHRUNK = "generic", "aligner alone", "shrunk"
"""Names of what trained kinds are compared with, and of the regression that is pulled towards ``generic``."""
TrainedKind = AggregatorKind | Literal["best", "shrunk", "generic"]
"""Kinds to train. ``shrunk`` is a logistic regression pulled towards ``generic``, more strongly with fewer labels;
``generic`` keeps that aggregator and chooses thresholds for it. Both need its aligner and its features."""

logger = logging.getLogger(__name__)


def monitor_of(
    measured: MeasuredSentences,
    *,
    aligner: Aligner | None,
    model: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None,
    source: object = "the data",
    kind: type[ModelMonitor] = ModelMonitor,
) -> ModelMonitor | Verifier | UnloadedMonitor:
    """Make the untrained monitor that measured sentences are of: schema, segmentation and template are theirs.

    Given the model that measured them, with its tokenizer, the monitor is of class ``kind``. Without it, features of
    text alone make a verifier, and others an :class:`UnloadedMonitor` with the fingerprint in the provenance.
    ``source`` names the sentences in messages. If a model is needed, and neither given nor named by the sentences,
    InputError is raised; if they were measured with another model or aligner, MismatchError.
    """
    config = MonitorConfig(
        schema=measured.schema.version,
        layers=tuple(int(name.rpartition("_")[2]) for name in measured.schema.names if name.startswith("lid_layer_")),
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


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained monitor, and what it was chosen among."""

    monitor: ModelMonitor | Verifier | UnloadedMonitor
    kind: str
    """The kind that was chosen: a row of the table."""
    table: EvaluationTable
    """Out-of-fold figures: of ``generic`` and of the aligner alone, if both can be had, then of each kind, slightly
    optimistic for the chosen one. Gains are over the first row."""

    @property
    def row(self) -> EvaluationRow:
        """Figures of the chosen kind."""
        return next(row for row in self.table.rows if row.system == self.kind)

    @property
    def doubt(self) -> str | None:
        """Say that these labels do not show that training is better than no training; None if they do."""
        first, row = self.table.rows[0], self.row
        if self.kind == GENERIC_ROW:
            return "generic is kept: the monitor has its aggregator, with thresholds chosen on these labels"
        if first.system not in (GENERIC_ROW, ALIGNER_ROW) or row.gain_low > 0:
            return None
        return (
            f"{self.kind!r} is not better than {first.system!r} beyond its interval on held-out questions: AUROC "
            f"{row.auroc:.3f} and {first.auroc:.3f}, a difference of "
            f"{with_interval(row.gain, row.gain_low, row.gain_high, '+.3f')}. More labels may help"
        )


def fit_measured(
    untrained: ModelMonitor | Verifier | UnloadedMonitor, measured: MeasuredSentences, **options: Any
) -> ModelMonitor | Verifier | UnloadedMonitor:
    """Train a monitor as :func:`train_measured` does, and log a doubt about it as a warning."""
    trained = train_measured(untrained, measured, **options)
    if trained.doubt is not None:
        logger.warning(trained.doubt)
    return trained.monitor


def train_measured(
    untrained: ModelMonitor | Verifier | UnloadedMonitor,
    measured: MeasuredSentences,
    *,
    aggregator: TrainedKind | GivenKind = "best",
    rule: Rule = "overlap",
    seed: int = 0,
    precision: float = PRECISION,
    kept: float = KEPT,
) -> Trained:
    """Train the aggregator of a monitor or a verifier on sentences that it has measured, and compare it.

    The aggregator and references of ``untrained``, if it has any, are not used. The other parameters are as in
    :meth:`syncheck.Monitor.fit`. Sentences that cannot be used, and a kind that needs ``generic`` where it cannot be
    had, raise InputError; those of another model, aligner or configuration MismatchError.
    """
    check_kind(aggregator, others=("best", SHRUNK, GENERIC_ROW))
    check_measured_by(measured, untrained)
    chosen = LabelledSet.scored(measured, rule=rule)
    check_enough(chosen)
    warn_of_one_label_each(chosen)
    generic = _generic_for(untrained)
    if generic is None and aggregator in (SHRUNK, GENERIC_ROW):
        raise InputError(
            f"{aggregator!r} needs the aligner of a bundled verifier and a schema with its features, such as "
            f"{DEFAULT_SCHEMA!r} or 'syncheck.v5'; pass aligner='generic' and one of these, or another aggregator"
        )
    kinds = _kinds(aggregator, generic, measured.schema.names)
    scores, table = _compared(chosen, generic, kinds, seed)
    kind = _chosen(table, kinds) if aggregator == "best" else next(iter(kinds), GENERIC_ROW)
    config = replace(untrained.config, **thresholds_of(scores[kind][0], chosen.y, precision=precision, kept=kept))
    seen = question_digests(chosen.records)
    if generic is not None and kind in (GENERIC_ROW, SHRUNK):
        seen |= set(generic.trained_on)
    parts: dict[str, Any] = {} if isinstance(untrained, Verifier) else {"lid_references": None}
    if kind == GENERIC_ROW:
        assert generic is not None
        trained, config = _aggregator_of(generic), replace(config, schema=generic.config.schema, layers=())
    else:
        # A feature that none of these sentences has, such as a number, or that no aligner measured, is NaN throughout.
        X, y = chosen.features(np.arange(len(chosen.y))), chosen.y
        trained = Aggregator.fit(X, y, schema=measured.schema, kind=kinds[kind], seed=seed, allow_unmeasured=True)
        if parts:
            parts["lid_references"] = measured.lid_references(chosen.labels, chosen.used)
    figures = {row.system: [json_number(x) for x in (row.auroc, row.low, row.high)] for row in table.rows}
    trained = replace(trained, comparison={"chosen": kind, "auroc": figures})
    return Trained(
        untrained.replaced(config=config, aggregator=trained, **parts, name=None, trained_on=seen), kind, table
    )


Kinds = dict[str, GivenKind]


def _generic_for(untrained: ModelMonitor | Verifier | UnloadedMonitor) -> checkpoint.Stored | None:
    """Read the form of ``generic`` that was trained with a monitor's aligner; None if a feature of it is missing."""
    name = None if untrained.aligner is None else checkpoint.generic_name(untrained.aligner)
    stored = None if name is None else checkpoint.read(checkpoint.packaged_monitor(name))
    return stored if stored is not None and set(stored.schema.names) <= set(untrained.schema.names) else None


def _kinds(aggregator: TrainedKind | GivenKind, generic: checkpoint.Stored | None, names: Sequence[str]) -> Kinds:
    """List what is trained, by name, in the order of the table."""
    kinds: Kinds = {}
    if generic is not None and aggregator in ("best", SHRUNK):
        model = _aggregator_of(generic).model
        assert isinstance(model, Network)
        kinds[SHRUNK] = shrunk_towards(model, generic.schema.names, names)
    if aggregator == "best":
        kinds |= {system.name: cast(AggregatorKind, system.aggregator) for system in aggregator_systems(names)}
    elif not isinstance(aggregator, str):
        kinds[type(aggregator).__name__] = aggregator
    elif aggregator not in (SHRUNK, GENERIC_ROW):
        kinds[aggregator] = cast(AggregatorKind, aggregator)
    return kinds


def _aggregator_of(generic: checkpoint.Stored) -> Aggregator:
    aggregator = generic.aggregator()
    assert aggregator is not None
    return aggregator


def _compared(
    chosen: LabelledSet, generic: checkpoint.Stored | None, kinds: Kinds, seed: int
) -> tuple[dict[str, Floats], EvaluationTable]:
    """Score the sentences by ``generic``, by the aligner alone and, out of fold, by each kind."""
    names, values = chosen.measured.schema.names, chosen.measured.values[chosen.used]
    scores: dict[str, Floats] = {}
    if generic is not None:
        columns = [names.index(name) for name in generic.schema.names]
        scores[GENERIC_ROW] = _aggregator_of(generic).score(values[:, columns])[None]
    support = [name for name in ("align_logit", "align_score") if name in names]
    measured = [name for name in support if not np.isnan(values[:, names.index(name)]).all()]
    systems = [
        *(System(ALIGNER_ROW, (name,), trained=False) for name in measured[:1]),
        *(System(name, names, aggregator=kind) for name, kind in kinds.items()),
    ]
    folds = Folding(folds=HELD_OUT_FOLDS, repeats=1, seed=seed)
    scores |= out_of_fold_scores(*chosen.data, names=names, systems=systems, **folds)
    numbers = fold_numbers(chosen.y, chosen.groups, **folds)
    return scores, auroc_table(scores, chosen.y, chosen.groups, folds=numbers, seed=seed)


def _chosen(table: EvaluationTable, kinds: Kinds) -> str:
    """Choose the kind with the highest AUROC if it beats ``generic`` beyond its interval, or else what is nearer."""
    rows = {row.system: row for row in table.rows}
    best = max((rows[name] for name in kinds), key=lambda row: row.auroc)
    if GENERIC_ROW not in rows or best.gain_low > 0:
        return best.system
    return SHRUNK if rows[SHRUNK].gain > 0 else GENERIC_ROW
