"""Configuration of a monitor and its segmenter, and the defaults of the package with their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from syncheck.base.checks import check_choice, check_sequence, check_share
from syncheck.base.errors import InputError
from syncheck.features.schemas import needs_lid

Template = Literal["auto", "biography", "chat", "plain", "ragtruth-qa"]
ClassifierKind = Literal["lr", "xgb", "mlp"]
AggregatorKind = Literal["lr", "monotone", "xgb", "mlp", "ensemble"]


class ProbabilisticClassifier(Protocol):
    """A classifier with scikit-learn's interface: one of scikit-learn's own, a pipeline, a search."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train on rows of features and their labels."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, (N, 2)."""


LineBreaks = Literal["none", "paragraphs", "lists", "lines"]

DEFAULT_SCHEMA = "syncheck.v3"
"""Features that a monitor measures, and is trained on, by default."""

MAX_SENTENCE_TOKENS = 256
"""A sentence that has not ended by then is cut there and marked ``truncated``."""

LID_REFERENCES = 2000
"""Largest number of reference activations kept for LID (the published code keeps the first 2,000)."""

PAPER_LAYERS = (15, 16, 17)
"""Decoder blocks, of 32, whose activations the paper measures."""

BACKTRACK_THRESHOLD = 0.7
PRUNE_THRESHOLD = 0.85
"""The paper's tau_1 and tau_2 (note under Table 2); a trained monitor carries its own."""


def default_layers(num_blocks: int) -> tuple[int, ...]:
    """Return the decoder blocks to tap, from 0: the paper's 15, 16 and 17 of 32, otherwise three around the middle."""
    if num_blocks == 32:
        return PAPER_LAYERS
    middle = num_blocks // 2
    return tuple(k for k in (middle - 1, middle, middle + 1) if 0 <= k < num_blocks)


@dataclass(frozen=True, slots=True)
class SegmenterConfig:
    """Segmentation of text into sentences; the defaults are those of NLTK's untrained Punkt, as in the paper.

    A monitor keeps the config it was trained with, so that it segments new text in the same way.

    Raises
    ------
    InputError
        If a value is outside the range described here.
    """

    max_tokens: int = MAX_SENTENCE_TOKENS
    """Longest sentence (or sentences taken as one) in tokens, at least 1; longer ones are cut there and marked
    ``truncated``."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop ends no sentence, with the stop (``"Dr."``), in any case; with a ``#`` (``"No.#"``), only
    before a number; with a ``~`` (``"p.m.~"``), only before a small letter. Untrained Punkt knows none;
    :data:`syncheck.text.sentences.ENGLISH_ABBREVIATIONS` has English ones. A sentence that ends in an abbreviation is joined
    with the next."""
    line_breaks: LineBreaks = "none"
    """Line breaks that end a sentence. ``none``: none, as in Punkt. ``paragraphs``: those before a blank line.
    ``lists``: also those around a heading (``#``) and before an item (``-``, ``*``, ``1.``, ``1)``, ``(a)`` and the
    like), whose mark then stays with its text. ``lines``: every line break."""
    cjk_stops: bool = False
    """True ends a sentence after a Chinese or Japanese full stop, and the closing quotes and brackets that follow it,
    with or without white space."""
    clauses: bool = False
    """True also ends a sentence at commas, semicolons and colons before white space (full-width ones anywhere)."""
    sentences: int = 1
    """Number of sentences (or clauses, with that option) that are taken together as one, at least 1."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "sentences"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1; found {value!r}")
        for name in ("cjk_stops", "clauses"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} must be True or False; found {getattr(self, name)!r}")
        check_choice(self.line_breaks, "line_breaks", LineBreaks)
        if not isinstance(self.abbreviations, tuple):
            raise InputError(f"abbreviations must be a tuple of strings; found {self.abbreviations!r}")
        for entry in self.abbreviations:
            if not isinstance(entry, str) or entry.split() != [entry] or not any(map(str.isalpha, entry)):
                raise InputError(
                    f"each entry of abbreviations must be a word with a letter, such as 'Dr.'; found {entry!r}"
                )


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

    def __post_init__(self) -> None:
        if self.layers is not None:
            check_sequence(self.layers, "layers", of="whole numbers")
        for name in ("backtrack_threshold", "prune_threshold"):
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
        """Return this config with its layers chosen for a model of ``num_blocks`` decoder blocks."""
        return self if self.layers is not None else replace(self, layers=default_layers(num_blocks))
