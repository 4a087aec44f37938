"""Reproduce the paper's Table 1: answers of one model, scored by aggregators trained on its other answers.

    python benchmarks/paper_table_1.py --ragtruth ragtruth --device cuda --output runs/table-1 \
        --model meta-llama/Llama-2-7b-chat-hf --generator llama-2-7b-chat --aligner AlignScore-base.ckpt \
        --aligner-backbone roberta-base --aligner-overflow cut \
        --also MiniCheck=minicheck:lytang/MiniCheck-RoBERTa-Large

and the same for ``mistralai/Mistral-7B-Instruct-v0.1``, whose answers are those of ``mistral-7B-instruct``. It runs
``syncheck features`` and ``syncheck evaluate``, printing each command; what is measured is kept in ``--output``, and a
run that was stopped goes on. QA, Summary and Data2txt are trained on one split and tested on the other; the paper's
three sets of biographies are left out. AlignScore needs the config and tokenizer of its
RoBERTa, ``--aligner-backbone``; without it they are looked for in ``roberta-base/`` next to the checkpoint and in the
cache. ``cut`` drops what exceeds its window, as its published code does, which the paper ran; without it all is scored.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from syncheck.cli import main as syncheck
from syncheck.cli.options import Options, add_aligner, aligner_options

SCHEMAS = {"QA": "paper.v1", "Summary": "paper-no-lid.v1", "Data2txt": "paper-no-lid.v1"}
"""LID is for answers to questions (paper, appendix A.1)."""
ALIGNED = "aligner, untrained"
PAPER = "the paper's features"
FEWEST_FOLDS = ("--cv", "2", "--repeats", "1")
UNTRAINED = {"least likely token (FLARE), untrained": "FLARE", ALIGNED: "the aligner"}
TRAINED = {"lr": "SynCheck-LR", "xgb": "SynCheck-XGB", "mlp": "SynCheck-MLP", "ensemble": "LR and XGB"}

LEFT_OUT = ": left out: "
"""Words of ``features`` about a response that it could not measure, with exit code 2; the others are in its file."""

Scores = dict[str, tuple[float | None, float | None]]
"""By name, AUROC (None where all sentences are of one kind) and its standard deviation over the seeds (None for what is
not trained)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Answers that are measured together.

    Attributes
    ----------
    task : str
        The column they are tested in.
    split : str
    data : tuple of str
        Options of ``syncheck features`` that choose them.
    schema : str
    """

    task: str
    split: str
    data: tuple[str, ...]
    schema: str


class Heard(io.StringIO):
    """Standard error, shown as before and kept."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = sys.stderr

    def write(self, text: str) -> int:
        """Show the text and keep it."""
        self._shown.write(text)
        return super().write(text)


def run(command: Sequence[str]) -> None:
    """Run a command of ``syncheck`` that makes a file; exit unless the only failures are responses it left out."""
    sys.stdout.write(f"$ syncheck {shlex.join(command)}\n")
    heard = Heard()
    with redirect_stderr(heard):
        code = syncheck(command)
    left_out = command[0] == "features" and LEFT_OUT in heard.getvalue().rstrip().rpartition("\n")[2]
    if code and not left_out:
        sys.exit(f"stopped: {command[-1]} was not made")


class Measured:
    """Files of features, each made once: it may train for one column and be tested in another."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._made: set[Path] = set()

    def by(self, aligner: Sequence[str], part: Part, *, name: str) -> Path:
        """Measure a part with an aligner, which has this name in the file's."""
        args = self._args
        words = [args.generator, part.task, name, part.split]
        output = args.output / f"{'-'.join(words)}.parquet"
        if output not in self._made:
            signals = ["--model", args.model, *aligner, "--schema", part.schema, "--device", args.device]
            run(["features", *part.data, *signals, "--output", str(output)])
            self._made.add(output)
        return output


def evaluate(test: Path, how: Sequence[str]) -> Scores:
    """Return the results of each system on a file, on the paper's set of sentences; ``how`` says what is trained."""
    output = test.with_suffix(".json")
    output.unlink(missing_ok=True)  # never the figures of an earlier run
    run(["evaluate", "--data", str(test), *how, "--set", "paper", "--output", str(output)])
    rows = json.loads(output.read_text(encoding="utf-8"))["paper"]["rows"]
    return {row["system"]: (row["auroc"], row["deviation"]) for row in rows if row["subset"] == "all"}


