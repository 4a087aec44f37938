"""Monitors on disk: ``config.json``, the aggregator's files, LID references, and the digests of all these. No pickle.

A folder may come from anyone, digests included, so every value is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import check_folder, file_names
from syncheck.aligners import ALIGNER_OPTIONS, Aligner, load_aligner, options_of, weights_of
from syncheck.aligners.reader.network import INSTALL, can_read
from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.base.files import check_digests, read_object, write_digests
from syncheck.base.pretrained import require_tokenizer, same_weights, weights_sha256
from syncheck.config import MonitorConfig, SegmenterConfig, Template
from syncheck.features.schemas import feature_schema, needs_signals
from syncheck.results.types import FeatureSchema
from syncheck.signals import LidReferences, require_watchable

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.monitor_base import MonitorParts

_Kind = TypeVar("_Kind", bound="MonitorParts")

logger = logging.getLogger(__name__)

FORMAT = 2
GENERIC = "generic"
"""The bundled monitor that scores answers of any model by their text, in the best form that this machine has."""
GENERIC_BUNDLED, GENERIC_READER = f"{GENERIC}-bundled", f"{GENERIC}-reader"
"""Its forms: with the bundled aligner, and with the reader, whose encoder is not in this package."""
_FORMS = {"bundled": GENERIC_BUNDLED, "reader": GENERIC_READER}
CONFIG = "config.json"
REFERENCES = "lid_references.safetensors"
_TYPES: dict[str, tuple[type, ...]] = {
    "aggregator": (str, NoneType),
    "aligner": (str, NoneType),
    "aligner_options": (dict,),
    "aligner_weights_sha256": (str, NoneType),
    "backtrack_threshold": (float, int),
    "layers": (list,),
    "lid_references": (bool,),
    "model": (dict, NoneType),
    "prune_threshold": (float, int),
    "schema": (str,),
    "segmenter": (dict,),
    "template": (str,),
    "trained_on": (list,),
}
_LIBRARIES = ("torch", "transformers", "scikit-learn", "xgboost", "nltk", "numpy")


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Return the facts that identify a model and its tokenizer: architecture, sizes, vocabulary, digest of weights."""
    config = model.config.get_text_config()
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()), ensure_ascii=True)
    return {
        "architecture": type(model).__name__,
        "num_hidden_layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "vocab_size": config.vocab_size,
        "tokenizer_sha256": hashlib.sha256(vocabulary.encode()).hexdigest(),
        "weights_sha256": weights_sha256(model),
    }


def packaged_monitor(name: str) -> Path:
    """Return the folder of a monitor that ships with the package."""
    return Path(str(files("syncheck"))) / "assets" / f"monitor-{name}"


def best_generic() -> str:
    """Return the name of the best form of ``generic`` on this machine; warn once if that is not the reader's."""
    if can_read():
        return GENERIC_READER
    _warn_of_words()
    return GENERIC_BUNDLED


@cache
def _warn_of_words() -> None:
    logger.warning(
        "scoring with %r, which mostly compares words, since the reader's encoder is not on this machine; run `%s` "
        "for %r, or ask for %r by name",
        GENERIC_BUNDLED,
        INSTALL,
        GENERIC_READER,
        GENERIC_BUNDLED,
    )


def generic_name(aligner: Aligner | None) -> str | None:
    """Return the name of the form of ``generic`` that was trained with this aligner; None if none was.

    Without an aligner, it is the best one.
    """
    if aligner is None:
        return best_generic()
    own, name = weights_of(aligner), _FORMS.get(aligner.name)
    if own is None or name is None:
        return None
    return name if same_weights(own, _read_config(packaged_monitor(name))["aligner_weights_sha256"]) else None


