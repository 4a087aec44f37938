r"""Train the reader: updates of a language model's weights; passages and a claim in, three verdicts out.

    python examples/starter_kit/train_reader.py --contrast contrast-pairs --pairs support-pairs --made made.jsonl \
        --output runs/whole --minutes 10.3
    python examples/starter_kit/train_reader.py --contrast contrast-pairs --pairs support-pairs --made made.jsonl \
        --output runs/eight --start runs/whole
    python examples/starter_kit/train_reader.py --contrast contrast-pairs --pairs support-pairs --made made.jsonl \
        --output runs/reader --start runs/eight --teacher runs/whole --share 0.75 --packed runs/reader/packed

The encoder is all-mpnet-base-v2. Every matrix of its layers learns a low-rank update (LoRA, Hu et al., 2022). The first
run trains all twelve layers, in which passages and claim are one text. The second begins with its updates of the first
eight layers, of which four read the passages without a claim, and learns from its verdicts beside the labels
(distillation, Hinton et al., 2015), also on claims and passages that were changed, of which no label is known. The
third continues without the heads and neurons that tell least for their work (``reader_pruning.py``). In addition to the
cross-entropy there is a loss on differences: of the claims about one context, a supported one is to score above one
that is not.

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
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from claim_files import WRITTEN, is_held_out, load_written
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED
from numpy.typing import NDArray
from reader_data import LONG, LONG_WHOLE, UNLABELLED, Batch, Encoder, Pools, Row, batches_of, collated, load_training
from reader_in_float import layer_in_float, measured_inputs
from reader_pruning import Kept, as_arrays, everything, from_arrays, kept_of, prune, pruned_updates, worths
from resumable import restore_optimizer, save_progress
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, linear, scaled_dot_product_attention, softplus
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import MPNetConfig, MPNetModel

from syncheck.aligners.reader.eight_bits import in_eight_bits
from syncheck.aligners.reader.layers import LARGEST, NORM_EPS, ReaderLayer
from syncheck.aligners.reader.network import (
    DOWN,
    ENCODER,
    FIRST_POSITION,
    FORMAT,
    HEAD_WIDTH,
    HEADS,
    NEURONS,
    UP,
    ReaderNetwork,
    ReadText,
    distance_bucket,
    encoder_weights,
    updated_layers,
)
from syncheck.evaluation import expected_calibration_error

if TYPE_CHECKING:
    from transformers.models.mpnet.modeling_mpnet import MPNetLayer

RANK = 64
LAYERS, READ_ONCE = 8, 4
"""Layers of a reader that is packed, and how many of them read the passages without a claim."""
LEARNING_RATES = {"whole": 5e-4, "from a start": 4e-4, "further": 1.5e-4}
WARM_UP_STEPS, DECAY_SHARE, LEAST_RATE = 60, 0.8, 0.01
"""The steps in which the rate rises, the part of the time in which it falls, and the share at which that ends."""
BETAS, LARGEST_GRADIENT = (0.9, 0.98), 1.0
AVERAGE = 0.995
"""Weight of the running mean in each step, once it has begun."""
DROPOUT = 0.1
"""Of the outputs of the embeddings and of each half of a layer."""
SMOOTHING, PAIR_WEIGHT, LABEL_WEIGHT = 0.03, 0.5, 0.5
"""Smoothing of labels, and weights of the loss on differences, and of both beside verdicts."""
MEASURED_POOLS = 5
"""Pools of training groups, of each group one claim, for which the largest inputs of the matrices are measured."""
MEASURED_BATCHES = 200
"""Small batches with which the worth of heads and neurons is measured."""
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
        return self.base(inputs) + linear(narrow, self.up.to(inputs.dtype))  # type: ignore[no-any-return]


class TrainedReader(nn.Module):
    """The first layers of the encoder with updates of all their matrices, and a head with three outputs.

    Parameters
    ----------
    encoder
        An MPNet without pooler, whose weights stay as they are. It is changed in place.
    layers
        How many of its layers are used.
    read_once
        How many of these read windows of passages without a claim, which sees them there, but not they it. Without any,
        a claim is read with the ``wide`` part of its passages.
    kept
        The heads and neurons of each layer that are left; all by default.
    """

    def __init__(self, encoder: MPNetModel, *, layers: int, read_once: int, kept: Sequence[Kept] | None = None) -> None:
        super().__init__()
        encoder.requires_grad_(False)
        encoder.encoder.layer = encoder.encoder.layer[:layers]
        self.kept = list(kept or map(everything, encoder.encoder.layer))
        for layer, of_layer in zip(encoder.encoder.layer, self.kept, strict=True):
            prune(layer, of_layer)
            for name, module in list(layer.named_modules()):
                if isinstance(module, nn.Linear):
                    layer.set_submodule(name, Updated(module))
        for module in encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = DROPOUT
        self.encoder, self.read_once = encoder, read_once
        self.hidden = nn.Linear(2 * encoder.config.hidden_size, HEAD_WIDTH)
        self.verdict = nn.Linear(HEAD_WIDTH, 3)
        places = torch.arange(encoder.config.max_position_embeddings)
        by_distance = encoder.encoder.relative_attention_bias(distance_bucket(places - places[:, None]))
        self.biases: Tensor
        self.register_buffer("biases", by_distance.detach().permute(2, 0, 1).contiguous(), persistent=False)

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        """The factors of the updates and the head, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits (C, 3): the head sees the END before a claim, and the mean over it and the END after it."""
        seen, joint = (batch.seen, batch.joint) if self.read_once else (batch.wide, batch.wide)
        windows, sizes, claims, claim_sizes = self._on_device(
            batch.windows, batch.window_lengths, batch.claims, batch.claim_lengths
        )
        tokens, first, ends = self._on_device(*seen)
        within = torch.arange(claims.shape[1], device=claims.device)
        before, own = self._embedded(windows, 0), self._embedded(claims, first[:, None])
        among = self.biases[None, :, : windows.shape[1], : windows.shape[1]] + self._hidden(sizes, windows.shape[1])
        towards = self._towards(first[:, None] + within, ends, tokens.shape[1])
        heads_left = [heads.to(claims.device) for heads, _ in self.kept]
        layers = list(zip(self.encoder.encoder.layer, heads_left, strict=True))
        for layer, heads in layers[: self.read_once]:
            passages, asked = mapped(layer, before), mapped(layer, own)
            keys, values = (_texts(*both, tokens) for both in zip(passages[1:], asked[1:], strict=True))
            before = after_attention(layer, before, *passages, among[:, heads])
            own = after_attention(layer, own, asked[0], keys, values, towards[:, heads])
        tokens, first, ends = self._on_device(*joint)
        text = _texts(before, own, tokens)
        everywhere = self.biases[None, :, : tokens.shape[1], : tokens.shape[1]] + self._hidden(ends, tokens.shape[1])
        for layer, heads in layers[self.read_once : -1]:
            text = after_attention(layer, text, *mapped(layer, text), everywhere[:, heads])
        last, heads = layers[-1]
        _, keys, values = mapped(last, text)
        rows = first[:, None] + within
        places = rows.clamp_max(tokens.shape[1] - 1)[..., None].expand(-1, -1, text.shape[2])
        own = text.gather(1, places)
        towards = self._towards(rows, ends, tokens.shape[1])[:, heads]
        own = after_attention(last, own, last.attention.attn.q(own), keys, values, towards)
        counted = ((within >= 1) & (within < claim_sizes[:, None])).float()
        mean = torch.einsum("ct,cth->ch", counted / counted.sum(1, keepdim=True), own.float())
        return self.verdict(torch.tanh(self.hidden(torch.cat([own[:, 0].float(), mean], dim=1))))  # type: ignore[no-any-return]

    def _towards(self, rows: Tensor, ends: Tensor, longest: int) -> Tensor:
        """Return the biases (C, heads, T, L) of the tokens at these places of each text, (C, T), towards all of it."""
        near = self.biases[:, :, :longest].transpose(0, 1)[rows.clamp_max(len(self.biases[0]) - 1)]
        return near.transpose(1, 2) + self._hidden(ends, longest)

    def _on_device(self, *arrays: NDArray[np.int64]) -> Iterator[Tensor]:
        device = self.verdict.weight.device
        return (torch.from_numpy(array).to(device) for array in arrays)

    def _embedded(self, ids: Tensor, first: Tensor | int) -> Tensor:
        """Return the embeddings of texts (B, T) that begin at a place."""
        places = first + torch.arange(ids.shape[1], device=ids.device) + FIRST_POSITION
        most = self.encoder.config.max_position_embeddings - 1
        return self.encoder.embeddings(input_ids=ids, position_ids=places.clamp_max(most).expand_as(ids))  # type: ignore[no-any-return]

    def _hidden(self, lengths: Tensor, longest: int) -> Tensor:
        """Return a bias (B, 1, 1, T) that hides padding."""
        is_padding = torch.arange(longest, device=lengths.device) >= lengths[:, None]
        return torch.zeros_like(is_padding, dtype=self.biases.dtype).masked_fill_(is_padding, -torch.inf)[:, None, None]


def mapped(layer: MPNetLayer, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values (B, T, H)."""
    own = layer.attention.attn
    return own.q(hidden), own.k(hidden), own.v(hidden)


