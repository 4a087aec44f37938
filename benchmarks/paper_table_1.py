"""Reproduce the paper's Table 1 on RAGTruth: a model's own answers, trained on one split and tested on the other.

    python benchmarks/paper_table_1.py --ragtruth ragtruth --device cuda --output runs/table-1 \
        --model meta-llama/Llama-2-7b-chat-hf --generator llama-2-7b-chat --aligner AlignScore-base.ckpt \
        --aligner-backbone roberta-base --aligner-overflow cut \
        --also MiniCheck=minicheck:lytang/MiniCheck-RoBERTa-Large CriticTok=critic:selfrag/selfrag_llama2_7b

and the same for ``mistralai/Mistral-7B-Instruct-v0.1``, whose answers are those of ``mistral-7B-instruct``. It runs
``syncheck features`` and ``syncheck evaluate``, printing each command; what is measured is kept in ``--output``, and a
run that was stopped goes on. AlignScore needs the config and tokenizer of its RoBERTa, ``--aligner-backbone``;
without it they are looked for in ``roberta-base/`` beside the checkpoint and in the cache. ``cut`` drops what exceeds
its window, as its published code does, which the paper ran; without it all is scored. The three columns of biographies
need data that RAGTruth does not have.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path

from syncheck.cli import main as syncheck
from syncheck.commands.aligner_options import add_aligner, aligner_options

SCHEMAS = {"QA": "paper.v1", "Summary": "paper-no-lid.v1", "Data2txt": "paper-no-lid.v1"}
"""LID is for answers to questions only (paper, appendix A.1)."""
ALIGNED = "aligner, untrained"
FEWEST_FOLDS = ("--cv", "2", "--repeats", "1")
UNTRAINED = {"least likely token (FLARE), untrained": "FLARE", ALIGNED: "the aligner"}
TRAINED = {"lr": "SynCheck-LR", "xgb": "SynCheck-XGB", "mlp": "SynCheck-MLP"}

LEFT_OUT = ": left out: "
"""How ``features`` names a response that it could not measure, with exit code 2; the others are in its file."""

Scores = dict[str, tuple[float, float | None]]
"""AUROC and its standard deviation over the seeds, None for what is not trained, by name of the row."""


class Heard(io.StringIO):
    """Standard error, shown as before and kept."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = sys.stderr

    def write(self, text: str) -> int:
        """Show and keep."""
        self._shown.write(text)
        return super().write(text)


def run(command: Sequence[str]) -> None:
    """Run a command of ``syncheck`` that makes a file; end here unless all that failed are responses it left out."""
    sys.stdout.write(f"$ syncheck {shlex.join(command)}\n")
    heard = Heard()
    with redirect_stderr(heard):
        code = syncheck(command)
    left_out = command[0] == "features" and LEFT_OUT in heard.getvalue().rstrip().rpartition("\n")[2]
    if code and not left_out:
        sys.exit(f"stopped: {command[-1]} was not made")


def measure(args: argparse.Namespace, task: str, split: str, *, aligner: Sequence[str], name: str) -> Path:
    """Measure one task's answers by the generator in one split."""
    output = args.output / f"{args.generator}-{task}-{name}-{split}.parquet"
    chosen = ["--task", task, "--split", split, "--generator", args.generator, "--prompts", "task"]
    signals = ["--model", args.model, *aligner, "--schema", SCHEMAS[task], "--device", args.device]
    run(["features", "--data", str(args.ragtruth), *chosen, *signals, "--output", str(output)])
    return output


def evaluate(test: Path, how: Sequence[str]) -> Scores:
    """Return what is found of a file, on the paper's set of sentences; ``how`` says what is trained."""
    output = test.with_suffix(".json")
    output.unlink(missing_ok=True)  # never the figures of an earlier run
    run(["evaluate", "--data", str(test), *how, "--set", "paper", "--output", str(output)])
    found = json.loads(output.read_text(encoding="utf-8"))["paper"]
    trained = found["aggregators"]["rows"] if "aggregators" in found else []
    rows = [row for row in [*found["rows"], *trained] if row["subset"] == "all"]
    names = UNTRAINED | TRAINED
    return {names[row["system"]]: (row["auroc"], row["deviation"]) for row in rows if row["system"] in names}


def column(args: argparse.Namespace, task: str) -> Scores:
    """Return the rows of one task."""
    own = ["--aligner", args.aligner or "bundled"]
    for option, value in aligner_options(args).items():
        own += [] if value is None else [f"--aligner-{option}", str(value)]
    train, test = (measure(args, task, split, aligner=own, name="signals") for split in ("train", "test"))
    trained = ["--train", str(train), "--aggregator", "mlp", "--compare-aggregators", "--seeds", str(args.seeds)]
    scores = evaluate(test, trained)
    for given in args.also:
        name, _, aligner = given.partition("=")
        test = measure(args, task, "test", aligner=["--aligner", *shlex.split(aligner)], name=name)
        # Not trained on the other file, which holds the support of another aligner; this row needs no training.
        other = evaluate(test, ["--aggregator", "lr", *FEWEST_FOLDS])
        scores = {name: other[UNTRAINED[ALIGNED]], **scores}
    return scores


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
    """Return what reads the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ragtruth", type=Path, required=True, metavar="DIR", help="the corpus as published")
    options.add_argument("--model", required=True, metavar="DIR_OR_ID", help="whose signals are measured")
    options.add_argument("--generator", required=True, metavar="NAME", help="the same model, as the corpus calls it")
    add_aligner(options, "the paper has AlignScore-base (bundled)")
    options.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="NAME=ALIGNER",
        help="aligners with a row of their own; options go with them, 'NLI=folder --aligner-entailment 1' say",
    )
    options.add_argument("--tasks", nargs="+", choices=tuple(SCHEMAS), default=tuple(SCHEMAS))
    options.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of the aggregators (%(default)s)")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--output", type=Path, required=True, metavar="DIR", help="where features and tables are kept")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, evaluate and print the table."""
    args = parser().parse_args(argv)
    args.output.mkdir(parents=True, exist_ok=True)
    columns = {task: column(args, task) for task in args.tasks}
    text = "".join(f"{line}\n" for line in table(columns))
    (args.output / f"{args.generator}-table-1.md").write_text(text, encoding="utf-8")
    sys.stdout.write(f"\n{args.generator}, signals of {args.model}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
