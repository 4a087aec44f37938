"""Presence of what a sentence calls absent, found by an aligner that reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p

from syncheck.aligners.protocol import Unaligned
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.text.absence import TYPED, Absence, probes
from syncheck.text.statements import says_not_stated

SMALLEST_SUPPORT = 1e-6
"""Least distance from 0 and 1 of a support that is turned into log-odds."""
SEARCHED_CHUNKS = 4
"""Number of chunks whose times, numbers, names and places are tried."""
LIKELY_TYPED, LIKELY_OTHER = 0.75, 0.4
"""P(told) at which a sentence has half of :data:`MOST_ABSENT`: where times, numbers, names or places are tried, and
where nothing could be."""
SLOPE = 1.2
"""How steeply its score falls there, in log-odds; these numbers were chosen on 30 sentences."""
MOST_ABSENT = 0.95
"""Score of a sentence whose absence nothing speaks against: passages may tell it in other words."""
LEAST_LOOSE = 0.6
"""Score of a loose absence where the passages seem to tell it: people marked 12 of 184 such sentences in RAGTruth."""
SAID_ABOVE = 0.8
"""Support above which a passage that calls something not stated itself is believed."""

Ask = Callable[[Sequence[str], Sequence[str]], Sequence[Support | Unaligned]]
"""Aligner of passages and claims, with a reason for a claim without support."""


@dataclass(frozen=True, slots=True)
class Presence:
    """How likely the passages tell what a sentence calls absent."""

    absence: Absence
    told: float
    """P(told) in [0, 1]."""
    evidence: Evidence | None
    """What tells it, if anything does."""

    @property
    def absent(self) -> float:
        """P(faithful) of what the sentence says of absence."""
        odds = SLOPE * (logit(LIKELY_TYPED if self.absence.wanted in TYPED else LIKELY_OTHER) - logit(self.told))
        least = LEAST_LOOSE if self.absence.is_loose else 0.0
        return least + (MOST_ABSENT - least) / (1 + exp(-odds))


def look_for(
    said: Sequence[tuple[Absence, Support]], index: EvidenceIndex, question: str, ask: Ask
) -> list[Presence | None]:
    """Look for what sentences call absent, all in one batch of the aligner.

    Parameters
    ----------
    said
        What each sentence says is absent, and the support of the sentence itself.
    index
        The passages.
    question
        The question, which helps to find the passages that may tell.
    ask
        The aligner.

    Returns
    -------
    list of Presence or None
        None for an aligner that does not distinguish contradicted from not stated, for a passage that says itself that
        something is not stated, and for claims that the aligner failed to judge.
    """
    tried = [_tried(absence, support, index, question) for absence, support in said]
    every = [probe for wanted in tried for probe in wanted or ()]
    judged = iter(ask(index.passages, every) if every else ())
    found: list[Presence | None] = []
    for (absence, _), wanted in zip(said, tried, strict=True):
        supports = [support for support in (next(judged) for _ in wanted or ()) if isinstance(support, Support)]
        is_judged = wanted is not None and len(supports) == len(wanted)
        found.append(_presence(absence, supports) if is_judged else None)
    return found


def logit(share: float) -> float:
    """Compute the log-odds of a probability, which is kept away from 0 and 1."""
    share = min(max(share, SMALLEST_SUPPORT), 1 - SMALLEST_SUPPORT)
    return log(share) - log1p(-share)


def _tried(absence: Absence, support: Support, index: EvidenceIndex, question: str) -> list[str] | None:
    nearest = index.best(absence.text, 1)
    says_so = support.score > SAID_ABOVE and any(says_not_stated(index.chunks[chunk].text) for chunk in nearest)
    if support.contradicted is None or says_so:
        return None
    best = index.best(f"{absence.text} {question}", SEARCHED_CHUNKS)
    return probes(absence, [index.chunks[chunk].text for chunk in best])


def _presence(absence: Absence, supports: Sequence[Support]) -> Presence:
    is_yes_or_no = absence.wanted == "truth"  # that it is not so tells it too
    likely = [min(1.0, s.score + (s.contradicted or 0) * is_yes_or_no) for s in supports]
    told = max(likely, default=0.0)
    evidence = supports[likely.index(told)].evidence if told > 0.5 else None
    return Presence(absence, min(told, LIKELY_TYPED) if absence.wanted == "manner" else told, evidence)
