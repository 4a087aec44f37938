"""Options that several commands share, and the files that they name, checked and locked; loads no model library."""

from __future__ import annotations

import argparse
import fcntl
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

from syncheck.base.errors import InputError, describe_failure
from syncheck.config import DEFAULT_SCHEMA
from syncheck.report.plots import check_plot
from syncheck.results.types import EFFORTS
from syncheck.text.sentences.boundaries import LineBreaks

DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")
OF_A_WRITER = "'generation' for the kit's model, 'generic' for another"
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
    "ALPHA": float,
    "DELTA": float,
}
"""Parsers of values, by the names that the help gives them; other values are strings."""


_SHARED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "--part-size N": ("number of records per part; a kill loses at most one part (64)", {}),
    "--device cpu|cuda": ("where the model runs (%(default)s)", {"default": "cpu"}),
    "--max-new-tokens N": ("largest number of tokens in an answer (%(default)s)", {}),
    "--prior SHARE": (
        "expected share of faithful sentences, which shifts every score (the share in the monitor's training)",
        {"type": open_share},
    ),
    "--schema SCHEMA": (f"feature schema of a --model without --monitor ({DEFAULT_SCHEMA})", {}),
    "--labels overlap|paper": (
        "a sentence is unfaithful if it overlaps a span (overlap) or, as in the paper, if it contains a span or "
        "lies within one (paper) (%(default)s)",
        {"default": "overlap"},
    ),
    "--aligner-backbone DIR_OR_ID": (
        "for an AlignScore .ckpt: RoBERTa model with its config and tokenizer (the folder beside the checkpoint, "
        "or the model that the checkpoint names)",
        {},
    ),
}
"""Help and further arguments of options that several commands have, by their usage."""
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
        """Add ``"--output FILE"``, ``"--form a|b"`` for one of two values, or the switch ``"--quiet"``.

        ``about`` is its help, and ``more`` are further arguments of ``add_argument``; for an option that several
        commands have, both are known.
        """
        if about is None:
            about, known = _SHARED.get(usage, (None, {}))
            more = {**known, **more}
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
    group("--device cpu|cuda")
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
        "best such checkpoint in the cache), 'auto' (the best of all these that is there), an AlignScore .ckpt "
        "or converted folder, the folder or name of a classifier, minicheck:PATH, critic:PATH (Self-RAG), or "
        f"spans:PATH (a language model that lists unsupported spans){default}",
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


def refuse_first(faults: Mapping[str, object]) -> None:
    """Refuse options for the first of these faults that is so."""
    for fault, is_so in faults.items():
        if is_so:
            raise InputError(fault)


def flag(name: str) -> str:
    """Write the name of an option as a user does."""
    return f"--{name.replace('_', '-')}"


def named(args: argparse.Namespace, names: str) -> dict[str, Any]:
    """Collect options by their names, as keywords of the function that takes them."""
    return {name: getattr(args, name) for name in names.split()}


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the ``--aligner-*`` options as keywords of ``load_aligner``; None for those not given."""
    return {name: getattr(args, f"aligner_{name}") for name in ("backbone", "mode", "overflow", "entailment")}


def add_files(add: Options) -> None:
    """Add the options for input and output."""
    add(
        "--input PATH",
        "JSON Lines or Parquet file, a folder of them, or - for JSON Lines on standard input (%(default)s)",
        default="-",
    )
    add(
        "--output PATH",
        "JSON Lines file, - for standard output (%(default)s), or a store: a folder, given with a slash at the "
        "end, that keeps rows as Parquet and continues after a kill",
        default="-",
    )
    add(
        "--format jsonl|human",
        "jsonl: for programs; human: one line per sentence (%(default)s)",
        default="jsonl",
    )
    add("--resume", "keep the answers in --output and continue; refused if records, models or options changed (off)")
    add.group("corpus", "if --output is a store")("--part-size N")


_READ = (
    *("input", "data", "train", "context", "passages", "lid_reference", "reference", "predictions"),
    *("fit_thresholds", "records"),
)
_MODELS = ("model", "aligner", "span_model", "llm")
_WRITTEN = ("output", "html", "report", "plot", "curve")

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of SIGINT."""

READER_LEFT = 141
"""Exit code after the reader of the output left: 128 plus the number of SIGPIPE."""

