"""FOD against greedy decoding on held-out prompts, judged by a checker that shares no training data with the monitor.

    python benchmarks/train_judge.py --pairs support-pairs --output runs/judge
    python benchmarks/fod_vs_greedy.py --articles articles.jsonl.xz --judge runs/judge

The judge is trained on WiCE, ExpertQA and BEGIN only, of which nothing in the kit has seen anything. Faithfulness of an
answer is the share of its sentences that the judge supports; empty answers are left out of it and count as nothing
kept. Intervals are 95 %, paired bootstrap over prompts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np
from judge import Judge
from tqdm import tqdm

from fod import FODGenerator
from syncheck.kit import load_kit
from syncheck.report import Report
from syncheck.segments import is_checkable

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from wikipedia_qa import ExampleMaker, load_articles  # noqa: E402 - the training scripts are no package

SEED = 23
LENGTH = 1400
"""Characters of passages, question and true answer."""
DRAWS = 2000


def supported(judge: Judge, report: Report) -> list[float]:
    """Judge the sentences of an answer that claim something."""
    claims = [s.text for s in report.sentences if is_checkable(s.text)]
    return judge.supported(report.prompt.passages, claims) if claims else []


def mean_with_interval(values: np.ndarray, rng: np.random.Generator) -> str:
    """Mean of the values that are there, with its bootstrap interval."""
    draws = values[rng.integers(0, len(values), (DRAWS, len(values)))]
    low, high = np.nanpercentile(np.nanmean(draws, axis=1), [2.5, 97.5])
    return f"{np.nanmean(values):.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Decode, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--max-new-tokens", type=int, default=160)
    parser.add_argument("--backtrack-threshold", type=float)
    parser.add_argument("--prune-threshold", type=float)
    parser.add_argument("--output", type=Path, help="all answers as JSON Lines")
    args = parser.parse_args()
    judge = Judge.load(args.judge)
    monitor = load_kit("generation")
    fod = FODGenerator(
        monitor.model,
        monitor.tokenizer,
        monitor,
        backtrack_threshold=args.backtrack_threshold,
        prune_threshold=args.prune_threshold,
    )
    maker, rng = ExampleMaker(load_articles(args.articles, "heldout"), None), random.Random(SEED)
    rows = []
    with tqdm(total=args.prompts, desc="prompts", mininterval=5) as bar:
        while len(rows) < args.prompts:
            example = maker.draw(rng, LENGTH)
            if not example.passages:
                continue
            prompt = monitor.prompt(question=example.question, context=example.passages)
            greedy = monitor.generate(prompt, do_sample=False, max_new_tokens=args.max_new_tokens)
            found = fod.generate(prompt, return_dict_in_generate=True, max_new_tokens=args.max_new_tokens)
            rows.append(
                {
                    "question": example.question,
                    "backtracked": found.search.backtracked,
                    "sampled_tokens": found.sampled_tokens,
                    **{
                        name: {
                            "response": report.response,
                            "judge": supported(judge, report),
                            "scores": [s.score for s in report.sentences],
                            "tokens": len(report.tokens),
                            "seconds": report.seconds,
                        }
                        for name, report in (("greedy", greedy), ("fod", found.report))
                    },
                }
            )
            bar.update()
    if args.output is not None:
        args.output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    report_on(rows, fod)


def report_on(rows: list[dict], fod: FODGenerator) -> None:
    """Print the comparison."""
    rng = np.random.default_rng(SEED)
    print(
        f"{len(rows)} held-out prompts; "
        f"tau1 {fod.config.backtrack_threshold:.3f}, tau2 {fod.config.prune_threshold:.3f}, "
        f"K {fod.config.beam_size}, S {fod.config.samples_per_step}"
    )
    faithfulness = {}
    for name in ("greedy", "fod"):
        verdicts = [row[name]["judge"] for row in rows]
        faithfulness[name] = np.array([np.mean([v >= 0.5 for v in vs]) if vs else np.nan for vs in verdicts])
        support = np.array([np.mean(vs) if vs else np.nan for vs in verdicts])
        print(
            f"{name:<7} faithful sentences {mean_with_interval(faithfulness[name], rng)}  "
            f"mean support {mean_with_interval(support, rng)}  "
            f"sentences {np.mean([len(vs) for vs in verdicts]):.2f}  "
            f"empty {sum(not vs for vs in verdicts)}  "
            f"tokens {np.mean([row[name]['tokens'] for row in rows]):.0f}  "
            f"seconds {np.mean([row[name]['seconds'] for row in rows]):.2f}"
        )
    gain = faithfulness["fod"] - faithfulness["greedy"]
    print(f"FOD - greedy, prompts that both answer: {mean_with_interval(gain, rng)}")
    kept = sum(len(r["fod"]["judge"]) for r in rows) / max(1, sum(len(r["greedy"]["judge"]) for r in rows))
    print(
        f"sentences kept: {kept:.0%} of greedy's; "
        f"backtracked in {np.mean([r['backtracked'] for r in rows]):.0%} of answers; "
        f"tokens sampled by FOD, thrown away or not: {np.mean([r['sampled_tokens'] for r in rows]):.0f} an answer"
    )


if __name__ == "__main__":
    main()
