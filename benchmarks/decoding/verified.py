"""The guarantee of FOD, checked on each of its answers."""

from __future__ import annotations

from fod import Thresholds
from fod.search import passes
from syncheck import Report, SyncheckError

__all__ = ["UnverifiedSentenceError", "require_verified"]


class UnverifiedSentenceError(SyncheckError, RuntimeError):
    """A sentence was released whose score is below what the decoder guarantees."""


def require_verified(report: Report, thresholds: Thresholds, *, prompt: str) -> None:
    """Check that each released sentence has a score of at least min(tau_1, tau_2).

    Parameters
    ----------
    report
        Of an answer; sentences that claim nothing need no score.
    thresholds
        Those of the decoder.
    prompt
        Named in the error.

    Raises
    ------
    UnverifiedSentenceError
        At the first sentence that falls short.
    """
    least = min(thresholds.backtrack, thresholds.backtrack if thresholds.prune is None else thresholds.prune)
    for number, sentence in enumerate(report.sentences, 1):
        if not passes(sentence, least):
            raise UnverifiedSentenceError(
                f"prompt {prompt!r}: expected a score of at least min(tau_1, tau_2) = {least}; found {sentence.score} "
                f"({sentence.status}) for sentence {number}, {sentence.text!r}. Please report this with the prompt"
            )
