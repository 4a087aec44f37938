"""Settings of a server."""

from __future__ import annotations

from dataclasses import dataclass

from syncheck.base.checks import stripped_key
from syncheck.results.protocol import Reveal
from syncheck.serving.chat import PassagesFrom
from syncheck.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Limits and defaults of a server."""

    reveal: Reveal = "verified"
    """When text is sent, if a request does not say."""
    stop_below: float | None = None
    """Score in [0, 1] below which an answer ends, if a request does not say; None ends none."""
    passages_from: PassagesFrom = "messages"
    """Where passages come from beside the fields of a request, if it does not say."""
    stop_after: bool = False
    """True if that answer ends after the sentence that scored below, False if before it, if a request does not say."""
    max_running: int = 4
    """Number of answers at a time."""
    max_waiting: int = 32
    """Number of requests that may wait; further ones get the status 429."""
    max_body: int = 2 * 2**20
    """Largest size of a request, in bytes."""
    max_context: int = 400_000
    """Largest size of question and passages, in characters; each passage counts 100 more."""
    timeout: float = 300.0
    """Time limit for an answer in seconds, including the time in the queue."""
    api_key: str | None = None
    """Key that a request must have, one line of printable ASCII; None requires none."""
    only_loopback: bool = True
    """True if requests must address this machine by a loopback name, so that pages of other sites cannot send them."""
    resume_seconds: float = 60.0
    """How long a resumable answer is kept without a reader, in seconds."""
    telemetry: Telemetry | None = None
    """Records answers and checks as spans; None records nothing."""
    title: str = "each sentence checked against the passages"
    """Title of the page."""

    def __post_init__(self) -> None:
        if self.api_key is not None:
            object.__setattr__(self, "api_key", stripped_key(self.api_key, "the API key"))