def after_attention(
    layer: MPNetLayer, hidden: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor
) -> Tensor:
    """Do the rest of a layer, by PyTorch's kernel, which keeps no weights of pairs of tokens for the backward pass."""
    own, heads = layer.attention, layer.attention.attn.num_attention_heads
    query, key, value = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key, value))
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=bias).transpose(1, 2).flatten(2)
    hidden = own.LayerNorm(own.dropout(own.attn.o(mixed)) + hidden)
    return layer.output(layer.intermediate(hidden), hidden)  # type: ignore[no-any-return]


def _texts(windows: Tensor, claims: Tensor, tokens: Tensor) -> Tensor:
    """Return the states (C, L, H) of texts, of those of windows and claims."""
    return torch.cat([windows.flatten(0, 1), claims.flatten(0, 1)])[tokens]


def trainable(
    encoder: MPNetModel, seed: int, *, layers: int, read_once: int, kept: Sequence[Kept] | None = None
) -> TrainedReader:
    """Return the network with updates to be trained, and a new head."""
    torch.manual_seed(seed)
    return TrainedReader(encoder, layers=layers, read_once=read_once, kept=kept)


def support_margin(logits: Tensor) -> Tensor:
    """Log-odds of supported, (B,)."""
    others = torch.logsumexp(logits[:, [CONTRADICTED, NOT_STATED]], dim=1)
    return logits[:, SUPPORTED] - others


