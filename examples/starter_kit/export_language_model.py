"""Check a trained language model on held-out articles and write it, with its model card, where the kit reads it.

python examples/starter_kit/export_language_model.py --articles articles.jsonl.xz --ragtruth ragtruth-qa \
    --run runs/lm --output syncheck/assets/language_model
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from model_cards import write_section
from tqdm import tqdm
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from wikipedia_qa import ExampleMaker, QAExample, load_articles

from syncheck import Monitor, MonitorConfig, RagPrompt
from syncheck.base.records import read_records
from syncheck.labelling import load_ragtruth

SEED = 7
CHECKED = 100
SHOWN = 10
LENGTH = 1000
"""Characters of passages, question and answer of a held-out example."""


def monitor_of(run: Path) -> Monitor:
    """Wrap the model in a monitor that only measures."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(run)
    model = LlamaForCausalLM.from_pretrained(run, dtype=torch.float32)
    model = model.to(torch.bfloat16).to(torch.float32)  # what the kit's file can hold
    return Monitor(model, tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))


def prompt_of(monitor: Monitor, example: QAExample) -> RagPrompt:
    """Build the prompts of an example."""
    return monitor.prompt(question=example.question, context=example.passages)


def answer_log_probs(monitor: Monitor, examples: Sequence[QAExample]) -> tuple[float, float]:
    """Mean log-likelihood of the true answers in nats a token, with and without the passages."""
    reports = [
        monitor.score(prompt_of(monitor, e), " ".join(e.answer))
        for e in tqdm(examples, desc="true answers", mininterval=5)
    ]
    with_passages = np.concatenate([r.tokens.log_prob for r in reports])
    without = np.concatenate([r.tokens.log_prob_without_context for r in reports])
    return float(with_passages.mean()), float(without.mean())


def greedy(monitor: Monitor, example: QAExample) -> str:
    """Answer greedily."""
    ids = prompt_of(monitor, example).inputs()
    out = monitor.model.generate(**ids, do_sample=False, max_new_tokens=120)
    return str(monitor.tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))


def fitting(monitor: Monitor, folder: Path) -> tuple[int, int]:
    """Count RAGTruth QA responses that fit the window with their prompts, and all of them."""
    records = load_ragtruth(folder)
    window = monitor.model.config.max_position_embeddings
    lengths = [
        len(monitor.prompt(question=r.question, context=r.passages).with_context_ids)
        + len(monitor.tokenizer(r.response, add_special_tokens=False)["input_ids"])
        for r in records
    ]
    return sum(n <= window for n in lengths), len(lengths)


def figures(facts: Mapping[str, Any], run: Path) -> str:
    """Write the figures of the model card in Markdown."""
    losses = [record.values for record in read_records(run / "losses.jsonl")]
    settings = json.loads((run / "run.json").read_text(encoding="utf-8"))
    every = max(1, len(losses) // 4)
    last = [] if (len(losses) - 1) % every == 0 else [losses[-1]]
    rows = "\n".join(
        f"| {x['step']} | {x['tokens'] / 1e6:.1f} | {x['seconds']:.0f} | {x['train']:.2f} | {x['heldout']:.2f} |"
        for x in [*losses[::every], *last]
    )
    return f"""
Last run of `train_language_model.py`: {settings["tokens"] / 1e6:.1f} M tokens, seed {settings["seed"]},
rate {settings["learning_rate"]}.

| step | M tokens | seconds | training loss on answers, nats a token | on the articles kept for the aggregators |
| --- | --- | --- | --- | --- |
{rows}

On held-out articles (`export_language_model.py`, {CHECKED} examples, seed {SEED}, real names and numbers):

- log-likelihood of the true answer: **{facts["with"]:.2f}** nats a token with the passages,
  {facts["without"]:.2f} without;
- swapping the passages for another question's changes **{facts["swapped"]:.0%}** of the greedy answers;
- RAGTruth QA: {facts["fit"]} of {facts["responses"]} test responses fit the window with their prompts.
"""


def sample_answers(shown: Sequence[tuple[QAExample, str]]) -> str:
    """Write greedy answers beside the true ones in Markdown."""
    answers = "\n".join(
        f"- **{example.question}** ({example.title})<br>{answer}<br>True answer: {' '.join(example.answer)}"
        for example, answer in shown
    )
    return f"The first {len(shown)} of the held-out examples:\n\n{answers}"


def main() -> None:
    """Check, then write weights, tokenizer and card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("articles", "ragtruth", "run", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    monitor = monitor_of(args.run)
    maker = ExampleMaker(load_articles(args.articles, "heldout"), None)
    rng = random.Random(SEED)
    examples = [e for e in (maker.draw(rng, LENGTH) for _ in range(2 * CHECKED)) if e.passages and all(e.supported)]
    examples = examples[:CHECKED]
    likelihoods = answer_log_probs(monitor, examples)
    answers = [greedy(monitor, e) for e in tqdm(examples, desc="greedy answers", mininterval=5)]
    others = examples[1:] + examples[:1]
    swapped = [
        greedy(monitor, replace(e, passages=o.passages))
        for e, o in tqdm(list(zip(examples, others, strict=True)), desc="swapped", mininterval=5)
    ]
    fit, responses = fitting(monitor, args.ragtruth)
    facts: dict[str, object] = {
        "parameters": monitor.model.num_parameters(),
        "window": monitor.model.config.max_position_embeddings,
        "with": likelihoods[0],
        "without": likelihoods[1],
        "swapped": float(np.mean([a != b for a, b in zip(answers, swapped, strict=True)])),
        "fit": fit,
        "responses": responses,
    }
    print(json.dumps(facts, indent=2))
    monitor.model.to(torch.bfloat16).save_pretrained(args.output)
    monitor.tokenizer.save_pretrained(args.output)
    card = args.output / "README.md"
    write_section(card, "Figures", figures(facts, args.run))
    write_section(card, "Greedy answers", sample_answers(list(zip(examples, answers, strict=True))[:SHOWN]))


if __name__ == "__main__":
    main()
