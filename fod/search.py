"""Algorithm 1 of the paper as a function of a callable that proposes sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fod.config import FODConfig
from fod.types import Beam, Candidate, Round, SearchResult, StopReason
from syncheck import SentenceScore

__all__ = ["Propose", "passes", "search"]


class Propose(Protocol):
    """Proposes continuations of beams, by one sentence each."""

    def __call__(self, beams: Sequence[Beam], *, samples: int | None) -> list[Candidate]:
        """Propose.

        Parameters
        ----------
        beams
            What to continue: the beams of the last call extended by candidates of it, or, for backtracking, the
            beams of the last call themselves.
        samples
            How many to sample for each beam; None asks for the greedy continuation.

        Returns
        -------
        list of Candidate
            Without repeats for one beam.
        """
        ...


def search(propose: Propose, config: FODConfig) -> SearchResult:
    """Decode greedily until a sentence falls below tau_1, then search over sentences.

    Parameters
    ----------
    propose
        Where continuations come from.
    config
        Thresholds, beams, samples and limits.

    Returns
    -------
    SearchResult

    Notes
    -----
    Follows Algorithm 1 where the published code differs: a sentence is kept when ``f >= tau`` (the code has
    ``>``); pruning by tau_2 comes before the cut to K beams; a round in which nothing passes returns the beams of
    the round before; end of text in stage 1 ends the answer. Beams are ranked by the mean score of all their
    sentences, ties going to the one proposed earlier. A candidate of several sentences passes when each does; one
    that ends the text at once adds nothing that could be unfaithful and passes.
    """
    beam, dropped, stop = _greedy(propose, config)
    if stop is not None:
        return SearchResult(beam, stop, bool(dropped), dropped, ())
    beams: tuple[Beam, ...] = (beam,)
    rounds: list[Round] = []
    while True:
        # Beams that have ended wait for the others when all have to end.
        open_beams = [b for b in beams if b.stop is None]
        ended = [b for b in beams if b.stop is not None]
        candidates = propose(open_beams, samples=config.samples_per_beam)
        passed = [c for c in candidates if all(passes(s, config.prune_threshold) for s in c.sentences)]
        pool = ended + [open_beams[c.parent].extended(c) for c in passed]
        kept = tuple(sorted(pool, key=lambda b: -b.faithfulness)[: config.beam_size])
        rounds.append(Round(tuple(candidates), tuple(passed), kept if passed else beams))
        if not passed:
            return SearchResult(_best(beams), "nothing_passed", True, dropped, tuple(rounds))
        beams = kept
        reason = _finished(beams, config)
        if reason is not None:
            return SearchResult(_best(beams), reason, True, dropped, tuple(rounds))


def passes(sentence: SentenceScore, threshold: float) -> bool:
    """Whether a sentence may stay: it claims nothing, or its score reaches the threshold."""
    if sentence.status == "not_checkable":
        return True
    return sentence.score is not None and sentence.score >= threshold


def _greedy(propose: Propose, config: FODConfig) -> tuple[Beam, tuple[SentenceScore, ...], StopReason | None]:
    """Stage 1: returns the answer so far, what was taken back, and a reason if that is the whole answer."""
    beam = Beam()
    while len(beam.sentences) < config.max_sentences:
        (candidate,) = propose([beam], samples=None)
        if not all(passes(s, config.backtrack_threshold) for s in candidate.sentences):
            return beam, candidate.sentences, None
        beam = beam.extended(candidate)
        if beam.stop is not None:
            return beam, (), beam.stop
    return beam, (), "max_sentences"


def _finished(beams: Sequence[Beam], config: FODConfig) -> StopReason | None:
    over = [b.stop for b in beams if b.stop is not None]
    if over and (config.until == "any" or len(over) == len(beams)):
        return _best(beams).stop or "other_beam_ended"
    if any(len(b.sentences) >= config.max_sentences for b in beams):
        return "max_sentences"
    return None


def _best(beams: Sequence[Beam]) -> Beam:
    return max(beams, key=lambda b: b.faithfulness)  # the first of equals
