"""Command line ``syncheck``: parses arguments, runs a command, and turns errors into exit codes.

Exit codes: 0 done, 1 a threshold such as that of ``--fail-under`` missed, 2 wrong usage or input or any other failure,
130 interrupted with Ctrl-C, 141 the reader of the output left (``| head``); the last two are those that a shell reports
for any program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from typing import Any, NamedTuple

from syncheck import __version__
from syncheck.base.errors import describe_failure
from syncheck.cli.options import INTERRUPTED, Options, check_files, locked_outputs, one_line_logs, reader_left


class _Command(NamedTuple):
    """A command: ``run`` is its module in this package and its function; ``..._options`` beside it adds its options."""

    run: str
    help: str

    def function(self, suffix: str = "") -> Callable[[Any], Any]:
        """Import the command's function, or the one beside it whose name has the suffix."""
        module, name = self.run.split(".")
        function: Callable[[Any], Any] = getattr(import_module(f"syncheck.cli.{module}"), name + suffix)
        return function


COMMANDS = {
    "demo": _Command("generate.demo", "answer questions with the kit's model, greedily and by FOD"),
    "score": _Command("score.score", "score given responses, sentence by sentence"),
    "report": _Command("report.report", "write an HTML page of many scored answers, worst first"),
    "spans": _Command("spans.mark", "mark the wrong characters of responses, in any language"),
    "spans-score": _Command("spans.score", "score predicted spans: IoU and correlation"),
    "generate": _Command("generate.generate", "answer questions and score the answers"),
    "train": _Command("train.train", "train a monitor on labelled responses"),
    "features": _Command("train.features", "measure labelled responses once, for train and evaluate"),
    "evaluate": _Command("evaluate.evaluate", "compute the AUROC of a monitor's signals on labelled responses"),
    "ablate": _Command("evaluate.ablate", "compute the AUROC without each signal in turn"),
    "label": _Command("label.label", "label sentences by hand, those closest to the threshold first"),
    "calibrate": _Command("train.calibrate", "calibrate scores and choose a threshold on held-out data"),
    "gateway": _Command("serving.gateway", "check the answers of an OpenAI-compatible server"),
    "serve": _Command("serving.serve", "answer questions over HTTP and score the answers"),
    "doctor": _Command("doctor.doctor", "check the installation, and say how to fix what is missing"),
    "convert-aligner": _Command("monitors.convert_aligner", "convert an AlignScore .ckpt to a folder of safetensors"),
}
"""Commands by name; their files load no model library until they run, so that ``--help`` is quick."""

EXAMPLES = {
    "demo": "--report report.html",
    "score": "--input answers.jsonl --output scores.jsonl --html report.html --fail-under 0.5",
    "report": "scores.jsonl --records answers.jsonl --html report.html",
    "spans": "--input items --output labelled",
    "spans-score": "--reference labels.jsonl --predictions labelled.jsonl",
    "generate": "--input questions.jsonl --output answers.jsonl --decoder fod --seed 1",
    "train": "--model my-model --data labelled.jsonl --output my-monitor",
    "features": "--model my-model --data labelled.jsonl --output features.parquet",
    "evaluate": "--data labelled.jsonl --output evaluation.json",
    "ablate": "--data labelled.jsonl --output ablation.json",
    "label": "answers.jsonl --output labelled.jsonl",
    "calibrate": "--model my-model --monitor my-monitor --data held-out.jsonl --risk 0.05 --output calibrated",
    "gateway": "--upstream http://localhost:8000/v1 --stop-below 0.3",
    "serve": "--port 8100",
    "doctor": "--model my-model --device cuda",
    "convert-aligner": "--aligner AlignScore-base.ckpt --output alignscore",
}
"""Options of the example in the ``--help`` of each command."""


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


_WITHOUT_MODEL = frozenset({"doctor", "report", "spans-score"})
"""Commands that load no model, and so no library of models; ``doctor`` says what keeps the others from starting."""


def _kept(args: argparse.Namespace) -> str:
    """Say what an interrupted run has stored, and how to continue it."""
    if args.command in ("score", "generate") and args.output.endswith("/"):
        return f"; {args.output} holds the finished parts, and the same command continues after them"
    if args.command in ("score", "generate") and args.output != "-":
        return f"; {args.output} holds the finished answers, and the same command with --resume continues after them"
    if args.command == "features":
        return "; the same command continues after the finished parts"
    if args.command == "label" and args.output is not None:
        return f"; {args.output} holds the labels so far, and the same command continues"
    return ""


def _run(args: argparse.Namespace) -> int:
    command = COMMANDS[args.command].function()
    if args.command in _WITHOUT_MODEL:
        return int(command(args))
    from syncheck.cli.monitors import check_device

    if not sys.stderr.isatty():
        _hide_progress_bars()
    check_device(getattr(args, "device", "cpu"))
    return int(command(args))


def _hide_progress_bars() -> None:
    """Hide those of downloads, and of transformers, which takes the setting over where it is imported later."""
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    if "transformers" in sys.modules:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()


class _Help(argparse.HelpFormatter):
    """Formatter that leaves an example on one line, so that it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)


class _CommandParser(argparse.ArgumentParser):
    """Parser of one command, which refuses what it does not know with its own usage and the nearest option."""

    prepare: Callable[[Sequence[str]], None] | None = None
    """Called with the arguments before they are parsed, to set defaults."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Parse the arguments of the command, before which unknown options are refused; nothing is left over."""
        if self.prepare is not None:
            self.prepare(args or ())
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
    for name, entry in COMMANDS.items():
        example = f"example: syncheck {name} {EXAMPLES[name]}"
        about = f"{entry.help[0].upper()}{entry.help[1:]}. Defaults are in parentheses."
        added = commands.add_parser(name, help=entry.help, description=about, epilog=example, formatter_class=_Help)
        if command in (None, name):
            entry.function("_options")(Options(added))
    return parser
