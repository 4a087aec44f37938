r"""Train the reader: updates of a language model's weights; passages and claims in, three verdicts out.

    python examples/starter_kit/train_reader.py --contrast contrast-pairs --pairs support-pairs \
        --output runs/reader --hours 1.5 --packed runs/reader/packed

The encoder is all-mpnet-base-v2. From its third layer on, every matrix learns a low-rank update (LoRA, Hu et al.,
2022). The passages are read once for all claims about them, and none sees another, as
:class:`~syncheck.alignment.ReaderAligner` reads them: a claim costs its own tokens. In addition to the cross-entropy
there is a loss on differences: of the claims about one context, a supported one is to score above one that is not.

Saves every ``--save-minutes`` and when told to end (SIGTERM), and resumes where it stopped with the same command. The
rate falls over the second half of ``--hours``. The running mean of the weights is packed.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, Claim, ContrastGroup, load_groups
from near_copies import near_copy
from numpy.typing import NDArray
from resumable import restore_optimizer, save_progress
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from support_pairs import load_pairs, part_of
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, logsigmoid, softplus
from transformers import MPNetModel

from syncheck.alignment.evidence import EvidenceIndex, split_passages
from syncheck.alignment.reader import CLAIM_TOKENS, PREMISE_TOKENS
from syncheck.alignment.reader_network import (
    BEGIN,
    DOWN,
    END,
    FORMAT,
    UP,
    ReaderNetwork,
    Stretch,
    encoder_of,
    encoder_weights,
    fingerprint,
    in_eight_bits,
)
from syncheck.evaluation import expected_calibration_error

UNSUPPORTED = 3
"""Label of claims known not to be supported, whether contradicted or not stated."""
FIRST_LAYER, RANK, UPDATE_SCALE = 2, 16, 2.0
BATCH_TOKENS, POOL_GROUPS = 1400, 64
LEARNING_RATE, WARM_UP_STEPS, DECAY_SHARE, AVERAGE = 6e-4, 60, 0.6, 0.99
PAIR_WEIGHT = 0.5
WRITTEN_CLAIMS = 10
"""Most claims of a written group that are drawn at once."""
LOGGED = 40
"""Held-out contexts that are measured while the training goes on."""
COPIES, ELSEWHERE = 1, 1
"""Claims added to a written group, so that matching words neither speak for nor against it alone."""
SHARES = {
    "written": 0.20, "matched": 0.47, "snli": 0.05, "counterfactual-nli": 0.06, "conjnli": 0.02, "med": 0.01,
    "fever-symmetric": 0.03, "fool-me-twice": 0.05, "defacto": 0.05, "bump": 0.02, "summedits": 0.02, "frank": 0.02,
}  # fmt: skip
"""Part of the groups that comes from each source."""
CONTRAST_SOURCES = ("conjnli", "counterfactual-nli", "fever-symmetric", "fool-me-twice", "med", "snli")
SUPPORT_SOURCES = ("defacto", "bump", "summedits", "frank")
WRITTEN = Path(__file__).with_name("claims")
MATCHED = "[j-s]-*.txt"
"""Files whose neighbouring claims are pairs that differ in one thing."""
RELATIONS = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_STATED}


class Updated(nn.Module):
    """A linear map, (N, K), and the factors of its update: ``down`` (rank, K) and ``up`` (N, rank)."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (T, K) to (T, N)."""
        narrow = linear(inputs, self.down.to(inputs.dtype))
        return self.base(inputs) + linear(narrow, (UPDATE_SCALE * self.up).to(inputs.dtype))  # type: ignore[no-any-return]


def trainable(encoder: MPNetModel, seed: int) -> ReaderNetwork:
    """Return the network with updates to be trained, and a new head."""
    torch.manual_seed(seed)
    encoder.requires_grad_(False)
    for layer in encoder.encoder.layer[FIRST_LAYER:]:
        for name, module in list(layer.named_modules()):
            if isinstance(module, nn.Linear):
                layer.set_submodule(name, Updated(module))
    return ReaderNetwork(encoder)


