"""Provenance: the instrument that measured a file of sentences, also where none is loaded, and training data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aligners import Aligner, identity_of, weights_of
from syncheck.base.errors import InputError, MismatchError
from syncheck.base.pretrained import fingerprint, same_weights
from syncheck.config import MonitorConfig
from syncheck.features.schemas import feature_schema
from syncheck.labelling.responses import LabelledResponse
from syncheck.results.types import FeatureSchema
from syncheck.signals import LidReferences
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor

_INSTRUMENT = ("model", "weights sha256", "aligner", "aligner weights sha256", "template")
_NAMED_BY = {"weights sha256": "model", "aligner weights sha256": "aligner"}
"""Digests of weights, and the facts that name what they belong to."""


def instrument_of(monitor: ModelMonitor | Verifier | UnloadedMonitor) -> dict[str, str]:
    """Collect the known facts that determine a monitor's measurements, besides schema and segmentation, by name."""
    model: dict[str, Any] = {}
    if isinstance(monitor, UnloadedMonitor):
        model = dict(monitor.model)
    elif not isinstance(monitor, Verifier):
        model = fingerprint(monitor.model, monitor.tokenizer)
    facts = {
        "weights sha256": model.pop("weights_sha256", None),
        "model": json.dumps(model, sort_keys=True) if model else None,
        "aligner": identity_of(monitor.aligner),
        "aligner weights sha256": weights_of(monitor.aligner),
        "template": None if isinstance(monitor, Verifier) else str(monitor.config.template),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def run_facts(monitor: ModelMonitor | Verifier) -> dict[str, str]:
    """Collect the facts of a monitor and of this package that determine what a run over records writes, by name."""
    dtype = {} if isinstance(monitor, Verifier) else {"dtype": str(monitor.model.dtype)}
    return instrument_of(monitor) | dtype | {"version": version("syncheck")}


def model_of(provenance: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the fingerprint of the model that a provenance names; None if it names none."""
    if "model" not in provenance:
        return None
    return {**json.loads(provenance["model"]), "weights_sha256": provenance.get("weights sha256")}


def check_same_instrument(expected: Mapping[str, str], found: Mapping[str, str], *, what: str, remedy: str) -> None:
    """Check that two provenances name the same instrument; facts that either lacks are not compared."""
    for name in _INSTRUMENT:
        alike = same_weights if name in _NAMED_BY else eq
        if name in expected and name in found and not alike(expected[name], found[name]):
            first, second = _shown(expected, name), _shown(found, name)
            if first == second:  # only a digest differs
                second = f"one with {'another tokenizer' if name == 'model' else 'other weights'}"
            raise MismatchError(
                f"{what} measured with another {_NAMED_BY.get(name, name)}: expected {first}, found {second}. {remedy}"
            )


def _shown(provenance: Mapping[str, str], name: str) -> str:
    """Describe a fact in words; for weights, what they belong to, since nobody knows a digest by sight."""
    owner = _NAMED_BY.get(name, name)
    fact = provenance.get(owner, f"an unknown {owner}")
    if owner != "model" or not fact.startswith("{"):
        return fact
    model = json.loads(fact)
    size = f"{model['num_hidden_layers']} blocks, {model['hidden_size']} wide"
    return f"{model['architecture']} of {size}, with a vocabulary of {model['vocab_size']}"


DIGITS = 16
"""Hexadecimal digits of a digest: among a million questions, two have the same with a probability of 3e-8."""


def question_digests(records: Iterable[LabelledResponse]) -> set[str]:
    """Compute digests that identify the questions of records, for a monitor's ``trained_on``.

    There are two for each question, with its passages and with its group. White space does not count.
    """
    return {digest for record in records for digest in _digests(record)}


def seen_records(monitor: ModelMonitor | Verifier, records: Sequence[LabelledResponse]) -> list[LabelledResponse]:
    """Find the records whose questions, over the same passages or in the same group, a monitor has seen."""
    return [record for record in records if not monitor.trained_on.isdisjoint(_digests(record))]


def refuse_seen(
    monitor: ModelMonitor | Verifier,
    records: Sequence[LabelledResponse],
    *,
    reason: str = "and a calibration needs held-out ones; pass other data",
) -> None:
    """Refuse, with an InputError, records that a monitor has seen; ``reason`` ends the message."""
    if seen := seen_records(monitor, records):
        names = ", ".join(record.id for record in seen[:3])
        raise InputError(
            f"the monitor was trained or calibrated on the questions of {len(seen)} of these {len(records)} records "
            f"({names}{', ...' if len(seen) > 3 else ''}), {reason}"
        )


def _digests(record: LabelledResponse) -> Iterator[str]:
    for kind, texts in (("passages", record.passages), ("group", (record.group,))):
        plain = json.dumps([kind, *(" ".join(text.split()) for text in (record.question, *texts))])
        yield f"sha256:{hashlib.sha256(plain.encode()).hexdigest()[:DIGITS]}"


@dataclass(frozen=True, slots=True)
class UnloadedMonitor:
    """A monitor whose model is known by its fingerprint alone: it can be trained and saved, but scores nothing."""

    model: Mapping[str, Any]
    """Fingerprint of the model; see :func:`syncheck.base.pretrained.fingerprint`."""
    config: MonitorConfig
    aligner: Aligner | None
    aggregator: Aggregator | None = None
    lid_references: LidReferences | None = None
    trained_on: frozenset[str] = frozenset()

    @property
    def schema(self) -> FeatureSchema:
        """Features that it is trained on."""
        return feature_schema(self.config.schema, self.config.layers or ())

    def replaced(self, *, trained_on: Iterable[str], name: None, **parts: Any) -> Self:  # noqa: ANN401, ARG002
        """Copy this monitor with other parts; only a bundled one has a name."""
        return replace(self, trained_on=frozenset(trained_on), **parts)

    def save_pretrained(self, directory: str | Path) -> None:
        """Write the files that :meth:`syncheck.Monitor.save_pretrained` writes."""
        checkpoint.write(directory, self, model=dict(self.model), lid_references=self.lid_references)
