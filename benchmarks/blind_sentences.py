r"""Sentences for people to label, drawn by seed, and how well each judge predicts the labels.

    python benchmarks/blind_sentences.py draw --articles articles.jsonl.xz --output runs/blind.jsonl
    python benchmarks/blind_sentences.py judge --sentences runs/blind.jsonl \
        --labels benchmarks/decoding/blind_labels.jsonl --judge runs/judge

``draw`` lets the bundled model answer questions by several decoders and writes each different sentence once, without
scores. The labels are in ``decoding/blind_labels.jsonl`` with the rule they were made by; the texts follow from the
seed and are told apart by a digest. A model or a monitor that is trained anew writes other sentences: ``judge`` takes
those that have a label.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from decoding import MechanicalCheck
from quality_prompts import Question, wikipedia_questions
from sklearn.metrics import roc_auc_score

from fod import CADGenerator, FODGenerator
from syncheck import Monitor, Report, load_aligner
from syncheck.base.records import read_records
from syncheck.kit import load_kit

SEED = 2111
"""Of the questions; no choice was made on them."""
PROMPTS, MAX_NEW_TOKENS, TEMPERATURE = 86, 128, 0.9
RESAMPLES = 2000


def main() -> None:
    """Draw or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("--articles", type=Path, required=True)
    drawing.add_argument("--output", type=Path, required=True)
    drawing.set_defaults(run=draw)
    judging = commands.add_parser("judge")
    judging.add_argument("--sentences", type=Path, required=True)
    judging.add_argument("--labels", type=Path, required=True)
    judging.add_argument("--judge", action="append", default=[], help="aligner as syncheck.load_aligner takes it")
    judging.set_defaults(run=judge)
    args = parser.parse_args()
    args.run(args)


def draw(args: argparse.Namespace) -> None:
    """Write the sentences, shuffled, with their questions and passages; continues where it stopped."""
    monitor = load_kit("generation")
    torch.set_num_threads(1)
    questions = wikipedia_questions(args.articles, PROMPTS, seed=SEED)
    done = _lines(args.output) if args.output.exists() else []
    known = {record["prompt"] for record in done}
    with args.output.open("a", encoding="utf-8") as output:
        for question in questions:
            if question.id not in known:
                output.writelines(json.dumps(record) + "\n" for record in _sentences(monitor, question))
                output.flush()


def _sentences(monitor: Monitor, question: Question) -> Iterator[dict[str, Any]]:
    """Yield each different sentence of the answers to a question, with the decoders that wrote it."""
    writers: dict[str, list[str]] = {}
    for name, report in _answers(monitor, question):
        for sentence in report.sentences:
            if sentence.status == "scored" and not sentence.truncated:
                writers.setdefault(sentence.text, []).append(name)
    for text, names in writers.items():
        digest = hashlib.sha256(f"{question.id}\n{text}".encode()).hexdigest()[:12]
        yield {
            "sentence": digest,
            "prompt": question.id,
            "question": question.question,
            "passages": list(question.passages),
            "text": text,
            "decoders": sorted(set(names)),
        }


def _answers(monitor: Monitor, question: Question) -> Iterator[tuple[str, Report]]:
    prompt = monitor.prompt(question=question.question, context=question.passages)
    limit: dict[str, Any] = {"max_new_tokens": MAX_NEW_TOKENS}
    models = (monitor.model, monitor.tokenizer, monitor)
    yield "greedy", monitor.generate(prompt, do_sample=False, **limit)
    generator = torch.Generator().manual_seed(SEED)
    yield "sample", monitor.generate(prompt, do_sample=True, temperature=TEMPERATURE, generator=generator, **limit)
    steered = {
        "CAD": CADGenerator(*models),
        "FOD": FODGenerator(*models, propose="branch"),
    }
    for name, decoder in steered.items():
        yield name, decoder.generate(prompt, do_sample=False, return_dict_in_generate=True, **limit).report


def judge(args: argparse.Namespace) -> None:
    """Print the AUROC and the agreement of each judge, with 95 % intervals by bootstrap over prompts."""
    texts = {record["sentence"]: record for record in _lines(args.sentences)}
    labels = [r for r in _lines(args.labels) if "sentence" in r]
    agreed = [r for r in labels if r["first"] == r["second"] and r["sentence"] in texts]
    grounded = sum(r["first"] == "grounded" for r in agreed)
    print(f"{len(labels)} labels; {len(agreed)} the same in both passes, {grounded} of them grounded")
    for found in [MechanicalCheck(), *(load_aligner(name) for name in args.judge), load_aligner("bundled")]:
        assert found is not None
        records = [texts[r["sentence"]] for r in agreed]
        scores = np.array([found.align(r["passages"], [r["text"]])[0].score for r in records])
        truth = np.array([r["first"] == "grounded" for r in agreed])
        prompts = [r["prompt"] for r in records]
        print(
            found.name,
            "AUROC and agreement",
            *(_interval(measure, truth, scores, prompts) for measure in (_auroc, _agreement)),
            sep=" | ",
        )


def _auroc(truth: np.ndarray, scores: np.ndarray) -> float:
    return float(roc_auc_score(truth, scores)) if 0 < truth.sum() < len(truth) else float("nan")


def _agreement(truth: np.ndarray, scores: np.ndarray) -> float:
    return float(((scores >= 0.5) == truth).mean())


def _interval(measure: Any, truth: np.ndarray, scores: np.ndarray, prompts: Sequence[str]) -> str:  # noqa: ANN401
    rng = np.random.default_rng(SEED)
    groups = [np.flatnonzero(np.array(prompts) == prompt) for prompt in dict.fromkeys(prompts)]
    drawn = []
    for _ in range(RESAMPLES):
        places = np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
        drawn.append(measure(truth[places], scores[places]))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return f"{measure(truth, scores):.3f} [{low:.3f}, {high:.3f}]"


def _lines(path: Path) -> list[Mapping[str, Any]]:
    return [record.values for record in read_records(path)]


if __name__ == "__main__":
    main()
