"""Options that several commands share, and their settings in variables; loads no model library."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from syncheck.base.errors import InputError
from syncheck.config import DEFAULT_SCHEMA
from syncheck.results.types import EFFORTS
from syncheck.text.sentences.boundaries import LineBreaks

DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")
OF_A_WRITER = "'generation' for the kit's model, 'generic' for another"  # without --monitor


def number(kind: Callable[[str], float], accepts: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """Make a parser of numbers that refuses others with a message of what was expected."""

    def read(text: str) -> float:
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
    "SHARE": open_share,
    "CONFIDENCE": open_share,
    "RISK": lambda text: None if text == "none" else open_share(text),
    "ALPHA": float,
    "DELTA": float,
}
"""Parsers of values, by the names that the help gives them; other values are strings."""

_SHARED = {
    "--part-size N": "number of records per part; a kill loses at most one part (64)",
    "--device cpu|cuda": "where the model runs",
    "--max-new-tokens N": "largest number of tokens in an answer",
    "--prior SHARE": "expected share of faithful sentences, which shifts every score (the share in the monitor's "
    "training)",
    "--schema SCHEMA": f"feature schema of a --model without --monitor ({DEFAULT_SCHEMA})",
    "--labels overlap|paper": "a sentence is unfaithful if it overlaps a span (overlap) or, as in the paper, if it "
    "contains a span or lies within one (paper)",
    "--aligner-backbone DIR_OR_ID": "for an AlignScore .ckpt: RoBERTa model with its config and tokenizer (the folder "
    "beside the checkpoint, or the model that the checkpoint names)",
}
"""Help of options that several commands have, by their usage."""
IN_FORMAT = ", in the format given by the file name: .png, .svg, ..."
"""End of the help of ``--plot FILE``."""


class Options:
    """The options of a command or of a group of them, which are added by their usage."""

    def __init__(self, parser: argparse._ActionsContainer) -> None:
        self.parser = parser

    def group(self, title: str, about: str | None = None) -> Options:
        """Begin a group of options."""
        return Options(self.parser.add_argument_group(title, about))

    def __call__(self, usage: str, about: str | None = None, **more: Any) -> None:
        """Add ``"--output FILE"``, ``"--form a|b = a"`` for one of two values, or the switch ``"--quiet"``.

        ``about`` is its help, which ends with the default in the usage; ``more`` are further arguments of
        ``add_argument``.
        """
        usage, _, default = usage.partition(" = ")
        about = about or _SHARED.get(usage)
        if default:
            more["default"] = default
            about = about if about is None or "%(default)s" in about else f"{about} (%(default)s)"
        name, _, value = usage.partition(" ")
        if "|" in value:
            more = {"choices": tuple(value.split("|"))} | more
        elif value:
            more = {"metavar": value, "type": _VALUES.get(value)} | more
        elif not more:
            more = {"action": "store_true"}
        self.parser.add_argument(name, help=about, **more)


def add_model(add: Options, *, monitor: bool = True, default: str = "'generic'") -> None:
    """Add options for model, aligner and segmentation; ``monitor`` is False for a command that trains one.

    ``default`` says for the help which monitor the command takes without ``--monitor``.
    """
    group = add.group("model")
    group("--model DIR_OR_ID", "causal language model (the kit's)")
    if monitor:
        group(
            "--monitor DIR",
            "monitor trained for --model, or a bundled one that reads text alone: 'generic-reader', "
            f"'generic-bundled', or 'generic', the first if the reader's encoder is installed ({default})",
        )
    group("--device cpu|cuda = cpu")
    alone = (
        "; not with --monitor. The score is that of the bundled monitor trained with it ('bundled', 'reader'), else "
        "its support (the monitor's)"
    )
    add_aligner(add, alone if monitor else " ('reader' if its encoder is installed, else 'bundled')")
    own = "the monitor's" if monitor else "none"
    group = add.group("sentences", f"in place of {'the monitor' if monitor else 'Punkt'}'s own")
    group("--abbreviations english|none", f"list of abbreviations whose full stop does not end a sentence ({own})")
    group("--line-breaks", f"which line breaks end a sentence ({own})", choices=get_args(LineBreaks))
    group("--cjk-stops", "end sentences at Chinese and Japanese full stops (off)")
    group("--clauses", "also end sentences at commas, semicolons and colons (off)")
    group("--sentences-together N", "treat N sentences as one (1)")


def add_aligner(add: Options, default: str) -> None:
    """Add ``--aligner`` and the options of its kinds; ``default`` ends its help."""
    add(
        "--aligner ALIGNER",
        "model that says how well passages support a sentence: 'bundled', 'reader' (scoring takes about 1.5 "
        "times as long, and it understands far more), 'none', 'minicheck', 'alignscore', 'hhem' or 'nli' (the "
        "best such checkpoint in the cache), 'auto' (the best of all these that is there), an AlignScore .ckpt, "
        f"the folder or name of a classifier, or minicheck:PATH{default}",
    )
    add(
        "--effort EFFORT",
        "how much of the passages the reader reads with a sentence, and how often it reads twice (balanced)",
        choices=EFFORTS,
    )
    group = add.group("aligner", "for some kinds of --aligner")
    group("--aligner-backbone DIR_OR_ID")
    group("--aligner-mode nli_sp|nli|bin_sp|bin", "for AlignScore: evaluation mode (nli_sp)")
    group(
        "--aligner-overflow split|cut",
        "for AlignScore, if a context exceeds its window: score all parts, or cut the end as its own code does (split)",
    )
    group("--aligner-entailment N", "for a classifier: index of the class that means supported", type=index)


def flag(name: str) -> str:
    """Write the name of an option as a user does."""
    return f"--{name.replace('_', '-')}"


def named(args: argparse.Namespace, names: str) -> dict[str, Any]:
    """Collect options by their names, as keywords of the function that takes them."""
    return {name: getattr(args, name) for name in names.split()}


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the ``--aligner-*`` options that are given, as keywords of ``load_aligner``."""
    options = {name: getattr(args, f"aligner_{name}") for name in ("backbone", "mode", "overflow", "entailment")}
    return {name: value for name, value in options.items() if value is not None}