LOCK = ".syncheck-lock"
"""Suffix of the lock file of an output; unlike other programs' (``uv.lock``), since the file is removed at the end."""


def check_files(args: argparse.Namespace) -> None:
    """Refuse, before the work, a page or plot that cannot be written, and a file that would overwrite another one."""
    taken = [(option, path) for name in (*_READ, *_MODELS) for option, path in _named(args, name) if path.exists()]
    for name in _WRITTEN:
        for option, path in _named(args, name):
            clash = next((other for other, known in taken if _is_same(path, known)), None)
            if clash is not None:
                raise InputError(
                    f"{option} {str(path)!r} is the path that {clash} names, and would overwrite it; pass another path"
                )
            taken.append((option, path))
    for option, path in taken:
        if path.is_file() and _is_standard_output(path):
            raise InputError(f"{option} {str(path)!r} is also where standard output goes; redirect that elsewhere")
    made = Path(getattr(args, "output", None) or "-")  # by `spans`, if it is a folder
    for name in ("html", "report"):
        page = getattr(args, name, None)
        if page is not None and Path(page).parent != made:
            check_file(f"--{name}", page)
    for name in ("plot", "curve"):
        if getattr(args, name, None) is not None:
            check_plot(getattr(args, name))


@contextmanager
def locked_outputs(args: argparse.Namespace) -> Iterator[None]:
    """Keep other runs from the outputs of a command until the block, or the process, ends.

    Meanwhile there is a file ``NAME.syncheck-lock`` with the id of the process next to each output. The lock is the
    operating system's, so that one left by a killed process has no effect and is taken over.
    """
    with ExitStack() as stack:
        for name in _WRITTEN:
            for option, path in _named(args, name):
                shard = getattr(args, "shard", (1, 1)) if name == "output" else (1, 1)
                part = "" if shard == (1, 1) else f".shard-{shard[0]}-of-{shard[1]}"
                stack.enter_context(_locked(option, path, path.with_name(f"{path.name}{part}{LOCK}")))
        yield


def _named(args: argparse.Namespace, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files and folders that an option names, existing or not, but no standard stream or device."""
    given = getattr(args, name, None)
    for value in given if isinstance(given, list) else [given]:
        if value in (None, "-"):
            continue
        path = Path(value)  # as given: the target of /dev/stdout is not a file to look for
        if path.is_file() or path.is_dir() or not path.exists():
            yield flag(name), path.resolve()


def _is_same(path: Path, known: Path) -> bool:
    # A page may be named as a file of the folder that `spans` reads or writes.
    if path.suffix == ".jsonl" and path.parent == known:
        return True
    return path == known or (path.exists() and known.exists() and path.samefile(known))


def _is_standard_output(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), path.stat())
    except (OSError, ValueError):  # standard output is closed, or is not a file of the system
        return False


@contextmanager
def _locked(option: str, path: Path, lock: Path) -> Iterator[None]:
    if not path.parent.is_dir() or not path.name:  # the command says so in its own words
        yield
        return
    handle = _lock(option, path, lock)
    try:
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _lock(option: str, path: Path, lock: Path) -> int:
    """Acquire a lock and return its open, empty file."""
    while True:
        try:
            handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise InputError(
                f"{option} {str(path)!r} cannot be written: {error.strerror}, {str(lock)!r}. Pass another path"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode().strip() or "unknown"
            os.close(handle)
            raise InputError(
                f"{option} {str(path)!r} is being written by another run, process {holder}; wait for it, stop it, or "
                "pass another path"
            ) from None
        # Its former holder has removed it, and a third process may have made it again.
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            os.truncate(handle, 0)
            return handle
        os.close(handle)


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


def write_json(path: str | None, values: Mapping[str, object]) -> None:
    """Write the results of a command as JSON, if a file was named."""
    if path is not None:
        Path(path).write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def reader_left() -> int:
    """Discard silently all further output; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError):  # a stream without a descriptor is not flushed again at the end of the process
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return READER_LEFT


class _OneLine(logging.Formatter):
    """Formats a logged error with its type and message, without its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        return message if error is None else f"{message}: {describe_failure(error)}"


@contextmanager
def one_line_logs() -> Iterator[None]:
    """Show warnings and errors that are logged as one line each until the block ends."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_OneLine())
    loggers = [logging.getLogger(name) for name in ("syncheck", "fod")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
