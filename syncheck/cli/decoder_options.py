"""Options of ``syncheck generate``: which there are, and which decoders have them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import Any

from syncheck.cli.options import count
from syncheck.errors import InputError

__all__ = ["DECODERS", "add_decoding", "chosen_options"]


DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")

_OF: Mapping[str, tuple[str, ...]] = {
    "temperature": ("sample", "fod", "rerank", "best-of-n"),
    "top_p": ("sample", "fod", "rerank", "best-of-n"),
    "backtrack_threshold": ("fod", "fod-backtrack", "abstain"),
    "prune_threshold": ("fod",),
    "beam_size": ("fod",),
    "samples_per_step": ("fod",),
    "share_samples": ("fod",),
    "until": ("fod",),
    "max_sentences": ("fod", "fod-backtrack"),
    "on_exhausted": ("fod",),
    "message": ("fod", "abstain"),
    "samples": ("rerank", "best-of-n"),
    "rerank_by": ("rerank",),
    "reward": ("best-of-n",),
    "alpha": ("cad",),
    "plausibility": ("cad",),
    "flare_threshold": ("flare",),
    "max_retrievals": ("flare",),
    "passages": ("flare",),
}
"""Decoders that have an option. All are None when they are not given: each default is where its decoder is."""


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Add what chooses a decoder, and what the decoders have."""
    group = parser.add_argument_group("answers")
    group.add_argument("--decoder", choices=DECODERS, default="greedy", help="method of writing answers (%(default)s)")
    group.add_argument(
        "--max-new-tokens",
        type=count,
        default=256,
        metavar="N",
        help="largest number of tokens in an answer (%(default)s)",
    )
    group.add_argument("--seed", type=int, default=0, help="seed for sampling, the same for each record (%(default)s)")
    group.add_argument(
        "--temperature", type=_positive, metavar="T", help="for sample (1), fod, rerank and best-of-n (0.9)"
    )
    group.add_argument("--top-p", type=_share, metavar="P", help="for sample (1), fod, rerank and best-of-n (0.95)")
    _add_search(parser)
    _add_choice(parser)
    cad = parser.add_argument_group("CAD", "for --decoder cad")
    cad.add_argument("--alpha", type=float, help="how strongly the effect of the passages is amplified (0.5)")
    cad.add_argument(
        "--plausibility",
        type=float,
        metavar="SHARE",
        help="drop tokens less likely than this share of the likeliest (0, none)",
    )
    flare = parser.add_argument_group("FLARE", "for --decoder flare, which needs the first two")
    flare.add_argument(
        "--flare-threshold", type=float, metavar="P", help="retrieve if a token's probability is below this"
    )
    flare.add_argument("--passages", metavar="FILE", help="text file whose paragraphs are retrieved")
    flare.add_argument("--max-retrievals", type=count, metavar="N", help="largest number of retrievals per answer (8)")


def chosen_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the decoder's options that were given, by name.

    Raises
    ------
    InputError
        If one was given that the decoder does not have.
    """
    given = {name: value for name in _OF if (value := getattr(args, name)) is not None}
    foreign = [name for name in given if args.decoder not in _OF[name]]
    if foreign:
        of = "; ".join(f"--{name.replace('_', '-')} is of {', '.join(_OF[name])}" for name in foreign)
        raise InputError(f"--decoder {args.decoder} would ignore what it does not have: {of}. Leave it out")
    if "message" in given and args.decoder == "fod" and args.on_exhausted != "abstain":
        raise InputError("--decoder fod has a --message only with --on-exhausted abstain; add it, or leave it out")
    return given


def _add_search(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "FOD",
        "for --decoder fod, fod-backtrack and abstain. 'calibrated' is the threshold of `syncheck calibrate --risk`; "
        "no sentence below it is released. Its guarantee does not cover the search of fod",
    )
    group.add_argument(
        "--backtrack-threshold",
        type=_threshold,
        metavar="SCORE",
        help="tau 1, for all three: 0 to 1, or 'calibrated' (the monitor's own)",
    )
    group.add_argument(
        "--prune-threshold",
        type=_threshold,
        metavar="SCORE",
        help="tau 2, for fod: 0 to 1, or 'calibrated' (the monitor's own)",
    )
    group.add_argument(
        "--beam-size", type=count, metavar="K", help="number of answers that fod keeps after each round (2)"
    )
    group.add_argument(
        "--samples-per-step", type=count, metavar="S", help="number of sentences that fod samples per round (6)"
    )
    group.add_argument(
        "--share-samples",
        action="store_true",
        default=None,
        help="for fod: sample S sentences even in a round with fewer than K beams (ceil(S / K) for each beam)",
    )
    group.add_argument(
        "--until", choices=("any", "all"), help="for fod: stop when any kept beam has ended, or all have (any)"
    )
    group.add_argument(
        "--max-sentences", type=count, metavar="N", help="for fod and fod-backtrack: largest number of sentences (32)"
    )
    group.add_argument(
        "--on-exhausted",
        choices=("stop", "abstain", "annotate"),
        help="for fod: what to do when no sentence passes (stop)",
    )
    group.add_argument(
        "--message",
        metavar="TEXT",
        help="text of abstain (nothing), and of fod with --on-exhausted abstain (The passages do not let me say more.)",
    )


def _add_choice(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reranking and best of N", "for --decoder rerank and best-of-n")
    group.add_argument("--samples", type=count, metavar="N", help="number of answers to choose from (6)")
    group.add_argument(
        "--rerank-by",
        choices=("syncheck", "likelihood", "aligner"),
        help="for rerank: choose by the mean score, log-probability or support (syncheck)",
    )
    group.add_argument(
        "--reward", choices=("mean", "lowest"), help="for best-of-n: choose by an answer's mean or lowest score (mean)"
    )


def _threshold(text: str) -> float | str:
    if text == "calibrated":
        return text
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, or 'calibrated'; found {text}")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be above 0 and finite; found {text}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1; found {text}")
    return value
