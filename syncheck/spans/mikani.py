"""Regression of each word's risk on features of the word, after MiKaNi (SemEval-2025 Task 3), without its models.

MiKaNi combines GPT-4o's verdict on retrieved facts, a fine-tuned BERT and linguistic features by support vector
regression. Here the retrieved texts are compared word by word, by trees, which are better and faster to fit
(``benchmarks/span_methods.py --svr``), in any language, within a megabyte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from syncheck.aggregators.trees import Forest
from syncheck.base.errors import CheckpointError, InputError, MismatchError, PromptError
from syncheck.base.files import read_object, read_weights
from syncheck.results.spans import SpanItem, SpanLabels, labels_of, likely_overlap, risk_of
from syncheck.results.types import Floats, TokenSignals
from syncheck.signals import context_sensitivity_ratio
from syncheck.spans.words import SpanSchema, Word, span_feature_names, word_features, words_of

if TYPE_CHECKING:
    from syncheck.spans.refind import Measure

_OF_TOKENS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "lm_log_prob_mean": (np.nanmean, "log_prob"),
    "lm_log_prob_min": (np.nanmin, "log_prob"),
    "lm_log_prob_without_mean": (np.nanmean, "log_prob_without_context"),
    "lm_entropy_mean": (np.nanmean, "entropy"),
    "lm_entropy_max": (np.nanmax, "entropy"),
    "lm_kl_mean": (np.nanmean, "kl"),
    "lm_kl_max": (np.nanmax, "kl"),
    "lm_csr_mean": (np.nanmean, "csr"),
    "lm_csr_max": (np.nanmax, "csr"),
}
"""Columns of a word's tokens: a statistic of a signal."""
_OF_RESPONSE = {"lm_log_prob_response": "log_prob", "lm_kl_response": "kl", "lm_csr_response": "csr"}
"""Columns of the whole response: means over all tokens."""
SIGNAL_COLUMNS = (*_OF_TOKENS, *_OF_RESPONSE)
"""Columns of the schema ``signals.v1``, which never changes; in nats, except the ratio."""

_CSR_MOST = 100.0  # limit of the ratio, which is unbounded if the model is certain of a token without passages


def regression_names(schema: SpanSchema, *, signals: bool = False) -> tuple[str, ...]:
    """Name the columns of :func:`regression_features`, in order: with ``signals``, those of a language model too."""
    return (*span_feature_names(schema), *(SIGNAL_COLUMNS if signals else ()))


def regression_features(item: SpanItem, schema: SpanSchema, measure: Measure | None = None) -> Floats:
    """Compute the features (W, F) float64 of the words of a response, in the order of :func:`regression_names`.

    NaN means not measured, as the signals of an item that does not fit the window of the model that ``measure`` runs.
    """
    words = words_of(item.response)
    values = word_features(item, words, schema)
    if measure is None:
        return values
    signals = np.full((len(words), len(SIGNAL_COLUMNS)), np.nan)
    with suppress(PromptError):
        signals = signal_features(words, measure(item)) if words else signals
    return np.concatenate([values, signals], axis=1)


def signal_features(words: Sequence[Word], signals: TokenSignals) -> Floats:
    """Summarise, for each word, the signals of the tokens that share a character with it, (W, 12) float64.

    Columns are in the order of :data:`SIGNAL_COLUMNS`; NaN if no token of a word has a value.
    """
    known = {name: getattr(signals, name) for name in ("log_prob", "log_prob_without_context", "entropy", "kl")}
    without = torch.from_numpy(signals.log_prob_without_context)
    ratio = context_sensitivity_ratio(torch.from_numpy(signals.log_prob), without).numpy()
    known["csr"] = np.abs(ratio).clip(0, _CSR_MOST)  # its floor turns the sign where the denominator is nearly 0
    response = [_over(np.nanmean, known[name]) for name in _OF_RESPONSE.values()]
    rows = []
    for word in words:
        own = (signals.char_spans[:, 0] < word.end) & (signals.char_spans[:, 1] > word.start)  # (T,)
        rows.append([*(_over(statistic, known[name][own]) for statistic, name in _OF_TOKENS.values()), *response])
    return np.array(rows, dtype=np.float64).reshape(len(words), len(SIGNAL_COLUMNS))