@dataclass(frozen=True, slots=True)
class Row:
    """An encoded group: the passages, the claims after them, their labels and kinds."""

    premise: list[int]
    claims: list[list[int]]
    labels: list[int]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.premise) + sum(map(len, self.claims))


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns groups into rows; of a context that is too long, the sentences closest to the claims are kept."""

    tokenizer: Tokenizer

    def encode(self, group: ContrastGroup) -> Row:
        """Encode passages and claims."""
        claims = [[END, *self._ids(claim.text)[:CLAIM_TOKENS], END] for claim in group.claims]
        premise = self._ids("\n".join(group.passages))
        if len(premise) > PREMISE_TOKENS:
            premise = self._closest(group)
        return Row([BEGIN, *premise, END], claims, [c.label for c in group.claims], [c.kind for c in group.claims])

    def _closest(self, group: ContrastGroup) -> list[int]:
        index = EvidenceIndex(group.passages)
        best = [index.best(claim.text, 6) for claim in group.claims]
        ranked = dict.fromkeys(chunks[rank] for rank in range(6) for chunks in best if rank < len(chunks))
        chosen, room = [], PREMISE_TOKENS
        for chunk in ranked:
            tokens = len(self._ids(index.chunks[chunk].text))
            if tokens <= room:
                chosen.append(chunk)
                room -= tokens
        return self._ids("\n".join(index.chunks[chunk].text for chunk in sorted(chosen)))[:PREMISE_TOKENS]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def logits_of(network: ReaderNetwork, rows: Sequence[Row]) -> Tensor:
    """Return the logits (N, 3) of all claims of the rows."""
    stretches: list[Stretch] = []
    claims: list[int] = []
    for row in rows:
        premise = len(stretches)
        claims += range(premise + 1, premise + 1 + len(row.claims))
        stretches += [Stretch(row.premise), *(Stretch(claim, premise) for claim in row.claims)]
    hidden, _ = network.encode(stretches)
    return network.verdicts([hidden[claim] for claim in claims])


class Sources:
    """Deals groups source by source, each in its own order, which starts anew when it is exhausted.

    Parameters
    ----------
    groups
        By source.
    shares
        What part of the groups comes from each source.
    seed
        Of the orders.
    """

    def __init__(self, groups: dict[str, list[ContrastGroup]], shares: dict[str, float], seed: int) -> None:
        self.groups, self.shares, self.seed = groups, shares, seed
        self._orders: dict[str, tuple[int, list[int]]] = {}

    def pool(self, number: int, shares: dict[str, float], drawn: dict[str, float]) -> list[ContrastGroup]:
        """Return the groups of a pool; ``drawn`` counts what each source has given."""
        rng = random.Random(f"{self.seed}-{number}")
        names = rng.choices(sorted(shares), [shares[s] for s in sorted(shares)], k=POOL_GROUPS)
        return [self._next(source, drawn) for source in names]

    def _next(self, source: str, drawn: dict[str, float]) -> ContrastGroup:
        key = f"drawn {source}"
        epoch, position = divmod(int(drawn.get(key, 0)), len(self.groups[source]))
        drawn[key] = drawn.get(key, 0) + 1
        if self._orders.get(source, (-1, []))[0] != epoch:
            order = list(range(len(self.groups[source])))
            random.Random(f"{self.seed}-{source}-{epoch}").shuffle(order)
            self._orders[source] = (epoch, order)
        return self.groups[source][self._orders[source][1][position]]


def batches_of(rng: random.Random, rows: list[Row]) -> list[list[Row]]:
    """Sort rows by length and cut them into batches of about ``BATCH_TOKENS``, in random order."""
    rows = sorted(rows, key=len)
    batches: list[list[Row]] = [[]]
    for row in rows:
        if batches[-1] and (len(batches[-1]) + 1) * len(row) > BATCH_TOKENS:
            batches.append([])
        batches[-1].append(row)
    rng.shuffle(batches)
    return batches


def support_margin(logits: Tensor) -> Tensor:
    """Log-odds of supported, (B,)."""
    others = torch.logsumexp(logits[:, [CONTRADICTED, NOT_STATED]], dim=1)
    return logits[:, SUPPORTED] - others


def loss_of(logits: Tensor, batch: Sequence[Row]) -> Tensor:
    """Cross-entropy over claims plus the loss of wrongly ordered claims of one context."""
    labels = torch.tensor([label for row in batch for label in row.labels])
    margin = support_margin(logits)
    three = labels != UNSUPPORTED
    total = -logsigmoid(-margin[~three]).sum()
    if three.any():
        total = total + cross_entropy(logits[three], labels[three], reduction="sum", label_smoothing=0.03)
    good, bad, start = [], [], 0
    for row in batch:
        places = range(start, start + len(row.labels))
        ups = [i for i in places if labels[i] == SUPPORTED]
        downs = [i for i in places if labels[i] != SUPPORTED]
        good += [u for u in ups for _ in downs]
        bad += [d for _ in ups for d in downs]
        start += len(row.labels)
    loss = total / len(labels)
    if good:
        loss = loss + PAIR_WEIGHT * softplus(margin[bad] - margin[good]).mean()
    return loss


def grouped(pairs: Sequence[tuple[tuple[str, ...], str, int]], source: str) -> list[ContrastGroup]:
    """Bring the claims of one context together, at most six."""
    by_context: dict[tuple[str, ...], list[Claim]] = defaultdict(list)
    for passages, claim, label in pairs:
        by_context[passages].append(Claim(claim, label, source))
    return [
        ContrastGroup(passages, tuple(claims[i : i + 6]), source, "")
        for passages, claims in by_context.items()
        for i in range(0, len(claims), 6)
    ]


def load_written(folder: Path, pattern: str = "*.txt") -> list[ContrastGroup]:
    """Read a pattern's files: ``P:`` begins a passage, ``+`` a supported claim, ``-`` contradicted, ``?`` neither.

    A context that shares claims with the one before it is its twin; both have the first passage of the first as group.
    The kind of a claim is the letter with which the file's name begins.
    """
    groups: list[ContrastGroup] = []
    for path in sorted(folder.glob(pattern)):
        for passages, claims in _written_in(path):
            is_twin = groups and {c.text for c in groups[-1].claims} & {c.text for c in claims}
            groups.append(ContrastGroup(passages, claims, "written", groups[-1].group if is_twin else passages[0]))
    return groups


def _written_in(path: Path) -> list[tuple[tuple[str, ...], tuple[Claim, ...]]]:
    labels = {"+ ": SUPPORTED, "- ": CONTRADICTED, "? ": NOT_STATED}
    found: list[tuple[list[str], list[Claim]]] = []
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("P:"):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line[2:].strip())
        elif line[:2] in labels and found:
            found[-1][1].append(Claim(line[2:].strip(), labels[line[:2]], path.stem[0]))
        elif found and not found[-1][1]:
            found[-1][0][-1] += "\n" + line.strip()
        else:
            raise ValueError(f"{path.name}: expected 'P:', '+ ', '- ' or '? ', found {line!r}")
    if found and not found[-1][1]:
        raise ValueError(f"{path.name}: expected claims after the last passage, found none")
    return [(tuple(passages), tuple(claims)) for passages, claims in found]


def with_easy_claims(group: ContrastGroup, rng: random.Random, others: Sequence[ContrastGroup]) -> ContrastGroup:
    """Add what the context itself says, nearly in its words, and claims about other contexts."""
    said = [chunk.text for chunk in split_passages(group.passages)]
    near = dict.fromkeys(near_copy(rng, said) for _ in range(COPIES))
    copies = [Claim(text, SUPPORTED, "copy") for text in near]
    elsewhere = [rng.choice(rng.choice(others).claims) for _ in range(ELSEWHERE)]
    foreign = [Claim(claim.text, NOT_STATED, "unrelated") for claim in elsewhere if claim not in group.claims]
    return replace(group, claims=(*group.claims, *copies, *foreign))


def beside_others(group: ContrastGroup, rng: random.Random, others: Sequence[ContrastGroup]) -> ContrastGroup:
    """Mix the passages with those of another context, half of the time."""
    other = rng.choice(others).passages
    if rng.random() < 0.5 or set(other) & set(group.passages):
        return group
    before = rng.randint(0, len(other))
    return replace(group, passages=(*other[:before], *group.passages, *other[before:]))


def is_held_out(group: ContrastGroup) -> bool:
    """Return True for one context in twelve, and for its twins."""
    return int(sha256((group.group or group.passages[0]).encode()).hexdigest(), 16) % 12 == 0


def load_contrast(folder: Path, source: str) -> list[ContrastGroup]:
    """Read pairs with relations; both directions of time and negation count as they are labelled."""
    import lzma

    with lzma.open(folder / f"{source}.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return grouped([((r["context"],), r["claim"], RELATIONS[r["relation"]]) for r in records], source)


def load_support(folder: Path, source: str) -> list[ContrastGroup]:
    """Read the training part of a source with two labels."""
    pairs = [p for p in load_pairs(folder, source) if part_of(p.passages[0]) == "train"]
    return grouped([(p.passages, p.claim, SUPPORTED if p.label else UNSUPPORTED) for p in pairs], source)


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
def judged(model: ReaderNetwork, rows: Sequence[Row]) -> Judged:
    """Judge all claims of the rows."""
    model.eval()
    logits, dealt = [], []
    for batch in batches_of(random.Random(0), list(rows)):
        logits.append(logits_of(model, batch))
        dealt += batch
    model.train()
    return Judged(
        torch.cat(logits),
        torch.tensor([label for row in dealt for label in row.labels]),
        torch.tensor([number for number, row in enumerate(dealt) for _ in row.labels]),
        np.array([kind for row in dealt for kind in row.kinds]),
        np.array([_overlap(claim, row.premise) for row in dealt for claim in row.claims]),
    )


def _overlap(claim: Sequence[int], premise: Sequence[int]) -> float:
    own = set(claim) - {END}
    return len(own & set(premise)) / max(1, len(own))


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
    hours, seed
        Of the command.
    """

    def __init__(self, model: ReaderNetwork, output: Path, *, hours: float, seed: int) -> None:
        self.model, self.output, self.hours, self.seed = model, output, hours, seed
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.trained.values(), lr=LEARNING_RATE, weight_decay=0.0, betas=(0.9, 0.98), fused=True
        )
        self.progress: dict[str, float] = {"pool": 0, "step": 0, "claims": 0, "seconds": 0.0}
        self.average = {name: p.detach().clone() for name, p in self.trained.items()}
        if (output / "progress.json").exists():
            self.progress = json.loads((output / "progress.json").read_text())
            model.load_state_dict(load_file(output / "weights.safetensors"), strict=False)
            restore_optimizer(output, self.optimizer)
            self.average = load_file(output / "average.safetensors")

    def step(self, batch: Sequence[Row]) -> float:
        """Take one step; return the loss."""
        done = self.progress["step"]
        left = max(0.02, (1 - self.progress["seconds"] / (3600 * self.hours)) / DECAY_SHARE)
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min((done + 1) / WARM_UP_STEPS, 1.0, left)
        loss = loss_of(logits_of(self.model, batch), batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained.values(), 1.0, error_if_nonfinite=True)
        self.optimizer.step()
        self.progress["step"] += 1
        self.progress["claims"] += sum(len(row.labels) for row in batch)
        weight = 1 - min(AVERAGE, self.progress["step"] / (self.progress["step"] + 10))
        for name, parameter in self.trained.items():
            self.average[name].lerp_(parameter.detach(), weight)
        return loss.item()

    def told(self) -> dict[str, float]:
        """Return the progress of the run, for the log."""
        return {name: round(self.progress[name]) for name in ("pool", "step", "claims", "seconds")}

    def save(self) -> None:
        """Write the weights, their running mean, the optimizer and the progress of the run."""
        weights = {name: parameter.detach().contiguous() for name, parameter in self.trained.items()}
        save_file(weights, self.output / "weights.safetensors")
        save_file(self.average, self.output / "average.safetensors")
        save_progress(self.output, self.optimizer, self.progress)


