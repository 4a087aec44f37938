"""Evidence and claim as one row of tokens, with what plain matching knows: which tokens stand in both, and where.

A network of this size would otherwise spend its training on finding that out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

__all__ = ["AlignedPair", "CLAIM", "TOKEN_TYPES", "UNKNOWN", "align_tokens"]

EVIDENCE, EVIDENCE_ELSEWHERE, EVIDENCE_ALIGNED, EVIDENCE_SKIPPED, CLAIM, CLAIM_ELSEWHERE, CLAIM_ALIGNED = range(7)
"""Token types: known to the other side out of order, in order, or between two tokens that are in order.

Special tokens count as evidence that the claim does not hold.
"""
TOKEN_TYPES = 7
LONGEST_SKIP = 8
"""Evidence tokens between two aligned ones that count as skipped, at most."""

UNKNOWN, CLS, SEP = 100, 101, 102  # of BERT's vocabulary


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Evidence and claim in one row of T tokens.

    Attributes
    ----------
    ids, types : list of int
        Tokens and token types, T each.
    twins : list of int
        The position in the evidence, counted from 1, that each token of the claim stands for; 0 where there is none.
    """

    ids: list[int]
    types: list[int]
    twins: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def align_tokens(evidence: Sequence[int], claim: Sequence[int]) -> AlignedPair:
    """Join token ids of evidence and claim, with types and twins from the tokens that occur in both in order.

    A claim's token between aligned ones has the twin after that of its neighbour to the left, so that what stands in
    the place of something else meets it.

    Parameters
    ----------
    evidence, claim
        Token ids without special tokens.
    """
    blocks = SequenceMatcher(None, evidence, claim, autojunk=False).get_matching_blocks()
    twin = {block.b + i: block.a + i for block in blocks for i in range(block.size)}
    in_evidence = set(evidence)
    claim_types = [
        CLAIM_ALIGNED if i in twin else CLAIM_ELSEWHERE if token in in_evidence else CLAIM
        for i, token in enumerate(claim)
    ]
    types = [EVIDENCE, *_evidence_types(evidence, set(claim), set(twin.values())), EVIDENCE, *claim_types, EVIDENCE]
    twins = [0] * (len(evidence) + 2) + _twins(twin, len(claim), len(evidence)) + [0]
    return AlignedPair([CLS, *evidence, SEP, *claim, SEP], types, twins)


def _evidence_types(evidence: Sequence[int], in_claim: set[int], aligned: set[int]) -> list[int]:
    types = [
        EVIDENCE_ALIGNED if i in aligned else EVIDENCE_ELSEWHERE if token in in_claim else EVIDENCE
        for i, token in enumerate(evidence)
    ]
    for left, right in pairwise(sorted(aligned)):
        if right - left - 1 <= LONGEST_SKIP:
            types[left + 1 : right] = [EVIDENCE_SKIPPED] * (right - left - 1)
    return types


def _twins(twin: dict[int, int], claim: int, evidence: int) -> list[int]:
    if not twin:
        return [0] * claim
    first = min(twin)
    twins = [max(0, 1 + twin[first] - (first - i)) for i in range(first)]
    for i in range(first, claim):
        twins.append(1 + twin[i] if i in twin else min(twins[-1] + 1, evidence + 1))
    return twins
