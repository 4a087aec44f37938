"""Reproduce the paper's Table 1 on RAGTruth: a model's own answers, trained on one split and tested on the other.

    python benchmarks/paper_table_1.py --ragtruth ragtruth --device cuda --output runs/table-1 \
        --model meta-llama/Llama-2-7b-chat-hf --generator llama-2-7b-chat --aligner AlignScore-base.ckpt \
        --also MiniCheck=lytang/MiniCheck-RoBERTa-Large CriticTok=critic:selfrag/selfrag_llama2_7b

and the same for ``mistralai/Mistral-7B-Instruct-v0.1``, whose answers are those of ``mistral-7B-instruct``. It runs
``syncheck features`` and ``syncheck evaluate``, printing each command; what is measured is kept in ``--output``, and a
run that was stopped goes on. The three columns of biographies need data that RAGTruth does not have.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from syncheck.cli import main as syncheck

SCHEMAS = {"QA": "paper.v1", "Summary": "paper-no-lid.v1", "Data2txt": "paper-no-lid.v1"}
"""LID is for answers to questions only (paper, appendix A.1)."""
ALIGNED = "aligner, untrained"
UNTRAINED = {"least likely token (FLARE), untrained": "FLARE", ALIGNED: "the aligner"}
TRAINED = {"lr": "SynCheck-LR", "xgb": "SynCheck-XGB", "mlp": "SynCheck-MLP"}

Scores = dict[str, tuple[float, float | None]]
"""AUROC and its standard deviation over the seeds, None for what is not trained, by name of the row."""


def run(command: Sequence[str], makes: Path) -> None:
    """Run a command of ``syncheck``; one that leaves out responses, and says so, has still made its file."""
    sys.stdout.write(f"$ syncheck {shlex.join(command)}\n")
    if syncheck(command) and not makes.is_file():
        sys.exit(f"stopped: {makes} was not made")


def measure(args: argparse.Namespace, task: str, split: str, *, aligner: str, name: str) -> Path:
    """Measure one task's answers by the generator in one split."""
    output = args.output / f"{args.generator}-{task}-{name}-{split}.parquet"
    chosen = ["--task", task, "--split", split, "--generator", args.generator, "--prompts", "task"]
    signals = ["--model", args.model, "--aligner", aligner, "--schema", SCHEMAS[task], "--device", args.device]
    run(["features", "--data", str(args.ragtruth), *chosen, *signals, "--output", str(output)], output)
    return output


def evaluate(args: argparse.Namespace, train: Path, test: Path) -> Scores:
    """Train on one file, test on the other, on the paper's set of sentences."""
    output = test.with_suffix(".json")
    options = ["--aggregator", "mlp", "--compare-aggregators", "--set", "paper", "--seeds", str(args.seeds)]
    run(["evaluate", "--train", str(train), "--data", str(test), *options, "--output", str(output)], output)
    found = json.loads(output.read_text(encoding="utf-8"))["paper"]
    rows = [row for row in [*found["rows"], *found["aggregators"]["rows"]] if row["subset"] == "all"]
    names = UNTRAINED | TRAINED
    return {names[row["system"]]: (row["auroc"], row["deviation"]) for row in rows if row["system"] in names}


def column(args: argparse.Namespace, task: str) -> Scores:
    """Return the rows of one task."""
    train, test = (measure(args, task, split, aligner=args.aligner, name="signals") for split in ("train", "test"))
    scores = evaluate(args, train, test)
    for given in args.also:
        name, _, aligner = given.partition("=")
        other = evaluate(args, train, measure(args, task, "test", aligner=aligner, name=name))
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
    options.add_argument("--aligner", default="bundled", help="the paper has AlignScore-base (%(default)s)")
    options.add_argument(
        "--also", nargs="+", default=[], metavar="NAME=ALIGNER", help="aligners with a row of their own"
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