def _over(statistic: Callable[..., Any], values: NDArray[np.float32]) -> float:
    """Compute a statistic of the known values; NaN if there is none."""
    return float(statistic(values)) if not np.isnan(values).all() else float("nan")


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
    """Trained regression with the schema of its features; marks spans by :func:`~syncheck.results.likely_overlap`.

    With ``measure``, such as a :class:`~syncheck.spans.TokenReplay`, it also reads the signals of a language model.
    """

    schema: SpanSchema
    model: Forest
    measure: Measure | None = None

    @property
    def name(self) -> str:
        """Name of the detector in tables."""
        rarity = "-rarity" if self.schema == "spans-rarity.v1" else ""
        return f"mikani-{KIND}{rarity}{'' if self.measure is None else '-signals'}"

    @classmethod
    def fit(
        cls,
        items: Sequence[SpanItem],
        *,
        schema: SpanSchema = "spans.v1",
        seed: int = 0,
        measure: Measure | None = None,
        measured: Sequence[Floats] | None = None,
    ) -> Self:
        """Fit trees on responses with labels.

        The target is the mean soft label of a word's characters, that is the share of annotators who marked it. Each
        response has the same weight, as in the metric, divided among words by their characters. ``measured`` are the
        :func:`~syncheck.spans.regression_features` of each item, if known. InputError is raised if an item has no
        labels, or no item has a word.
        """
        import xgboost

        values = [regression_features(i, schema, measure) for i in items] if measured is None else measured
        risks, weights = zip(*(word_risks(item) for item in items), strict=True) if items else ((), ())
        if not sum(map(len, risks)):
            raise InputError("expected labelled responses with words to train on; found none")
        weight = np.concatenate(weights)
        # One thread, so that the trees do not depend on the machine's cores.
        data = xgboost.DMatrix(
            np.concatenate(list(values)), np.concatenate(risks), weight=weight / weight.mean(), nthread=1
        )
        model = Forest(xgboost.train({**TREE_OPTIONS, "seed": seed, "nthread": 1}, data, TREES))
        return cls(schema, model, measure)

    def detect(self, item: SpanItem, *, measured: Floats | None = None) -> SpanLabels:
        """Label a response; ``measured`` are its regression features, if they are known already."""
        words = words_of(item.response)
        if not words:
            return SpanLabels((), ())
        values = regression_features(item, self.schema, self.measure) if measured is None else measured
        starts, stops = [word.start for word in words], [word.end for word in words]
        risk = merged_risk(starts, stops, self.model.probability(values), len(item.response))
        return labels_of(risk, likely_overlap(risk))

    def save(self, directory: str | Path) -> None:
        """Write ``spans.json`` and weights to a folder, made if needed; of ``measure``, its ``fingerprint``, if any."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.model.to_bytes()
        config = {
            "format": FORMAT,
            "kind": KIND,
            "schema": self.schema,
            "features": list(regression_names(self.schema, signals=self.measure is not None)),
            "sources": [] if self.measure is None else [_signals_record(self.measure)],
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


def reads_signals(path: str | Path) -> bool:
    """Tell whether the regression at a path needs the signals of a language model; False if there is none."""
    file = _BUNDLED.get(str(path), Path(path)) / _CONFIG
    try:
        return bool(read_object(file)["sources"])
    except (ValueError, KeyError):
        return False  # load_span_regressor says what is wrong


def load_span_regressor(path: str | Path = "bundled", *, measure: Measure | None = None) -> SpanRegressor:
    """Load a trained regression from a folder that :meth:`SpanRegressor.save` wrote, or a bundled one.

    ``bundled`` was trained on Mu-SHROOM's validation sets; ``bundled-rarity`` also uses how rare words are, through
    ``wordfreq``. ``measure`` is for one that was fitted with it. A file that is missing, damaged, of an unknown format,
    or does not belong to the other one raises CheckpointError, a measure with another fingerprint MismatchError, and
    one too many or too few InputError.
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
        features, sources = list(config["features"]), config["sources"]
        fingerprint = dict(sources[0]["fingerprint"]) if sources else None
        named, digest = config["weights"], config["weights_sha256"]
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{place} is not of a span regressor's folder ({type(error).__name__}: {error}); pass what "
            "SpanRegressor.save wrote, or train it again"
        ) from error
    model = Forest.from_bytes(read_weights(place, named, digest, expected=_WEIGHTS))
    if model.features != len(features) or features != list(regression_names(schema, signals=fingerprint is not None)):
        raise CheckpointError(
            f"{place} does not name the features of schema {schema!r} and its weights; train it again"
        )
    _check_measure(measure, fingerprint, owner=folder)
    return SpanRegressor(schema, model, measure)


def _signals_record(measure: Measure) -> dict[str, Any]:
    """Write the columns and the fingerprint of signals in the form that JSON gives back."""
    fingerprint = dict(getattr(measure, "fingerprint", {}))
    return dict(json.loads(json.dumps({"name": "signals", "columns": SIGNAL_COLUMNS, "fingerprint": fingerprint})))


def _check_measure(measure: Measure | None, saved: Mapping[str, Any] | None, *, owner: Path) -> None:
    """Check that a regression that was fitted with signals gets those of the same model, and another one none."""
    if (measure is None) != (saved is None):
        raise InputError(
            f"{owner} was fitted with {'the signals of a language model' if saved else 'text alone, without signals'}; "
            f"{'pass' if saved else 'leave out'} measure= (syncheck spans: --model)"
        )
    if measure is None or saved is None:
        return
    own = _signals_record(measure)["fingerprint"]
    if different := [key for key in {**saved, **own} if saved.get(key) != own.get(key)]:
        raise MismatchError(
            f"{owner} was fitted with the signals of another model, which differs in {', '.join(different)}; pass that "
            "one, or fit the regressor again"
        )
