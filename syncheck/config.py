"""Configuration of a monitor, and the defaults of the package with their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from syncheck.base.checks import check_sequence, check_share
from syncheck.base.errors import InputError
from syncheck.features.schemas import needs_lid
from syncheck.text.sentences.boundaries import SegmenterConfig

Template = Literal["auto", "chat", "plain", "ragtruth-chat", "ragtruth-qa"]
DEFAULT_SCHEMA = "syncheck.v6"
"""Features that a monitor measures, and is trained on, by default."""

PRECISION = 0.95
"""Share of faithful sentences among those called supported, unless training names another one."""
KEPT = 0.9
"""Share of the faithful sentences that stay above a decoder's tau_1, by default."""

LID_REFERENCES = 2000
"""Largest number of reference activations kept for LID (the published code keeps the first 2,000)."""

PAPER_LAYERS = (15, 16, 17)
"""Decoder blocks, of 32, whose activations the paper measures."""

BACKTRACK_THRESHOLD = 0.7
PRUNE_THRESHOLD = 0.85
"""The paper's tau_1 and tau_2 (note under Table 2); a trained monitor carries its own."""

VERDICT_THRESHOLDS = ("supported_threshold", "unsupported_threshold")

GENERIC = "generic"
"""The bundled monitor that scores answers of any model by their text, in the best form that this machine has."""
GENERIC_BUNDLED, GENERIC_READER = f"{GENERIC}-bundled", f"{GENERIC}-reader"
"""Its forms: with the bundled aligner, and with the reader, whose encoder is not in this package."""


def default_layers(num_blocks: int) -> tuple[int, ...]:
    """Choose the decoder blocks to tap, from 0: the paper's 15, 16 and 17 of 32, otherwise three around the middle."""
    if num_blocks == 32:
        return PAPER_LAYERS
    middle = num_blocks // 2
    return tuple(k for k in (middle - 1, middle, middle + 1) if 0 <= k < num_blocks)


@dataclass(frozen=True, slots=True)
class MonitorConfig:
    """Measurements, prompts and thresholds of a monitor; saved with its aggregator.

    Raises
    ------
    InputError
        If the schema is unknown, if it has LID features and ``layers`` is empty, or if a threshold is outside [0, 1].
    WrongTypeError
        If a threshold is not a number, or ``layers`` is not a sequence.
    """

    schema: str = DEFAULT_SCHEMA
    """Version of the feature schema."""
    layers: tuple[int, ...] | None = None
    """Decoder blocks tapped for LID, counted from 0; empty when the schema has no LID. None takes
    :func:`default_layers` of the monitor's model, if the schema has LID."""
    segmenter: SegmenterConfig = SegmenterConfig()
    """Rules by which text is cut into sentences."""
    template: Template = "auto"
    """Prompt template; see :func:`syncheck.prompts.build_prompt`."""
    backtrack_threshold: float = BACKTRACK_THRESHOLD
    """Suggested tau_1 in [0, 1]: a sentence that scores lower is taken back."""
    prune_threshold: float = PRUNE_THRESHOLD
    """Suggested tau_2 in [0, 1]: a sampled sentence or a branch that scores lower is dropped."""
    supported_threshold: float | None = None
    unsupported_threshold: float | None = None
    """Scores in [0, 1] from which a sentence gets the verdict ``supported``, and below which it is ``unsupported`` or
    ``contradicted``; None takes the higher and the lower of the decoder's thresholds."""

    @property
    def verdict_thresholds(self) -> tuple[float, float]:
        """The lower and the higher threshold of verdicts."""
        decoder = sorted((self.backtrack_threshold, self.prune_threshold))
        given = (self.unsupported_threshold, self.supported_threshold)
        lower, upper = (own if own is not None else other for own, other in zip(given, decoder, strict=True))
        return min(lower, upper), upper

    def __post_init__(self) -> None:
        if self.layers is not None:
            check_sequence(self.layers, "layers", of="whole numbers")
        for name in ("backtrack_threshold", "prune_threshold", *VERDICT_THRESHOLDS):
            if name not in VERDICT_THRESHOLDS or getattr(self, name) is not None:
                check_share(getattr(self, name), name)
        has_lid = needs_lid(self.schema)
        if self.layers is None and not has_lid:
            object.__setattr__(self, "layers", ())
        if self.layers is not None and not self.layers and has_lid:
            raise InputError(
                f"schema {self.schema!r} has one LID feature for each layer; found layers={self.layers!r}. Name "
                "decoder blocks, leave layers out to use the model's default ones, or use a schema without LID"
            )

    def for_blocks(self, num_blocks: int) -> MonitorConfig:
        """Copy this config with its layers chosen for a model of ``num_blocks`` decoder blocks."""
        return self if self.layers is not None else replace(self, layers=default_layers(num_blocks))