def add_files(add: Options) -> None:
    """Add the options for input and output."""
    add("--input PATH = -", "JSON Lines or Parquet file, a folder of them, or - for JSON Lines on standard input")
    add(
        "--output PATH = -",
        "JSON Lines file, - for standard output (%(default)s), or a store: a folder, given with a slash at the "
        "end, that keeps rows as Parquet and continues after a kill",
    )
    add(
        "--format jsonl|human = jsonl", "jsonl: for programs; human: each sentence with its score, remarks and evidence"
    )
    add("--resume", "keep the answers in --output and continue; refused if records, models or options changed (off)")
    add.group("corpus", "if --output is a store")("--part-size N")


def check_file(option: str, name: str | None) -> None:
    """Refuse standard output, a folder, and a file whose folder cannot be written; None names no file."""
    if name is None:
        return
    if name == "-":
        raise InputError(f"{option} '-': only JSON Lines are written to standard output; name a file")
    if not Path(name).parent.is_dir():
        raise InputError(f"{option} {name!r}: the folder does not exist; create it first")
    if Path(name).is_dir():
        raise InputError(f"{option} {name!r} is a folder; name a file")
    if not os.access(Path(name) if Path(name).exists() else Path(name).parent, os.W_OK):
        raise InputError(f"{option} {name!r} cannot be written; change its permissions, or pass another path")


def check_folder(path: str | None) -> None:
    """Refuse a path that is not a folder and cannot be made one; None names no folder."""
    if path is None:
        return
    place = next(place for place in (Path(path).absolute(), *Path(path).absolute().parents) if place.exists())
    if not place.is_dir():
        raise InputError(
            f"--output {path!r}: expected a folder, or a path where one can be created; found a file at "
            f"{str(place)!r}. Move it, or pass another path"
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {path!r}: {str(place)!r} cannot be written; change its permissions, or pass another"
        )


def say(text: str) -> None:
    """Write text to standard output, without delay."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_json(path: str | None, values: Mapping[str, object]) -> None:
    """Write the results of a command as JSON, if a file was named."""
    if path is not None:
        Path(path).write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")


PREFIX = "SYNCHECK_"
SECRETS = frozenset({"SYNCHECK_API_KEY", "SYNCHECK_UPSTREAM_KEY"})
"""Variables that hold a key, and set no option."""
_SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def add_settings(add: Options) -> None:
    """Let the options of a command be set by variables, too."""
    parser: Any = add.parser

    def prepare() -> None:
        """Set the defaults of the command by variables, before its flags are parsed."""
        for action in parser._actions:
            variable = f"{PREFIX}{action.dest.upper()}"
            if action.dest != "help" and (value := os.environ.get(variable)):
                action.default, action.required = _value(parser, action, value, f"${variable}"), False

    parser.prepare = prepare
    said = "A variable sets an option without its flag: $SYNCHECK_STOP_BELOW sets --stop-below."
    parser.description = f"{parser.description} {said}"


def unknown_variables(parsers: Sequence[argparse.ArgumentParser]) -> list[str]:
    """List the variables that begin as ours do, and set nothing in these commands."""
    known = {f"{PREFIX}{action.dest.upper()}" for parser in parsers for action in parser._actions}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known | SECRETS)


def _value(parser: Any, action: argparse.Action, value: str, origin: str) -> Any:  # noqa: ANN401 - the option's own
    """Read a value as its option does; one that the option does not take ends the command."""
    name = action.dest.replace("_", "-")
    if action.nargs == 0:
        if (switch := _SWITCHES.get(value.lower())) is None:
            parser.error(f"{origin}: {name} must be true or false; found {value}")
        return switch
    try:
        return parser._get_values(action, [value])
    except argparse.ArgumentError as error:
        parser.error(f"{origin}: {name}: {error.message}")
