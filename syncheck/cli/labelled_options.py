"""Options of the commands that read labelled answers or make labels; loads no model library."""

from __future__ import annotations

import argparse
from typing import get_args

from syncheck.aggregators.names import AggregatorKind
from syncheck.cli.options import add_engine, add_length, add_model, add_options, number, open_share, positive_share
from syncheck.config import DEFAULT_SCHEMA

SEEDS = 3
"""Number of runs in the paper's Figures 3 and 4."""

_NO_MONITOR = "none; --schema says what is measured"

_folds = number(int, lambda value: value >= 2, "a whole number of at least 2")
_folds_or_none = number(int, lambda value: value == 0 or value >= 2, "0, or a whole number of at least 2")


def _shard(text: str) -> tuple[int, int]:
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"must be I/N with 1 <= I <= N, such as 2/4; found {text}")
    return int(number), int(total)


def add_train(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``train``."""
    add_model(parser, monitor=False)
    _add_data(parser)
    _add_labels(parser)
    add_options(
        parser,
        f"""
        --aggregator = best  kind of aggregator; 'best' chooses one by grouped cross-validation (%(default)s)
        --schema SCHEMA = {DEFAULT_SCHEMA}  feature schema (%(default)s)
        """,
        aggregator={"choices": (*get_args(AggregatorKind), "best")},
    )
    _add_plot(parser, "plot the AUROC of each kind on held-out folds")
    add_options(parser, "--output DIR", output={"required": True})


def add_adapt(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``adapt``."""
    add_model(parser, monitor=False)
    add_options(
        parser,
        """
        --prompts FILE  JSON Lines with question and context, of at least five questions; if a record has a response,
            the model reads it instead of answering
        --output DIR  folder for the monitor and its model card
        --teacher TEACHER = generic  model whose sure scores become labels: 'generic', the bundled monitor, or anything
            that --aligner takes, such as an AlignScore .ckpt, minicheck:PATH or spans:PATH (%(default)s)
        --sure SCORE = 0.8  label a sentence faithful if the teacher's score is at least SCORE, unfaithful if it is at
            most 1 - SCORE (%(default)s)
        --samples N = 1  number of sampled answers in addition to the greedy one (%(default)s)
        """,
        **dict.fromkeys(("prompts", "output"), {"required": True}),
        samples={"type": int},
    )
    add_length(parser, default=256)
    add_options(
        parser,
        f"""
        --aggregator = monotone  kind of aggregator (%(default)s)
        --schema SCHEMA = {DEFAULT_SCHEMA}  feature schema (%(default)s)
        --seed SEED = 0
        """,
        aggregator={"choices": get_args(AggregatorKind)},
    )


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``features``."""
    add_model(parser, default=_NO_MONITOR)
    add_options(parser, "--data PATH  RAGTruth folder, or labelled JSON Lines", data={"required": True})
    _add_schema(parser)
    add_options(parser, "--output FILE  Parquet file with one row per sentence", output={"required": True})
    _add_corpus(parser)
    add_options(parser, "--batch-size N  number of responses replayed at once (cpu 1, cuda 16)")
    add_engine(parser)
    about = "measure only every N-th part, starting with part I"
    add_options(parser, f"--shard I/N  {about}", shard={"type": _shard, "default": (1, 1)})


def add_label(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``label``."""
    add_options(
        parser,
        """
        input INPUT  JSON Lines with question, context and response, or with --records what `syncheck generate` wrote
        --records FILE  the records that were answered, from which answers take question and passages, by id
        --output FILE  labelled JSON Lines; if it exists, its labels are kept and labelling continues
        --html FILE  instead of asking in the terminal, write an offline page that asks and saves labels.jsonl
        --labels FILE  for --html: earlier labels, with which the page starts
        --count N = 50  largest number of labels (%(default)s)
        --order nearest|random = nearest  nearest: sentences with scores closest to the threshold first, for `calibrate
            --method shift --risk none`; random: whole answers in random order, for a threshold with a guarantee
            (%(default)s)
        --responses N = 200  number of responses drawn at random from INPUT; with --order nearest, all of them are in
            the output (%(default)s)
        --seed SEED = 0  seed of the random draw (%(default)s)
        """,
    )
    add_model(parser)


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``calibrate``."""
    add_model(parser)
    _add_data(parser)
    _add_labels(parser)
    add_options(
        parser,
        """
        --method isotonic|platt|shift = isotonic  calibration method: isotonic needs hundreds of labels, platt fewer,
            shift about ten (%(default)s)
        --thresholds carried|chosen = carried  keep the monitor's thresholds, moved to the calibrated scale (carried),
            or choose new ones by the rule of train (chosen) (%(default)s)
        --risk RISK = 0.05  largest share of released sentences that may be unfaithful (%(default)s); 'none' chooses no
            threshold
        --confidence CONFIDENCE  probability that --risk is not exceeded (0.9)
        --every-sentence  choose the threshold on all sentences, which must then be independent, instead of one random
            sentence per question
        --good-share SHARE  set the backtrack threshold to the lowest score above which this share of the sentences is
            faithful; calibrate on answers of the decoder that will use it (as --thresholds says)
        --curve FILE  plot the share of faithful sentences against the share kept, over all thresholds
        """,
        risk={"type": lambda text: None if text == "none" else open_share(text)},
        confidence={"type": open_share},
        good_share={"type": positive_share},
    )
    _add_plot(parser, "plot a reliability diagram")
    add_options(parser, "--output DIR  folder for the calibrated monitor")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``evaluate``."""
    add_model(parser, default=f"{_NO_MONITOR}; with --cv 0, 'generic'")
    _add_data(parser, nargs="+", several="; several with --leave-one-source-out, one per source")
    add_options(
        parser,
        """
        --leave-one-source-out  for each source, train on all others and test on it; also test the aligner alone and
            the best word overlap
        """,
    )
    _add_schema(parser)
    add_options(
        parser,
        """
        --train PATH  train on all of PATH and test on all of --data, instead of cross-validating
        --aggregator  kind of aggregator (the monitor's own, or ensemble)
        --cv FOLDS  number of folds; 0 evaluates the monitor as it is (5)
        """,
        aggregator={"choices": get_args(AggregatorKind)},
        cv={"type": _folds_or_none},
    )
    _add_tables(parser, benchmark_set="both", runs=(5, False), repeats="number of times the folds are shuffled (5)")
    add_options(
        parser,
        """
        --group source_id|group|generator|task = source_id  answers that stay on the same side of a fold and are
            resampled together for the intervals: those to one question (source_id or group), by one model (generator),
            or for one task (%(default)s)
        --permute  also evaluate with each signal permuted among held-out sentences
        --compare-aggregators  also evaluate every kind of aggregator
        --allow-train  with --cv 0: allow questions that the monitor was trained on
        """,
    )


def add_ablate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ablate``."""
    add_model(parser, default=_NO_MONITOR)
    _add_data(parser)
    _add_comparison(parser)


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``transfer``."""
    add_model(parser, default=_NO_MONITOR)
    _add_data(parser, nargs="+")
    add_options(
        parser,
        """
        --over generator|task|data|surrogate = generator  what distinguishes the parts (%(default)s); data: their file;
            surrogate: the model that measured one corpus, one file per model
        --train-on GENERATOR  with --over surrogate: train only on this generator's answers (all)
        --without PART...  parts to leave out
        """,
        without={"default": []},
    )
    _add_comparison(parser)


def _add_data(
    parser: argparse.ArgumentParser, *, nargs: str | None = None, several: str = "; several are combined"
) -> None:
    about = f"RAGTruth folder, labelled JSON Lines, or the output of features{several if nargs else ''}"
    add_options(parser, f"--data PATH  {about}", data={"required": True, "nargs": nargs})
    _add_corpus(parser)
    add_options(parser, "--seed SEED = 0")


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the fields of :class:`~syncheck.labelling.Selection`, and the models that label."""
    add_options(
        parser.add_argument_group(
            "labelled data", "by default everything in a file; from a RAGTruth folder, all answers to questions"
        ),
        """
        --task NAME...  only these tasks; RAGTruth has QA, Summary and Data2txt
        --split NAME  only this split; RAGTruth has train and test
        --quality QUALITY...  only responses of this quality; RAGTruth has good, incorrect_refusal and truncated
        --generator NAME...  only responses by these models
        --implicit-true  count spans that are true although the passages do not say so
        --due-to-null  count spans that read a null in a business record as 'no'
        --carry-labels  accept labelled sentences with other boundaries than the monitor's; a sentence of the monitor
            is unfaithful if it overlaps an unfaithful one (such labels are refused)
        --prompts monitor|task = monitor  monitor: the monitor's template; task: the paper's own prompts, for RAGTruth
            and biographies (%(default)s)
        --propositioner NAME  splits biographies that have no propositions: 'rules', or the checkpoint of a model (none)
        --judge NAME  model that labels propositions without a label: 'autoais:' and a checkpoint, as in the paper, or
            anything that --aligner takes (none)
        """,
        **dict.fromkeys(("implicit_true", "due_to_null"), {"action": argparse.BooleanOptionalAction, "default": True}),
    )


def _add_labels(parser: argparse.ArgumentParser) -> None:
    """Add the rule by which spans become labels, for commands without ``--set``."""
    add_options(
        parser,
        """
        --labels overlap|paper = overlap  a sentence is unfaithful if it overlaps a span (overlap) or, as in the paper,
            if it contains a span or lies within one (paper) (%(default)s)
        """,
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    add_options(parser, f"--schema SCHEMA  feature schema of a --model without --monitor ({DEFAULT_SCHEMA})")


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    _add_schema(parser)
    add_options(
        parser,
        """
        --aggregator = mlp  kind of aggregator (%(default)s, as in the paper)
        --cv FOLDS = 5  number of folds (%(default)s)
        """,
        aggregator={"choices": get_args(AggregatorKind)},
        cv={"type": _folds},
    )
    repeats = "number of times the folds are shuffled, instead of --seeds"
    _add_tables(parser, benchmark_set="strict", runs=(SEEDS, True), repeats=repeats)


def _add_tables(parser: argparse.ArgumentParser, *, benchmark_set: str, runs: tuple[int, bool], repeats: str) -> None:
    add_options(
        parser.add_mutually_exclusive_group(),
        f"""
        --repeats N  {repeats}
        --seeds N  number of runs on the same folds with different seeds; the paper uses {SEEDS}
        """,
    )
    parser.set_defaults(default_runs=runs)
    add_options(
        parser,
        f"""
        --set strict|paper|both = {benchmark_set}
        --output FILE  also write the tables as JSON
        """,
    )
    _add_plot(parser, "plot the AUROC with intervals")


def _add_plot(parser: argparse.ArgumentParser, drawn: str) -> None:
    add_options(parser, f"--plot FILE  {drawn}, in the format given by the file name: .png, .svg, ...")
