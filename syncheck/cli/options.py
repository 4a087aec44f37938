"""Options that several commands share, and values that they take; loads no model library."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, get_args

from syncheck.results.types import EFFORTS
from syncheck.text.sentences.boundaries import LineBreaks

DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")
OF_A_WRITER = "'generation' for the bundled model, 'generic' for another"
"""The monitor of a command whose model writes, without ``--monitor``."""

_Number = TypeVar("_Number", int, float)


def number(
    kind: Callable[[str], _Number], accepts: Callable[[_Number], bool], expected: str
) -> Callable[[str], _Number]:
    """Make a parser of numbers that refuses others with a message of what was expected."""

    def read(text: str) -> _Number:
        with suppress(ValueError):
            if accepts(value := kind(text)):  # no comparison accepts NaN
                return value
        raise argparse.ArgumentTypeError(f"must be {expected}; found {text}")

    return read


count = number(int, lambda value: value >= 1, "a whole number of at least 1")
share = number(float, lambda value: 0 <= value <= 1, "a number from 0 to 1")
index = number(int, lambda value: value >= 0, "a whole number of at least 0")
positive = number(float, lambda value: 0 < value < math.inf, "a finite number above 0")
positive_share = number(float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
open_share = number(float, lambda value: 0 < value < 1, "a number above 0 and below 1")

_VALUES: Mapping[str, Callable[[str], object]] = {
    "N": count,
    "SEED": number(int, lambda value: -(2**63) <= value < 2**64, "a whole number of at most 64 bits"),
    "SCORE": share,
    "SECONDS": positive,
    "BYTES": count,
    "CHARACTERS": count,
}
"""Parsers of values, by the names that the help gives them; other values are strings."""


def option(parser: argparse._ActionsContainer, usage: str, about: str | None = None, **more: Any) -> None:
    """Add an option by its usage: ``"--output FILE"`` takes a value, and ``"--quiet"`` alone is a switch.

    ``about`` is its help, and ``more`` are further arguments of ``add_argument``.
    """
    name, _, value = usage.partition(" ")
    if value:
        more = {"metavar": value, "type": _VALUES.get(value)} | more
    elif not more:
        more = {"action": "store_true"}
    parser.add_argument(name, help=about, **more)


def add_model(parser: argparse.ArgumentParser, *, monitor: bool = True, default: str = "'generic'") -> None:
    """Add options for model, aligner and segmentation; ``monitor`` is False for a command that trains one.

    ``default`` says for the help which monitor the command takes without ``--monitor``.
    """
    group = parser.add_argument_group("model")
    option(group, "--model DIR_OR_ID", "causal language model (the bundled one)")
    if monitor:
        option(
            group,
            "--monitor DIR",
            "monitor trained for --model, or a bundled one that reads text alone: 'generic-reader', "
            f"'generic-bundled', or 'generic', the first if the reader's encoder is installed ({default})",
        )
    option(group, "--device", "where the model runs (%(default)s)", choices=("cpu", "cuda"), default="cpu")
    alone = (
        "; not with --monitor. The score is that of the bundled monitor trained with it ('bundled', 'reader'), else "
        "its support (the monitor's)"
    )
    add_aligner(parser, alone if monitor else " ('reader' if its encoder is installed, else 'bundled')")
    own = "the monitor's" if monitor else "none"
    group = parser.add_argument_group("sentences", f"in place of {'the monitor' if monitor else 'Punkt'}'s own")
    option(
        group,
        "--abbreviations",
        f"list of abbreviations whose full stop does not end a sentence ({own})",
        choices=("english", "none"),
    )
    option(group, "--line-breaks", f"which line breaks end a sentence ({own})", choices=get_args(LineBreaks))
    option(group, "--cjk-stops", "end sentences at Chinese and Japanese full stops (off)")
    option(group, "--clauses", "also end sentences at commas, semicolons and colons (off)")
    option(group, "--sentences-together N", "treat N sentences as one (1)")


def add_aligner(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--aligner`` and the options of its kinds; ``default`` ends its help."""
    option(
        parser,
        "--aligner ALIGNER",
        "model that says how well passages support a sentence: 'bundled', 'reader' (scoring takes about 1.5 "
        "times as long, and it understands far more), 'none', 'minicheck', 'alignscore', 'hhem' or 'nli' (the "
        "best such checkpoint in the cache), 'auto' (the best of all these that is there), an AlignScore .ckpt "
        "or converted folder, the folder or name of a classifier, minicheck:PATH, critic:PATH (Self-RAG), or "
        f"spans:PATH (a language model that lists unsupported spans){default}",
    )
    option(
        parser,
        "--effort EFFORT",
        "how much of the passages the reader reads with a sentence, and how often it reads twice (balanced)",
        choices=EFFORTS,
    )
    group = parser.add_argument_group("aligner", "for some kinds of --aligner")
    add_backbone(group)
    option(
        group, "--aligner-mode", "for AlignScore: evaluation mode (nli_sp)", choices=("nli_sp", "nli", "bin_sp", "bin")
    )
    option(
        group,
        "--aligner-overflow",
        "for AlignScore, if a context exceeds its window: score all parts, or cut the end as its own code does (split)",
        choices=("split", "cut"),
    )
    option(group, "--aligner-entailment N", "for a classifier: index of the class that means supported", type=index)


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the ``--aligner-*`` options as keywords of ``load_aligner``; None for those not given."""
    return {name: getattr(args, f"aligner_{name}") for name in ("backbone", "mode", "overflow", "entailment")}


def add_backbone(parser: argparse._ActionsContainer) -> None:
    """Add the option for the backbone of an AlignScore checkpoint."""
    option(
        parser,
        "--aligner-backbone DIR_OR_ID",
        "for an AlignScore .ckpt: RoBERTa model with its config and tokenizer (the folder beside the checkpoint, "
        "or the model that the checkpoint names)",
    )


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the options for input and output."""
    option(
        parser,
        "--input PATH",
        "JSON Lines or Parquet file, a folder of them, or - for JSON Lines on standard input (%(default)s)",
        default="-",
    )
    option(
        parser,
        "--output PATH",
        "JSON Lines file, - for standard output (%(default)s), or a store: a folder, given with a slash at the "
        "end, that keeps rows as Parquet and continues after a kill",
        default="-",
    )
    option(
        parser,
        "--format",
        "jsonl: for programs; human: one line per sentence; compact: one line per answer with id, lowest score, "
        "number of sentences and the lowest-scoring sentence, separated by tabs (%(default)s)",
        choices=("jsonl", "human", "compact"),
        default="jsonl",
    )
    option(
        parser,
        "--resume",
        "keep the answers in --output and continue; refused if records, models or options changed (off)",
    )
    add_engine(parser.add_argument_group("corpus", "if --output is a store"))


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Add the options for answering a corpus."""
    option(
        parser,
        "--engine",
        "where records are processed: in this process, or on a Ray cluster (local)",
        choices=("local", "ray"),
    )
    option(parser, "--workers N", "with --engine ray: number of worker processes (1)")
    option(parser, "--part-size N", "number of records per part; a kill loses at most one part (64)")


def add_length(parser: argparse._ActionsContainer, *, default: int) -> None:
    """Add the option for the limit on an answer's tokens."""
    option(parser, "--max-new-tokens N", "largest number of tokens in an answer (%(default)s)", default=f"{default}")


def add_prior(parser: argparse.ArgumentParser) -> None:
    """Add the option for the share of faithful sentences."""
    about = "expected share of faithful sentences, which shifts every score (the share in the monitor's training)"
    option(parser, "--prior SHARE", about, type=open_share)