def train(run: Run, sources: Sources, encoder: Encoder, heldout: Sequence[Row], *, save_minutes: float) -> None:
    """Train until the time is up."""
    log = (run.output / "log.jsonl").open("a")
    run.model.train()
    started, saved = time.perf_counter() - run.progress["seconds"], time.perf_counter()
    told_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told_to_stop.append(number))
    written = sources.groups["written"]
    while run.progress["seconds"] < 3600 * run.hours and not told_to_stop:
        number = int(run.progress["pool"])
        rng = random.Random(f"{run.seed}-pool-{number}")
        drawn = sources.pool(number, sources.shares, run.progress)
        rows = [encoder.encode(_varied(g, rng, written) if g.source == "written" else g) for g in drawn]
        losses = []
        for batch in batches_of(rng, rows):
            losses.append(run.step(batch))
            run.progress["seconds"] = time.perf_counter() - started
        run.progress["pool"] += 1
        _log(log, {**run.told(), "loss": round(sum(losses) / len(losses), 4)})
        if time.perf_counter() - saved > 60 * save_minutes:
            run.save()
            _log(log, {**run.told(), **measured(judged(run.model, heldout))})
            saved = time.perf_counter()
    run.save()


def _varied(group: ContrastGroup, rng: random.Random, written: Sequence[ContrastGroup]) -> ContrastGroup:
    """Draw some claims of a written group, add easy ones, and sometimes other passages."""
    pairs = [group.claims[start : start + 2] for start in range(0, len(group.claims), 2)]
    rng.shuffle(pairs)  # neighbours mostly are a pair that differs in one thing
    claims = tuple(claim for pair in pairs for claim in pair)[:WRITTEN_CLAIMS]
    group = with_easy_claims(replace(group, claims=claims), rng, written)
    return beside_others(group, rng, written) if rng.random() < 0.4 else group


