"""The aggregator: a trained model with the features that it was trained on, and its files.

A folder has a readable ``aggregator.json`` and one file of weights, never a pickle. The digest of the weights reveals
damage but no intent, so everything that is read is validated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators import published
from syncheck.aggregators.calibration import Calibration, RiskControlledThreshold, calibration_from_dict
from syncheck.aggregators.kinds import KINDS, GivenKind, KindName, fit_model
from syncheck.aggregators.models import Column, StoredModel
from syncheck.base.checks import check_share, real_numbers
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.base.files import REMEDY, read_object, read_weights
from syncheck.base.printable import summary
from syncheck.base.records import Record
from syncheck.results import AnswerScale
from syncheck.results.types import FeatureSchema

CONFIG = "aggregator.json"
WEIGHTS = "aggregator.safetensors"
FORMAT = "syncheck.aggregator.v1"
LIBRARIES = ("numpy", "scikit-learn", "xgboost")

ANSWER_SCALES = {"generic-reader": (1.043, 0.720), "generic-bundled": (0.771, 0.476)}
"""Offset and slope of the scale of answers by bundled monitor; ``benchmarks/answers.py`` fits those of a new one."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregator:
    """Turns the features of a sentence into P(faithful).

    A share outside (0, 1), and a prior without a base rate, raise InputError.

    Examples
    --------
    >>> aggregator = Aggregator.fit(X, y, schema=schema, kind="lr")  # doctest: +SKIP
    >>> aggregator.save("monitor/")  # doctest: +SKIP
    >>> Aggregator.load("monitor/").score(X)  # doctest: +SKIP
    array([0.97, 0.41])
    """

    schema: FeatureSchema
    """The columns it reads, in order."""
    kind: KindName
    """``signal`` is one signal as it is, without training; see :meth:`from_signal`."""
    medians: NDArray[np.float64]
    """(F,) float64: median of each feature in training; NaN if it was never measured or is not known."""
    model: StoredModel
    """The model that computes P(faithful)."""
    calibration: Calibration | None = None
    """Turns the model's scores into those of :meth:`score`; None leaves them as they are."""
    calibrated_threshold: RiskControlledThreshold | None = None
    """The score, at the base rate, from which sentences may be shown with a guarantee."""
    base_rate: float | None = None
    """Share of faithful sentences, in (0, 1), for which the model's probabilities hold: that of the training labels, or
    one half if classes were balanced; None if it is not known."""
    prior: float | None = None
    """Share of faithful sentences, in (0, 1), that is expected where the scores are used; None takes the base rate."""
    comparison: Mapping[str, Any] | None = None
    """What it was ``chosen`` among, by name, and the ``auroc`` of each with its 95 % interval, on held-out questions of
    its training; None if it was not compared."""

    def __post_init__(self) -> None:
        for name in ("base_rate", "prior"):
            if (value := getattr(self, name)) is not None:
                check_share(value, name)
                if value in (0, 1):
                    raise InputError(f"{name} must lie between 0 and 1; found {value!r}")
        if self.prior is not None and self.base_rate is None:
            raise InputError(
                "a prior replaces the share of faithful sentences that the probabilities assume, but the share of this "
                "aggregator is not known; calibrate it first"
            )

    def __repr__(self) -> str:
        calibrated = "" if self.calibration is None else ", calibrated"
        share = self.base_rate if self.prior is None else self.prior
        expected = "" if share is None else f", for {share:.0%} faithful"
        names = f"{len(self.schema.names)} features"
        return summary(self, f"{self.kind}, {self.schema.version}, {names}{calibrated}{expected}")

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        schema: FeatureSchema,
        kind: GivenKind = "mlp",
        seed: int = 0,
        allow_unmeasured: bool = False,
    ) -> Self:
        """Train on labelled sentences.

        Parameters
        ----------
        X, y : array-like of shapes (N, F) and (N,)
            Columns as in ``schema``, NaN if not measured; 1 faithful, 0 unfaithful.
        kind
            ``lr``, ``xgb`` and ``mlp`` are described at :func:`syncheck.aggregators.make_aggregator`; ``ensemble``
            averages the log-odds of ``lr`` and ``xgb``; the probabilities of ``monotone``, a
            :class:`~syncheck.aggregators.monotone.MonotoneLogisticRegression`, perhaps with parameters of your own,
            hold if half of the sentences are faithful.
        seed
            The same data and seed give the same aggregator.
        allow_unmeasured
            True allows columns that are NaN throughout; they then never count, not even if they are measured later.

        Raises
        ------
        InputError, WrongTypeError
            If the shapes do not fit, a value is infinite, only one label occurs, or a column is NaN throughout (with
            ``allow_unmeasured``, if all are); if features or labels are complex, strings or other objects.
        """
        rows = _rows(X, schema)
        never = [name for name, column in zip(schema.names, rows.T, strict=True) if np.isnan(column).all()]
        if len(never) == len(schema.names) or (never and not allow_unmeasured):
            raise InputError(
                f"every feature must be measured in some sentence; found {len(never)} of {len(schema.names)} columns "
                f"that are NaN in all {len(rows)}: {', '.join(never)}. Measure them, use a schema without them, or "
                "pass allow_unmeasured=True to ignore them"
            )
        labels = real_numbers(y, "labels")
        model = fit_model(rows, labels, kind=kind, seed=seed, names=schema.names)
        balanced = kind == "monotone" if isinstance(kind, str) else kind.balanced
        name: KindName = kind if isinstance(kind, str) else "monotone"
        measured = (column[~np.isnan(column)] for column in rows.T)
        medians = np.array([np.median(column) if column.size else np.nan for column in measured])
        return cls(schema, name, medians, model, base_rate=0.5 if balanced else float(np.mean(labels)))

    @classmethod
    def load(cls, directory: str | Path, *, schema: FeatureSchema | None = None) -> Self:
        """Read a folder that :meth:`save` wrote.

        ``schema`` has the features that will be passed; None takes those of training. A file that is missing, damaged,
        of an unknown format or not of the other file raises CheckpointError, and another schema MismatchError.
        """
        check_folder(Path(directory), written_by="Aggregator.save")
        path = Path(directory) / CONFIG
        config = read_object(path)
        if (stated := config.get("format")) != FORMAT:
            raise CheckpointError(
                f"{path} has format {stated!r}, expected {FORMAT!r}; update syncheck or train the aggregator again"
            )
        try:
            fields = Record(config)
            trained = _schema(fields.nested("schema"))
            kind, digest, named = (fields.get(name, str) for name in ("kind", "weights_sha256", "weights"))
            if not {type(value) for value in fields.get("medians", list)} <= {int, float, NoneType}:
                raise TypeError(f"medians must be numbers or null; found {config['medians']}")
            medians = np.array(config["medians"], np.float64)  # NaN where it is null
            calibration, threshold = config["calibration"], config["calibrated_threshold"]
            calibration = None if calibration is None else calibration_from_dict(calibration)
            threshold = None if threshold is None else RiskControlledThreshold.from_dict(threshold)
            comparison = fields.optional("comparison", dict)
            base_rate, prior = (
                None if config[name] is None else fields.get(name, float) for name in ("base_rate", "prior")
            )
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged ({type(error).__name__}: {error}); {REMEDY}") from error
        check_stored_kind(kind)
        weights = read_weights(path, named, digest, expected=WEIGHTS)
        model = KINDS[kind].from_bytes(weights)  # type: ignore[index]  # checked
        if not len(trained.names) == len(medians) == model.features:
            raise CheckpointError(
                f"{path} names {len(trained.names)} features and {len(medians)} medians, but the weights are for "
                f"{model.features}; {REMEDY}"
            )
        check_schema(trained, schema)
        try:
            return cls(trained, kind, medians, model, calibration, threshold, base_rate, prior, comparison)  # type: ignore[arg-type]
        except InputError as error:
            raise CheckpointError(f"{path} is damaged ({error}); {REMEDY}") from error

    def save(self, directory: str | Path) -> None:
        """Write ``aggregator.json`` and the weights, in safetensors."""
        folder, weights = Path(directory), self.model.to_bytes()
        folder.mkdir(parents=True, exist_ok=True)
        calibration, threshold = self.calibration, self.calibrated_threshold
        config: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "schema": asdict(self.schema),
            "medians": [None if np.isnan(value) else float(value) for value in self.medians],
            "weights": WEIGHTS,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "calibration": None if calibration is None else {"method": calibration.method, **asdict(calibration)},
            "calibrated_threshold": None if threshold is None else asdict(threshold),
            "base_rate": self.base_rate,
            "prior": self.prior,
            "comparison": self.comparison,
            "libraries": {name: version(name) for name in LIBRARIES},
        }
        (folder / WEIGHTS).write_bytes(weights)
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_signal(cls, name: str, *, schema: FeatureSchema) -> Self:
        """Make an aggregator whose score is one signal: a baseline without training.

        ``name`` is a signal in [0, 1] that rises with faithfulness: ``"align_score"`` is AlignScore or MiniCheck alone,
        depending on the monitor's aligner; ``"min_prob"`` is the criterion of FLARE. ``schema`` has the columns that
        will be passed; if it has no such signal, InputError is raised.
        """
        columns = zip(schema.names, schema.units, schema.directions, strict=True)
        usable = [column for column, unit, direction in columns if direction == 1 and unit.endswith("[0, 1]")]
        if name not in usable:
            raise InputError(
                f"expected a signal of schema {schema.version!r} in [0, 1] that rises with faithfulness: "
                f"{', '.join(usable) or 'it has none'}; found {name!r}"
            )
        count = len(schema.names)
        return cls(schema, "signal", np.full(count, np.nan), Column(schema.names.index(name), count))

    @classmethod
    def from_published(cls, path: str | Path, *, schema: FeatureSchema | None = None) -> Self:
        """Read one of the aggregators that the paper's authors published as pickles.

        Only the weights are extracted; nothing that the file names is imported or called. ``schema`` is the order in
        which the features will be passed; None takes that of the published code. A file that is not such an aggregator,
        or names anything other than its types, raises CheckpointError, and a schema with other features MismatchError.

        The published code trained with 0 for values that could not be measured, so NaN counts as 0 here.
        """
        network, schema = published.read(Path(path), schema)
        return cls(schema, "mlp", np.full(network.features, np.nan), network)

    def score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute P(faithful) of each row, (N,) float64 in [0, 1]: calibrated, if it is, and shifted to the prior.

        ``X`` (N, F) has columns as in :attr:`schema`; NaN means not measured. Another number of columns, an infinite
        value, and a signal that is the score but was not measured raise InputError.
        """
        raw = self.model.probability(_rows(X, self.schema))
        return self.at_prior(raw if self.calibration is None else self.calibration.probability(raw))

    def at_prior(self, probability: ArrayLike) -> NDArray[np.float64]:
        """Shift probabilities, in log-odds, from the share of faithful sentences :attr:`base_rate` to :attr:`prior`."""
        given = np.asarray(probability, dtype=np.float64)
        if self.prior is None or self.base_rate is None or self.prior == self.base_rate:
            return given
        for_faithful = given * (self.prior / self.base_rate)
        against = (1.0 - given) * ((1.0 - self.prior) / (1.0 - self.base_rate))
        return for_faithful / (for_faithful + against)

    def attribution(self, x: ArrayLike) -> dict[str, float]:
        """Attribute the score of one sentence to its features, by name, in nats of log-odds, above 0 if they raise it.

        ``x`` (F,) are the features of the sentence; NaN means not measured. Another number of features, and an infinite
        value, raise InputError.

        ``lr`` and ``monotone``: the exact terms of the log-odds ln(p / (1 - p)), relative to the training mean and
        without the intercept. ``xgb``: tree SHAP. ``ensemble``: the mean of both. ``mlp``: occlusion, the log-odds
        minus those with the feature at its training median (missing, if that is not known), which need not add up.
        ``signal``: the signal itself. A calibration, which keeps the order of scores, is left out.
        """
        (row,) = _rows(np.atleast_1d(real_numbers(x, "features"))[None], self.schema)
        return dict(zip(self.schema.names, self.model.contributions(row, self.medians).tolist(), strict=True))


def _rows(X: ArrayLike, schema: FeatureSchema) -> NDArray[np.float64]:
    rows = real_numbers(X, "features").astype(np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(schema.names):
        raise InputError(
            f"features must be (N, {len(schema.names)}), the columns of schema {schema.version!r}, "
            f"but their shape is {rows.shape}"
        )
    if np.isinf(rows).any():
        raise InputError("a feature is infinite; use NaN for what was not measured")
    return rows


def check_stored_kind(kind: object) -> None:
    """Raise CheckpointError if the kind of an aggregator is unknown."""
    if kind not in tuple(KINDS):
        raise CheckpointError(f"an aggregator of kind {kind!r} is unknown; update syncheck")


def check_folder(directory: Path, *, written_by: str) -> None:
    """Raise CheckpointError if there is a file in place of a folder."""
    if not directory.is_file():
        return
    published = directory.suffix == ".pkl"
    remedy = "Load a file that the authors published with Aggregator.from_published" if published else "Pass the folder"
    raise CheckpointError(f"expected a folder that {written_by} wrote; found the file {directory}. {remedy}")


def check_schema(trained: FeatureSchema, passed: FeatureSchema | None) -> None:
    """Raise MismatchError unless the features passed are those of training, in the same order."""
    if passed is None or (passed.version, passed.names) == (trained.version, trained.names):
        return
    raise MismatchError(
        f"the aggregator was trained on schema {trained.version!r} with {', '.join(trained.names)}, but is "
        f"asked to read {passed.version!r} with {', '.join(passed.names)}; load it with the features it was "
        "trained on, read a published one with schema=feature_schema(version, layers), or train one on these features"
    )


def _schema(stored: Record) -> FeatureSchema:
    directions = tuple(stored.get("directions", list))
    schema = FeatureSchema(stored.get("version", str), stored.strings("names"), stored.strings("units"), directions)
    if not len(set(schema.names)) == len(schema.names) == len(schema.units) == len(schema.directions):
        raise ValueError("a schema needs distinct names, each with a unit and a direction")
    if not all(type(direction) is int and -1 <= direction <= 1 for direction in schema.directions):
        raise ValueError(f"directions must be -1, 0 or 1; found {schema.directions}")
    return schema


def answer_scale_of(monitor: str | None, aggregator: Aggregator | None) -> AnswerScale | None:
    """Take the scale of answers of a bundled monitor, at the prior of its scores; None for any other monitor."""
    scale = None if monitor is None else ANSWER_SCALES.get(monitor)
    if scale is None or aggregator is None or aggregator.base_rate is None:
        return None
    return AnswerScale(*scale, prior=aggregator.prior or aggregator.base_rate)
