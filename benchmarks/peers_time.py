"""Time to check an answer about unseen passages: the reader at each effort, and networks of the shapes of its peers.

    python benchmarks/peers_time.py --threads 2

An answer of eight sentences about four passages of ``long_contexts.jsonl``, 850 tokens on average. The peers have
random weights, since only their time is measured, and read as their own code does: ModernBERT-base marks the tokens of
one text of passages and answer (LettuceDetect); RoBERTa-large and Flan-T5-large read each sentence with each 400 tokens
of the passages (MiniCheck). All take their turn for each answer, in float32, and the ratios are to ModernBERT-base.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from long_contexts import load_questions
from machine import describe_machine
from tqdm import tqdm
from transformers import (
    ModernBertConfig,
    ModernBertForTokenClassification,
    PreTrainedModel,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from syncheck.aligners import ReaderAligner
from syncheck.aligners.reader.aligner import token_ids
from syncheck.reading import EvidenceIndex
from syncheck.results.types import EFFORTS

CHUNK, FIRST_ID = 400, 10
"""Tokens of the passages that MiniCheck reads at once; the least id of a made-up token."""

Check = Callable[[Sequence[str], Sequence[str]], None]


def reader_at(reader: ReaderAligner) -> Check:
    """Read passages that were not seen before."""

    def check(passages: Sequence[str], sentences: Sequence[str]) -> None:
        reader.align_indexed(EvidenceIndex(passages), sentences)

    return check


def lettuce_detect(model: PreTrainedModel, length: Callable[[str], int]) -> Check:
    """Mark the tokens of passages and answer, read as one text."""

    def check(passages: Sequence[str], sentences: Sequence[str]) -> None:
        model(input_ids=_ids(1, sum(map(length, (*passages, *sentences)))))

    return check


def minicheck(model: PreTrainedModel, length: Callable[[str], int], **more: torch.Tensor) -> Check:
    """Read each sentence with each chunk of the passages, a sentence's at once."""

    def check(passages: Sequence[str], sentences: Sequence[str]) -> None:
        total = sum(map(length, passages))
        for sentence in sentences:
            rows = -(-total // CHUNK)
            asked = {name: value.expand(rows, -1) for name, value in more.items()}
            model(input_ids=_ids(rows, min(total, CHUNK) + length(sentence) + 3), **asked)

    return check


def _ids(rows: int, tokens: int) -> torch.Tensor:
    return (torch.arange(rows * tokens) % 1000 + FIRST_ID).view(rows, tokens)


def peers(length: Callable[[str], int]) -> dict[str, Check]:
    """Build the networks of the peers, with random weights."""
    roberta = RobertaConfig(
        vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        max_position_embeddings=514, num_labels=2,
    )  # fmt: skip
    t5 = T5Config(
        vocab_size=32128, d_model=1024, d_kv=64, d_ff=2816, num_layers=24, num_heads=16, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, decoder_start_token_id=0,
    )  # fmt: skip
    return {
        "ModernBERT-base": lettuce_detect(
            ModernBertForTokenClassification(ModernBertConfig(num_labels=2, attn_implementation="sdpa")).eval(), length
        ),
        "RoBERTa-large": minicheck(RobertaForSequenceClassification(roberta).eval(), length),
        "Flan-T5-large": minicheck(
            T5ForConditionalGeneration(t5).eval(), length, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)
        ),
    }


@torch.inference_mode()
def main(words: Sequence[str] | None = None) -> None:
    """Measure in turns and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=8, help="the first ones of the open half (%(default)s)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args(words)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    reader = ReaderAligner.load()

    def length(text: str) -> int:
        return len(token_ids(reader._tokenizer, text))

    systems = {f"reader, {effort}": reader_at(reader.at(effort)) for effort in EFFORTS} | peers(length)
    answers = [
        (question["passages"], [sentence["text"] for sentence in question["answer"]])
        for question in load_questions("open")[: args.answers + 1]
    ]
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for number, (passages, sentences) in enumerate(tqdm(answers, unit=" answers", leave=False)):
        for name, check in systems.items():
            since = time.perf_counter()
            check(passages, sentences)
            if number:  # the first one warms up
                seconds[name].append(time.perf_counter() - since)
    tokens = np.mean([sum(map(length, passages)) for passages, _ in answers[1:]])
    print(", ".join(describe_machine("cpu", args.threads, "wall").values()), end="\n\n")
    print(f"{len(answers) - 1} answers of eight sentences, {tokens:.0f} tokens of passages on average\n")
    print("| | seconds an answer | as a share of ModernBERT-base |\n| --- | --- | --- |")
    medians = {name: float(np.median(of)) for name, of in seconds.items()}
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} | {median / medians['ModernBERT-base']:.2f} |")


if __name__ == "__main__":
    main()
