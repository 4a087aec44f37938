"""Decoders of the kit's model on blind questions: what share of the sentences is faithful, and what is lost for it.

    python benchmarks/kit_decoding.py answer --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa --output decoded.jsonl
    python benchmarks/kit_decoding.py table --answers benchmarks/kit_answers/decoded.jsonl

One question of each blind set of ``benchmarks/kit_answers``, in turn its first to its fourth. ``decoded.jsonl`` there
has the answers with labels: a language model read them twice, in separate readings that saw neither scores nor the
names of the decoders; sentences on which the readings disagree do not count. Intervals: bootstrap over questions.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kit_answers import MAX_NEW_TOKENS, load_questions
from numpy.typing import NDArray
from tqdm import tqdm

import fod
from syncheck import Monitor, RagPrompt, load_kit
from syncheck.evaluation.metrics import with_interval

GREEDY, CAD, BRANCHES, EVEN = "greedy", "cad", "branches", "branches at even odds"
DECODERS = (GREEDY, CAD, BRANCHES, EVEN)
EVEN_ODDS = fod.RepairConfig(backtrack_threshold=0.5, prune_threshold=0.6)
DRAWS = 2000


def decoders(monitor: Monitor) -> Mapping[str, Callable[[RagPrompt], Mapping[str, Any]]]:
    """Make the decoders by name; each returns the facts of an answer."""
    models = (monitor.model, monitor.tokenizer, monitor)

    def greedy(prompt: RagPrompt) -> Mapping[str, Any]:
        report = monitor.generate(prompt, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)
        return {"text": report.response, "stop": report.stop, "lowest": report.lowest and report.lowest.score}

    def by(generator: Any) -> Callable[[RagPrompt], Mapping[str, Any]]:  # noqa: ANN401
        def answer(prompt: RagPrompt) -> Mapping[str, Any]:
            output = generator.generate(prompt, seed=0, max_new_tokens=MAX_NEW_TOKENS, return_dict_in_generate=True)
            report = output.report
            text = report.response if report.sentences else ""  # a refusal in place of an answer is none
            return {"text": text, "stop": report.stop, "lowest": report.lowest and report.lowest.score}

        return answer

    return {
        GREEDY: greedy,
        CAD: by(fod.CADGenerator(*models)),
        BRANCHES: by(fod.FODGenerator(*models, propose="branch")),
        EVEN: by(fod.FODGenerator(*models, config=EVEN_ODDS)),
    }


def answer(wikipedia: Path | None, ragtruth: Path | None, output: Path) -> None:
    """Answer the questions by every decoder; an answer that is there is kept."""
    done = {(e["set"], e["decoder"]) for e in map(json.loads, output.open())} if output.exists() else set()
    monitor = load_kit("generation")
    ways = decoders(monitor)
    blind = [one for one in load_questions(wikipedia, ragtruth) if one.part == "blind"]
    with output.open("a", encoding="utf-8") as file:
        for number, asked in enumerate(tqdm(blind, unit=" questions")):
            question = number % len(asked.questions)
            prompt = monitor.prompt(question=asked.questions[question], context=asked.passages)
            for name, way in ways.items():
                if (asked.name, name) in done:
                    continue
                started = time.process_time()
                facts = way(prompt)
                seconds = round(time.process_time() - started, 2)
                entry = {
                    "set": asked.name,
                    "question": question,
                    "decoder": name,
                    "processor_seconds": seconds,
                    **facts,
                }
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()


def counts(entries: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """Count faithful and unfaithful sentences, empty and useful answers and processor seconds of each answer (N, 5)."""
    rows = []
    for entry in entries:
        agreed = [first for _, _, first, second in entry["sentences"] if first == second]
        useful = sum(use == "useful" for use in entry["use"]) / 2
        rows.append(
            (agreed.count("F"), agreed.count("U"), not entry["sentences"], useful, float(entry["processor_seconds"]))
        )
    return np.array(rows, float)


def share(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the share of faithful ones among sentences with a claim; rows are (..., N, 5)."""
    faithful, unfaithful = rows[..., 0].sum(-1), rows[..., 1].sum(-1)
    result: NDArray[np.float64] = faithful / np.maximum(1, faithful + unfaithful)
    return result


def abstained(entries: Sequence[Mapping[str, Any]], sentences: float) -> NDArray[np.float64]:
    """Keep the greedy answers with the highest lowest score until they have as many sentences."""
    ranked = sorted(entries, key=lambda entry: -(1.0 if entry["lowest"] is None else entry["lowest"]))
    kept: list[Mapping[str, Any]] = []
    for entry in ranked:
        if kept and counts(kept)[:, :2].sum() >= sentences:
            break
        kept.append(entry)
    return counts(kept)


def table(path: Path) -> None:
    """Print the decoders side by side."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by = {name: [entry for entry in entries if entry["decoder"] == name] for name in DECODERS}
    rows = {name: counts(own) for name, own in by.items()}
    number = len(rows[GREEDY])
    draws = np.random.default_rng(0).integers(0, number, (DRAWS, number))
    shares = {name: share(own[draws]) for name, own in rows.items()}
    print(f"{number} questions")
    for name, own in rows.items():
        faithful, unfaithful, empty, useful, seconds = own.sum(0)
        low, high = np.quantile(shares[name], (0.025, 0.975))
        times = seconds / rows[GREEDY][:, 4].sum()
        print(
            f"{name:<22} faithful {with_interval(float(share(own)), low, high)}  "
            f"{faithful:.0f} and {unfaithful:.0f} others  "
            f"empty {empty:.0f}  useful {useful:.1f}  processor time {times:.2f}"
        )
        for other in (GREEDY, CAD):
            gain = shares[name] - shares[other]
            low, high = np.quantile(gain, (0.025, 0.975))
            mean = float(share(own) - share(rows[other]))
            if name in (BRANCHES, EVEN):
                print(f"    over {other}: {with_interval(mean, low, high, '+.3f')}")
        if name in (BRANCHES, EVEN):
            left = abstained(by[GREEDY], own[:, :2].sum())
            print(f"    abstention that says as much: {float(share(left)):.3f}, {len(left)} answers")


def main() -> None:
    """Answer, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    answering, shown = commands.add_parser("answer"), commands.add_parser("table")
    answering.add_argument("--wikipedia", type=Path)
    answering.add_argument("--ragtruth", type=Path)
    answering.add_argument("--output", type=Path, required=True)
    shown.add_argument("--answers", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "answer":
        answer(args.wikipedia, args.ragtruth, args.output)
    else:
        table(args.answers)


if __name__ == "__main__":
    main()
