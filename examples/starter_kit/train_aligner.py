r"""Train the starter kit's aligner: evidence and a claim in, the probability of support out.

    python examples/starter_kit/train_aligner.py --pairs support-pairs --articles articles.jsonl.xz \
        --encoder all-MiniLM-L6-v2 --output runs/aligner

Starts from the first layers of a sentence encoder, or goes on from a packed aligner (``--packed``). ``--without``
leaves sources out, to see how it does on what it was not trained on. Saves every ``--save-every`` steps and resumes
where it stopped; every batch is drawn from the seed and the step number alone. ``evaluate_aligner.py`` calibrates,
packs and measures what comes out.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from cross_encoder import CrossEncoder, collate, load_cross_encoder
from resumable import restore_optimizer, save_progress
from safetensors.torch import load_file, save_file
from support_pairs import SupportPair, load_pairs, part_of
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from tqdm import tqdm
from wikipedia_articles import Substitution, load_articles
from wikipedia_pairs import WikipediaPairs

from syncheck.aligners.bundled import EncodedPair, EncoderSizes, encode_pair
from syncheck.reading.evidence import EvidenceIndex

TRAINING_SOURCES = ("defacto", "bump", "summedits", "frank")
LAYERS = 4
CHUNKS = (2, 3, 4, 4, 5)
"""Most evidence chunks of a training pair; drawn for each pair."""
EVIDENCE_TOKENS = 144
CLAIM_TOKENS = 96
BATCH = 32
POOL = 3
"""A batch is drawn from this many batches' worth of pairs, sorted by length, so that little is padding."""
WIKIPEDIA_SHARE = 0.5
NEW_RATE = 1e-3
"""Learning rate of the head and the token types where they start from scratch."""
WEIGHT_DECAY = 0.01
WARM_UP_STEPS = 60
FLOOR = 0.02


def start_model(encoder: Path, seed: int) -> CrossEncoder:
    """Build the network from the first ``LAYERS`` layers of a BERT checkpoint."""
    torch.manual_seed(seed)
    config = json.loads((encoder / "config.json").read_text())
    names = ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size")
    model = CrossEncoder(EncoderSizes(**{n: config[n] for n in names}, num_hidden_layers=LAYERS))
    state = model.bert.state_dict()
    weights = {k.removeprefix("bert."): v for k, v in load_file(encoder / "model.safetensors").items()}
    types = "embeddings.token_type_embeddings.weight"
    weights[types] = weights[types][:1] + 0.02 * torch.randn_like(state[types])
    model.bert.load_state_dict({name: weights[name].float() for name in state})
    return freeze(model)


def packed_model(folder: Path) -> CrossEncoder:
    """Read a packed aligner to go on from."""
    return freeze(load_cross_encoder(folder))


def freeze(model: CrossEncoder) -> CrossEncoder:
    """Freeze the word embeddings, so that words absent from training stay where they belong."""
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return model


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns labelled pairs into token ids, with the evidence chosen as the aligner chooses it."""

    tokenizer: Tokenizer
    evidence_tokens: int = EVIDENCE_TOKENS

    def encode(self, pair: SupportPair, chunks: int) -> EncodedPair:
        """Choose up to ``chunks`` chunks that fit ``evidence_tokens`` together, and join them with the claim."""
        index = _index(pair.passages)
        chosen: dict[int, list[int]] = {}
        room = self.evidence_tokens
        for best in index.best(pair.claim, chunks):
            ids = self._ids(index.chunks[best].text)
            if len(ids) <= room:
                chosen[best] = ids
                room -= len(ids)
        evidence = [token for best in sorted(chosen) for token in chosen[best]]
        return encode_pair(evidence, self._ids(pair.claim)[:CLAIM_TOKENS])

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


@lru_cache(maxsize=4096)
def _index(passages: tuple[str, ...]) -> EvidenceIndex:
    """Human-labelled contexts recur; keep their indices."""
    return EvidenceIndex(passages)


@dataclass(frozen=True, slots=True)
class Batches:
    """Draws the batch of a step from the seed and the step number alone."""

    encoder: Encoder
    human: dict[str, list[SupportPair]]
    wikipedia: WikipediaPairs | None
    seed: int

    def draw(self, step: int) -> tuple[list[EncodedPair], Tensor]:
        """Return encoded pairs of similar length and their labels, (B,) float32."""
        rng = random.Random(f"{self.seed}-{step}")
        pool = [self._pair(rng) for _ in range(BATCH * POOL)]
        rows = [(self.encoder.encode(pair, rng.choice(CHUNKS)), float(pair.label)) for pair in pool]
        rows.sort(key=lambda row: len(row[0]))
        start = rng.randrange(len(rows) - BATCH + 1)
        batch = rows[start : start + BATCH]
        return [pair for pair, _ in batch], torch.tensor([label for _, label in batch])

    def _pair(self, rng: random.Random) -> SupportPair:
        if self.wikipedia is not None and rng.random() < WIKIPEDIA_SHARE:
            return self.wikipedia.draw(rng)
        sources = sorted(self.human)
        source = rng.choices(sources, [len(self.human[s]) for s in sources])[0]
        return rng.choice(self.human[source])


def learning_share(step: int, steps: int) -> float:
    """Linear warm-up, then linear to ``FLOOR``."""
    return min((step + 1) / WARM_UP_STEPS, FLOOR + (1 - FLOOR) * (1 - step / steps))


def new_optimizer(model: CrossEncoder, rate: float, new_rate: float) -> torch.optim.AdamW:
    """AdamW with a separate rate for parameters that start from scratch; ``start`` keeps each group's peak rate."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    fresh = [p for n, p in trained.items() if n.startswith("head") or "token_type" in n]
    names = {id(p) for p in fresh}
    body = [p for p in trained.values() if id(p) not in names]
    return torch.optim.AdamW(
        [{"params": body, "start": rate}, {"params": fresh, "start": new_rate}],
        lr=rate,
        weight_decay=WEIGHT_DECAY,
        fused=True,
    )


