"""A mechanical check of groundedness, for models that copy: the words align in order with one passage, unspliced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from syncheck.results.types import Support

__all__ = ["MechanicalCheck", "aligned_share"]

LEAST_SHARE = 0.9
"""Share of a proposition's words in one passage from which the proposition counts as grounded."""

_LINKING = re.compile(
    r"^(?:in addition|as a result|for example|for instance|at the same time|however|also|additionally|furthermore|"
    r"moreover|meanwhile|therefore|thus|and|but|so|then)\b[\s,]*",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")


class MechanicalCheck:
    """An aligner without a network: support is 0.5 and more where a claim is grounded in one passage.

    It fits models that copy, not models that paraphrase.
    """

    name = "mechanical"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Return the support of each claim, without evidence."""
        return [Support(_support(aligned_share(claim, passages)), None) for claim in claims]


def aligned_share(claim: str, passages: Sequence[str]) -> float:
    """Return the share of a claim's words in the longest run of a passage that it copies without a splice.

    Parameters
    ----------
    claim
        A proposition; a leading linking phrase is dropped.
    passages
        Each is read as it is and without what it has in parentheses.

    Returns
    -------
    float
        In [0, 1]; 1 for a claim without words.

    Notes
    -----
    Words are aligned in order (``difflib.SequenceMatcher``, no junk heuristic). Matching blocks belong together while
    nothing of the passage is left out between them: words of the claim alone may be. What is left out is a splice, and
    only the heaviest group counts.
    """
    words = _words(_LINKING.sub("", claim.strip()))
    if not words:
        return 1.0
    texts = [text for passage in passages for text in (passage, _PARENTHESES.sub("", passage))]
    return max((_longest(words, _words(text)) for text in texts), default=0) / len(words)


def _longest(words: Sequence[str], passage: Sequence[str]) -> int:
    blocks = SequenceMatcher(None, passage, words, autojunk=False).get_matching_blocks()[:-1]
    longest = count = after = 0
    for block in blocks:
        count = block.size + (count if block.a == after else 0)
        after = block.a + block.size
        longest = max(longest, count)
    return longest


def _support(share: float) -> float:
    """Map a share to [0, 1] so that the smallest grounded one becomes 0.5."""
    below, above = share / LEAST_SHARE / 2, 0.5 + (share - LEAST_SHARE) / (1 - LEAST_SHARE) / 2
    return min(1.0, below if share < LEAST_SHARE else above)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
