"""Whether two aligners are one: by their names, and by their weights whatever they are called."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from syncheck.alignment.protocol import Aligner
from syncheck.pretrained import same_weights

__all__ = ["KnowsWeights", "is_same_aligner", "weights_of"]


@runtime_checkable
class KnowsWeights(Protocol):
    """An aligner, or a part of one, that can tell its weights from others."""

    def weights_sha256(self) -> str | None:
        """Return the digest of :func:`~syncheck.pretrained.weights_sha256`; None where the weights are elsewhere."""
        ...


def weights_of(part: object) -> str | None:
    """Return the digest of the weights of an aligner, or of a part of one; None if it does not know them."""
    return part.weights_sha256() if isinstance(part, KnowsWeights) else None


def is_same_aligner(first: Aligner, second: Aligner) -> bool:
    """Whether two aligners have one name or the same weights.

    A copy of a checkpoint in another folder is the same aligner, and so is one of other options or another calibration:
    its errors are the same network's. Aligners that do not know their weights, such as one behind an endpoint, are told
    apart by their names alone.
    """
    if first is second or first.name == second.name:
        return True
    own, other = weights_of(first), weights_of(second)
    return own is not None and other is not None and same_weights(own, other)
