"""Alignment: how well the context supports a sentence.

Aligners follow one protocol, :class:`Aligner`; :func:`load_aligner` finds one by name or folder.
"""

from __future__ import annotations

from pathlib import Path

import torch

from syncheck.alignment.alignscore import AlignScoreAligner
from syncheck.alignment.alignscore_checkpoint import convert_alignscore
from syncheck.alignment.bundled import BundledAligner
from syncheck.alignment.classifier import ClassifierAligner
from syncheck.alignment.cross_encoder import is_cross_encoder
from syncheck.alignment.evidence import Chunk, EvidenceIndex, split_passages
from syncheck.alignment.protocol import Aligner

__all__ = [
    "AlignScoreAligner",
    "Aligner",
    "BundledAligner",
    "Chunk",
    "ClassifierAligner",
    "EvidenceIndex",
    "convert_alignscore",
    "load_aligner",
    "split_passages",
]


def load_aligner(
    name: str | Path, *, backbone: str | Path | None = None, device: str | torch.device = "cpu"
) -> Aligner | None:
    """Load an aligner by name, folder or checkpoint.

    Parameters
    ----------
    name
        ``"bundled"``, the one in the package; ``"none"``; an AlignScore ``.ckpt`` or converted folder; a
        folder of the bundled aligner's format; otherwise a folder, or the name, of a Hugging Face checkpoint.
    backbone
        Config and tokenizer for an AlignScore ``.ckpt``.
    device
        Where to run it.

    Returns
    -------
    Aligner or None
        None for ``"none"``.

    Raises
    ------
    CheckpointError
        What was found cannot be loaded.
    """
    if name == "none":
        return None
    if name == "bundled":
        return BundledAligner.load(device=device)
    path = Path(name)
    if path.suffix == ".ckpt" or (path / "alignscore.json").is_file():
        return AlignScoreAligner.load(path, backbone=backbone, device=device)
    if is_cross_encoder(path):
        return BundledAligner.load(path, device=device)
    return ClassifierAligner.load(name, device=device)
