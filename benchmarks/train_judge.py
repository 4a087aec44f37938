r"""Train the judge of decoders on the three sources that no part of the starter kit is trained on.

    python benchmarks/train_judge.py --pairs support-pairs --encoder all-MiniLM-L6-v2 --output runs/judge

The sources are WiCE, ExpertQA and BEGIN. The network is that of the bundled aligner, started from the first layers of
a sentence encoder and trained with the aligner's own loop; it shares none of its weights and none of its data. Saves
every ``--save-every`` steps and resumes where it stopped. Every batch is drawn from the seed and the step number
alone, so a rerun on the same machine gives the same judge. ``syncheck.load_aligner`` loads what comes out, from the
output folder; ``measured.json`` there says how well it judges pairs of contexts that it never saw.

The calibration takes no account of the words that context and claim share, unlike the bundled aligner's: the
monitors read those words too, and a judge should not agree with a monitor for that reason.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer
from torch import Tensor

from syncheck.aligners.bundled import EncodedPair

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from evaluate_aligner import measure, pack, support_scores  # noqa: E402 - the training scripts are not a package
from support_pairs import SupportPair, load_pairs, part_of  # noqa: E402
from train_aligner import BATCH, NEW_RATE, POOL, Encoder, start_model, train  # noqa: E402

SOURCES = ("wice", "expertqa", "begin")
CHUNKS, EVIDENCE_TOKENS = 3, 128
"""Evidence of a pair."""
LEARNING_RATE = 1.2e-4


@dataclass(frozen=True, slots=True)
class EncodedBatches:
    """Draws the batch of a step from the seed and the step number alone; every pair is encoded once."""

    pairs: Sequence[EncodedPair]
    labels: Sequence[int]
    seed: int

    def draw(self, step: int) -> tuple[list[EncodedPair], Tensor]:
        """Return encoded pairs of similar length and their labels, (B,) float32."""
        rng = random.Random(f"{self.seed}-{step}")
        pool = sorted(rng.sample(range(len(self.pairs)), BATCH * POOL), key=lambda i: len(self.pairs[i]))
        start = rng.randrange(len(pool) - BATCH + 1)
        rows = pool[start : start + BATCH]
        return [self.pairs[i] for i in rows], torch.tensor([float(self.labels[i]) for i in rows])


def calibration_of(scores: np.ndarray, pairs: Sequence[SupportPair]) -> dict[str, float]:
    """Fit P(supported) to raw probabilities."""
    raw = logit(scores.clip(1e-6, 1 - 1e-6))[:, None]
    fitted = LogisticRegression(C=1e6).fit(raw, [pair.label for pair in pairs])
    return {"scale": float(fitted.coef_[0, 0]), "shift": float(fitted.intercept_[0])}


def main() -> None:
    """Train, calibrate, pack, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="folder of <source>.jsonl.xz")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=50)
    parser.add_argument("--device", type=torch.device, default="cpu")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast; slow on processors without AMX")
    args = parser.parse_args()
    run = args.output / "run"
    run.mkdir(parents=True, exist_ok=True)

    tokenizer = Tokenizer.from_file(str(args.encoder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(run / "tokenizer.json"))
    pairs = [pair for source in SOURCES for pair in load_pairs(args.pairs, source)]
    parts = {name: [p for p in pairs if part_of(p.passages[0]) == name] for name in ("train", "calibrate", "test")}
    encoder = Encoder(tokenizer, EVIDENCE_TOKENS)
    encoded = [encoder.encode(pair, CHUNKS) for pair in parts["train"]]
    (run / "run.json").write_text(json.dumps({**vars(args), "packed": None}, default=str, indent=2))
    train(
        start_model(args.encoder, args.seed),
        EncodedBatches(encoded, [pair.label for pair in parts["train"]], args.seed),
        run,
        steps=args.steps,
        rate=LEARNING_RATE,
        new_rate=NEW_RATE,
        save_every=args.save_every,
        bf16=args.bf16,
        device=args.device,
    )
    raw = pack(run, args.output, {})
    calibration = calibration_of(support_scores(raw, parts["calibrate"]), parts["calibrate"])
    judge = pack(run, args.output, calibration)
    scores = support_scores(judge, parts["test"])
    rows = {s: [i for i, pair in enumerate(parts["test"]) if pair.source == s] for s in SOURCES}
    report = {
        "training": {**json.loads((run / "progress.json").read_text()), "pairs": len(parts["train"])},
        "seed": args.seed,
        "calibration": {"pairs": len(parts["calibrate"]), **calibration},
        "all": measure(parts["test"], scores),
        "sources": {s: measure([parts["test"][i] for i in chosen], scores[chosen]) for s, chosen in rows.items()},
    }
    (args.output / "measured.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
