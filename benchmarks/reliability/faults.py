"""Faults planted in the aligner and in the model, one a run, over every way a sentence is measured.

An aligner fault is an answer that is none, or an error, at a random call. A model fault is a random column of logits
that is not finite, or an error, at a random forward. After each run:

* no sentence that was measured under the fault has a score;
* every sentence that has one has that of a replay of the same ids without faults;
* an error of the model has passed unchanged, as the same object, and no other error has come;
* the model has the hooks it had before, and the next run without faults gives what the first one gave.

Run: python benchmarks/reliability/faults.py --count 300 --seed 0
"""

from __future__ import annotations

import argparse
import logging
import math
import platform
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.generation import LogitsProcessorList

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles import ANSWER, LAYERS, PASSAGES, QUESTION, FormulaAggregator, SentenceGrammar  # noqa: E402

from fod import FODGenerator  # noqa: E402
from syncheck import LidReferences, Monitor, MonitorConfig, RagPrompt, Report, feature_schema  # noqa: E402
from syncheck.base.pretrained import load_pretrained, load_tokenizer  # noqa: E402
from syncheck.results.types import Support  # noqa: E402
from syncheck.testing import WordAligner  # noqa: E402

MODEL = ROOT / "tests" / "golden" / "signals" / "llama"
WAYS = ("score", "generate", "stream", "attach", "fod")
NEW_TOKENS = 30
TOLERANCE = 1e-3
"""A batch rounds otherwise than a row by itself."""


class Panic(BaseException):
    """The error that compiled code raises."""


ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: RuntimeError("planted"),
    lambda: ValueError("planted"),
    lambda: MemoryError("planted"),
    lambda: torch.OutOfMemoryError("CUDA out of memory, planted"),
    lambda: Panic("planted"),
)
ANSWERS: dict[str, Callable[[list[Support]], Any]] = {
    "too few": lambda found: found[:-1],
    "too many": lambda found: [*found, Support(1.0, None)],
    "None": lambda found: None,
    "floats": lambda found: [1.0 for _ in found],
    "Nones": lambda found: [None for _ in found],
    "NaN": lambda found: [Support(math.nan, None) for _ in found],
    "above 1": lambda found: [Support(1.5, None) for _ in found],
    "below 0": lambda found: [Support(-0.5, None) for _ in found],
}
LOGITS = {"NaN": math.nan, "+inf": math.inf}


def confident(values: dict[str, float]) -> float:
    """Score whatever was measured, as the aggregators do: NaN is filled in."""
    known = {name: 0.0 if math.isnan(value) else value for name, value in values.items()}
    return 0.75 + 0.2 * math.sin(20 * known["mean_entropy"]) + 0.05 * known["align_score"]


@dataclass
class Faults:
    """The faults and their places; counts calls, so that a run without faults says how many there are."""

    chance: random.Random
    aligner: tuple[int, str] | None = None
    model: tuple[int, str] | None = None
    calls: int = 0
    forwards: int = 0
    hit_claims: set[str] = field(default_factory=set)
    other_claims: set[str] = field(default_factory=set)
    error: BaseException | None = None
    struck: bool = False


