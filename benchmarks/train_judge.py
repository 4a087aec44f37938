r"""Train the judge on the three sources that no part of the starter kit is trained on: WiCE, ExpertQA and BEGIN.

    python benchmarks/train_judge.py --pairs support-pairs --encoder all-MiniLM-L6-v2 --output runs/judge

One context in six is held out: half of these to calibrate, half to measure on.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from judge import Judge
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits
from tqdm import tqdm

from syncheck.alignment.cross_encoder import (
    CrossEncoder,
    EncodedPair,
    collate,
    encode_pair,
    new_config,
    save_cross_encoder,
)
from syncheck.alignment.evidence import FUNCTION_WORDS, EvidenceIndex, distinct_words

SOURCES = ("wice", "expertqa", "begin")
LAYERS = 6
CHUNKS = 4
EVIDENCE_TOKENS = 144
CLAIM_TOKENS = 96
BATCH = 24
RATE, NEW_RATE = 1.2e-4, 1e-3
WARM_UP = 0.06
HELD_OUT_OF_12 = {0: "test", 1: "calibrate"}
RESAMPLES = 400


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled pair, and its encoded form for training."""

    source: str
    group: str
    context: str
    claim: str
    label: int
    pair: EncodedPair

    @property
    def part(self) -> str:
        """``train``, ``calibrate`` or ``test``, the same for all pairs of a context."""
        return HELD_OUT_OF_12.get(zlib.crc32(self.group.encode()) % 12, "train")


