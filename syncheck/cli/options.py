"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from syncheck.config import DEFAULT_SCHEMA, AggregatorKind

__all__ = [
    "add_ablation",
    "add_aligner",
    "add_conversion",
    "add_corpus",
    "add_evaluation",
    "add_extraction",
    "add_gate",
    "add_labels",
    "add_transfer",
    "aligner_options",
    "count",
    "share",
]


MODES = ("nli_sp", "nli", "bin_sp", "bin")
OVERFLOWS = ("split", "cut")


def add_aligner(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--aligner`` and what its kinds take; ``default`` ends its help."""
    parser.add_argument(
        "--aligner",
        help="'bundled', 'none', an AlignScore .ckpt or converted folder, the folder or name of a classifier, or one "
        f"of minicheck:PATH, critic:PATH (Self-RAG), spans:PATH (asked for unsupported spans); {default}",
    )
    group = parser.add_argument_group("aligner", "for some kinds of --aligner")
    _add_backbone(group)
    group.add_argument("--aligner-mode", choices=MODES, help="for AlignScore: the mode (nli_sp)")
    group.add_argument(
        "--aligner-overflow",
        choices=OVERFLOWS,
        help="for AlignScore, contexts beyond its window: score every part, or cut the end as its code does (split)",
    )
    group.add_argument(
        "--aligner-entailment",
        type=_index,
        metavar="N",
        help="for a classifier: the number of the class that means supported",
    )


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """Add what ``convert-aligner`` takes."""
    parser.add_argument("--aligner", required=True, metavar="FILE", help="an AlignScore .ckpt")
    _add_backbone(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to pass to --aligner afterwards")


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
        help="for an AlignScore .ckpt: where the config and tokenizer of its RoBERTa are (the folder beside it, or the "
        "model, that the checkpoint names)",
    )


def _index(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more; found {text}")
    return value


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add what makes ``score`` a gate."""
    parser.add_argument(
        "--fail-under",
        type=share,
        metavar="SCORE",
        help="exit with 1 if a sentence scores below SCORE, 0 to 1, or something could not be checked: a sentence with "
        "a letter or digit but no score, an empty response, an empty input (never)",
    )
    parser.add_argument(
        "--allow-unscored", action="store_true", help="with --fail-under: pass what could not be checked (it fails)"
    )


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:  # NaN too
        raise argparse.ArgumentTypeError(f"must be from 0 to 1; found {text}")
    return value


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add those of :class:`~syncheck.labelling.Selection`, and whose prompts are measured."""
    group = parser.add_argument_group(
        "labelled data", "by default all of a file; from a RAGTruth folder, all answers to questions"
    )
    group.add_argument(
        "--task", nargs="+", metavar="NAME", help="only these tasks; RAGTruth has QA, Summary and Data2txt"
    )
    group.add_argument("--split", metavar="NAME", help="only this part; RAGTruth has train and test")
    group.add_argument(
        "--quality",
        nargs="+",
        metavar="REMARK",
        help="only responses with one of these remarks; RAGTruth has good, incorrect_refusal and truncated",
    )
    group.add_argument("--generator", nargs="+", metavar="NAME", help="only responses by these models")
    group.add_argument(
        "--implicit-true",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count spans that are true of the world although the passages do not say so",
    )
    group.add_argument(
        "--due-to-null",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count spans that read a null in a business record as a no",
    )
    group.add_argument(
        "--carry-labels",
        action="store_true",
        help="accept labelled sentences that the monitor cuts differently; its sentences are unfaithful where they "
        "overlap unfaithful ones (such labels are refused)",
    )
    group.add_argument(
        "--prompts",
        choices=("monitor", "task"),
        default="monitor",
        help="task: the paper's own, for RAGTruth and biographies (%(default)s: the monitor's template)",
    )
    group.add_argument(
        "--propositioner",
        metavar="NAME",
        help="what splits biographies without propositions: 'rules', or a checkpoint that writes propositions (none)",
    )
    group.add_argument(
        "--judge",
        metavar="NAME",
        help="what judges propositions without a label: 'autoais:' and a checkpoint, as in the paper, or anything that "
        "--aligner takes (none)",
    )


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Add the rule by which spans become labels, for commands that have no benchmark sets to choose from."""
    parser.add_argument(
        "--labels",
        choices=("overlap", "paper"),
        default="overlap",
        help="what makes a sentence unfaithful: an overlap with a span, or, as in the paper, a span that contains it "
        "or is contained in it (%(default)s)",
    )


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
        "--train", metavar="PATH", help="train on all of PATH and test on all of --data, instead of on folds"
    )
    parser.add_argument(
        "--aggregator", choices=get_args(AggregatorKind), help="kind of aggregator (the monitor's own, or mlp)"
    )
    parser.add_argument(
        "--cv", type=_folds_or_none, metavar="FOLDS", help="number of folds; 0 evaluates the monitor as it is (5)"
    )
    _add_runs(parser, repeats="number of shuffles of the folds (5)")
    parser.set_defaults(default_runs=(5, False))
    parser.add_argument(
        "--group",
        choices=("source_id", "group", "generator", "task"),
        default="source_id",
        help="what stays on one side of a fold and is resampled together for the intervals: the answers to one "
        "question (source_id or group), by one model, or for one task (%(default)s)",
    )
    parser.add_argument("--set", choices=("strict", "paper", "both"), default="both")
    parser.add_argument(
        "--permute", action="store_true", help="also evaluate with each signal permuted among held-out sentences"
    )
    parser.add_argument("--compare-aggregators", action="store_true", help="also evaluate every kind of aggregator")
    parser.add_argument(
        "--allow-train", action="store_true", help="with --cv 0: allow questions that the monitor was trained on"
    )
    _add_outputs(parser)


