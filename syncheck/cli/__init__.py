"""Command line ``syncheck``: parses arguments, runs a command, and turns errors into exit codes.

Exit codes: 0 done, 1 a threshold such as that of ``--fail-under`` missed, 2 wrong usage or input or any other failure,
130 interrupted with Ctrl-C, 141 the reader of the output left (``| head``), as a shell reports them for any program.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from syncheck import __version__
from syncheck.base.errors import InputError, describe_failure
from syncheck.cli.options import Options, check_file, flag
from syncheck.report.plots import check_plot

COMMANDS = {
    "demo": ("generate:demo", "answer questions with the kit's model, greedily and by FOD"),
    "score": ("score:score", "score given responses, sentence by sentence"),
    "report": ("report:report", "write an HTML page of many scored answers, worst first"),
    "spans": ("spans:mark", "mark the wrong characters of responses, in any language"),
    "spans-score": ("spans:score", "score predicted spans: IoU and correlation"),
    "generate": ("generate:generate", "answer questions and score the answers"),
    "train": ("train:train", "train a monitor on labelled responses"),
    "features": ("train:features", "measure labelled responses once, for train and evaluate"),
    "evaluate": ("evaluate:evaluate", "compute the AUROC of a monitor's signals on labelled responses"),
    "ablate": ("evaluate:ablate", "compute the AUROC without each signal in turn"),
    "label": ("label:label", "write a page to label sentences on, those closest to the threshold first"),
    "calibrate": ("train:calibrate", "calibrate scores and choose a threshold on held-out data"),
    "gateway": ("serving:gateway", "check the answers of an OpenAI-compatible server"),
    "serve": ("serving:serve", "answer questions over HTTP and score the answers"),
    "doctor": ("doctor:doctor", "check the installation, and say how to fix what is missing"),
}
"""Module and function of each command, beside which ``..._options`` adds its options, and its help.

Their modules load no model library until a command runs, so that ``--help`` is quick."""

EXAMPLES = {
    "demo": "--report report.html",
    "score": "--input answers.jsonl --output scores.jsonl --html report.html --fail-under 0.5",
    "report": "scores.jsonl --html report.html",
    "spans": "--input items --output labelled",
    "spans-score": "--reference labels.jsonl --predictions labelled.jsonl",
    "generate": "--input questions.jsonl --output answers.jsonl --decoder fod --seed 1",
    "train": "--model my-model --data labelled.jsonl --output my-monitor",
    "features": "--model my-model --data labelled.jsonl --output features.parquet",
    "evaluate": "--data labelled.jsonl --output evaluation.json",
    "ablate": "--data labelled.jsonl --output ablation.json",
    "label": "answers.jsonl --html label.html",
    "calibrate": "--model my-model --monitor my-monitor --data held-out.jsonl --risk 0.05 --output calibrated",
    "gateway": "--upstream http://localhost:8000/v1 --stop-below 0.3",
    "serve": "--port 8100",
    "doctor": "--model my-model --device cuda",
}
"""Options of the example in the ``--help`` of each command."""

_READ = """
    input data train context passages lid_reference reference predictions records model aligner
    span_model llm
    """.split()
_WRITTEN = ("output", "html", "report", "plot", "curve")

# Exit codes after Ctrl-C and after the reader of the output left: 128 plus the number of SIGINT, of SIGPIPE.
INTERRUPTED, READER_LEFT = 130, 141

LOCK = ".syncheck-lock"
"""Suffix of the lock file of an output; unlike other programs' (``uv.lock``), since the file is removed at the end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    args = parser(next((argument for argument in argv if not argument.startswith("-")), "")).parse_args(argv)
    try:
        with one_line_logs():
            check_files(args)
            with locked_outputs(args):
                code = _run(args)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        return reader_left()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nsyncheck {args.command}: interrupted{_kept(args)}\n")
        return INTERRUPTED
    except Exception as error:  # exit code 1 means a missed threshold, so nothing may end with a traceback
        sys.stderr.write(f"syncheck {args.command}: {describe_failure(error)}\n")
        return 2