def generic_parts(
    name: str, aligner: Aligner | None, device: torch.device
) -> tuple[MonitorConfig, Aggregator, Aligner | None]:
    """Load config and aggregator of a form of ``generic``, and its aligner if it is not given; no model is needed."""
    directory = packaged_monitor(name)
    config = _read_config(directory)
    decided, schema = _decided(directory, config)
    return decided, Aggregator.load(directory, schema=schema), aligner or load_aligner(config["aligner"], device=device)


def save(directory: Path, monitor: MonitorParts) -> None:
    """Write a monitor to a folder; the digests come last, so that a half-written folder is not taken for a monitor."""
    directory.mkdir(parents=True, exist_ok=True)
    if monitor.aggregator is not None:
        monitor.aggregator.save(directory)
    if monitor.lid_references is not None:
        monitor.lid_references.save(directory / REFERENCES)
    config = {
        "format": FORMAT,
        **asdict(monitor.config),
        "aligner": None if monitor.aligner is None else monitor.aligner.name,
        "aligner_options": {} if monitor.aligner is None else options_of(monitor.aligner),
        "aligner_weights_sha256": weights_of(monitor.aligner),
        "aggregator": None if monitor.aggregator is None else monitor.aggregator.kind,
        "lid_references": monitor.lid_references is not None,
        # One that reads text alone serves any model.
        "model": fingerprint(monitor.model, monitor.tokenizer) if needs_signals(monitor.config.schema) else None,
        "trained_on": sorted(monitor.trained_on),
        "versions": {name: version(name) for name in ("syncheck", *_LIBRARIES)},
    }
    (directory / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_digests(directory, _parts(config))


def load(
    kind: type[_Kind],
    directory: Path,
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    aligner: Aligner | None,
    trusted: Collection[str] = (),
) -> _Kind:
    """Read a monitor and check that it belongs to this model, tokenizer and aligner."""
    require_watchable(model)
    require_tokenizer(tokenizer)
    config = _read_config(directory)
    decided, schema = _decided(directory, config)
    if needs_signals(decided.schema):
        _check_model(directory, config["model"] or {}, fingerprint(model, tokenizer))
    aligner = _aligner(directory, config, aligner, model.device)
    lid_references = _references(directory, decided, model) if config["lid_references"] else None
    return kind(
        model,
        tokenizer,
        config=decided,
        aggregator=Aggregator.load(directory, schema=schema, trusted=trusted) if config["aggregator"] else None,
        lid_references=lid_references,
        aligner=aligner,
        trained_on=config["trained_on"],
        name=directory.name.removeprefix("monitor-") if directory.parent == packaged_monitor("").parent else None,
    )


def check_saved(directory: Path) -> None:
    """Refuse, with a CheckpointError, a folder that holds no monitor that scores, without loading its models."""
    config = _read_config(directory)
    _, schema = _decided(directory, config)
    if not config["aggregator"]:
        raise CheckpointError(f"the monitor in {directory} has no aggregator, so it scores nothing; train one")
    Aggregator.load(directory, schema=schema)


def _aligner(directory: Path, config: dict[str, Any], given: Aligner | None, device: torch.device) -> Aligner | None:
    """Load the aligner that the monitor was trained with, or check that the given one is the same, options included."""
    name, stored = config["aligner"], config["aligner_options"]
    if name is None and given is None:
        return None
    if given is not None and given.name != name:
        raise MismatchError(f"{directory} was trained with aligner {name!r}; found {given.name!r}. Pass the same one")
    aligner = load_aligner(name, **_known(directory, stored), device=device) if given is None else given
    found = {} if aligner is None else options_of(aligner)
    if found != stored:
        raise MismatchError(
            f"{directory} was trained with aligner {name!r} and its options {stored}; found {name!r} with {found}. "
            "Pass the same options, or train the monitor again"
        )
    expected, weights = config["aligner_weights_sha256"], weights_of(aligner)
    if expected is not None and weights is not None and not same_weights(weights, expected):
        raise MismatchError(
            f"{directory} was trained with aligner {name!r} of other weights (sha256: expected {expected}, found "
            f"{weights}). Pass the aligner it was trained with, or train the monitor again"
        )
    return aligner


def _known(directory: Path, options: dict[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(options) - set(ALIGNER_OPTIONS)):
        raise CheckpointError(
            f"{directory / CONFIG} has aligner options {unknown}; load_aligner takes {', '.join(ALIGNER_OPTIONS)}. "
            "Load the aligner yourself and pass aligner="
        )
    return options


def _read_config(directory: Path) -> dict[str, Any]:
    check_folder(directory, written_by="Monitor.save_pretrained")
    path = directory / CONFIG
    if not path.exists():
        raise CheckpointError(f"{directory} holds no {CONFIG}; pass a folder written by save_pretrained")
    config = read_object(path)
    if config.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {config.get('format')!r}; this version reads {FORMAT}. Upgrade syncheck, or train and "
            "save the monitor again with syncheck train or Monitor.fit"
        )
    if missing := sorted(set(_TYPES) - set(config)):
        raise CheckpointError(f"{path} lacks {missing}; it is not a monitor's config, or it is incomplete")
    wrong = [name for name, types in _TYPES.items() if type(config[name]) not in types]
    if wrong or {int, *map(type, config["layers"])} != {int} or {str, *map(type, config["trained_on"])} != {str}:
        raise CheckpointError(f"{path} has values of the wrong type in {wrong or 'a list'}; save the monitor again")
    check_digests(directory, _parts(config))
    return config


def _parts(config: dict[str, Any]) -> list[str]:
    """Return the names of the files that belong to a monitor."""
    aggregator = [] if config["aggregator"] is None else file_names(config["aggregator"])
    return [CONFIG, *aggregator, *([REFERENCES] if config["lid_references"] else [])]


def _decided(directory: Path, config: dict[str, Any]) -> tuple[MonitorConfig, FeatureSchema]:
    fields = {name: config[name] for name in MonitorConfig.__dataclass_fields__}
    try:
        fields["layers"] = tuple(fields["layers"])
        # JSON has lists for tuples.
        cut: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in fields["segmenter"].items()}
        fields["segmenter"] = SegmenterConfig(**cut)
        decided = MonitorConfig(**fields)
        check_choice(decided.template, "template", Template)
        return decided, feature_schema(decided.schema, decided.layers or ())
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / CONFIG} holds a value that cannot be used: {error}") from error


