"""Verifiers and monitors on disk and on the Hub: ``config.json``, the aggregator's files, and the digests of all these.

There is no pickle among them. A folder may come from anyone, digests included, so every value is checked before use.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import CONFIG as AGGREGATOR
from syncheck.aggregators.aggregator import WEIGHTS, check_folder, check_stored_kind
from syncheck.aligners import ALIGNER_OPTIONS, Aligner, load_aligner, options_of, weights_of
from syncheck.aligners.reader.network import INSTALL, can_read
from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, InputError, MismatchError, describe_failure
from syncheck.base.files import DIGESTS, check_digests, read_object, write_digests
from syncheck.base.pretrained import same_weights
from syncheck.config import GENERIC_BUNDLED, GENERIC_READER, VERDICT_THRESHOLDS, MonitorConfig, Template
from syncheck.features.schemas import ALIGNER_ALONE, feature_schema
from syncheck.results.types import FeatureSchema
from syncheck.text.sentences import SegmenterConfig

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

FORMAT = 2
_FORMS = {"bundled": GENERIC_BUNDLED, "reader": GENERIC_READER}
CONFIG = "config.json"
REFERENCES = "lid_references.safetensors"
"""File with the LID references of a monitor."""

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
    **dict.fromkeys(VERDICT_THRESHOLDS, (float, int, NoneType)),
    "schema": (str,),
    "segmenter": (dict,),
    "template": (str,),
    "trained_on": (list,),
}
_LIBRARIES = ("torch", "transformers", "scikit-learn", "xgboost", "numpy")


@dataclass(frozen=True, slots=True)
class Stored:
    """A verifier or a monitor in a folder, whose ``config.json`` has been checked."""

    directory: Path
    config: MonitorConfig
    schema: FeatureSchema
    values: dict[str, Any]
    """What ``config.json`` holds."""

    @property
    def name(self) -> str | None:
        """Name of a bundled one; None for any other."""
        is_bundled = self.directory.parent == packaged_monitor("").parent
        return self.directory.name.removeprefix("monitor-") if is_bundled else None

    @property
    def trained_on(self) -> list[str]:
        """Digests of the questions that it was trained on."""
        return list(self.values["trained_on"])

    def aggregator(self) -> Aggregator | None:
        """Load the aggregator; None if it has none."""
        if not self.values["aggregator"]:
            return None
        return Aggregator.load(self.directory, schema=self.schema)

    def aligner(self, given: Aligner | None, *, device: str | torch.device) -> Aligner | None:
        """Load the aligner that it was trained with, or check that the given one is the same, options included."""
        name, options = self.values["aligner"], self.values["aligner_options"]
        if name is None and given is None:
            return None
        if given is not None and given.name != name:
            raise MismatchError(
                f"{self.directory} was trained with aligner {name!r}; found {given.name!r}. Pass the same one"
            )
        if given is None and (unknown := sorted(set(options) - set(ALIGNER_OPTIONS))):
            raise CheckpointError(
                f"{self.directory / CONFIG} has aligner options {unknown}; load_aligner takes "
                f"{', '.join(ALIGNER_OPTIONS)}. Load the aligner yourself and pass aligner="
            )
        aligner = load_aligner(name, **options, device=device) if given is None else given
        own = {} if aligner is None else options_of(aligner)
        if own != options:
            raise MismatchError(
                f"{self.directory} was trained with aligner {name!r} and its options {options}; found {name!r} with "
                f"{own}. Pass the same options, or train the monitor again"
            )
        expected, weights = self.values["aligner_weights_sha256"], weights_of(aligner)
        if expected is not None and weights is not None and not same_weights(weights, expected):
            raise MismatchError(
                f"{self.directory} was trained with aligner {name!r} of other weights (sha256: expected {expected}, "
                f"found {weights}). Pass the aligner it was trained with, or train the monitor again"
            )
        return aligner


def packaged_monitor(name: str) -> Path:
    """Locate the folder of a monitor that ships with the package."""
    return Path(str(files("syncheck"))) / "assets" / f"monitor-{name}"


def best_generic() -> str:
    """Name the best form of ``generic`` on this machine; warn once if that is not the reader's."""
    if can_read():
        return GENERIC_READER
    _warn_of_words()
    return GENERIC_BUNDLED


def generic_aligner(device: str | torch.device = "cpu") -> Aligner | None:
    """Load the aligner of the best form of ``generic`` on this machine, with the warning of :func:`best_generic`."""
    return load_aligner("reader" if best_generic() == GENERIC_READER else "bundled", device=device)


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
    """Name the form of ``generic`` that was trained with this aligner; None if none was.

    Without an aligner, it is the best one.
    """
    if aligner is None:
        return best_generic()
    own, name = weights_of(aligner), _FORMS.get(aligner.name)
    if own is None or name is None:
        return None
    return name if same_weights(own, _read_config(packaged_monitor(name))["aligner_weights_sha256"]) else None


