"""Options of the commands that read labelled answers or make labels; loads no model library."""

from __future__ import annotations

import argparse
from typing import get_args

from syncheck.cli.options import add_engine, add_length, add_model, count, number, open_share, positive_share, share
from syncheck.config import DEFAULT_SCHEMA, AggregatorKind

SEEDS = 3
"""Number of runs in the paper's Figures 3 and 4."""

_folds = number(int, lambda value: value >= 2, "a whole number of at least 2")
_folds_or_none = number(int, lambda value: value == 0 or value >= 2, "0, or a whole number of at least 2")


def _risk(text: str) -> float | None:
    return None if text == "none" else open_share(text)


def _shard(text: str) -> tuple[int, int]:
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"must be I/N with 1 <= I <= N, such as 2/4; found {text}")
    return int(number), int(total)


def add_train(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``train``."""
    add = parser.add_argument
    add_model(parser, monitor=False)
    _add_data(parser)
    _add_labels(parser)
    add(
        "--aggregator",
        choices=(*get_args(AggregatorKind), "best"),
        default="best",
        help="kind of aggregator; 'best' chooses one by grouped cross-validation (%(default)s)",
    )
    add("--schema", default=DEFAULT_SCHEMA, help="feature schema (%(default)s)")
    _add_plot(parser, "plot the AUROC of each kind on held-out folds")
    add("--output", required=True, metavar="DIR")


def add_adapt(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``adapt``."""
    add = parser.add_argument
    add_model(parser, monitor=False)
    add(
        "--prompts",
        required=True,
        metavar="FILE",
        help="JSON Lines with question and context; if a record has a response, the model reads it instead of "
        "answering",
    )
    add("--output", required=True, metavar="DIR", help="folder for the monitor and its model card")
    add(
        "--teacher",
        default="generic",
        help="model whose sure scores become labels: 'generic', the bundled monitor, or anything that --aligner takes, "
        "such as an AlignScore .ckpt, minicheck:PATH or spans:PATH (%(default)s)",
    )
    add(
        "--sure",
        type=share,
        default=0.8,
        metavar="SCORE",
        help="label a sentence faithful if the teacher's score is at least SCORE, unfaithful if it is at most 1 - "
        "SCORE (%(default)s)",
    )
    add(
        "--samples",
        type=int,
        default=1,
        metavar="N",
        help="number of sampled answers in addition to the greedy one (%(default)s)",
    )
    add_length(parser, default=256)
    add("--aggregator", choices=get_args(AggregatorKind), default="monotone", help="kind of aggregator (%(default)s)")
    add("--schema", default=DEFAULT_SCHEMA, help="feature schema (%(default)s)")
    add("--seed", type=int, default=0)


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``features``."""
    add = parser.add_argument
    add_model(parser)
    add("--data", required=True, metavar="PATH", help="RAGTruth folder, or labelled JSON Lines")
    _add_schema(parser)
    add("--output", required=True, metavar="FILE", help="Parquet file with one row per sentence")
    _add_corpus(parser)
    add("--batch-size", type=count, metavar="N", help="number of responses replayed at once (cpu 1, cuda 16)")
    add_engine(parser)
    add(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="measure only every N-th part, starting with part I"
    )


def add_label(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``label``."""
    add = parser.add_argument
    add("input", metavar="INPUT", help="JSON Lines with question, context and response")
    add(
        "--output",
        metavar="FILE",
        help="labelled JSON Lines; if it exists, its labels are kept and labelling continues",
    )
    add(
        "--html",
        metavar="FILE",
        help="instead of asking in the terminal, write an offline page that asks and saves labels.jsonl",
    )
    add("--labels", metavar="FILE", help="for --html: earlier labels, with which the page starts")
    add("--count", type=count, default=50, metavar="N", help="largest number of labels (%(default)s)")
    add(
        "--order",
        choices=("nearest", "random"),
        default="nearest",
        help="nearest: sentences with scores closest to the threshold first, for `calibrate --method shift --risk "
        "none`; random: whole answers in random order, for a threshold with a guarantee (%(default)s)",
    )
    add(
        "--responses",
        type=count,
        default=200,
        metavar="N",
        help="number of responses drawn at random from INPUT; with --order nearest, all of them are in the output "
        "(%(default)s)",
    )
    add("--seed", type=int, default=0, help="seed of the random draw (%(default)s)")
    add_model(parser)


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``calibrate``."""
    add = parser.add_argument
    add_model(parser)
    _add_data(parser)
    _add_labels(parser)
    add(
        "--method",
        choices=("isotonic", "platt", "shift"),
        default="isotonic",
        help="calibration method: isotonic needs hundreds of labels, platt fewer, shift about ten (%(default)s)",
    )
    add(
        "--thresholds",
        choices=("carried", "chosen"),
        default="carried",
        help="keep the monitor's thresholds, moved to the calibrated scale (carried), or choose new ones by the rule "
        "of train (chosen) (%(default)s)",
    )
    add(
        "--risk",
        type=_risk,
        default=0.05,
        help="largest share of released sentences that may be unfaithful (%(default)s); 'none' chooses no threshold",
    )
    add("--confidence", type=open_share, help="probability that --risk is not exceeded (0.9)")
    add(
        "--every-sentence",
        action="store_true",
        help="choose the threshold on all sentences, which must then be independent, instead of one random sentence "
        "per question",
    )
    add(
        "--good-share",
        type=positive_share,
        metavar="SHARE",
        help="set the backtrack threshold to the lowest score above which this share of the sentences is faithful; "
        "calibrate on answers of the decoder that will use it (as --thresholds says)",
    )
    add(
        "--curve",
        metavar="FILE",
        help="plot the share of faithful sentences against the share kept, over all thresholds",
    )
    _add_plot(parser, "plot a reliability diagram")
    add("--output", metavar="DIR", help="folder for the calibrated monitor")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate``."""
    add = parser.add_argument
    add_model(parser)
    _add_data(parser, nargs="+", several="; several with --leave-one-source-out, one per source")
    add(
        "--leave-one-source-out",
        action="store_true",
        help="for each source, train on all others and test on it; also test the aligner alone and the best word "
        "overlap",
    )
    _add_schema(parser)
    add("--train", metavar="PATH", help="train on all of PATH and test on all of --data, instead of cross-validating")
    add("--aggregator", choices=get_args(AggregatorKind), help="kind of aggregator (the monitor's own, or ensemble)")
    add("--cv", type=_folds_or_none, metavar="FOLDS", help="number of folds; 0 evaluates the monitor as it is (5)")
    _add_tables(parser, benchmark_set="both", runs=(5, False), repeats="number of times the folds are shuffled (5)")
    add(
        "--group",
        choices=("source_id", "group", "generator", "task"),
        default="source_id",
        help="answers that stay on the same side of a fold and are resampled together for the intervals: those to one "
        "question (source_id or group), by one model (generator), or for one task (%(default)s)",
    )
    add("--permute", action="store_true", help="also evaluate with each signal permuted among held-out sentences")
    add("--compare-aggregators", action="store_true", help="also evaluate every kind of aggregator")
    add("--allow-train", action="store_true", help="with --cv 0: allow questions that the monitor was trained on")


def add_ablate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ablate``."""
    add_model(parser)
    _add_data(parser)
    _add_comparison(parser)


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``transfer``."""
    add = parser.add_argument
    add_model(parser)
    _add_data(parser, nargs="+")
    add(
        "--over",
        choices=("generator", "task", "data", "surrogate"),
        default="generator",
        help="what distinguishes the parts (%(default)s); data: their file; surrogate: the model that measured one "
        "corpus, one file per model",
    )
    add("--train-on", metavar="GENERATOR", help="with --over surrogate: train only on this generator's answers (all)")
    add("--without", nargs="+", default=[], metavar="PART", help="parts to leave out")
    _add_comparison(parser)


def _add_data(
    parser: argparse.ArgumentParser, *, nargs: str | None = None, several: str = "; several are combined"
) -> None:
    parser.add_argument(
        "--data",
        required=True,
        nargs=nargs,
        metavar="PATH",
        help=f"RAGTruth folder, labelled JSON Lines, or the output of features{several if nargs else ''}",
    )
    _add_corpus(parser)
    parser.add_argument("--seed", type=int, default=0)


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the fields of :class:`~syncheck.labelling.Selection`, and the models that label."""
    add = parser.add_argument_group(
        "labelled data", "by default everything in a file; from a RAGTruth folder, all answers to questions"
    ).add_argument
    add("--task", nargs="+", metavar="NAME", help="only these tasks; RAGTruth has QA, Summary and Data2txt")
    add("--split", metavar="NAME", help="only this split; RAGTruth has train and test")
    add(
        "--quality",
        nargs="+",
        metavar="QUALITY",
        help="only responses of this quality; RAGTruth has good, incorrect_refusal and truncated",
    )
    add("--generator", nargs="+", metavar="NAME", help="only responses by these models")
    add(
        "--implicit-true",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count spans that are true although the passages do not say so",
    )
    add(
        "--due-to-null",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count spans that read a null in a business record as 'no'",
    )
    add(
        "--carry-labels",
        action="store_true",
        help="accept labelled sentences with other boundaries than the monitor's; a sentence of the monitor is "
        "unfaithful if it overlaps an unfaithful one (such labels are refused)",
    )
    add(
        "--prompts",
        choices=("monitor", "task"),
        default="monitor",
        help="monitor: the monitor's template; task: the paper's own prompts, for RAGTruth and biographies "
        "(%(default)s)",
    )
    add(
        "--propositioner",
        metavar="NAME",
        help="splits biographies that have no propositions: 'rules', or the checkpoint of a model (none)",
    )
    add(
        "--judge",
        metavar="NAME",
        help="model that labels propositions without a label: 'autoais:' and a checkpoint, as in the paper, or "
        "anything that --aligner takes (none)",
    )


def _add_labels(parser: argparse.ArgumentParser) -> None:
    """Add the rule by which spans become labels, for commands without ``--set``."""
    parser.add_argument(
        "--labels",
        choices=("overlap", "paper"),
        default="overlap",
        help="a sentence is unfaithful if it overlaps a span (overlap) or, as in the paper, if it contains a span or "
        "lies within one (paper) (%(default)s)",
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schema", help=f"feature schema of a --model without --monitor ({DEFAULT_SCHEMA})")


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    _add_schema(parser)
    parser.add_argument(
        "--aggregator",
        choices=get_args(AggregatorKind),
        default="mlp",
        help="kind of aggregator (%(default)s, as in the paper)",
    )
    parser.add_argument("--cv", type=_folds, default=5, metavar="FOLDS", help="number of folds (%(default)s)")
    repeats = "number of times the folds are shuffled, instead of --seeds"
    _add_tables(parser, benchmark_set="strict", runs=(SEEDS, True), repeats=repeats)


def _add_tables(parser: argparse.ArgumentParser, *, benchmark_set: str, runs: tuple[int, bool], repeats: str) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--repeats", type=count, metavar="N", help=repeats)
    group.add_argument(
        "--seeds",
        type=count,
        metavar="N",
        help=f"number of runs on the same folds with different seeds; the paper uses {SEEDS}",
    )
    parser.set_defaults(default_runs=runs)
    parser.add_argument("--set", choices=("strict", "paper", "both"), default=benchmark_set)
    parser.add_argument("--output", metavar="FILE", help="also write the tables as JSON")
    _add_plot(parser, "plot the AUROC with intervals")


def _add_plot(parser: argparse.ArgumentParser, drawn: str) -> None:
    parser.add_argument(
        "--plot", metavar="FILE", help=f"{drawn}, in the format given by the file name: .png, .svg, ..."
    )
