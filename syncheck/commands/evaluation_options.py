"""Options of ``evaluate``, ``ablate``, ``transfer`` and ``features``, beside those of the model and the data."""

from __future__ import annotations

import argparse
from typing import get_args

from syncheck.commands.corpus_options import add_corpus
from syncheck.config import DEFAULT_SCHEMA, AggregatorKind

__all__ = ["add_ablation", "add_evaluation", "add_extraction", "add_transfer", "count"]

SEEDS = 3
"""Runs of the paper's Figures 3 and 4."""


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more; found {text}")
    return value


def add_evaluation(parser: argparse.ArgumentParser) -> None:
    """Add what ``evaluate`` takes."""
    parser.add_argument(
        "--train", metavar="PATH", help="train on all of this and test on all of --data, instead of on folds"
    )
    parser.add_argument(
        "--aggregator", choices=get_args(AggregatorKind), help="the monitor's own kind without it, or mlp"
    )
    parser.add_argument("--cv", type=_folds_or_none, metavar="FOLDS", help="0 evaluates the monitor as it is (5)")
    _add_runs(parser, repeats="shuffles of the folds (5)")
    parser.set_defaults(default_runs=(5, False))
    parser.add_argument(
        "--group",
        choices=("source_id", "group", "generator", "task"),
        default="source_id",
        help="what stays on one side of a fold and is drawn as one for the intervals: answers to one question (either "
        "name), by one model, or of one task (%(default)s)",
    )
    parser.add_argument("--set", choices=("strict", "paper", "both"), default="both")
    parser.add_argument(
        "--permute", action="store_true", help="also with each signal permuted among held-out sentences"
    )
    parser.add_argument("--compare-aggregators", action="store_true", help="also every kind of aggregator")
    parser.add_argument(
        "--allow-train", action="store_true", help="with --cv 0: questions the monitor was trained on too"
    )
    _add_outputs(parser)


def add_ablation(parser: argparse.ArgumentParser) -> None:
    """Add what ``ablate`` takes."""
    parser.add_argument(
        "--data", required=True, metavar="PATH", help="what features wrote, a RAGTruth folder, or labelled JSON Lines"
    )
    _add_comparison(parser)


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Add what ``transfer`` takes."""
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        metavar="PATH",
        help="what features wrote, RAGTruth folders, or labelled JSON Lines; several are put together",
    )
    parser.add_argument(
        "--over",
        choices=("generator", "task", "data", "surrogate"),
        default="generator",
        help="what the parts are (%(default)s); data: the files; surrogate: one corpus, by several models, a file each",
    )
    parser.add_argument(
        "--train-on", metavar="GENERATOR", help="with --over surrogate: train on its answers only (all without it)"
    )
    parser.add_argument("--without", nargs="+", default=[], metavar="PART", help="parts to leave out")
    _add_comparison(parser)


def add_extraction(parser: argparse.ArgumentParser) -> None:
    """Add what ``features`` takes."""
    add_corpus(parser)
    parser.add_argument("--batch-size", type=count, metavar="N", help="responses replayed at once (cpu 1, cuda 16)")
    parser.add_argument(
        "--part-size", type=count, default=64, metavar="N", help="records that a kill can cost (%(default)s)"
    )
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="measure every N-th part, from the I-th"
    )


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schema", help=f"features of a --model without --monitor ({DEFAULT_SCHEMA})")
    parser.add_argument(
        "--aggregator", choices=get_args(AggregatorKind), default="mlp", help="%(default)s, as in the paper"
    )
    parser.add_argument("--cv", type=_folds, default=5, metavar="FOLDS")
    _add_runs(parser, repeats="shuffles of the folds, instead of --seeds")
    parser.set_defaults(default_runs=(SEEDS, True))
    parser.add_argument("--set", choices=("strict", "paper", "both"), default="strict")
    _add_outputs(parser)


def _add_runs(parser: argparse.ArgumentParser, *, repeats: str) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--repeats", type=count, metavar="N", help=repeats)
    group.add_argument(
        "--seeds", type=count, metavar="N", help=f"runs on the same folds that differ by seed; the paper has {SEEDS}"
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="the tables as JSON")
    parser.add_argument(
        "--plot", metavar="FILE", help="AUROC with intervals; the ending is the format: .png, .svg, ..."
    )


def _folds_or_none(text: str) -> int:
    return 0 if text == "0" else _folds(text)


def _folds(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"must be 2 or more; found {text}")
    return value


def _shard(text: str) -> tuple[int, int]:
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"must be I/N with 1 <= I <= N, such as 2/4; found {text}")
    return int(number), int(total)
