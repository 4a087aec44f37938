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

from syncheck.aggregators.trees import Forest
from syncheck.errors import CheckpointError, InputError
from syncheck.files import read_bytes, read_object
from syncheck.spans.choice import likely_overlap, merged_risk
from syncheck.spans.features import SpanSchema
from syncheck.spans.items import SpanItem, SpanLabels, labels_of
from syncheck.spans.machines import KernelMachine, boosted_trees, word_risks, word_weights
from syncheck.spans.signal_features import SIGNAL_COLUMNS, SIGNALS
from syncheck.spans.word_sources import (
    WordSource,
    matched_sources,
    regression_features,
    regression_names,
    source_records,
)
from syncheck.spans.words import words_of

__all__ = ["MAX_WORDS", "RegressorKind", "SpanRegressor", "load_span_regressor", "reads_signals"]


RegressorKind = Literal["xgb", "svr"]

FORMAT = "syncheck.spans.v1"
_CONFIG = "spans.json"
_WEIGHTS = "spans.safetensors"
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

    ``sources`` give the columns that it reads beside those of the schema, in order; none where it reads texts alone.
    """

    schema: SpanSchema
    kind: RegressorKind
    model: Forest | KernelMachine
    sources: tuple[WordSource, ...] = ()

    @property
    def name(self) -> str:
        """For tables."""
        more = ["rarity"] if self.schema == "spans-rarity.v1" else []
        return "-".join(["mikani", self.kind, *more, *(source.name for source in self.sources)])

    @classmethod
    def fit(
        cls,
        items: Sequence[SpanItem],
        *,
        schema: SpanSchema = "spans.v1",
        kind: RegressorKind = "xgb",
        seed: int = 0,
        max_words: int = MAX_WORDS,
        sources: Sequence[WordSource] = (),
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
        sources
            Give more columns: :class:`~syncheck.spans.SignalSource`, :class:`~syncheck.spans.ClassifierSource`,
            :class:`~syncheck.spans.TagSource`, :class:`~syncheck.spans.AskedSource`, or any
            :class:`~syncheck.spans.WordSource`.
        measured
            What :func:`~syncheck.spans.regression_features` gives for each item, where it is already known.

        Raises
        ------
        InputError
            If an item has no labels, there is no word, ``max_words`` is below 1, the kind is unknown, or two sources
            have one name.
        MissingExtraError
            If the schema needs a package that is not installed.
        """
        if kind not in get_args(RegressorKind):
            raise InputError(f"kind must be one of {get_args(RegressorKind)}; found {kind!r}")
        if max_words < 1:
            raise InputError(f"max_words must be 1 or more; found {max_words}")
        regression_names(schema, sources)  # refuses names that are there twice
        values = [regression_features(i, schema, sources) for i in items] if measured is None else measured
        targets = [word_risks(item) for item in items]
        if not sum(map(len, targets)):
            raise InputError("expected labelled responses with words to train on; found none")
        X, y = np.concatenate(list(values)), np.concatenate(targets)
        if kind == "svr":
            kept = np.sort(np.random.default_rng(seed).permutation(len(y))[:max_words])
            X, y = X[kept], y[kept]
            machine = KernelMachine.fit(X, y, np.where(y > 0, *SVR_WEIGHTS[::-1]), C=SVR_C)
            return cls(schema, kind, machine, tuple(sources))
        trees = boosted_trees(X, y, np.concatenate([word_weights(item) for item in items]), seed)
        return cls(schema, kind, trees, tuple(sources))

    def detect(self, item: SpanItem, *, measured: Floats | None = None) -> SpanLabels:
        """Return the labels of a response; see :class:`~syncheck.spans.SpanDetector`.

        Parameters
        ----------
        item
        measured
            Its :func:`~syncheck.spans.regression_features`, where they are already known.
        """
        words = words_of(item.response)
        if not words:
            return SpanLabels((), ())
        values = regression_features(item, self.schema, self.sources) if measured is None else measured
        risks = self.model.probability(values)
        starts, stops = [word.start for word in words], [word.end for word in words]
        risk = merged_risk(starts, stops, risks, len(item.response))
        return labels_of(risk, likely_overlap(risk))

    def save(self, directory: str | Path) -> None:
        """Write ``spans.json`` and the weights into a folder, making it if it does not exist.

        The sources are not saved: only their names, columns and fingerprints.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.model.to_bytes()
        config = {
            "format": FORMAT,
            "kind": self.kind,
            "schema": self.schema,
            "features": list(regression_names(self.schema, self.sources)),
            "sources": source_records(self.sources),
            "weights": _WEIGHTS,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "libraries": {name: version(name) for name in ("numpy", "scikit-learn", "xgboost")},
        }
        (folder / _WEIGHTS).write_bytes(weights)
        (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def reads_signals(path: str | Path) -> bool:
    """Whether :func:`load_span_regressor` needs a language model for what lies here; False where nothing does."""
    file = _folder(path) / _CONFIG
    try:
        return SIGNALS in [record["name"] for record in _saved_sources(read_object(file))]
    except (ValueError, KeyError, TypeError, AttributeError):
        return False  # load_span_regressor says what is wrong


def load_span_regressor(path: str | Path = "bundled", *, sources: Sequence[WordSource] = ()) -> SpanRegressor:
    """Load a trained regression.

    Parameters
    ----------
    path
        A folder that :meth:`SpanRegressor.save` wrote; ``bundled`` for the one trained on Mu-SHROOM's validation sets,
        ``bundled-rarity`` for the one that knows how rare words are too, through ``wordfreq``.
    sources
        Those that it was fitted with, in any order.

    Raises
    ------
    CheckpointError
        If a file is missing, damaged, of an unknown format, or not of the other.
    MismatchError
        If a source is another than the one of its name that the regression was fitted with.
    InputError
        If a source is missing, or was not there when the regression was fitted.
    """
    folder = _folder(path)
    config = _config(folder / _CONFIG)
    found, digest, schema, features = (config[key] for key in ("format", "weights_sha256", "schema", "features"))
    if found != FORMAT or schema not in get_args(SpanSchema):
        raise CheckpointError(
            f"{folder / _CONFIG} has format {found!r} and schema {schema!r}, expected {FORMAT!r} and one of "
            f"{get_args(SpanSchema)}; update syncheck or train anew"
        )
    if config["weights"] != _WEIGHTS:
        raise CheckpointError(
            f"{folder / _CONFIG} keeps its weights in {config['weights']!r}; this version reads {_WEIGHTS!r}. "
            "XGBoost's own .ubj files are not read, since a damaged one ends the program: fit and save it anew"
        )
    weights = read_bytes(folder / _WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != digest:
        raise CheckpointError(f"{folder}: the weights are not those that {_CONFIG} was saved with; copy it again")
    model = _READERS[config["kind"]].from_bytes(weights)
    if model.features != len(features):
        raise CheckpointError(f"{folder}: {_CONFIG} names {len(features)} features, the weights have others")
    saved = matched_sources(sources, _saved_sources(config), owner=str(folder))
    if features != list(regression_names(schema, saved)):
        raise CheckpointError(f"{folder / _CONFIG} names other features than schema {schema!r} has; train anew")
    return SpanRegressor(schema, config["kind"], model, saved)


def _config(path: Path) -> Mapping[str, Any]:
    """Read the config and check the fields' types."""
    config = read_object(path)
    try:
        records = _saved_sources(config)
        wrong = [name for name in ("format", "weights_sha256", "schema", "weights") if type(config[name]) is not str]
        wrong += [name for name in ("features",) if set(map(type, config[name])) != {str}]
        wrong += ["kind"] if config["kind"] not in get_args(RegressorKind) else []
        wrong += ["sources"] if any(_record_fault(record) for record in records) else []
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is no folder of a span regressor ({type(error).__name__}: {error}); pass a folder that "
            "SpanRegressor.save wrote"
        ) from error
    if wrong:
        raise CheckpointError(f"{path} has another value than SpanRegressor.save writes in {wrong}; train anew")
    return config


def _record_fault(record: Mapping[str, Any]) -> bool:
    """Whether a source's record has a field of another type than is saved."""
    columns = record["columns"]
    named = type(record["name"]) is str and isinstance(record["fingerprint"], dict)
    return not (named and isinstance(columns, list) and all(type(column) is str for column in columns))


def _saved_sources(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sources that a config names; older ones have the language model's fingerprint, or null, alone."""
    if "sources" not in config and config.get("measured_by") is not None:
        return [{"name": SIGNALS, "columns": list(SIGNAL_COLUMNS), "fingerprint": dict(config["measured_by"])}]
    return [{key: record[key] for key in ("name", "columns", "fingerprint")} for record in config.get("sources", [])]


def _folder(path: str | Path) -> Path:
    bundled = {"bundled": _ASSETS / "plain", "bundled-rarity": _ASSETS / "rarity"}
    return bundled.get(str(path), Path(path))