def loss_of(logits: Tensor, labels: Tensor, contexts: Tensor, verdicts: Tensor | None = None) -> Tensor:
    """Cross-entropy over claims plus the loss of wrongly ordered claims of one context.

    Of UNLABELLED claims there is neither. If another reader's ``verdicts`` are given, logits (C, 3), half of this and
    the divergence from them over all claims.
    """
    margin, good, is_labelled = support_margin(logits), labels == SUPPORTED, labels != UNLABELLED
    named = cross_entropy(logits, labels.clamp(0, NOT_STATED), reduction="none", label_smoothing=SMOOTHING)
    by_claim = torch.where(labels == UNSUPPORTED, softplus(margin), named) * is_labelled
    total = by_claim.sum() / is_labelled.sum().clamp_min(1)
    pairs = (good[:, None] & ~good & is_labelled & (contexts[:, None] == contexts)).float()
    disorder = softplus(margin - margin[:, None]) * pairs
    total = total + PAIR_WEIGHT * disorder.sum() / pairs.sum().clamp_min(1)
    if verdicts is None:
        return total
    expected, found = verdicts.log_softmax(dim=1), logits.log_softmax(dim=1)
    return LABEL_WEIGHT * total + kl_div(found, expected, log_target=True, reduction="batchmean")


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
def judged(model: TrainedReader, rows: Sequence[Row]) -> Judged:
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
    passages = {token for window in row.windows.ids for token in window}
    return len(own & passages) / max(1, len(own))


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
    minutes, seed, rate
        Of the command, and the largest learning rate.
    teacher
        The reader that this one learns from, in evaluation mode, if any.
    """

    def __init__(
        self,
        model: TrainedReader,
        output: Path,
        *,
        minutes: float,
        seed: int,
        rate: float = LEARNING_RATES["whole"],
        teacher: TrainedReader | None = None,
    ) -> None:
        self.model, self.output, self.minutes, self.seed, self.teacher = model, output, minutes, seed, teacher
        self.rate = rate
        self.device = model.verdict.weight.device
        self.trained = model.trained
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=self.rate, weight_decay=0.0, betas=BETAS, fused=True
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
            group["lr"] = self.rate * min((done + 1) / WARM_UP_STEPS, 1.0, left)
        torch.manual_seed(10**9 * self.seed + int(done))  # of what is dropped out, also after the run was resumed
        labels, contexts = (torch.from_numpy(array).to(self.device) for array in (batch.labels, batch.contexts))
        with torch.no_grad():
            verdicts = None if self.teacher is None else self.teacher(batch)
        loss = loss_of(self.model(batch), labels, contexts, verdicts)
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


@torch.no_grad()
def largest_inputs(network: ReaderNetwork, rows: Sequence[Row]) -> dict[str, Tensor]:
    """Return the largest inputs of the matrices of a network in float32 by channel, (K,)."""
    largest: dict[str, Tensor] = {}
    hooks = []

    def noted(name: str, inputs: Tensor) -> None:
        found = inputs.abs().amax(0)
        largest[name] = torch.maximum(largest[name], found) if name in largest else found

    for number, layer in enumerate(network.layers):
        for part, module in measured_inputs(cast("ReaderLayer", layer)).items():
            name = f"layer.{number}.{part}{LARGEST}"
            hooks.append(module.register_forward_pre_hook(lambda _, given, name=name: noted(name, *given)))
    for row in tqdm(rows, desc="inputs", unit=" texts", mininterval=5):
        network.judge([text_of(network, row)])
    for hook in hooks:
        hook.remove()
    return largest


def text_of(network: ReaderNetwork, row: Row) -> ReadText:
    """Return what a network reads of a row, after its windows."""
    numbers = sorted({part.window for part in row.seen})
    read = dict(zip(numbers, network.read([row.windows.ids[number] for number in numbers]), strict=True))
    seen, joint = ([(read[part.window], part.begin, part.end) for part in of] for of in (row.seen, row.joint))
    return ReadText(seen, joint, row.claim)


@torch.no_grad()
def in_float(weights: Mapping[str, Tensor], arrays: Mapping[str, Tensor], count: int, read_once: int) -> ReaderNetwork:
    """Return the network that is packed, in float32, given the encoder's weights."""
    layers = list(map(layer_in_float, updated_layers(weights, arrays, count)))
    network = ReaderNetwork(weights, layers, read_once=read_once)
    head = {name.removeprefix("head."): array for name, array in arrays.items() if name.startswith("head.")}
    network.load_state_dict(head, strict=False)
    return network.eval().requires_grad_(False)