def generic_parts(
    aligner: Aligner | None, device: str | torch.device
) -> tuple[str | None, MonitorConfig, Aggregator, Aligner | None]:
    """Load name, config, aggregator and aligner of ``generic``, in the form that fits an aligner, see `generic_name`.

    With an aligner that none was trained with, the score is its support alone, and there is no name.
    """
    name = generic_name(aligner)
    if name is None:
        config = MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.5, prune_threshold=0.5)
        return name, config, Aggregator.from_signal("align_score", schema=feature_schema(ALIGNER_ALONE, ())), aligner
    stored = read(packaged_monitor(name))
    aggregator = stored.aggregator()
    assert aggregator is not None
    return name, stored.config, aggregator, aligner or load_aligner(stored.values["aligner"], device=device)


def write(
    directory: str | Path, scorer: Any, *, model: dict[str, Any] | None = None, lid_references: Any = None
) -> None:
    """Write config, aggregator and names of the other parts of a verifier or a monitor to a folder, made if needed.

    The digests come last, so that a half-written folder never passes for a whole one. ``model`` is the fingerprint of
    the model whose signals the aggregator needs; None for text alone. ``lid_references`` have a method ``save``.
    """
    directory = Path(directory)
    aggregator, aligner = scorer.aggregator, scorer.aligner
    directory.mkdir(parents=True, exist_ok=True)
    if lid_references is not None:
        lid_references.save(directory / REFERENCES)
    if aggregator is not None:
        aggregator.save(directory)
    values = {
        "format": FORMAT,
        **asdict(scorer.config),
        "aligner": None if aligner is None else aligner.name,
        "aligner_options": {} if aligner is None else options_of(aligner),
        "aligner_weights_sha256": weights_of(aligner),
        "aggregator": None if aggregator is None else aggregator.kind,
        "lid_references": lid_references is not None,
        "model": model,
        "trained_on": sorted(scorer.trained_on),
        "versions": {name: version(name) for name in ("syncheck", *_LIBRARIES)},
    }
    (directory / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    write_digests(directory, _parts(values))


def read(directory: Path) -> Stored:
    """Read and check ``config.json`` of a folder that :func:`write` wrote, and the digests of its files."""
    values = _read_config(directory)
    fields = {name: values[name] for name in MonitorConfig.__dataclass_fields__}
    try:
        # JSON has lists for tuples.
        cut: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in fields["segmenter"].items()}
        config = MonitorConfig(**{**fields, "layers": tuple(fields["layers"]), "segmenter": SegmenterConfig(**cut)})
        check_choice(config.template, "template", Template)
        return Stored(directory, config, feature_schema(config.schema, config.layers or ()), values)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / CONFIG} holds a value that cannot be used: {error}") from error


def _read_config(directory: Path) -> dict[str, Any]:
    check_folder(directory, written_by="Monitor.save_pretrained")
    path = directory / CONFIG
    if not path.exists():
        raise CheckpointError(f"{directory} holds no {CONFIG}; pass a folder written by save_pretrained")
    # Folders of earlier versions lack the thresholds of verdicts.
    config: dict[str, Any] = {**dict.fromkeys(VERDICT_THRESHOLDS), **read_object(path)}
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
    """Name the files that belong to a monitor."""
    if config["aggregator"] is not None:
        check_stored_kind(config["aggregator"])
    aggregator = () if config["aggregator"] is None else (AGGREGATOR, WEIGHTS)
    return [CONFIG, *aggregator, *([REFERENCES] if config["lid_references"] else [])]


_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def fetched(
    name: str | Path,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Find a monitor's folder: the one named, or that of a repository ``owner/name`` in the Hub's cache.

    A string is taken for a repository only if neither it nor its first part is a folder. A revision of a folder raises
    InputError; a repository that cannot be fetched raises CheckpointError.
    """
    if not is_repository(name):
        if revision is not None:
            raise InputError(
                f"revision is for a repository, 'owner/name'; found the folder {str(name)!r}. Leave it out"
            )
        return Path(name)
    import huggingface_hub

    try:
        return Path(
            huggingface_hub.snapshot_download(
                str(name),
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                allow_patterns=sorted((CONFIG, DIGESTS, REFERENCES, AGGREGATOR, WEIGHTS)),
                library_name="syncheck",
                library_version=version("syncheck"),
            )
        )
    except (OSError, ValueError) as error:  # those of the Hub and of HTTP are kinds of OSError, a bad name a ValueError
        raise CheckpointError(
            f"{str(name)!r} is not a folder here, and fetching the repository of that name failed: "
            f"{describe_failure(error)}. Pass a monitor's folder, or a repository and revision that you can read"
        ) from error


def is_repository(name: str | Path) -> bool:
    """Tell whether a name is taken for a repository ``owner/name``: neither it nor its first part exists here."""
    if not isinstance(name, str) or _REPOSITORY.fullmatch(name) is None:
        return False
    return not Path(name).exists() and not Path(name).parent.exists()
