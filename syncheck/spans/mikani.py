"""Regression of each word's risk on features of the word, after MiKaNi (SemEval-2025 Task 3), without its models.

MiKaNi combines GPT-4o's verdict on retrieved facts, a fine-tuned BERT and linguistic features by support vector
regression. Here the retrieved texts are compared word by word instead: the regression needs no other model, is not tied
to any language, and takes less than a megabyte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from safetensors.numpy import save

from syncheck.aggregators.trees import Forest
from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.base.files import parse_arrays, read_object, read_weights
from syncheck.results.spans import SpanItem, SpanLabels, labels_of, likely_overlap, risk_of
from syncheck.results.types import Floats
from syncheck.spans.word_sources import SIGNALS, WordSource, regression_features, regression_names
from syncheck.spans.words import SpanSchema, words_of

_ROWS = 4096

MAX_VALUE = 1e15
"""Largest absolute value in a machine that is read, so that no sum of squares overflows."""

SMALLEST_SCALE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class KernelMachine:
    """Regression ``sum_s weight_s exp(-gamma |x - vector_s|^2) + intercept`` of scaled features, clipped to [0, 1]."""

    vectors: Floats
    """(S, F) float64."""
    weights: Floats
    """(S,) float64."""
    medians: Floats
    means: Floats
    scales: Floats
    """(F,) float64 each: NaN is replaced with the training median, then ``(x - mean) / scale`` is taken."""
    constants: Floats
    """(2,) float64: gamma and intercept."""

    @property
    def features(self) -> int:
        """Number of features F."""
        return int(self.vectors.shape[1])

    @classmethod
    def fit(cls, X: Floats, y: Floats, weight: Floats, *, C: float) -> Self:
        """Fit on features (N, F), risks (N,) and sample weights (N,), with the penalty C."""
        from sklearn.svm import SVR

        known = ~np.isnan(X).all(axis=0)
        medians = np.zeros(X.shape[1])
        medians[known] = np.nanmedian(X[:, known], axis=0)
        filled = np.where(np.isnan(X), medians, X)
        means, scales = filled.mean(axis=0), filled.std(axis=0)
        scales[scales == 0] = 1.0
        machine = SVR(C=C, gamma="scale").fit((filled - means) / scales, y, sample_weight=weight)
        constants = np.array([machine._gamma, machine.intercept_[0]], dtype=np.float64)  # "scale" as a number
        return cls(machine.support_vectors_, machine.dual_coef_[0].copy(), medians, means, scales, constants)

    def probability(self, X: Floats) -> Floats:
        """Compute the risks, (N,) float64 in [0, 1], given features (N, F)."""
        parts = [self._of_rows(X[start : start + _ROWS]) for start in range(0, len(X), _ROWS)]
        return np.concatenate([np.zeros(0), *parts]).clip(0, 1)

    def _of_rows(self, X: Floats) -> Floats:
        gamma, intercept = self.constants
        scaled = (np.where(np.isnan(X), self.medians, X) - self.means) / self.scales
        squares = (scaled**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1) - 2 * scaled @ self.vectors.T
        return np.asarray(np.exp(-gamma * squares.clip(0)) @ self.weights + intercept)

    def to_bytes(self) -> bytes:
        """Serialize the arrays as safetensors."""
        return bytes(save({name: np.ascontiguousarray(values) for name, values in asdict(self).items()}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the result of :meth:`to_bytes`; CheckpointError if it is anything else."""
        arrays = parse_arrays(data, what="a kernel machine's arrays")
        names = {field.name for field in fields(cls)}
        if set(arrays) != names or any(array.dtype != np.float64 for array in arrays.values()):
            raise CheckpointError(
                f"expected the float64 arrays {sorted(names)}; found {sorted(arrays)}. Train it again"
            )
        if fault := _fault(machine := cls(**arrays)):
            raise CheckpointError(
                f"the arrays do not form a kernel machine: {fault}; copy the file again or train it again"
            )
        return machine


def _fault(machine: KernelMachine) -> str | None:
    count, width = machine.weights.size, machine.medians.size
    shapes = {"vectors": (count, width), "weights": (count,), "constants": (2,)}
    shapes |= dict.fromkeys(("medians", "means", "scales"), (width,))
    if wrong := [name for name, shape in shapes.items() if getattr(machine, name).shape != shape]:
        return f"the shapes of {wrong} do not match the others"
    if not all((np.abs(getattr(machine, name)) <= MAX_VALUE).all() for name in shapes):
        return f"a number is not finite or beyond {MAX_VALUE:g}"
    if machine.constants[0] <= 0 or (machine.scales < SMALLEST_SCALE).any():
        return f"gamma is not above 0, or a scale is below {SMALLEST_SCALE:g}"
    return None