def add_ablation(parser: argparse.ArgumentParser) -> None:
    """Add what ``ablate`` takes."""
    parser.add_argument(
        "--data",
        required=True,
        metavar="PATH",
        help="the output of features, a RAGTruth folder, or labelled JSON Lines",
    )
    _add_comparison(parser)


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Add what ``transfer`` takes."""
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        metavar="PATH",
        help="the output of features, RAGTruth folders, or labelled JSON Lines; several are combined",
    )
    parser.add_argument(
        "--over",
        choices=("generator", "task", "data", "surrogate"),
        default="generator",
        help="how the parts differ (%(default)s); data: by file; surrogate: one corpus measured by several "
        "models, a file each",
    )
    parser.add_argument(
        "--train-on", metavar="GENERATOR", help="with --over surrogate: train only on this generator's answers (all)"
    )
    parser.add_argument("--without", nargs="+", default=[], metavar="PART", help="parts to leave out")
    _add_comparison(parser)


def add_extraction(parser: argparse.ArgumentParser) -> None:
    """Add what ``features`` takes."""
    add_corpus(parser)
    parser.add_argument(
        "--batch-size", type=count, metavar="N", help="number of responses replayed at once (cpu 1, cuda 16)"
    )
    parser.add_argument(
        "--part-size", type=count, default=64, metavar="N", help="number of records that a kill can lose (%(default)s)"
    )
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="measure every N-th part, starting with the I-th"
    )


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schema", help=f"features of a --model without --monitor ({DEFAULT_SCHEMA})")
    parser.add_argument(
        "--aggregator",
        choices=get_args(AggregatorKind),
        default="mlp",
        help="kind of aggregator (%(default)s, as in the paper)",
    )
    parser.add_argument("--cv", type=_folds, default=5, metavar="FOLDS")
    _add_runs(parser, repeats="number of shuffles of the folds, instead of --seeds")
    parser.set_defaults(default_runs=(SEEDS, True))
    parser.add_argument("--set", choices=("strict", "paper", "both"), default="strict")
    _add_outputs(parser)


def _add_runs(parser: argparse.ArgumentParser, *, repeats: str) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--repeats", type=count, metavar="N", help=repeats)
    group.add_argument(
        "--seeds",
        type=count,
        metavar="N",
        help=f"number of runs on the same folds with different seeds; the paper has {SEEDS}",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="the tables as JSON")
    parser.add_argument(
        "--plot", metavar="FILE", help="plot of the AUROC with intervals, in the format of the ending: .png, .svg, ..."
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
