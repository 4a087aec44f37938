"""Options of ``syncheck spans`` and ``syncheck spans-score``."""

from __future__ import annotations

import argparse

from syncheck.commands.evaluation_options import count

__all__ = ["SPAN_METHODS", "add_spans", "add_spans_score"]

SPAN_METHODS = ("mikani", "refind", "hallurag", "classifier", "fava", "mark-all", "mark-none")


def add_spans(parser: argparse.ArgumentParser) -> None:
    """Add what finding spans needs."""
    parser.add_argument("--method", choices=SPAN_METHODS, default="mikani", help="how (%(default)s)")
    parser.add_argument("--input", default="-", metavar="PATH", help="Mu-SHROOM JSON Lines, or a folder; - for stdin")
    parser.add_argument("--output", default="-", metavar="PATH", help="JSON Lines, a folder if the input is one")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--span-model", metavar="DIR", default="bundled", help="of mikani: 'bundled', 'bundled-rarity' or a folder"
    )
    parser.add_argument(
        "--model",
        metavar="DIR_OR_ID",
        help="of refind and hallurag, a causal language model (bundled); of classifier and fava, the checkpoint",
    )
    parser.add_argument("--threshold", type=float, metavar="DELTA", help="of refind: mark tokens of a CSR of at least")
    parser.add_argument("--fit-thresholds", metavar="PATH", help="of refind: choose them on these labelled items")
    parser.add_argument("--form", choices=("replay", "mixed"), default="replay", help="of refind (%(default)s)")
    parser.add_argument(
        "--encoder", metavar="DIR_OR_ID", help="of hallurag: a sentence encoder; letter trigrams without"
    )
    parser.add_argument("--asked", metavar="DIR_OR_ID", help="of hallurag: an instruct model that is asked for spans")
    parser.add_argument("--wrong-class", type=int, default=1, metavar="N", help="of classifier (%(default)s)")


def add_spans_score(parser: argparse.ArgumentParser) -> None:
    """Add what scoring predicted spans needs."""
    parser.add_argument("--reference", required=True, metavar="PATH", help="labelled JSON Lines, or a folder of them")
    parser.add_argument("--predictions", required=True, metavar="PATH", help="predicted labels, file or folder")
    parser.add_argument("--languages", nargs="+", metavar="CODE", help="that count; all of the reference without it")
    parser.add_argument("--draws", type=count, default=1000, metavar="N", help="bootstrap resamples (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", metavar="FILE", help="the table as JSON")
    parser.add_argument("--fail-under", type=float, metavar="IOU", help="exit 1 if the mean IoU is below")
