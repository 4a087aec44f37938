r"""Measure a run of ``train_reader.py``, while it goes on or after.

    python examples/starter_kit/evaluate_reader.py --run runs/reader --encoder all-MiniLM-L6-v2 \
        --groups heldout.jsonl --pairs support-pairs --sources defacto frank wice

Prints, by kind, the share of claims of one context that are ordered rightly and of those on the right side of even
odds for ``--groups``, and AUROC over at most ``--most`` pairs for each of ``--sources`` (of a source that was trained
on, the test part).
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import torch
from contrast_pairs import SUPPORTED, Claim, ContrastGroup, load_groups
from safetensors.torch import load_file
from sklearn.metrics import roc_auc_score
from support_pairs import SupportPair, load_pairs, part_of
from tokenizers import Tokenizer
from train_reader import (
    SUPPORT_SOURCES,
    Encoder,
    Reader,
    batches_of,
    collate,
    encoded,
    evaluated,
    start_reader,
    support_margin,
)


def load_reader(run: Path, encoder: Path, weights: str) -> tuple[Reader, Encoder]:
    """Load a run's weights and its tokenizer."""
    model = start_reader(encoder, 0)
    model.load_state_dict(load_file(run / f"{weights}.safetensors"))
    return model.eval(), Encoder(Tokenizer.from_file(str(run / "tokenizer.json")))


@torch.no_grad()
def auroc(model: Reader, encoder: Encoder, pairs: list[SupportPair]) -> float:
    """AUROC of the log-odds of supported."""
    groups = [ContrastGroup(p.passages, (Claim(p.claim, p.label, ""),), "", "") for p in pairs]
    scores, labels = [], []
    for batch in batches_of(random.Random(0), encoded(encoder, groups)):
        scores += support_margin(model(*collate([p for row in batch for p in row.pairs]))).tolist()
        labels += [label == SUPPORTED for row in batch for label in row.labels]
    return float(roc_auc_score(labels, scores))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--weights", choices=("average", "weights"), default="average")
    parser.add_argument("--groups", type=Path, nargs="*", default=[])
    parser.add_argument("--pairs", type=Path, help="folder of pairs with two labels")
    parser.add_argument("--sources", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=400)
    args = parser.parse_args()
    model, encoder = load_reader(args.run, args.encoder, args.weights)
    for path in args.groups:
        print(json.dumps({path.name: evaluated(model, encoded(encoder, load_groups(path)), bf16=False)}, indent=1))
    model.eval()
    for source in args.sources:
        pairs = load_pairs(args.pairs, source)
        if source in SUPPORT_SOURCES:
            pairs = [p for p in pairs if part_of(p.passages[0]) == "test"]
        pairs = random.Random(0).sample(pairs, min(args.most, len(pairs)))
        print(f"{source}: {len(pairs)} pairs, AUROC {auroc(model, encoder, pairs):.3f}")


if __name__ == "__main__":
    main()