RegressorKind = Literal["xgb", "svr"]

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

SVR_C = 10.0
SVR_WEIGHTS = (0.01, 100.0)
"""Weights of words that no annotator marked, and of all others (MiKaNi, section 3.4.3)."""

MAX_WORDS = 6000
"""Largest number of words on which support vector regression is fitted: its time grows at least with their square. On
Mu-SHROOM's validation sets, with 32,000 words, all held-out fits take about two minutes on one core."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanRegressor:
    """Trained regression with the schema of its features; marks spans by :func:`~syncheck.results.likely_overlap`.

    The columns of ``sources`` come after those of the schema, in order.
    """

    schema: SpanSchema
    kind: RegressorKind
    model: Forest | KernelMachine
    sources: tuple[WordSource, ...] = ()

    @property
    def name(self) -> str:
        """Name of the detector in tables."""
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

        The target is the mean soft label of a word's characters, that is the share of annotators who marked it. Trees
        give each response the same weight, as the metric does, divided among words by their characters; support vector
        regression (``svr``, with C = 10) weighs words as MiKaNi does, and is fitted on ``max_words`` words drawn at
        random if there are more.

        ``measured`` are the :func:`~syncheck.spans.regression_features` of each item, if they are known already. If an
        item has no labels, there is no word, or two sources have the same name, InputError is raised.
        """
        check_choice(kind, "kind", RegressorKind)
        if max_words < 1:
            raise InputError(f"max_words must be 1 or more; found {max_words}")
        regression_names(schema, sources)  # refuses names that are there twice
        values = [regression_features(i, schema, sources) for i in items] if measured is None else measured
        risks, weights = zip(*(_word_risks(item) for item in items), strict=True) if items else ((), ())
        if not sum(map(len, risks)):
            raise InputError("expected labelled responses with words to train on; found none")
        X, y = np.concatenate(list(values)), np.concatenate(risks)
        model: Forest | KernelMachine
        if kind == "svr":
            kept = np.sort(np.random.default_rng(seed).permutation(len(y))[:max_words])
            X, y = X[kept], y[kept]
            model = KernelMachine.fit(X, y, np.where(y > 0, *SVR_WEIGHTS[::-1]), C=SVR_C)
        else:
            import xgboost

            # One thread, so that the trees do not depend on the machine's cores.
            weight = np.concatenate(weights)
            data = xgboost.DMatrix(X, y, weight=weight / weight.mean(), nthread=1)
            model = Forest(xgboost.train({**TREE_OPTIONS, "seed": seed, "nthread": 1}, data, TREES))
        return cls(schema, kind, model, tuple(sources))

    def detect(self, item: SpanItem, *, measured: Floats | None = None) -> SpanLabels:
        """Label a response; ``measured`` are its regression features, if they are known already."""
        words = words_of(item.response)
        if not words:
            return SpanLabels((), ())
        values = regression_features(item, self.schema, self.sources) if measured is None else measured
        starts, stops = [word.start for word in words], [word.end for word in words]
        risk = merged_risk(starts, stops, self.model.probability(values), len(item.response))
        return labels_of(risk, likely_overlap(risk))

    def save(self, directory: str | Path) -> None:
        """Write ``spans.json`` and the weights to a folder, which is created if needed.

        Of the sources, only names, columns and fingerprints are saved.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.model.to_bytes()
        config = {
            "format": FORMAT,
            "kind": self.kind,
            "schema": self.schema,
            "features": list(regression_names(self.schema, self.sources)),
            "sources": [_source_record(source) for source in self.sources],
            "weights": _WEIGHTS,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "libraries": {name: version(name) for name in ("numpy", "scikit-learn", "xgboost")},
        }
        (folder / _WEIGHTS).write_bytes(weights)
        (folder / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _word_risks(item: SpanItem) -> tuple[Floats, Floats]:
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
_FIELDS = {
    **dict.fromkeys(("format", "kind", "schema", "weights", "weights_sha256"), str),
    **dict.fromkeys(("features", "sources"), list),
}
_READERS: Mapping[str, type[Forest] | type[KernelMachine]] = {"xgb": Forest, "svr": KernelMachine}
_ASSETS = Path(str(files("syncheck") / "assets" / "spans"))
_BUNDLED = {"bundled": _ASSETS / "plain", "bundled-rarity": _ASSETS / "rarity"}


def reads_signals(path: str | Path) -> bool:
    """Tell whether the regression at a path needs the signals of a language model; False if there is none."""
    file = _BUNDLED.get(str(path), Path(path)) / _CONFIG
    try:
        return SIGNALS in [record["name"] for record in read_object(file)["sources"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return False  # load_span_regressor says what is wrong


def load_span_regressor(path: str | Path = "bundled", *, sources: Sequence[WordSource] = ()) -> SpanRegressor:
    """Load a trained regression from a folder that :meth:`SpanRegressor.save` wrote, or a bundled one.

    ``bundled`` was trained on Mu-SHROOM's validation sets; ``bundled-rarity`` also uses how rare words are, through
    ``wordfreq``. ``sources`` are those that it was fitted with, in any order. A file that is missing, damaged, of an
    unknown format, or does not belong to the other one raises CheckpointError, a source with another fingerprint
    MismatchError, and other sources InputError.
    """
    folder = _BUNDLED.get(str(path), Path(path))
    place = folder / _CONFIG
    config = _config(place)
    schema, features = config["schema"], config["features"]
    weights = read_weights(place, config["weights"], config["weights_sha256"], expected=_WEIGHTS)
    model = _READERS[config["kind"]].from_bytes(weights)
    saved = _matched_sources(sources, config["sources"], owner=str(folder))
    if model.features != len(features) or features != list(regression_names(schema, saved)):
        raise CheckpointError(
            f"{place} does not name the features of schema {schema!r} and its weights; train it again"
        )
    return SpanRegressor(schema, config["kind"], model, saved)


def _config(path: Path) -> Mapping[str, Any]:
    """Read the config and check the types of its fields."""
    config = read_object(path)
    wrong = [name for name, kind in _FIELDS.items() if type(config.get(name)) is not kind]
    wrong += ["sources"] if "sources" not in wrong and not all(map(_is_source, config["sources"])) else []
    if wrong:
        raise CheckpointError(
            f"{path} is not of a span regressor's folder: {', '.join(wrong)} cannot be what SpanRegressor.save writes; "
            "pass such a folder, or train it again"
        )
    if (config["format"], config["schema"]) not in product([FORMAT], get_args(SpanSchema)):
        raise CheckpointError(
            f"{path} has format {config['format']!r} and schema {config['schema']!r}, expected {FORMAT!r} and one of "
            f"{get_args(SpanSchema)}; update syncheck or train it again"
        )
    if config["kind"] not in _READERS:
        raise CheckpointError(f"{path} has a regression of kind {config['kind']!r}; update syncheck or train it again")
    return config


def _is_source(record: object) -> bool:
    kinds = {"name": str, "columns": list, "fingerprint": dict}
    return isinstance(record, dict) and all(type(record.get(name)) is kind for name, kind in kinds.items())


def _source_record(source: WordSource) -> dict[str, Any]:
    """Write the name, columns and fingerprint of a source in the form that JSON gives back."""
    record = {"name": source.name, "columns": source.columns, "fingerprint": dict(source.fingerprint)}
    return dict(json.loads(json.dumps(record)))


def _matched_sources(
    sources: Sequence[WordSource], saved: Sequence[Mapping[str, Any]], *, owner: str
) -> tuple[WordSource, ...]:
    """Sort the sources in the order of the saved ones."""
    given = {source.name: source for source in sources}
    wanted = [str(record["name"]) for record in saved]
    if sorted(source.name for source in sources) != sorted(wanted):
        raise InputError(
            f"{owner} was fitted with {_listed(wanted)}; found {_listed([source.name for source in sources])}. Pass "
            "the sources that it was fitted with as sources= (syncheck spans: --model)"
        )
    for record in saved:
        own = _source_record(given[record["name"]])
        keys = dict.fromkeys([*record["fingerprint"], *own["fingerprint"]])
        different = [key for key in keys if record["fingerprint"].get(key) != own["fingerprint"].get(key)]
        different += ["columns"] if record["columns"] != own["columns"] else []
        if different:
            raise MismatchError(
                f"{owner} was fitted with another word source {own['name']!r}, which differs in "
                f"{', '.join(different)}; pass that one, or fit the regressor again"
            )
    return tuple(given[name] for name in wanted)


def _listed(names: Sequence[str]) -> str:
    return "the word sources " + ", ".join(map(repr, sorted(names))) if names else "no word source"