class FaultyAligner(WordAligner):
    """Answers by shared words, except for one call."""

    faults: Faults

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Answer, or raise the planted fault."""
        faults, found = self.faults, super().align(passages, claims)
        faults.calls += 1
        if faults.aligner is None or faults.calls != faults.aligner[0]:
            faults.other_claims.update(claims)
            return found
        faults.struck = True
        faults.hit_claims.update(claims)
        kind = faults.aligner[1]
        if kind == "error":
            raise faults.chance.choice(ERRORS)()
        answer: list[Support] = ANSWERS[kind](found)
        return answer


class Subject:
    """A monitor of a small random model, with faults, and the ways to use it."""

    def __init__(self) -> None:
        model, tokenizer = load_pretrained(AutoModelForCausalLM, MODEL, what="the model").eval(), load_tokenizer(MODEL)
        schema = feature_schema("paper.v1", LAYERS)
        self.aligner = FaultyAligner()
        self.monitor = Monitor(
            model,
            tokenizer,
            config=MonitorConfig(schema="paper.v1", layers=LAYERS, backtrack_threshold=0.7, prune_threshold=0.7),
            aggregator=FormulaAggregator(schema, confident),
            lid_references=LidReferences.load(MODEL / "lid_reference.npz"),
            aligner=self.aligner,
        )
        self.prompt: RagPrompt = self.monitor.prompt(question=QUESTION, context=PASSAGES)
        self.grammar = SentenceGrammar(tokenizer, self.prompt.with_context_ids)
        self.answer = tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
        model.register_forward_hook(self._after, prepend=True)

    def run(self, way: str, faults: Faults) -> Report:
        """Use the monitor in one way."""
        self.aligner.faults = faults
        monitor, prompt = self.monitor, self.prompt
        options: dict[str, Any] = {
            "logits_processor": LogitsProcessorList([self.grammar]),
            "max_new_tokens": NEW_TOKENS,
        }
        if way == "score":
            return monitor.score(prompt, response_token_ids=self.answer)
        if way == "generate":
            return monitor.generate(prompt, **options)
        if way == "stream":
            *_, end = monitor.stream(prompt, **options)
            return end.report
        if way == "attach":
            with monitor.attach(prompt) as watch:
                output = monitor.model.generate(**prompt.inputs(), **options)
                return watch.report(output)
        fod = FODGenerator(monitor.model, monitor.tokenizer, monitor)
        return fod.generate(prompt, return_dict_in_generate=True, **options).report

    def replay(self, report: Report) -> Report:
        """Score the same ids without faults."""
        self.aligner.faults = Faults(random.Random(0))
        return self.monitor.score(self.prompt, response_token_ids=report.tokens.token_ids.tolist())

    def hooks(self) -> int:
        """Count the hooks on the model."""
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in self.monitor.model.modules())

    def _after(self, module: object, args: object, output: Any) -> None:
        faults = self.aligner.faults
        faults.forwards += 1
        if faults.model is None or faults.forwards != faults.model[0]:
            return
        faults.struck = True
        kind = faults.model[1]
        if kind == "error":
            faults.error = faults.chance.choice(ERRORS)()
            raise faults.error
        output.logits = output.logits.clone()
        column = faults.chance.randrange(output.logits.shape[1])
        width = output.logits.shape[-1]
        output.logits[:, column, faults.chance.choice([slice(None), faults.chance.randrange(width)])] = LOGITS[kind]


def check(subject: Subject, report: Report, faults: Faults) -> list[str]:
    """Return the errors in a report that was made under faults."""
    replayed = subject.replay(report)
    if len(replayed.sentences) != len(report.sentences):
        return [f"{len(report.sentences)} sentences, {len(replayed.sentences)} in the replay"]
    wrong = []
    for sentence, expected in zip(report.sentences, replayed.sentences, strict=True):
        if sentence.status == "scored":
            if sentence.text in faults.hit_claims - faults.other_claims:
                wrong.append(f"scored although its aligner failed: {sentence.text!r}")
            if expected.score is None or abs(sentence.score - expected.score) > TOLERANCE:
                wrong.append(f"scored {sentence.score}, {expected.score} without faults: {sentence.text!r}")
            measured = {name for name, value in sentence.features.items() if value is not None}
            if measured != {name for name, value in expected.features.items() if value is not None}:
                wrong.append(f"scored although something was not measured: {sentence.text!r}")
        elif sentence.status != "failed" or not sentence.reason or sentence.score is not None:
            wrong.append(f"{sentence.status}, {sentence.score}, {sentence.reason}: {sentence.text!r}")
    return wrong


def run_one(subject: Subject, way: str, faults: Faults, clean: Report) -> tuple[str, list[str]]:
    """Plant a fault; return its outcome and what is wrong."""
    before, outcome, wrong = subject.hooks(), "", []
    try:
        report = subject.run(way, faults)
    except BaseException as error:
        if error is not faults.error:
            raise
        outcome = "the model's own error passed unchanged"
    else:
        failed = sum(sentence.status == "failed" for sentence in report.sentences)
        outcome = "sentences failed" if failed else f"no sentence of it in the answer, stop {report.stop}"
        wrong += check(subject, report, faults)
    if subject.hooks() != before:
        wrong.append(f"{subject.hooks()} hooks, {before} before")
    again = subject.run(way, Faults(random.Random(0)))
    if [(s.text, s.score) for s in again.sentences] != [(s.text, s.score) for s in clean.sentences]:
        wrong.append("the next run without faults differs")
    return outcome, wrong


def run(count: int, seed: int) -> tuple[Counter[tuple[str, str, str]], list[str]]:
    """Plant ``count`` faults; return how often each fault had each outcome, and what is wrong."""
    chance, subject = random.Random(seed), Subject()
    clean: dict[str, tuple[Report, Faults]] = {}
    for way in WAYS:
        faults = Faults(random.Random(0))
        clean[way] = subject.run(way, faults), faults
    outcomes: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    for number in range(count):
        way, part = WAYS[number % len(WAYS)], chance.choice(["aligner", "model"])
        report, counted = clean[way]
        kinds = ["error", *(ANSWERS if part == "aligner" else LOGITS)]
        place = chance.randint(1, counted.calls if part == "aligner" else counted.forwards)
        planted = {part: (place, chance.choice(kinds))}
        faults = Faults(chance, aligner=planted.get("aligner"), model=planted.get("model"))
        outcome, found = run_one(subject, way, faults, report)
        assert faults.struck  # or else nothing was tried
        outcomes[way, f"{part}: {planted[part][1]}", outcome] += 1
        wrong += [f"{number}, {way}, {planted}: {each}" for each in found]
    return outcomes, wrong


def main() -> int:
    """Plant faults and print their outcomes; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Plant faults in the aligner and in the model.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    outcomes, wrong = run(args.count, args.seed)
    versions = f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{args.count} faults, seed {args.seed}; {versions}")
    for (way, fault, outcome), times in sorted(outcomes.items()):
        print(f"{times:5d}  {way:9s} {fault:18s} {outcome}")
    print(f"{len(wrong)} wrong", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
