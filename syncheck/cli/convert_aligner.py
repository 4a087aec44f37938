"""``syncheck convert-aligner``: a published AlignScore checkpoint to a folder that needs no backbone and no pickle."""

from __future__ import annotations

import argparse
import sys

from syncheck.alignment import convert_alignscore

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Convert; returns the exit code."""
    convert_alignscore(args.aligner, args.output, backbone=args.aligner_backbone)
    sys.stderr.write(f"converted; pass --aligner {args.output}\n")
    return 0
