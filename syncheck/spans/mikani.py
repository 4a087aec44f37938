"""Regression of each word's risk on features of the word, after MiKaNi (SemEval-2025 Task 3), without its models.

MiKaNi combines GPT-4o's verdict on retrieved facts, a fine-tuned BERT and linguistic features by support vector
regression. Here the retrieved texts are compared word by word, by trees, which are better and faster to fit
(``benchmarks/span_methods.py --svr``), in any language, within a megabyte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np

from syncheck.aggregators.trees import Forest
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import read_object, read_weights
from syncheck.results.spans import SpanItem, SpanLabels, labels_of, likely_overlap, risk_of
from syncheck.results.types import Floats
from syncheck.spans.words import SpanSchema, span_feature_names, word_features, words_of

KIND = "xgb"  # kind of regression, in files and names
TREES = 200
TREE_OPTIONS: Mapping[str, Any] = {
    "objective": "reg:logistic",
    "eta": 0.05,
    "max_depth": 5,
    "subsample": 0.7,
    "colsample_bytree": 0.4,
    "min_child_weight": 8,
    "reg_lambda": 5,
}
"""Options of the trees, chosen once by hand on the validation sets; similar options score within 0.01."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanRegressor:
    """Trained regression with the schema of its features; marks spans by :func:`~syncheck.results.likely_overlap`."""

    schema: SpanSchema
    model: Forest

    @property
    def name(self) -> str:
        """Name of the detector in tables."""
        rarity = "-rarity" if self.schema == "spans-rarity.v1" else ""
        return f"mikani-{KIND}{rarity}"

    @classmethod
    def fit(
        cls,
        items: Sequence[SpanItem],
        *,
        schema: SpanSchema = "spans.v1",
        seed: int = 0,
        measured: Sequence[Floats] | None = None,
    ) -> Self:
        """Fit trees on responses with labels.

        The target is the mean soft label of a word's characters, that is the share of annotators who marked it. Each
        response has the same weight, as in the metric, divided among words by their characters. ``measured`` are the
        :func:`~syncheck.spans.word_features` of each item, if known. InputError is raised if an item has no labels, or
        no item has a word.
        """
        import xgboost

        values = [word_features(i, words_of(i.response), schema) for i in items] if measured is None else measured
        risks, weights = zip(*(word_risks(item) for item in items), strict=True) if items else ((), ())
        if not sum(map(len, risks)):
            raise InputError("expected labelled responses with words to train on; found none")
        weight = np.concatenate(weights)
        # One thread, so that the trees do not depend on the machine's cores.
        data = xgboost.DMatrix(
            np.concatenate(list(values)), np.concatenate(risks), weight=weight / weight.mean(), nthread=1
        )
        model = Forest(xgboost.train({**TREE_OPTIONS, "seed": seed, "nthread": 1}, data, TREES))
        return cls(schema, model)

    def detect(self, item: SpanItem, *, measured: Floats | None = None) -> SpanLabels:
        """Label a response; ``measured`` are the features of its words, if they are known already."""
        words = words_of(item.response)
        if not words:
            return SpanLabels((), ())
        values = word_features(item, words, self.schema) if measured is None else measured
        starts, stops = [word.start for word in words], [word.end for word in words]
        risk = merged_risk(starts, stops, self.model.probability(values), len(item.response))
        return labels_of(risk, likely_overlap(risk))

    def save(self, directory: str | Path) -> None:
        """Write ``spans.json`` and weights to a folder, made if needed."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.model.to_bytes()
        config = {
            "format": FORMAT,
            "kind": KIND,
            "schema": self.schema,
            "features": list(span_feature_names(self.schema)),
            "weights": _WEIGHTS,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "libraries": {name: version(name) for name in ("numpy", "scikit-learn", "xgboost")},
        }
        (folder / _WEIGHTS).write_bytes(weights)
        (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def word_risks(item: SpanItem) -> tuple[Floats, Floats]:
    """Compute the mean soft label of each word's characters, and its share of all words' characters, (W,) each."""
    if item.labels is None:
        raise InputError(f"item {item.id!r} has no labels; training needs soft_labels or hard_labels")
    risk = risk_of(item.labels.soft, len(item.response))
    words = words_of(item.response)
    lengths = np.array([float(word.end - word.start) for word in words])
    return np.array([risk[word.start : word.end].mean() for word in words]), lengths / max(1, lengths.sum())


def merged_risk(
    starts: Sequence[int], stops: Sequence[int], risks: Sequence[float] | Floats, characters: int
) -> Floats:
    """Compute the risk of every character, (C,) float64, from that of words, each gap with the lower risk beside it.

    The words are half-open spans in order, each with a risk in [0, 1]. MiKaNi's own rule, which fills gaps between like
    risks with the higher one, costs about 0.01 IoU on Mu-SHROOM's validation sets.
    """
    filled = np.zeros(characters)
    for start, stop, risk in zip(starts, stops, risks, strict=True):
        filled[start:stop] = risk
    for index in range(len(starts) - 1):
        filled[stops[index] : starts[index + 1]] = min(risks[index], risks[index + 1])
    return filled


FORMAT = "syncheck.spans.v1"
_CONFIG = "spans.json"
_WEIGHTS = "spans.safetensors"
_ASSETS = Path(str(files("syncheck") / "assets" / "spans"))
_BUNDLED = {"bundled": _ASSETS / "plain", "bundled-rarity": _ASSETS / "rarity"}


def load_span_regressor(path: str | Path = "bundled") -> SpanRegressor:
    """Load a trained regression from a folder that :meth:`SpanRegressor.save` wrote, or a bundled one.

    ``bundled`` was trained on Mu-SHROOM's validation sets; ``bundled-rarity`` also uses how rare words are, through
    ``wordfreq``. A file that is missing, damaged, of an unknown format, or does not belong to the other one raises
    CheckpointError.
    """
    folder = _BUNDLED.get(str(path), Path(path))
    place = folder / _CONFIG
    config = read_object(place)
    schema: Any = config.get("schema")
    if (config.get("format"), config.get("kind")) != (FORMAT, KIND) or schema not in get_args(SpanSchema):
        raise CheckpointError(
            f"{place} has format {config.get('format')!r}, kind {config.get('kind')!r} and schema {schema!r}, expected "
            f"{FORMAT!r}, {KIND!r} and one of {get_args(SpanSchema)}; update syncheck or train it again"
        )
    try:
        features = list(config["features"])
        named, digest = config["weights"], config["weights_sha256"]
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{place} is not of a span regressor's folder ({type(error).__name__}: {error}); pass what "
            "SpanRegressor.save wrote, or train it again"
        ) from error
    model = Forest.from_bytes(read_weights(place, named, digest, expected=_WEIGHTS))
    if model.features != len(features) or features != list(span_feature_names(schema)):
        raise CheckpointError(
            f"{place} does not name the features of schema {schema!r} and its weights; train it again"
        )
    return SpanRegressor(schema, model)