def _references(directory: Path, decided: MonitorConfig, model: PreTrainedModel) -> LidReferences:
    """Read the references and check that they are of this model's activations at the monitor's layers."""
    path = directory / REFERENCES
    try:
        lid_references = LidReferences.load(path, device=str(model.device))
    except InputError as error:
        raise CheckpointError(f"{path} holds no references that can be used: {error}") from error
    width = model.config.get_text_config().hidden_size
    shapes = {layer: tuple(array.shape) for layer, array in lid_references.references.items()}
    layers = decided.layers or ()
    if set(layers) - set(shapes) or any(shape[1] != width for shape in shapes.values()):
        raise MismatchError(
            f"{path} must hold references of layers {list(layers)}, {width} wide as the model is; found the "
            f"shapes {shapes} by layer. Train the monitor again for this model"
        )
    return lid_references


def _check_model(directory: Path, expected: dict[str, Any], found: dict[str, Any]) -> None:
    different = [key for key in found if key != "weights_sha256" and expected.get(key) != found[key]]
    saved, own = expected.get("weights_sha256"), found["weights_sha256"]
    if saved is not None and own is not None and not same_weights(saved, own):
        different.append("weights_sha256")
    if different:
        detail = ", ".join(f"{key}: expected {expected.get(key)!r}, found {found[key]!r}" for key in different)
        raise MismatchError(
            f"{directory} was trained for another model or tokenizer ({detail}). Load that model, or train a monitor "
            "for this one with Monitor.fit"
        )
