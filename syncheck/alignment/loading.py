"""Loading an aligner by name: its kind, and the options that the kind takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from syncheck import alignment
from syncheck.alignment.int8_encoder import is_packed
from syncheck.errors import InputError
from syncheck.pretrained import require_few_layers, require_plain_folder

if TYPE_CHECKING:
    from syncheck.alignment.alignscore import Mode, Overflow
    from syncheck.alignment.protocol import Aligner

__all__ = ["ALIGNER_OPTIONS", "load_aligner"]

Kind = Literal["none", "bundled", "packed", "critic", "spans", "minicheck", "ckpt", "alignscore", "classifier"]

ALIGNER_OPTIONS = ("backbone", "mode", "overflow", "entailment")
"""Every option that an aligner may be stored with."""
_TAKES: dict[Kind, tuple[str, ...]] = {
    "ckpt": ("backbone", "mode", "overflow"),
    "alignscore": ("mode", "overflow"),
    "classifier": ("entailment",),
}
_ASKED: dict[str, Kind] = {"critic": "critic", "spans": "spans", "minicheck": "minicheck"}
"""Prefixes of a name, before a colon."""


def load_aligner(
    name: str | Path,
    *,
    backbone: str | Path | None = None,
    mode: Mode | None = None,
    overflow: Overflow | None = None,
    entailment: int | None = None,
    device: str | torch.device = "cpu",
) -> Aligner | None:
    """Load an aligner by name, folder or checkpoint.

    Parameters
    ----------
    name
        ``"bundled"``; ``"none"``, which returns None; an AlignScore ``.ckpt``, a file or ``owner/repository/file.ckpt``
        of the Hugging Face hub, or a converted folder; a folder of the bundled aligner's format; ``"critic:"`` and a
        Self-RAG checkpoint; ``"spans:"`` and an instruction-tuned checkpoint that is asked for unsupported spans;
        ``"minicheck:"`` and a MiniCheck checkpoint; otherwise a folder or name of a Hugging Face checkpoint.
    backbone
        For an AlignScore ``.ckpt``: folder or name of the RoBERTa whose config and tokenizer it needs; None takes the
        one that the checkpoint names, see :func:`~syncheck.alignment.alignscore_checkpoint.load_alignscore`.
    mode, overflow
        For AlignScore, ``"nli_sp"`` and ``"split"`` if None; see :class:`AlignScoreAligner`.
    entailment
        For a classifier: index of the class that means "supported"; None finds it by its name in the config.
    device
        Device to run on.

    Raises
    ------
    CheckpointError
        If the checkpoint cannot be loaded.
    InputError
        If the name is that of an endpoint, whose key is not stored, or an option is not one of this kind's.
    """
    if Path(name).is_dir():
        require_plain_folder(Path(name))
        require_few_layers(name)
    kind = _kind(name)
    given = {"backbone": backbone, "mode": mode, "overflow": overflow, "entailment": entailment}
    foreign = [option for option, value in given.items() if value is not None and option not in _TAKES.get(kind, ())]
    if foreign:
        takes = ", ".join(_TAKES.get(kind, ())) or "no options"
        raise InputError(
            f"aligner {str(name)!r} takes {takes}; found {', '.join(foreign)}. Leave them out: backbone is for an "
            "AlignScore .ckpt, mode and overflow are for AlignScore, entailment is for a classifier"
        )
    if kind in ("ckpt", "alignscore"):
        return alignment.AlignScoreAligner.load(
            name, backbone=backbone, mode=mode or "nli_sp", overflow=overflow or "split", device=device
        )
    if kind == "classifier":
        return alignment.ClassifierAligner.load(name, entailment=entailment, device=device)
    return _without_options(kind, name, device)


def _kind(name: str | Path) -> Kind:
    if name == "none":
        return "none"
    if name == "bundled":
        return "bundled"
    before, colon, _ = str(name).partition(":")
    if colon and before in _ASKED:
        return _ASKED[before]
    path = Path(name)
    if path.suffix == ".ckpt":
        return "ckpt"
    if (path / "alignscore.json").is_file():
        return "alignscore"
    return "packed" if is_packed(path) else "classifier"


def _without_options(kind: Kind, name: str | Path, device: str | torch.device) -> Aligner | None:
    path = str(name).partition(":")[2]
    if kind == "none":
        return None
    if kind == "minicheck":
        return alignment.ClassifierAligner.load_minicheck(path, device=device)
    if kind == "critic":
        return alignment.CriticAligner.load(path, device=device)
    if kind == "spans":
        if path.startswith(("http://", "https://")):
            raise InputError(
                f"{name!r} asks an endpoint, which is never done unasked; pass "
                "aligner=SpanAligner(EndpointTextGenerator(base_url, model, ...))"
            )
        return alignment.SpanAligner(alignment.LocalTextGenerator.load(path, device=device))
    return alignment.BundledAligner.load(None if kind == "bundled" else Path(name), device=device)
