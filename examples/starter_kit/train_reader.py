r"""Train the reader: updates of a language model's weights; passages and a claim in, three verdicts out.

    python examples/starter_kit/train_reader.py --contrast contrast-pairs --pairs support-pairs --made made.jsonl \
        --output runs/reader --packed runs/reader/packed

The encoder is all-mpnet-base-v2. Every matrix of its layers learns a low-rank update (LoRA, Hu et al., 2022). Passages
and claim are one text, in which every token sees every other. In addition to the cross-entropy there is a loss on
differences: of the claims about one context, a supported one is to score above one that is not.

Runs on a GPU in bfloat16 if there is one, otherwise on the CPU in float32. Saves every ``--save-minutes`` and when told
to end (SIGTERM), and resumes where it stopped with the same command. The rate falls over the last part of
``--minutes``. The running mean of the weights is packed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from claim_files import WRITTEN, is_held_out, load_written
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED
from numpy.typing import NDArray
from reader_data import Batch, Encoder, Pools, Row, batches_of, collated, load_training
from resumable import restore_optimizer, save_progress
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention, softplus
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import MPNetModel

from syncheck.alignment.reader_layers import LARGEST, in_eight_bits, measured_inputs
from syncheck.alignment.reader_network import (
    DOWN,
    FIRST_POSITION,
    FORMAT,
    HEAD_WIDTH,
    UP,
    encoder_of,
    encoder_weights,
    fingerprint,
)
from syncheck.evaluation import expected_calibration_error

RANK, UPDATE_SCALE = 64, 1.0
LEARNING_RATE, WARM_UP_STEPS, DECAY_SHARE, LEAST_RATE = 5e-4, 60, 0.7, 0.01
"""The rate, the steps in which it rises, the part of the time in which it falls, and the share at which that ends."""
BETAS, LARGEST_GRADIENT = (0.9, 0.98), 1.0
AVERAGE = 0.995
"""Weight of the running mean in each step, once it has begun."""
DROPOUT = 0.1
"""Of the outputs of the embeddings and of each half of a layer."""
SMOOTHING, PAIR_WEIGHT = 0.03, 0.5
MEASURED_POOLS = 5
"""Pools of training groups, of each group one claim, for which the largest inputs of the matrices are measured."""
LOGGED, LOG_SECONDS = 40, 30
"""Held-out contexts that are measured while the training goes on, and seconds between two lines of the log."""


class Updated(nn.Module):
    """A linear map, (N, K), and the factors of its update: ``down`` (rank, K) and ``up`` (N, rank)."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (..., K) to (..., N)."""
        narrow = linear(inputs, self.down.to(inputs.dtype))
        return self.base(inputs) + linear(narrow, (UPDATE_SCALE * self.up).to(inputs.dtype))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """MPNet's attention by PyTorch's kernel, which keeps no weights of pairs of tokens for the backward pass."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = base.q, base.k, base.v, base.o
        self.heads: int = base.num_attention_heads

    def forward(self, hidden: Tensor, attention_mask: Tensor | None, position_bias: Tensor, **_: Any) -> tuple[Tensor]:
        """Map (B, T, H) to the same, as a tuple of one, which MPNet's layer expects; without padding, no mask comes."""
        query, key, value = (
            part(hidden).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        bias = position_bias if attention_mask is None else position_bias + attention_mask
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return (self.o(mixed.transpose(1, 2).flatten(2)),)


class JointReader(nn.Module):
    """The encoder with updates of all matrices of its layers, and a head with three outputs.

    Parameters
    ----------
    encoder
        An MPNet without pooler, whose weights stay as they are. It is changed in place.
    """

    def __init__(self, encoder: MPNetModel) -> None:
        super().__init__()
        encoder.requires_grad_(False)
        for layer in encoder.encoder.layer:
            layer.attention.attn = Attention(layer.attention.attn)
            for name, module in list(layer.named_modules()):
                if isinstance(module, nn.Linear):
                    layer.set_submodule(name, Updated(module))
        for module in encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = DROPOUT
        self.encoder = encoder
        self.hidden = nn.Linear(2 * encoder.config.hidden_size, HEAD_WIDTH)
        self.verdict = nn.Linear(HEAD_WIDTH, 3)

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits (B, 3): the head sees the END before a claim, and the mean over it and the END after it."""
        device = self.verdict.weight.device
        ids, starts, ends = (torch.from_numpy(array).to(device) for array in (batch.ids, batch.starts, batch.ends))
        places = torch.arange(ids.shape[1], device=device)
        states = self.encoder(
            input_ids=ids,
            attention_mask=(places <= ends[:, None]).long(),
            position_ids=places[None] + FIRST_POSITION,
        ).last_hidden_state
        own = ((places >= starts[:, None]) & (places <= ends[:, None])).float()
        mean = torch.einsum("bt,bth->bh", own / own.sum(1, keepdim=True), states.float())
        before = states[torch.arange(len(ids), device=device), starts - 1].float()
        return self.verdict(torch.tanh(self.hidden(torch.cat([before, mean], dim=1))))  # type: ignore[no-any-return]


def trainable(encoder: MPNetModel, seed: int) -> JointReader:
    """Return the network with updates to be trained, and a new head."""
    torch.manual_seed(seed)
    return JointReader(encoder)


def support_margin(logits: Tensor) -> Tensor:
    """Log-odds of supported, (B,)."""
    others = torch.logsumexp(logits[:, [CONTRADICTED, NOT_STATED]], dim=1)
    return logits[:, SUPPORTED] - others


def loss_of(logits: Tensor, labels: Tensor, contexts: Tensor) -> Tensor:
    """Cross-entropy over claims plus the loss of wrongly ordered claims of one context."""
    margin, good = support_margin(logits), labels == SUPPORTED
    named = cross_entropy(logits, labels.clamp_max(NOT_STATED), reduction="none", label_smoothing=SMOOTHING)
    total = torch.where(labels == UNSUPPORTED, softplus(margin), named).mean()
    pairs = (good[:, None] & ~good & (contexts[:, None] == contexts)).float()
    disorder = softplus(margin - margin[:, None]) * pairs
    return total + PAIR_WEIGHT * disorder.sum() / pairs.sum().clamp_min(1)


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts on N claims.

    Attributes
    ----------
    logits : Tensor of shape (N, 3)
    labels, contexts : Tensor of shape (N,), int64
        Contexts are numbered.
    kinds : ndarray of shape (N,)
    overlaps : ndarray of shape (N,)
        Share of a claim's tokens that are in the passages.
    """

    logits: Tensor
    labels: Tensor
    contexts: Tensor
    kinds: NDArray[np.str_]
    overlaps: NDArray[np.float64]

    def part(self, chosen: NDArray[np.bool_]) -> Judged:
        """Return some of the claims."""
        rows = torch.from_numpy(chosen)
        kept = self.logits[rows], self.labels[rows], self.contexts[rows]
        return Judged(*kept, self.kinds[chosen], self.overlaps[chosen])


@torch.no_grad()
def judged(model: JointReader, rows: Sequence[Row]) -> Judged:
    """Judge all rows."""
    model.eval()
    logits, dealt = [], []
    for batch in batches_of(random.Random(0), [[row] for row in rows]):
        logits.append(model(collated(batch)).cpu())
        dealt += batch
    model.train()
    return Judged(
        torch.cat(logits),
        torch.tensor([row.label for row in dealt]),
        torch.tensor([row.context for row in dealt]),
        np.array([row.kind for row in dealt]),
        np.array([_overlap(row) for row in dealt]),
    )


def _overlap(row: Row) -> float:
    own = set(row.claim)
    return len(own & set(row.premise)) / max(1, len(own))


def measured(found: Judged) -> dict[str, float]:
    """Return the shares of pairs ordered rightly, of claims on the right side of even odds, and named rightly."""
    margin, good = support_margin(found.logits), found.labels == SUPPORTED
    pairs = good[:, None] & ~good[None] & (found.contexts[:, None] == found.contexts)
    ordered = (margin[:, None] > margin)[pairs].float().mean()
    shares = {"ordered": ordered, "right side": ((margin > 0) == good).float().mean()}
    shares["named"] = (found.logits.argmax(1) == found.labels).float().mean()
    return {name: round(share.item(), 3) for name, share in shares.items()}


def report(found: Judged) -> list[dict[str, Any]]:
    """Measure all claims, those of each kind, and thirds by their overlap with the passages."""
    thirds = np.searchsorted(np.quantile(found.overlaps, [1 / 3, 2 / 3]), found.overlaps)
    parts = {"all": np.ones(len(thirds), dtype=bool)}
    parts |= {f"kind {kind}": found.kinds == kind for kind in np.unique(found.kinds)}
    parts |= {f"overlap, third {number + 1}": thirds == number for number in range(3)}
    return [{"part": name, **_figures(found.part(chosen))} for name, chosen in parts.items() if chosen.any()]


def _figures(found: Judged) -> dict[str, float | None]:
    margin, good = support_margin(found.logits), (found.labels == SUPPORTED).numpy()
    return {
        "claims": len(good),
        "supported": round(float(good.mean()), 3),
        **measured(found),
        "AUROC": round(float(roc_auc_score(good, margin.numpy())), 3) if 0 < good.sum() < len(good) else None,
        "calibration error": round(expected_calibration_error(margin.sigmoid().numpy(), good.astype(int)), 3),
    }


class Run:
    """A training run in a folder.

    Parameters
    ----------
    model
        To train.
    output
        Where it is saved.
    minutes, seed
        Of the command.
    """

    def __init__(self, model: JointReader, output: Path, *, minutes: float, seed: int) -> None:
        self.model, self.output, self.minutes, self.seed = model, output, minutes, seed
        self.device = model.verdict.weight.device
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=LEARNING_RATE, weight_decay=0.0, betas=BETAS, fused=True
        )
        self.progress: dict[str, float] = {"pool": 0, "batch": 0, "step": 0, "claims": 0, "seconds": 0.0}
        self.average = {name: p.detach().clone() for name, p in self.trained.items()}
        if (output / "progress.json").exists():
            self.progress = json.loads((output / "progress.json").read_text())
            model.load_state_dict(load_file(output / "weights.safetensors"), strict=False)
            restore_optimizer(output, self.optimizer)
            self.average = load_file(output / "average.safetensors", device=str(self.device))

    @property
    def is_over(self) -> bool:
        """True once the time is up."""
        return self.progress["seconds"] >= 60 * self.minutes

    def batches(self, pools: Pools, workers: int) -> Iterator[Batch]:
        """Yield batches without end, from where the run is; the progress is that after the one yielded last."""
        first = int(self.progress["pool"])
        loader = DataLoader(pools, batch_size=None, sampler=count(first), num_workers=workers, collate_fn=list)
        for number, batches in enumerate(loader, first):
            for place in range(int(self.progress["batch"]), len(batches)):
                self.progress |= {"pool": number, "batch": place + 1}
                yield batches[place]
            self.progress["batch"] = 0

    def step(self, batch: Batch) -> Tensor:
        """Take one step; return the loss."""
        done = self.progress["step"]
        left = max(LEAST_RATE, (1 - self.progress["seconds"] / (60 * self.minutes)) / DECAY_SHARE)
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min((done + 1) / WARM_UP_STEPS, 1.0, left)
        torch.manual_seed(10**9 * self.seed + int(done))  # of what is dropped out, also after the run was resumed
        labels, contexts = (torch.from_numpy(array).to(self.device) for array in (batch.labels, batch.contexts))
        loss = loss_of(self.model(batch), labels, contexts)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained.values(), LARGEST_GRADIENT)
        self.optimizer.step()
        self.progress["step"] += 1
        self.progress["claims"] += len(batch.labels)
        weight = 1 - min(AVERAGE, self.progress["step"] / (self.progress["step"] + 10))
        for name, parameter in self.trained.items():
            self.average[name].lerp_(parameter.detach(), weight)
        return loss.detach()

    def told(self) -> dict[str, float]:
        """Return the progress of the run, for the log."""
        return {name: round(self.progress[name]) for name in ("pool", "step", "claims", "seconds")}

    def save(self) -> None:
        """Write the weights, their running mean, the optimizer and the progress of the run."""
        weights = {name: parameter.detach().contiguous() for name, parameter in self.trained.items()}
        save_file(weights, self.output / "weights.safetensors")
        save_file(self.average, self.output / "average.safetensors")
        save_progress(self.output, self.optimizer, self.progress)


