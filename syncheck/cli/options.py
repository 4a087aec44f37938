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


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add those of :class:`~syncheck.labelling.Selection`, and whose prompts are measured."""
    group = parser.add_argument_group(
        "labelled data", "all of a file counts without these; of a RAGTruth folder, all answers to questions"
    )
    group.add_argument("--task", nargs="+", metavar="NAME", help="only these; RAGTruth has QA, Summary and Data2txt")
    group.add_argument("--split", metavar="NAME", help="only this one; RAGTruth has train and test")
    group.add_argument(
        "--quality",
        nargs="+",
        metavar="REMARK",
        help="only responses with one of these; RAGTruth has good, incorrect_refusal and truncated",
    )
    group.add_argument("--generator", nargs="+", metavar="NAME", help="only responses by these models")
    group.add_argument(
        "--implicit-true",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether spans count that are true of the world, though not said by the passages",
    )
    group.add_argument(
        "--due-to-null",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether spans count that take a null of a business record for a no",
    )
    group.add_argument(
        "--carry-labels",
        action="store_true",
        help="labelled sentences that are cut otherwise: what overlaps an unfaithful one is unfaithful (they are "
        "refused)",
    )
    group.add_argument(
        "--prompts",
        choices=("monitor", "task"),
        default="monitor",
        help="task: the paper's own, of RAGTruth and biographies (%(default)s: the monitor's template)",
    )
    group.add_argument(
        "--propositioner",
        metavar="NAME",
        help="cuts biographies that come without propositions: 'rules', or a checkpoint that writes them (none)",
    )
    group.add_argument(
        "--judge",
        metavar="NAME",
        help="judges propositions that come without a label: 'autoais:' and a checkpoint, as in the paper, or what "
        "--aligner takes (none)",
    )


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Add the rule by which spans become labels, for commands that have no benchmark sets to choose from."""
    parser.add_argument(
        "--labels",
        choices=("overlap", "paper"),
        default="overlap",
        help="what makes a sentence unfaithful: any character of a span, or, as in the paper, a span that contains it "
        "or is contained by it (%(default)s)",
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
