"""Every default of the package, once, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["AggregatorKind", "MonitorConfig", "SegmenterConfig", "Template", "default_layers"]

Template = Literal["auto", "chat", "plain", "ragtruth-qa"]
AggregatorKind = Literal["lr", "xgb", "mlp"]

LARGE_KL_NATS = 3.0
"""A token's KL above this counts in ``large_kl_pos`` (paper, appendix A.1)."""

MAX_SENTENCE_TOKENS = 256
"""A sentence that has not ended by then is cut there and marked ``truncated``."""

LID_REFERENCES = 2000
"""Most reference activations kept for LID (the published code keeps the first 2,000)."""

PAPER_LAYERS = (15, 16, 17)
"""Decoder blocks whose activations the paper measures, of 32."""

BACKTRACK_THRESHOLD = 0.7
PRUNE_THRESHOLD = 0.85
"""The paper's tau_1 and tau_2 (note under Table 2); a trained monitor carries its own."""


def default_layers(num_blocks: int) -> tuple[int, ...]:
    """Return the decoder blocks to tap, counted from 0.

    15, 16 and 17 of 32 blocks as in the paper; the three around the middle otherwise, as far as they exist.
    """
    if num_blocks == 32:
        return PAPER_LAYERS
    middle = num_blocks // 2
    return tuple(k for k in (middle - 1, middle, middle + 1) if 0 <= k < num_blocks)


@dataclass(frozen=True, slots=True)
class SegmenterConfig:
    """How text is cut into sentences."""

    max_tokens: int = MAX_SENTENCE_TOKENS
    """Longest sentence in tokens; longer ones are cut there and marked."""


@dataclass(frozen=True, slots=True)
class MonitorConfig:
    """What a monitor measures and how it decides; saved beside its aggregator."""

    schema: str = "paper.v1"
    """Version of the feature schema."""
    layers: tuple[int, ...] = ()
    """Decoder blocks tapped for LID, counted from 0; empty when the schema has no LID."""
    segmenter: SegmenterConfig = SegmenterConfig()
    """How text is cut into sentences."""
    template: Template = "auto"
    """Prompt template; see :func:`syncheck.build_prompt`."""
    backtrack_threshold: float = BACKTRACK_THRESHOLD
    """Suggested tau_1: a sentence below it is taken back."""
    prune_threshold: float = PRUNE_THRESHOLD
    """Suggested tau_2: a sampled sentence below it is dropped."""
