"""A regression of each word's risk on what is known of it, after MiKaNi (SemEval-2025 Task 3), without its models.

MiKaNi joins GPT-4o's verdict on retrieved facts, a tuned BERT and linguistic features by support vector regression.
Here the retrieved texts are compared word by word instead, so that the model needs no other one, knows no language by
name and fits in a megabyte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.forest import Forest
from syncheck.detectors.boosted import boosted_trees, word_risks, word_weights
from syncheck.detectors.kernel import KernelMachine
from syncheck.detectors.signal_features import Measure, regression_features, regression_names
from syncheck.errors import CheckpointError, InputError, MismatchError
from syncheck.spans import (
    SpanItem,
    SpanLabels,
    SpanSchema,
    labels_of,
    likely_overlap,
    merged_risk,
    words_of,
)

__all__ = ["MAX_WORDS", "RegressorKind", "SpanRegressor", "load_span_regressor", "reads_signals"]

RegressorKind = Literal["xgb", "svr"]

FORMAT = "syncheck.spans.v1"
_CONFIG = "spans.json"
_WEIGHTS: Mapping[str, str] = {"xgb": "spans.ubj", "svr": "spans.safetensors"}
_READERS: Mapping[str, type[Forest] | type[KernelMachine]] = {"xgb": Forest, "svr": KernelMachine}
_ASSETS = Path(str(files("syncheck") / "assets" / "spans"))

SVR_C = 10.0
SVR_WEIGHTS = (0.01, 100.0)
"""Of words that nobody marked and of all others (MiKaNi, section 3.4.3)."""

MAX_WORDS = 6000
"""Words that support vector regression is fitted on: its time grows with the square of the words or faster. On
Mu-SHROOM's validation sets, 32,000 words, the fits of both ways to hold out end in about two minutes on one core."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SpanRegressor:
    """A trained regression with the schema it reads; finds spans by :func:`~syncheck.spans.likely_overlap`.

    ``measure`` is None for one that reads texts alone; else it gives the signals of a language model that this one
    reads too, see :mod:`syncheck.detectors.signal_features`.
    """

    schema: SpanSchema
    kind: RegressorKind
    model: Forest | KernelMachine
    measure: Measure | None = None

    @property
    def name(self) -> str:
        """For tables."""
        rarity, signals = self.schema == "spans-rarity.v1", self.measure is not None
        return f"mikani-{self.kind}" + ("-rarity" if rarity else "") + ("-signals" if signals else "")

    @classmethod
    def fit(
        cls,
        items: Sequence[SpanItem],
        *,
        schema: SpanSchema = "spans.v1",
        kind: RegressorKind = "xgb",
        seed: int = 0,
        max_words: int = MAX_WORDS,
        measure: Measure | None = None,
        measured: Sequence[Floats] | None = None,
    ) -> Self:
        """Fit on responses with labels.

        The target is the mean soft label of a word's characters: where annotators disagree, the share that marked
        it. Trees weigh each response alike, as the metric does, and a word within it by its characters; support
        vector regression weighs the words as MiKaNi does.

        Parameters
        ----------
        items
            All with labels.
        schema
            See :mod:`syncheck.spans.features`.
        kind
            ``xgb``: gradient-boosted trees. ``svr``: MiKaNi's regression, C = 10.
        seed
            Of the trees, and of the words that ``max_words`` keeps.
        max_words
            Of ``svr``: where there are more, so many of them are drawn at random, all alike and none twice, and it
            is fitted on these.
        measure
            Gives a language model's signals as more columns: :class:`~syncheck.detectors.TokenReplay`. An item
            that does not fit the model's window has NaN there.
        measured
            What :func:`~syncheck.detectors.regression_features` gives for each item, where it is already known.

        Raises
        ------
        InputError
            If an item has no labels, there is no word, ``max_words`` is below 1, or the kind is unknown.
        MissingExtraError
            If the schema needs a package that is not installed.
        """
        if kind not in get_args(RegressorKind):
            raise InputError(f"kind must be one of {get_args(RegressorKind)}; found {kind!r}")
        if max_words < 1:
            raise InputError(f"max_words must be 1 or more; found {max_words}")
        values = [regression_features(i, schema, measure) for i in items] if measured is None else measured
        targets = [word_risks(item) for item in items]
        if not sum(map(len, targets)):
            raise InputError("expected labelled responses with words to train on; found none")
        X, y = np.concatenate(list(values)), np.concatenate(targets)
        if kind == "svr":
            kept = np.sort(np.random.default_rng(seed).permutation(len(y))[:max_words])
            X, y = X[kept], y[kept]
            machine = KernelMachine.fit(X, y, np.where(y > 0, *SVR_WEIGHTS[::-1]), C=SVR_C)
            return cls(schema, kind, machine, measure)
        return cls(
            schema, kind, boosted_trees(X, y, np.concatenate([word_weights(item) for item in items]), seed), measure
        )

    def detect(self, item: SpanItem, *, measured: Floats | None = None) -> SpanLabels:
        """Return the labels of a response; see :class:`~syncheck.detectors.SpanDetector`.

        Parameters
        ----------
        item
        measured
            Its :func:`~syncheck.detectors.regression_features`, where they are already known.
        """
        words = words_of(item.response)
        if not words:
            return SpanLabels((), ())
        values = regression_features(item, self.schema, self.measure) if measured is None else measured
        risks = self.model.probability(values)
        starts, stops = [word.start for word in words], [word.end for word in words]
        risk = merged_risk(starts, stops, risks, len(item.response))
        return labels_of(risk, likely_overlap(risk))

    def save(self, directory: str | Path) -> None:
        """Write ``spans.json`` and the weights into a folder, making it if it does not exist.

        The language model of ``measure`` is not saved: only what tells it from another, where it says so.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.model.to_bytes()
        config = {
            "format": FORMAT,
            "kind": self.kind,
            "schema": self.schema,
            "features": list(regression_names(self.schema, signals=self.measure is not None)),
            "measured_by": None if self.measure is None else getattr(self.measure, "fingerprint", {}),
            "weights": _WEIGHTS[self.kind],
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "libraries": {name: version(name) for name in ("numpy", "scikit-learn", "xgboost")},
        }
        (folder / _WEIGHTS[self.kind]).write_bytes(weights)
        (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def reads_signals(path: str | Path) -> bool:
    """Whether :func:`load_span_regressor` needs a language model for what lies here; False where nothing does."""
    file = _folder(path) / _CONFIG
    try:
        return json.loads(file.read_text(encoding="utf-8")).get("measured_by") is not None
    except (OSError, ValueError, AttributeError):
        return False  # load_span_regressor says what is wrong


def load_span_regressor(path: str | Path = "bundled", *, measure: Measure | None = None) -> SpanRegressor:
    """Load a trained regression.

    Parameters
    ----------
    path
        A folder that :meth:`SpanRegressor.save` wrote; ``bundled`` for the one trained on Mu-SHROOM's validation sets,
        ``bundled-rarity`` for the one that knows how rare words are too, through ``wordfreq``.
    measure
        Needed by one that was fitted with it, and refused by any other.

    Raises
    ------
    CheckpointError
        If a file is missing, damaged, of an unknown format, or not of the other.
    MismatchError
        If ``measure`` runs another model than the regression was fitted with.
    InputError
        If ``measure`` is missing, or not needed.
    """
    folder = _folder(path)
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        weights = (folder / _WEIGHTS[config["kind"]]).read_bytes()
        found, digest, schema, _ = (config[name] for name in ("format", "weights_sha256", "schema", "features"))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{folder} is no folder of a span regressor ({type(error).__name__}: {error}); pass one that "
            "SpanRegressor.save wrote"
        ) from error
    if found != FORMAT or schema not in get_args(SpanSchema):
        raise CheckpointError(
            f"{folder / _CONFIG} has format {found!r} and schema {schema!r}, expected {FORMAT!r} and one of "
            f"{get_args(SpanSchema)}; update syncheck or train anew"
        )
    if hashlib.sha256(weights).hexdigest() != digest:
        raise CheckpointError(f"{folder}: the weights are not those that {_CONFIG} was saved with; copy it again")
    model = _READERS[config["kind"]].from_bytes(weights)
    if model.features != len(config["features"]):
        raise CheckpointError(f"{folder}: {_CONFIG} names {len(config['features'])} features, the weights have others")
    _check_measure(folder, config.get("measured_by"), measure)
    return SpanRegressor(schema, config["kind"], model, measure)


def _folder(path: str | Path) -> Path:
    bundled = {"bundled": _ASSETS / "plain", "bundled-rarity": _ASSETS / "rarity"}
    return bundled.get(str(path), Path(path))


def _check_measure(folder: Path, expected: dict[str, Any] | None, measure: Measure | None) -> None:
    if expected is None and measure is not None:
        raise InputError(f"{folder} reads no signals of a language model; load it without measure")
    if expected is not None and measure is None:
        raise InputError(
            f"{folder} reads the signals of a language model ({expected.get('architecture', 'unnamed')}); pass "
            "measure=TokenReplay(model, tokenizer) with the one it was fitted with"
        )
    found = getattr(measure, "fingerprint", {})
    different = [key for key in expected or {} if found.get(key) != (expected or {})[key]]
    if different:
        raise MismatchError(
            f"{folder} was fitted with the signals of another model, which differs in {', '.join(different)}; pass "
            "that one, or fit anew"
        )
