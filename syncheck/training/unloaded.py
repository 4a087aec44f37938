"""Monitors of a model that is not loaded: trained on a file of features, and saved for the model that measured it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aligners import Aligner
from syncheck.config import MonitorConfig
from syncheck.features.schemas import feature_schema
from syncheck.results.types import FeatureSchema
from syncheck.signals import LidReferences


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
        checkpoint.write(
            directory,
            config=self.config,
            aggregator=self.aggregator,
            aligner=self.aligner,
            trained_on=self.trained_on,
            model=dict(self.model),
            lid_references=self.lid_references,
        )