def train(run: Run, pools: Pools, heldout: Sequence[Row], *, save_minutes: float, workers: int) -> None:
    """Train until the time is up.

    Raises
    ------
    FloatingPointError
        If the loss is not a finite number.
    """
    log = run.output / "log.jsonl"
    told_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told_to_stop.append(number))
    run.model.train()
    batches = run.batches(pools, workers)
    started = time.perf_counter() - run.progress["seconds"]
    logged = saved = time.perf_counter()
    losses: list[Tensor] = []  # on a GPU, asking for a number would wait for it
    while not run.is_over and not told_to_stop:
        losses.append(run.step(next(batches)))
        now = time.perf_counter()
        run.progress["seconds"] = now - started
        if now - logged > LOG_SECONDS or run.is_over:
            _log(log, {**run.told(), "loss": _mean(losses)})
            losses, logged = [], now
        if now - saved > 60 * save_minutes:
            run.save()
            _log(log, {**run.told(), **measured(judged(run.model, heldout))})
            saved = time.perf_counter()
    run.save()


def _mean(losses: Sequence[Tensor]) -> float:
    mean = torch.stack(list(losses)).mean().item()
    if not np.isfinite(mean):
        raise FloatingPointError(f"expected a finite loss, got {mean}")
    return round(mean, 4)


