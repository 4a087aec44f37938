"""Published aggregators of the paper's authors: pickles of scikit-learn 1.3.2's ``MLPClassifier``.

A pickle is a program. This reader runs it with inert stand-ins: every name that it may use becomes an empty class that
records its arguments, any other name is refused, and nothing is imported. The weights are then read from the records.
"""

from __future__ import annotations

import pickle
import reprlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from syncheck.aggregators.models import Network
from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.base.files import DAMAGED, require_regular
from syncheck.features.schemas import feature_of
from syncheck.results.types import FeatureSchema, Floats

_TYPES = {
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.random._mt19937": "MT19937",
    "numpy.random._pickle": "__bit_generator_ctor __randomstate_ctor",
    "sklearn.neural_network._multilayer_perceptron": "MLPClassifier",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer",
    "sklearn.preprocessing._label": "LabelBinarizer",
}
ALLOWED = frozenset((module, name) for module, names in _TYPES.items() for name in names.split())

_LID = ("lid_layer_15", "lid_layer_16", "lid_layer_17")
_ORDER = (
    *("max_entropy", "mean_entropy", *_LID, "min_prob", "mean_prob"),
    *("mean_contrastive_kl", "large_kl_pos", "align_score"),
)
"""Features in the column order of the published code; the files have no names."""


class _Inert:
    """Stand-in for anything that a pickle names: keeps arguments and state, and does nothing."""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Inert]:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no published aggregator needs")
        return type(name, (_Inert,), {"args": (), "state": None})


def read(path: Path, schema: FeatureSchema | None) -> tuple[Network, FeatureSchema]:
    """Turn the network of a published aggregator to P(faithful); also return the schema of its features.

    Errors are those of :meth:`~syncheck.aggregators.Aggregator.from_published`.
    """
    if path.exists() and not path.is_dir():
        require_regular(path)
    try:
        with path.open("rb") as file:
            classifier = _InertUnpickler(file).load()
        weights, biases = _layers(classifier)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist; pass one of the authors' .pkl files") from error
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror}); pass one of the authors' .pkl files"
        ) from error
    except DAMAGED as error:
        raise CheckpointError(
            f"{path} is not one of the published MLP aggregators ({type(error).__name__}: {error}); "
            "train one with Aggregator.fit instead"
        ) from error
    inputs = len(weights[0])
    names = {10: _ORDER, 7: tuple(name for name in _ORDER if name not in _LID)}.get(inputs)
    if names is None:
        raise CheckpointError(f"{path} has {inputs} inputs; the published aggregators have 10, or 7 without LID")
    features = [feature for name in names if (feature := feature_of(name))]
    units, directions = zip(*((feature.unit, feature.direction) for feature in features), strict=True)
    own = FeatureSchema(f"published-{inputs}.v1", names, units, directions)
    schema = own if schema is None else schema
    if sorted(schema.names) != sorted(own.names):
        raise MismatchError(
            f"the published aggregator reads {', '.join(own.names)}, but schema {schema.version!r} has "
            f"{', '.join(schema.names)}; pass a schema of the same features, with or without LID"
        )
    weights[0] = weights[0][[own.names.index(name) for name in schema.names]]
    network = Network(
        fill=np.zeros(inputs),
        flagged=np.zeros(0, dtype=np.int64),
        mean=np.zeros(inputs),
        scale=np.ones(inputs),
        # Their class 1 is unfaithful: 1 - logistic(z) = logistic(-z).
        weights=(*weights[:-1], -weights[-1]),
        biases=(*biases[:-1], -biases[-1]),
    )
    return network, schema


def _layers(classifier: object) -> tuple[list[Floats], list[Floats]]:
    if type(classifier).__name__ != "MLPClassifier":
        raise ValueError(f"it holds a {type(classifier).__name__}")
    state: dict[str, Any] = classifier.state  # type: ignore[attr-defined]
    for field, expected in (("activation", "relu"), ("out_activation_", "logistic")):
        if (value := state[field]) != expected:
            # A few bytes of pickle may hold a tuple that is too large to write out.
            shown = reprlib.repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
            raise ValueError(f"{field} is {shown}, expected {expected!r}")
    weights, biases = ([_array(layer) for layer in state[name]] for name in ("coefs_", "intercepts_"))
    widths = [len(weights[0]), *(len(bias) for bias in biases)]
    if widths[-1] != 1 or [weight.shape for weight in weights] != list(pairwise(widths)):
        raise ValueError("its layers do not fit each other")
    return weights, biases


def _array(pickled: _Inert) -> Floats:
    """Read a pickled float64 array: state is (version, shape, dtype, column-major, bytes)."""
    _, shape, dtype, column_major, data = pickled.state
    if not isinstance(shape, tuple) or not all(isinstance(length, int) for length in shape):
        raise ValueError("the shape of its weights is not a tuple of whole numbers")
    if not isinstance(data, bytes):
        raise ValueError(f"its weights are a {type(data).__name__}, expected bytes")
    if dtype.args[0] != "f8" or dtype.state[1] != "<":
        raise ValueError("its weights are not little-endian float64")
    flat = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return np.ascontiguousarray(flat.reshape(shape, order="F" if column_major else "C"))