def _kept(args: argparse.Namespace) -> str:
    """Say what an interrupted run has stored, and how to continue it."""
    if args.command in ("score", "generate") and args.output != "-":
        what, how = ("parts", "") if args.output.endswith("/") else ("answers", " with --resume")
        return f"; {args.output} holds the finished {what}, and the same command{how} continues after them"
    if args.command == "features":
        return "; the same command continues after the finished parts"
    return ""


def _run(args: argparse.Namespace) -> int:
    command = resolve_name(f"{__name__}.{COMMANDS[args.command][0]}")
    if args.command in ("doctor", "report", "spans-score"):  # they load no model, and so no library of models
        return int(command(args))
    from syncheck.cli.monitors import check_device

    if not sys.stderr.isatty():
        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
        if "transformers" in sys.modules:  # it takes the setting over where it is imported later
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()
    check_device(getattr(args, "device", "cpu"))
    return int(command(args))


def check_files(args: argparse.Namespace) -> None:
    """Refuse, before the work, a page or plot that cannot be written, and a file that would overwrite another one."""
    taken = [(option, path) for name in _READ for option, path in _named(args, name) if path.exists()]
    for option, path in (named for name in _WRITTEN for named in _named(args, name)):
        clash = next((other for other, known in taken if _is_same(path, known)), None)
        if clash is not None:
            raise InputError(
                f"{option} {str(path)!r} is the path that {clash} names, and would overwrite it; pass another path"
            )
        taken.append((option, path))
    for option, path in taken:
        if path.is_file() and _is_standard_output(path):
            raise InputError(f"{option} {str(path)!r} is also where standard output goes; redirect that elsewhere")
    for name in ("html", "report"):
        if getattr(args, name, None) is not None:
            check_file(f"--{name}", getattr(args, name))
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
        for option, path in (named for name in _WRITTEN for named in _named(args, name)):
            if not path.parent.is_dir() or not path.name:  # the command says so in its own words
                continue
            lock = path.with_name(f"{path.name}{LOCK}")
            handle = _lock(option, path, lock)
            stack.callback(os.close, handle)
            stack.callback(lock.unlink, missing_ok=True)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield


def _named(args: argparse.Namespace, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files and folders that an option names, existing or not, but no standard stream or device."""
    value = getattr(args, name, None)
    if value in (None, "-"):
        return
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


class _Help(argparse.HelpFormatter):
    """Formatter that leaves an example on one line, so that it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)


class _CommandParser(argparse.ArgumentParser):
    """Parser of one command, which refuses what it does not know with its own usage and the nearest option."""

    prepare: Callable[[], None] | None = None
    """Called before arguments are parsed, to set defaults."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Parse the arguments of the command, before which unknown options are refused; nothing is left over."""
        if self.prepare is not None:
            self.prepare()
        known = [option for action in self._actions for option in action.option_strings]
        for given in takewhile(lambda one: one != "--", args or ()):
            name = given.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in known):
                nearest = get_close_matches(name, known, n=1)
                self.error(f"unknown option {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """Build the parser of all commands, with the options of one or, for None, of each: only their files are loaded."""
    parser = argparse.ArgumentParser(
        prog="syncheck", description="Score every sentence of a RAG answer for faithfulness."
    )
    parser.add_argument("--version", action="version", version=f"syncheck {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser)
    for name, (run, brief) in COMMANDS.items():
        example = f"example: syncheck {name} {EXAMPLES[name]}"
        about = f"{brief[0].upper()}{brief[1:]}. Defaults are in parentheses."
        added = commands.add_parser(name, help=brief, description=about, epilog=example, formatter_class=_Help)
        if command in (None, name):
            resolve_name(f"{__name__}.{run}_options")(Options(added))
    return parser