def _log(path: Path, record: dict[str, Any]) -> None:
    line = json.dumps(record)
    with path.open("a") as log:
        log.write(line + "\n")
    print(line, flush=True)


def packed(average: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the factors of each update as integers with the value of one unit of each row, and the head."""
    arrays: dict[str, Tensor] = {}
    for name, value in average.items():
        if not name.startswith("encoder."):
            arrays[f"head.{name}"] = value.clone()
            continue
        matrix, _, factor = name.removeprefix("encoder.encoder.").rpartition(".")
        place = matrix + {"down": DOWN, "up": UP}[factor]
        arrays[place], arrays[place.replace(".int8", ".step")] = in_eight_bits(value)
    return arrays


def unpacked(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what was packed, by the names of the network that is trained."""
    weights: dict[str, Tensor] = {}
    for name, array in arrays.items():
        for ending, factor in ((DOWN, "down"), (UP, "up")):
            if name.endswith(ending):
                step = arrays[name.replace(".int8", ".step")]
                weights[f"encoder.encoder.{name.removesuffix(ending)}.{factor}"] = array.float() * step
        if name.startswith("head."):
            weights[name.removeprefix("head.")] = array
    return weights


@torch.no_grad()
def largest_inputs(model: JointReader, pools: Pools) -> dict[str, Tensor]:
    """Return the largest inputs of the matrices by channel, (K,), for training texts."""
    model.eval()
    rng = random.Random(f"{pools.seed}-inputs")
    rows = [contexts[0] for _ in range(MEASURED_POOLS) for contexts in pools.contexts(rng)]
    largest: dict[str, Tensor] = {}
    hooks = []

    def noted(name: str, inputs: Tensor) -> None:
        found = inputs[0, : len(row)].abs().amax(0).float().cpu()  # without padding
        largest[name] = torch.maximum(largest[name], found) if name in largest else found

    for number, layer in enumerate(model.encoder.encoder.layer):
        for part, module in measured_inputs(layer).items():
            name = f"layer.{number}.{part}{LARGEST}"
            hooks.append(module.register_forward_pre_hook(lambda _, given, name=name: noted(name, *given)))
    for row in tqdm(rows, desc="inputs", unit=" texts", mininterval=5):
        model(collated([row]))
    for hook in hooks:
        hook.remove()
    return largest


def pack(run: Run, folder: Path, pools: Pools, heldout: Sequence[Row]) -> None:
    """Write what :class:`~syncheck.alignment.ReaderAligner` loads in addition to the tokenizer: the running mean."""
    run.model.load_state_dict(run.average, strict=False)
    print(*map(json.dumps, report(judged(run.model, heldout))), sep="\n")
    average = {name: value.cpu() for name, value in run.average.items()}
    save_file(packed(average) | largest_inputs(run.model, pools), folder / "adapter.safetensors")
    spec = {"format": FORMAT, "encoder": fingerprint(encoder_weights()), "update_scale": UPDATE_SCALE}
    (folder / "reader.json").write_text(json.dumps(spec, indent=2) + "\n")


def main() -> None:
    """Train for a number of minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contrast", type=Path, required=True, help="folder of pairs with relations")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs with two labels")
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of written claims (%(default)s)")
    parser.add_argument("--made", type=Path, nargs="*", default=[], help="files of groups that contrast_pairs.py wrote")
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--packed", type=Path, required=True, help="folder of the reader")
    parser.add_argument("--minutes", type=float, default=10.3, help="time of training (%(default)s, for an H100 GPU)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=6)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(%(default)s)")
    parser.add_argument(
        "--workers", type=int, default=min(12, os.cpu_count() or 1), help="processes that prepare batches (%(default)s)"
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it prepares for each length of a batch anew
    tokenizer = args.packed / "tokenizer.json"
    if not tokenizer.exists():
        args.packed.mkdir(parents=True, exist_ok=True)
        tokenizer.write_bytes((files("syncheck") / "assets" / "reader" / "tokenizer.json").read_bytes())
    encoder = Encoder(Tokenizer.from_file(str(tokenizer)))
    written = load_written(args.written)
    groups = load_training(args, [group for group in written if not is_held_out(group)])
    for source, listed in groups.items():
        print(f"{source}: {len(listed)} contexts, {sum(len(g.claims) for g in listed)} claims", flush=True)
    heldout = [encoder.rows(group, number) for number, group in enumerate(filter(is_held_out, written))]
    base = encoder_of(encoder_weights()).to(torch.bfloat16 if args.device.startswith("cuda") else torch.float32)
    model = trainable(base, args.seed).to(args.device)
    run = Run(model, args.output, minutes=args.minutes, seed=args.seed)
    logged = [row for rows in heldout[:LOGGED] for row in rows]
    pools = Pools(groups, encoder, args.seed)
    train(run, pools, logged, save_minutes=args.save_minutes, workers=args.workers)
    pack(run, args.packed, pools, [row for rows in heldout for row in rows])


if __name__ == "__main__":
    main()
