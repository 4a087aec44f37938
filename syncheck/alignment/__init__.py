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
from syncheck.alignment.critic import CriticAligner
from syncheck.alignment.evaluators import EndpointEvaluator, Evaluator, LocalEvaluator
from syncheck.alignment.evidence import Chunk, EvidenceIndex, split_passages
from syncheck.alignment.packed import is_packed
from syncheck.alignment.protocol import Aligner, QuestionAligner
from syncheck.alignment.spans_asked import SpanAligner
from syncheck.errors import InputError

__all__ = [
    "AlignScoreAligner",
    "Aligner",
    "BundledAligner",
    "Chunk",
    "ClassifierAligner",
    "CriticAligner",
    "EndpointEvaluator",
    "Evaluator",
    "EvidenceIndex",
    "LocalEvaluator",
    "QuestionAligner",
    "SpanAligner",
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
        folder of the bundled aligner's format; ``"critic:"`` and a Self-RAG checkpoint; ``"spans:"`` and an
        instruction-tuned checkpoint that is asked for unsupported spans; otherwise a folder, or the name, of a
        Hugging Face checkpoint.
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
    InputError
        The name is that of an endpoint, whose key is not stored.
    """
    if name == "none":
        return None
    if str(name).startswith(("critic:", "spans:")):
        return _asked(str(name), device)
    if name == "bundled":
        return BundledAligner.load(device=device)
    path = Path(name)
    if path.suffix == ".ckpt" or (path / "alignscore.json").is_file():
        return AlignScoreAligner.load(path, backbone=backbone, device=device)
    if is_packed(path):
        return BundledAligner.load(path, device=device)
    return ClassifierAligner.load(name, device=device)


def _asked(name: str, device: str | torch.device) -> Aligner:
    """Load a causal language model that judges."""
    kind, _, path = name.partition(":")
    if kind == "critic":
        return CriticAligner.load(path, device=device)
    if path.startswith(("http://", "https://")):
        raise InputError(
            f"{name!r} asks an endpoint, which is never done unasked; pass "
            "aligner=SpanAligner(EndpointEvaluator(base_url, model, ...))"
        )
    return SpanAligner(LocalEvaluator.load(path, device=device))