def columns_of(args: argparse.Namespace) -> Iterator[tuple[Part, Part]]:
    """Yield for each column what its aggregators are trained on and what they are tested on."""
    for task in args.tasks or SCHEMAS:
        chosen = ("--data", str(args.ragtruth), "--task", task, "--generator", args.generator, "--prompts", "task")
        train, test = (Part(task, split, (*chosen, "--split", split), SCHEMAS[task]) for split in ("train", "test"))
        yield train, test


def column(args: argparse.Namespace, measured: Measured, train: Part, test: Part) -> Scores:
    """Return the rows of one task."""
    own = ["--aligner", args.aligner or "bundled"]
    for option, value in aligner_options(args).items():
        own += [] if value is None else [f"--aligner-{option}", str(value)]
    training, tested = (measured.by(own, part, name="signals") for part in (train, test))
    scores: Scores = {}
    for kind, row in TRAINED.items():
        found = evaluate(tested, ["--train", str(training), "--aggregator", kind, "--seeds", str(args.seeds)])
        scores |= {name: found[system] for system, name in UNTRAINED.items() if system in found}
        scores[row] = found[PAPER]
    for given in args.also:
        name, _, aligner = given.partition("=")
        tested = measured.by(["--aligner", *shlex.split(aligner)], test, name=name)
        # Not trained on the other file, which holds the support of another aligner; this row needs no training.
        other = evaluate(tested, ["--aggregator", "lr", *FEWEST_FOLDS])
        scores = {name: other[ALIGNED], **scores}
    return scores


def with_average(columns: dict[str, Scores]) -> dict[str, Scores]:
    """Add the paper's last column, the mean of the others; it has no deviation, and a row with a gap no mean."""
    if len(columns) < 2:
        return columns
    average: Scores = {}
    for name in next(iter(columns.values())):
        found = [scores[name][0] for scores in columns.values()]
        average[name] = (None if None in found else fmean(found), None)
    return columns | {"Average": average}


def table(columns: dict[str, Scores]) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    yield f"| sentence AUROC | {' | '.join(columns)} |"
    yield f"| --- |{' --- |' * len(columns)}"
    for name in next(iter(columns.values())):
        cells = (_cell(*scores[name]) for scores in columns.values())
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(auroc: float | None, deviation: float | None) -> str:
    if auroc is None:
        return "-"
    return f"{auroc:.3f}" if deviation is None else f"{auroc:.3f} ± {deviation:.3f}"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ragtruth", type=Path, required=True, metavar="DIR", help="the corpus as published")
    options.add_argument("--model", required=True, metavar="DIR_OR_ID", help="whose signals are measured")
    options.add_argument("--generator", required=True, metavar="NAME", help="the same model, as the data call it")
    add_aligner(Options(options), "the paper has AlignScore-base (bundled)")
    options.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="NAME=ALIGNER",
        help="aligners with a row of their own; options go with them, 'NLI=folder --aligner-entailment 1' say",
    )
    options.add_argument("--tasks", nargs="+", choices=tuple(SCHEMAS), help="of RAGTruth (all)")
    options.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of the aggregators (%(default)s)")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--output", type=Path, required=True, metavar="DIR", help="where features and tables are kept")
    return options


def read_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the options, and refuse combinations that make no sense."""
    options = parser()
    args = options.parse_args(argv)
    nothing = [given for given in args.also if shlex.split(given.partition("=")[2])[:1] == ["none"]]
    if nothing:
        options.error(f"--also {nothing[0]}: 'none' measures nothing that a row could show; leave it out")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, evaluate and print the table."""
    args = read_options(argv)
    args.output.mkdir(parents=True, exist_ok=True)
    measured = Measured(args)
    columns = with_average({test.task: column(args, measured, train, test) for train, test in columns_of(args)})
    text = "".join(f"{line}\n" for line in table(columns))
    (args.output / f"{args.generator}-table-1.md").write_text(text, encoding="utf-8")
    sys.stdout.write(f"\n{args.generator}, signals of {args.model}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