def train(
    model: CrossEncoder,
    batches: Batches,
    output: Path,
    *,
    steps: int,
    rate: float,
    new_rate: float,
    save_every: int,
    bf16: bool,
    device: torch.device,
) -> None:
    """Train until ``steps``, from where ``output`` stands; log one line for every ten steps."""
    model.to(device)
    optimizer = new_optimizer(model, rate, new_rate)
    progress = {"step": 0, "seconds": 0.0}
    if (output / "progress.json").exists():
        progress = json.loads((output / "progress.json").read_text())
        model.load_state_dict(load_file(output / "weights.safetensors"))
        restore_optimizer(output, optimizer)
    model.train()
    started = time.perf_counter() - progress["seconds"]
    recent: list[float] = []
    with (output / "losses.jsonl").open("a") as log:
        for step in tqdm(
            range(int(progress["step"]), steps), initial=int(progress["step"]), total=steps, mininterval=5
        ):
            for group in optimizer.param_groups:
                group["lr"] = group["start"] * learning_share(step, steps)
            pairs, labels = batches.draw(step)
            torch.manual_seed(batches.seed + step)  # dropout of a resumed run is that of a whole one
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                logits = model(*(tensor.to(device) for tensor in collate(pairs)))
            loss = binary_cross_entropy_with_logits(logits.float(), labels.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
            optimizer.step()
            recent.append(loss.item())
            progress = {"step": step + 1, "seconds": time.perf_counter() - started}
            if (step + 1) % 10 == 0:
                log.write(json.dumps({**progress, "loss": sum(recent) / len(recent)}) + "\n")
                log.flush()
                recent.clear()
            if (step + 1) % save_every == 0 or step + 1 == steps:
                save_file({k: v.contiguous() for k, v in model.state_dict().items()}, output / "weights.safetensors")
                save_progress(output, optimizer, progress)


def load_human(folder: Path, sources: Sequence[str]) -> dict[str, list[SupportPair]]:
    """Read the training part of each source."""
    return {s: [p for p in load_pairs(folder, s) if part_of(p.passages[0]) == "train"] for s in sources}


def main() -> None:
    """Train for a number of steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="folder of <source>.jsonl.xz")
    parser.add_argument("--articles", type=Path, required=True)
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--encoder", type=Path, help="folder of all-MiniLM-L6-v2, to start from its first layers")
    start.add_argument("--packed", type=Path, help="a packed aligner to go on from, with new data and a new schedule")
    parser.add_argument("--without", nargs="+", choices=TRAINING_SOURCES, default=[], help="sources to leave out")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1100)
    parser.add_argument("--learning-rate", type=float, default=1.2e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--device", type=torch.device, default="cpu")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast; slow on processors without AMX")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)  # attention's gradients hold many; a processor takes far longer over them

    articles = load_articles(args.articles, "train")
    tokenizer = Tokenizer.from_file(str((args.encoder or args.packed) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(args.output / "tokenizer.json"))
    batches = Batches(
        Encoder(tokenizer),
        load_human(args.pairs, [source for source in TRAINING_SOURCES if source not in args.without]),
        WikipediaPairs(articles, Substitution(articles)),
        args.seed,
    )
    (args.output / "run.json").write_text(json.dumps(vars(args), default=str, indent=2))
    train(
        packed_model(args.packed) if args.packed else start_model(args.encoder, args.seed),
        batches,
        args.output,
        steps=args.steps,
        rate=args.learning_rate,
        new_rate=args.learning_rate if args.packed else NEW_RATE,
        save_every=args.save_every,
        bf16=args.bf16,
        device=args.device,
    )


if __name__ == "__main__":
    main()
