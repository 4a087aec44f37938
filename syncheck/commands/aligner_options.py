"""Options that choose an aligner."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_aligner", "add_conversion", "aligner_options"]

MODES = ("nli_sp", "nli", "bin_sp", "bin")
OVERFLOWS = ("split", "cut")


def add_aligner(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--aligner`` and what its kinds take; ``default`` ends its help."""
    parser.add_argument(
        "--aligner",
        help="'bundled', 'none', an AlignScore .ckpt or converted folder, a folder or name of a classifier, or one of "
        f"minicheck:PATH, critic:PATH (Self-RAG), spans:PATH (asked for unsupported spans), {default}",
    )
    group = parser.add_argument_group("aligner", "of some kinds of --aligner")
    _add_backbone(group)
    group.add_argument("--aligner-mode", choices=MODES, help="of AlignScore (nli_sp)")
    group.add_argument(
        "--aligner-overflow",
        choices=OVERFLOWS,
        help="of AlignScore, contexts beyond its window: split scores all, cut drops the end as its own code (split)",
    )
    group.add_argument(
        "--aligner-entailment", type=_index, metavar="N", help="of a classifier: the class that means supported"
    )


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """Add what ``convert-aligner`` takes."""
    parser.add_argument("--aligner", required=True, metavar="FILE", help="an AlignScore .ckpt")
    _add_backbone(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="what --aligner takes afterwards")


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options beside ``--aligner``, as keywords of ``load_aligner``; None where nothing was said."""
    return {
        "backbone": args.aligner_backbone,
        "mode": args.aligner_mode,
        "overflow": args.aligner_overflow,
        "entailment": args.aligner_entailment,
    }


def _add_backbone(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--aligner-backbone",
        metavar="DIR_OR_ID",
        help="of an AlignScore .ckpt: config and tokenizer of its RoBERTa (the folder beside it, or the model, that "
        "the checkpoint names)",
    )


def _index(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more; found {text}")
    return value