def pack(run: Run, folder: Path, pools: Pools) -> None:
    """Write what :class:`~syncheck.aligners.ReaderAligner` loads in addition to the tokenizer: the running mean."""
    arrays = packed({name: value.cpu() for name, value in run.average.items()}) | as_arrays(run.model.kept)
    rng = random.Random(f"{pools.seed}-inputs")
    rows = [contexts[0] for _ in range(MEASURED_POOLS) for contexts in pools.contexts(rng)]
    shape = {"layers": len(run.model.kept), "read_once": run.model.read_once}
    largest = largest_inputs(in_float(encoder_weights(), arrays, *shape.values()), rows)
    save_file(arrays | largest, folder / "adapter.safetensors")
    spec = {"format": FORMAT, "encoder": ENCODER.sha256, **shape}
    (folder / "reader.json").write_text(json.dumps(spec, indent=2) + "\n")


def main() -> None:
    """Train for a number of minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contrast", type=Path, required=True, help="folder of pairs with relations")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs with two labels")
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of written claims (%(default)s)")
    parser.add_argument("--made", type=Path, nargs="*", default=[], help="files of groups that contrast_pairs.py wrote")
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--tables", type=Path, help="folder of claims about tables")
    parser.add_argument("--start", type=Path, help="folder of the run to begin with")
    parser.add_argument("--further", type=Path, help="folder of a packed reader to go on with, on long contexts")
    parser.add_argument("--teacher", type=Path, help="folder of the run of all layers to learn from (that of --start)")
    parser.add_argument("--share", type=float, help="part of the layers' work that is left, the rest is pruned")
    parser.add_argument("--packed", type=Path, help="folder of the reader (only with --start)")
    parser.add_argument("--minutes", type=float, default=12.3, help="time of training (%(default)s, for an H100 GPU)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=6)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(%(default)s)")
    parser.add_argument(
        "--workers", type=int, default=min(12, os.cpu_count() or 1), help="processes that prepare batches (%(default)s)"
    )
    args = parser.parse_args()
    if (args.share or args.teacher) and not args.start:
        parser.error("expected --start with --share and --teacher: a run of all layers is only to begin with")
    if args.packed and not (args.start or args.further):
        parser.error("expected --start or --further with --packed: a run of all layers is only to begin with")
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it prepares for each length of a batch anew
    tokenizer = (files("syncheck") / "assets" / "reader" / "tokenizer.json").read_text(encoding="utf-8")
    encoder = Encoder(Tokenizer.from_str(tokenizer))
    written = load_written(args.written)
    groups = load_training(args, [group for group in written if not is_held_out(group)])
    for source, listed in groups.items():
        print(f"{source}: {len(listed)} contexts, {sum(len(g.claims) for g in listed)} claims", flush=True)
    heldout = [encoder.rows(group, number) for number, group in enumerate(filter(is_held_out, written))]
    if args.further:
        model, teacher = further(args), None
    else:
        model, teacher = started(args, Pools(groups, encoder, args.seed)) if args.start else whole(args)
    kind = "further" if args.further else "from a start" if args.start else "whole"
    run = Run(model, args.output, minutes=args.minutes, seed=args.seed, teacher=teacher, rate=LEARNING_RATES[kind])
    logged = [row for rows in heldout[:LOGGED] for row in rows]
    reach = None if not args.further else LONG if model.read_once else LONG_WHOLE
    pools = Pools(groups, encoder, args.seed, unlabelled=teacher is not None, long=reach)
    train(run, pools, logged, save_minutes=args.save_minutes, workers=args.workers)
    run.model.load_state_dict(run.average, strict=False)
    if args.packed:
        args.packed.mkdir(parents=True, exist_ok=True)
        (args.packed / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        pack(run, args.packed, pools)
    print(*map(json.dumps, report(judged(run.model, [row for rows in heldout for row in rows]))), sep="\n")


def whole(args: argparse.Namespace) -> tuple[TrainedReader, None]:
    """Return a reader of all layers, to which passages and claim are one text."""
    encoder = encoder_on(args.device)
    layers = encoder.config.num_hidden_layers
    return trainable(encoder, args.seed, layers=layers, read_once=0).to(args.device), None


def further(args: argparse.Namespace) -> TrainedReader:
    """Return a packed reader, with its layers, heads and neurons, to be trained further."""
    spec = json.loads((args.further / "reader.json").read_text())
    arrays = load_file(args.further / "adapter.safetensors")
    kept = from_arrays({name: value for name, value in arrays.items() if name.endswith((HEADS, NEURONS))})
    learnt = {name.removeprefix("head."): value for name, value in arrays.items() if name.startswith("head.")}
    for place in (name for name in arrays if name.endswith((DOWN, UP))):
        factor = "down" if place.endswith(DOWN) else "up"
        matrix = place.removesuffix(DOWN).removesuffix(UP)
        value = arrays[place].float() * arrays[place.replace(".int8", ".step")]
        learnt[f"encoder.encoder.{matrix}.{factor}"] = value
    model = trainable(encoder_on(args.device), args.seed, layers=spec["layers"], read_once=spec["read_once"], kept=kept)
    missing = set(model.trained) - set(learnt)
    if missing:
        raise ValueError(f"{args.further}: expected updates of every matrix; {sorted(missing)[:3]} are missing")
    model.load_state_dict(learnt, strict=False)
    return model.to(args.device)


def started(args: argparse.Namespace, pools: Pools) -> tuple[TrainedReader, TrainedReader]:
    """Return a reader that begins with the first layers of another one, and the one that it learns from."""
    teacher, _ = whole(args)
    teacher.load_state_dict(load_file((args.teacher or args.start) / "average.safetensors"), strict=False)
    learnt, sizes = load_file(args.start / "average.safetensors"), {"layers": LAYERS, "read_once": READ_ONCE}
    model = trainable(encoder_on(args.device), args.seed, **sizes).to(args.device)
    model.load_state_dict({name: value for name, value in learnt.items() if name in model.state_dict()}, strict=False)
    if args.share:
        kept_file = args.output / "kept.safetensors"
        if not kept_file.exists():  # a run that is resumed keeps what it began with
            worth = worths(model, READ_ONCE, pools.small_batches(MEASURED_BATCHES), loss_of)
            save_file(as_arrays(kept_of(worth, args.share)), kept_file)
        kept = from_arrays(load_file(kept_file))
        width = model.encoder.encoder.layer[0].attention.attn.attention_head_size
        learnt = pruned_updates({name: p.detach().cpu() for name, p in model.trained.items()}, kept, width)
        model = trainable(encoder_on(args.device), args.seed, **sizes, kept=kept).to(args.device)
        model.load_state_dict(learnt, strict=False)
    return model, teacher.eval().requires_grad_(False)


def encoder_on(device: str) -> MPNetModel:
    """Return the encoder in the type that is used on a device."""
    weights = encoder_weights()
    config = MPNetConfig(vocab_size=30527, max_position_embeddings=514, layer_norm_eps=NORM_EPS)
    encoder = MPNetModel(config, add_pooling_layer=False)
    encoder.load_state_dict({name: weights[name] for name in encoder.state_dict()})
    return encoder.eval().to(torch.bfloat16)


if __name__ == "__main__":
    main()