def load_rows(folder: Path, tokenizer: Tokenizer) -> list[Row]:
    """Read the sources and choose each pair's evidence as the aligner does."""
    rows = []
    for source in SOURCES:
        with lzma.open(folder / f"{source}.jsonl.xz", "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                pair = encode(tokenizer, record["context"], record["claim"])
                group = f"{source}:{record['group']}"
                rows.append(Row(source, group, record["context"], record["claim"], int(record["label"]), pair))
    return rows


def encode(tokenizer: Tokenizer, context: str, claim: str) -> EncodedPair:
    """Join the best chunks that fit with the claim."""
    index = EvidenceIndex([context])
    chosen: dict[int, list[int]] = {}
    room = EVIDENCE_TOKENS
    for best in index.best(claim, CHUNKS):
        ids = tokenizer.encode(index.chunks[best].text, add_special_tokens=False).ids
        if len(ids) <= room:
            chosen[best] = ids
            room -= len(ids)
    evidence = [token for best in sorted(chosen) for token in chosen[best]]
    return encode_pair(evidence, tokenizer.encode(claim, add_special_tokens=False).ids[:CLAIM_TOKENS])


def start_model(encoder: Path, seed: int) -> CrossEncoder:
    """Build the network from the first layers of a BERT checkpoint; the word embeddings stay as they are."""
    torch.manual_seed(seed)
    config = json.loads((encoder / "config.json").read_text())
    names = ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size")
    model = CrossEncoder(new_config(**{n: config[n] for n in names}, num_hidden_layers=LAYERS))
    state = model.bert.state_dict()
    weights = {k.removeprefix("bert."): v for k, v in load_file(encoder / "model.safetensors").items()}
    types = "embeddings.token_type_embeddings.weight"
    weights[types] = weights[types][:1] + 0.02 * torch.randn_like(state[types])
    model.bert.load_state_dict({name: weights[name].float() for name in state})
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return model


def batches(rows: Sequence[Row], rng: random.Random) -> list[list[Row]]:
    """One pass over the rows in batches of similar length, in random order."""
    shuffled = sorted(rows, key=lambda row: len(row.pair) + rng.random() * 16)
    groups = [shuffled[i : i + BATCH] for i in range(0, len(shuffled), BATCH)]
    rng.shuffle(groups)
    return groups


def train(model: CrossEncoder, rows: Sequence[Row], *, minutes: float, seed: int) -> dict[str, float]:
    """Train until the minutes are spent; the rate falls with the time that is left."""
    fresh = [p for n, p in model.named_parameters() if n.startswith("head") or "token_type" in n]
    known = {id(p) for p in fresh}
    body = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
    groups = [{"params": body, "start": RATE}, {"params": fresh, "start": NEW_RATE}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, weight_decay=0.01, fused=True)
    rng = random.Random(seed)
    waiting: list[list[Row]] = []
    model.train()
    started, seen, losses = time.perf_counter(), 0, []
    while (share := (time.perf_counter() - started) / (60 * minutes)) < 1:
        waiting = waiting or batches(rows, rng)
        batch = waiting.pop()
        for group in optimizer.param_groups:
            group["lr"] = group["start"] * min(1.0, (share + 1e-3) / WARM_UP, 1.02 - share)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(*collate([row.pair for row in batch]))
        loss = binary_cross_entropy_with_logits(logits, torch.tensor([float(row.label) for row in batch]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += len(batch)
        losses.append(loss.item())
    return {"pairs": seen, "minutes": minutes, "seed": seed, "last_loss": float(np.mean(losses[-50:]))}


def judged(judge: Judge, rows: Sequence[Row]) -> NDArray[np.float64]:
    """Score rows one by one."""
    return np.array([judge.supported([row.context], [row.claim])[0] for row in tqdm(rows, mininterval=5)])


def overlap(row: Row) -> float:
    """Share of the claim's content words that the context holds: what needs no training."""
    held = set(distinct_words(row.context))
    words = [word for word in distinct_words(row.claim) if word not in FUNCTION_WORDS]
    return sum(word in held for word in words) / max(1, len(words))


def measure(rows: Sequence[Row], scores: NDArray[np.float64]) -> dict[str, object]:
    """AUROC with a 95 % bootstrap interval over contexts, beside word overlap; balanced accuracy at 0.5."""
    labels = np.array([row.label for row in rows])
    names = sorted({row.group for row in rows})
    members = {name: [i for i, row in enumerate(rows) if row.group == name] for name in names}
    rng = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        chosen = [i for name in rng.choice(names, size=len(names)) for i in members[name]]
        values.append(roc_auc_score(labels[chosen], scores[chosen]))
    return {
        "pairs": len(rows),
        "auroc": round(float(roc_auc_score(labels, scores)), 3),
        "auroc_interval": [round(float(q), 3) for q in np.quantile(values, [0.025, 0.975])],
        "auroc_overlap": round(float(roc_auc_score(labels, [overlap(row) for row in rows])), 3),
        "balanced_accuracy": round(float(balanced_accuracy_score(labels, scores >= 0.5)), 3),
    }


def main() -> None:
    """Train, calibrate, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    tokenizer = Tokenizer.from_file(str(args.encoder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = load_rows(args.pairs, tokenizer)
    parts = {part: [row for row in rows if row.part == part] for part in ("train", "calibrate", "test")}
    model = start_model(args.encoder, args.seed)
    training = train(model, parts["train"], minutes=args.minutes, seed=args.seed)
    save_cross_encoder(args.output, model, tokenizer, scale=1.0, shift=0.0)
    raw = judged(Judge.load(args.output), parts["calibrate"])
    labels = [row.label for row in parts["calibrate"]]
    platt = LogisticRegression(C=1e6).fit(logit(raw.clip(1e-6, 1 - 1e-6))[:, None], labels)
    scale, shift = float(platt.coef_[0, 0]), float(platt.intercept_[0])
    save_cross_encoder(args.output, model, tokenizer, scale=scale, shift=shift)
    scores = judged(Judge.load(args.output), parts["test"])
    report: dict[str, object] = {"training": training, "all": measure(parts["test"], scores)}
    for source in SOURCES:
        chosen = [i for i, row in enumerate(parts["test"]) if row.source == source]
        report[source] = measure([parts["test"][i] for i in chosen], scores[chosen])
    (args.output / "measured.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
