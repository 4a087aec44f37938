"""Judges of propositions by name: the paper's AutoAIS, or any aligner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from syncheck.alignment import Aligner, load_aligner
from syncheck.errors import InputError
from syncheck.training.propositions import AutoAis, PropositionJudge

__all__ = ["SupportJudge", "load_judge"]

AUTOAIS = "autoais:"
SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a proposition counts as faithful."""


class SupportJudge:
    """An aligner as a judge: a proposition is faithful if the passages support it well enough.

    Parameters
    ----------
    aligner
        Any of :func:`syncheck.load_aligner`; not the one whose support is a feature of the sentences it labels, see
        :func:`syncheck.is_same_aligner`.
    threshold
        Smallest P(supported), in (0, 1], of a faithful proposition.

    Raises
    ------
    InputError
        If the threshold is outside its range.
    """

    def __init__(self, aligner: Aligner, *, threshold: float = SUPPORT_THRESHOLD) -> None:
        if not 0 < threshold <= 1:
            raise InputError(f"threshold must be in (0, 1]; found {threshold}")
        self.aligner = aligner
        self._threshold = threshold

    def __call__(self, passages: Sequence[str], propositions: Sequence[str]) -> list[bool]:
        """Return whether the passages support each proposition."""
        return [found.score >= self._threshold for found in self.aligner.align(passages, propositions)]


def load_judge(name: str | Path, *, device: str | torch.device = "cpu") -> PropositionJudge:
    """Load a judge of propositions by name.

    Parameters
    ----------
    name
        ``"autoais:"`` and the folder or name of a checkpoint for :class:`AutoAis`, the paper's
        ``autoais:google/t5_xxl_true_nli_mixture`` say; otherwise what :func:`syncheck.load_aligner` takes.
    device
        Where to run it.

    Raises
    ------
    CheckpointError
        If the checkpoint cannot be loaded.
    InputError
        If the name is ``"none"``, which judges nothing.
    """
    if str(name).startswith(AUTOAIS):
        return AutoAis.load(str(name).removeprefix(AUTOAIS), device=device)
    aligner = load_aligner(name, device=device)
    if aligner is None:
        raise InputError(
            "expected a judge; found 'none', which judges nothing. Name a checkpoint, or leave the judge out"
        )
    return SupportJudge(aligner)
