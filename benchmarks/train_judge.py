r"""Train the judge of decoders on the three sources that no part of the starter kit is trained on.

    python benchmarks/train_judge.py --pairs support-pairs --encoder all-MiniLM-L6-v2 --output runs/judge

The sources are WiCE, ExpertQA and BEGIN. The network is that of the bundled aligner, started from the same sentence
encoder and trained by the aligner's own loop; it shares none of its weights and none of its data. The sources have two
labels, so that the judge does not tell contradicted from not stated. Saves every ``--save-minutes`` and when told to
end (SIGTERM), and resumes where it stopped with the same command. ``syncheck.load_aligner`` loads what comes out, from
the output folder; ``measured.json`` there says how well it judges pairs of contexts that it never saw.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from contrast_pairs import SUPPORTED, ContrastGroup  # noqa: E402 - the training scripts are no package
from evaluate_aligner import measure, pack, support_scores, supports_of  # noqa: E402
from support_pairs import SupportPair, load_pairs, part_of  # noqa: E402
from train_aligner import (  # noqa: E402
    UNSUPPORTED,
    Encoder,
    Run,
    Sources,
    encoded,
    encoder_config,
    grouped,
    start_reader,
    train,
)

SOURCES = ("wice", "expertqa", "begin")
LEARNING_RATE = 1.2e-4


def groups_of(pairs: Sequence[SupportPair], source: str) -> list[ContrastGroup]:
    """Bring the claims of one context together."""
    return grouped([(p.passages, p.claim, SUPPORTED if p.label else UNSUPPORTED) for p in pairs], source)


def calibration_of(log_odds: Sequence[float | None], pairs: Sequence[SupportPair]) -> dict[str, float]:
    """Fit P(supported) to log-odds, at the share of supported claims that the sources have."""
    column = np.array(log_odds, np.float64)[:, None]
    fitted = LogisticRegression(C=1e6).fit(column, [pair.label for pair in pairs])
    return {"scale": float(fitted.coef_[0, 0]), "shift": float(fitted.intercept_[0])}


def main() -> None:
    """Train, calibrate, pack, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="folder of <source>.jsonl.xz")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=8)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast; slow on processors without it")
    parser.set_defaults(learning_rate=LEARNING_RATE, short_pairs=0)
    args = parser.parse_args()
    folder = args.output / "run"
    folder.mkdir(parents=True, exist_ok=True)

    torch.set_flush_denormal(True)
    tokenizer = Tokenizer.from_file(str(args.encoder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "run.json").write_text(json.dumps(vars(args), default=str, indent=2))
    pairs = [pair for source in SOURCES for pair in load_pairs(args.pairs, source)]
    parts = {name: [p for p in pairs if part_of(p.passages[0]) == name] for name in ("train", "calibrate", "test")}
    groups = {s: groups_of([p for p in parts["train"] if p.source == s], s) for s in SOURCES}
    shares = {source: float(len(listed)) for source, listed in groups.items()}
    encoder = Encoder(tokenizer)
    run = Run(start_reader(args.encoder, args.seed), folder, args)
    train(run, Sources(groups, shares, args.seed), encoder, encoded(encoder, groups_of(parts["calibrate"], "all")))
    if run.progress["seconds"] < 3600 * args.hours:
        sys.exit("told to end; the same command goes on from here")

    config = encoder_config(args.encoder)
    raw = [support.log_odds for support in supports_of(pack(folder, config, args.output), parts["calibrate"])]
    calibration = calibration_of(raw, parts["calibrate"])
    scores = support_scores(pack(folder, config, args.output, **calibration), parts["test"])
    rows = {s: [i for i, pair in enumerate(parts["test"]) if pair.source == s] for s in SOURCES}
    report = {
        "training": {**json.loads((folder / "progress.json").read_text()), "pairs": len(parts["train"])},
        "seed": args.seed,
        "calibration": {"pairs": len(parts["calibrate"]), **calibration},
        "all": measure(parts["test"], scores),
        "sources": {s: measure([parts["test"][i] for i in chosen], scores[chosen]) for s, chosen in rows.items()},
    }
    (args.output / "measured.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
