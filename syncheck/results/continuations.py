"""Continuations: what a decoder asks a server for, and the pieces of text in which they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ContinuationRequest:
    """Request to a server to continue an answer that it has begun."""

    beginning: str = ""
    """The answer so far: whole sentences, or empty."""
    samples: int | None = None
    """Number of samples of the next sentence; None asks for one continuation to the end of the answer. The reader
    closes the pieces once each sample has a whole sentence."""
    seed: int = 0
    """Seed of the samples; each request of an answer has another one."""
    temperature: float | None = None
    top_p: float | None = None
    """Temperature and nucleus of the sampling; None leaves them to whoever asks the server."""
    instruction: str = ""
    """What the model is told beside the question, for this continuation alone; empty if nothing."""
    tokens: int = 0
    """Number of tokens of the beginning as far as it is known, for a limit on the tokens of the whole answer."""
    likeliest: int = 0
    """Number of likeliest tokens of each place that the pieces have to tell; 0 asks for no log-probabilities."""


@dataclass(frozen=True, slots=True)
class WrittenToken:
    """A token of a continuation, and what else the model might have written in its place."""

    data: bytes
    """Its text in UTF-8, of which it may be a part that is no whole character."""
    log_prob: float
    """Its log-probability, in nats."""
    likeliest: tuple[tuple[bytes, float], ...] = ()
    """The likeliest tokens of the place, perhaps itself among them, with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of one of the continuations."""

    text: str = ""
    sample: int | None = 0
    """Index of the sample, from 0; None for the usage of all samples together."""
    stop: Literal["end_of_text", "length"] | None = None
    """Why it ends with this piece; None if it goes on."""
    usage: Mapping[str, Any] | None = None
    """Numbers of tokens of the sample so far, or of all samples together, as an OpenAI-compatible server reports them;
    None if it does not."""
    tokens: tuple[WrittenToken, ...] = ()
    """The tokens of the text, if they were asked for. Those of text that is left out may be among them."""
