"""Options of gates: an exit code of 1 where a score is too low, or is not there."""

from __future__ import annotations

import argparse

__all__ = ["add_gate", "share"]


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add what makes ``score`` a gate."""
    parser.add_argument(
        "--fail-under",
        type=share,
        metavar="SCORE",
        help="exit 1 if a sentence scores below, 0 to 1, or something could not be checked: a sentence with a letter "
        "or digit but no score, an empty response, an empty input (never)",
    )
    parser.add_argument(
        "--allow-unscored", action="store_true", help="of --fail-under: pass what could not be checked (it misses)"
    )


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:  # NaN too
        raise argparse.ArgumentTypeError(f"must be from 0 to 1; found {text}")
    return value