def _log(log: Any, record: dict[str, Any]) -> None:
    line = json.dumps(record)
    log.write(line + "\n")
    log.flush()
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


def pack(run: Run, folder: Path, heldout: Sequence[Row]) -> None:
    """Write what :class:`~syncheck.alignment.ReaderAligner` loads in addition to the tokenizer: the running mean."""
    run.model.load_state_dict(run.average, strict=False)
    print(*map(json.dumps, report(judged(run.model, heldout))), sep="\n")
    arrays = packed(run.average)
    save_file(arrays, folder / "adapter.safetensors")
    spec = {"format": FORMAT, "encoder": fingerprint(encoder_weights()), "update_scale": UPDATE_SCALE}
    (folder / "reader.json").write_text(json.dumps(spec, indent=2) + "\n")


def main() -> None:
    """Train for a number of hours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contrast", type=Path, required=True, help="folder of pairs with relations")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs with two labels")
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of written claims (%(default)s)")
    parser.add_argument("--made", type=Path, nargs="*", default=[], help="groups of contrast_pairs.py, a tenth each")
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--packed", type=Path, required=True, help="folder of the reader")
    parser.add_argument("--hours", type=float, default=1.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=6)
    parser.add_argument("--begin-with", type=Path, help="folder of a reader whose updates a new run begins with")
    parser.add_argument("--float32", action="store_true", help="for processors without bfloat16")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    tokenizer = args.packed / "tokenizer.json"
    if not tokenizer.exists():
        args.packed.mkdir(parents=True, exist_ok=True)
        tokenizer.write_bytes((files("syncheck") / "assets" / "reader" / "tokenizer.json").read_bytes())
    encoder = Encoder(Tokenizer.from_file(str(tokenizer)))
    written = load_written(args.written)
    groups = {source: load_contrast(args.contrast, source) for source in CONTRAST_SOURCES}
    groups |= {source: load_support(args.pairs, source) for source in SUPPORT_SOURCES}
    groups |= {path.name: load_groups(path) for path in args.made}
    matched = load_written(args.written, MATCHED)
    groups["matched"] = [g for g in matched if not is_held_out(g)]
    groups["written"] = [g for g in written if not is_held_out(g) and g not in matched]
    for source, listed in groups.items():
        print(f"{source}: {len(listed)} contexts, {sum(len(g.claims) for g in listed)} claims", flush=True)
    heldout = [encoder.encode(g) for g in written if is_held_out(g)]
    base = encoder_of(encoder_weights()).to(torch.float32 if args.float32 else torch.bfloat16)
    model = trainable(base, args.seed)
    if args.begin_with:
        model.load_state_dict(unpacked(load_file(args.begin_with / "adapter.safetensors")), strict=False)
    run = Run(model, args.output, hours=args.hours, seed=args.seed)
    shares = {source: share for source, share in SHARES.items() if groups[source]}
    shares |= {path.name: 0.1 for path in args.made}
    train(run, Sources(groups, shares, args.seed), encoder, heldout[:LOGGED], save_minutes=args.save_minutes)
    pack(run, args.packed, heldout)


if __name__ == "__main__":
    main()
