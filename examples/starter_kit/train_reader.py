r"""Train an aligner that reads: (evidence, claim) in; supported, contradicted or not stated out.

    python examples/starter_kit/train_reader.py --made made-short.jsonl made-long.jsonl --contrast contrast-pairs \
        --pairs support-pairs --encoder all-MiniLM-L6-v2 --heldout heldout.jsonl --output runs/reader --hours 1.5

Claims about one context lie in one batch, and in addition to the cross-entropy there is a loss on their differences: a
supported claim is to score above one that is not. Every token of the claim that the evidence holds in order knows the
position of its twin there, and so do those between them: what stands in the place of something else meets it
(:func:`align_tokens`).

Short pairs come first (``--short-pairs``). Saves every ``--save-minutes`` and when told to end (SIGTERM), and resumes
where it stopped with the same command. The rate falls over the last fifth of ``--hours``; a longer run later goes on
from there.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, Claim, ContrastGroup, load_groups
from near_copies import near_copy
from resumable import restore_optimizer, save_progress
from safetensors.torch import load_file, save_file
from support_pairs import load_pairs, part_of
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid, softplus
from transformers import BertConfig, BertModel

from syncheck.alignment.evidence import EvidenceIndex, split_passages

UNSUPPORTED = 3
"""Label of claims known not to be supported, whether contradicted or not stated."""
EVIDENCE, EVIDENCE_ELSEWHERE, EVIDENCE_ALIGNED, EVIDENCE_SKIPPED, CLAIM, CLAIM_ELSEWHERE, CLAIM_ALIGNED = range(7)
"""Token types: known to the other side out of order, in order, or between two tokens that are in order.

Special tokens count as evidence that the claim does not hold.
"""
TOKEN_TYPES = 7
LONGEST_SKIP = 8
"""Evidence tokens between two aligned ones that count as skipped, at most."""

CLS, SEP = 101, 102  # of BERT's vocabulary
EVIDENCE_TOKENS, CLAIM_TOKENS = 144, 80
BATCH_TOKENS = 1536
POOL_GROUPS = 192
NEW_RATE = 5.0
"""Factor by which new parameters learn faster."""
WARM_UP_STEPS = 100
DECAY_SHARE = 0.2
AVERAGE = 0.998
PAIR_WEIGHT = 0.5
COPIES, ELSEWHERE = 4, 2
"""Claims added to a group of hand-written ones, so that matching words neither speak for nor against it alone."""
CONTRAST_SOURCES = ("conjnli", "counterfactual-nli", "fever-symmetric", "fool-me-twice", "med", "snli")
SUPPORT_SOURCES = ("defacto", "bump", "summedits", "frank")
WRITTEN = Path(__file__).with_name("claims")
RELATIONS = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_STATED}


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Evidence and claim in one row of T tokens.

    Attributes
    ----------
    ids, types : list of int
        Tokens and token types, T each.
    twins : list of int
        The position in the evidence, counted from 1, that each token of the claim stands for; 0 where there is none.
    """

    ids: list[int]
    types: list[int]
    twins: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def align_tokens(evidence: Sequence[int], claim: Sequence[int]) -> AlignedPair:
    """Join token ids of evidence and claim, with types and twins from the tokens that occur in both in order.

    A claim's token between aligned ones has the twin after that of its neighbour to the left, so that what stands in
    the place of something else meets it.

    Parameters
    ----------
    evidence, claim
        Token ids without special tokens.
    """
    blocks = SequenceMatcher(None, evidence, claim, autojunk=False).get_matching_blocks()
    twin = {block.b + i: block.a + i for block in blocks for i in range(block.size)}
    in_evidence = set(evidence)
    claim_types = [
        CLAIM_ALIGNED if i in twin else CLAIM_ELSEWHERE if token in in_evidence else CLAIM
        for i, token in enumerate(claim)
    ]
    types = [EVIDENCE, *_evidence_types(evidence, set(claim), set(twin.values())), EVIDENCE, *claim_types, EVIDENCE]
    twins = [0] * (len(evidence) + 2) + _twins(twin, len(claim), len(evidence)) + [0]
    return AlignedPair([CLS, *evidence, SEP, *claim, SEP], types, twins)


def _evidence_types(evidence: Sequence[int], in_claim: set[int], aligned: set[int]) -> list[int]:
    types = [
        EVIDENCE_ALIGNED if i in aligned else EVIDENCE_ELSEWHERE if token in in_claim else EVIDENCE
        for i, token in enumerate(evidence)
    ]
    for left, right in pairwise(sorted(aligned)):
        if right - left - 1 <= LONGEST_SKIP:
            types[left + 1 : right] = [EVIDENCE_SKIPPED] * (right - left - 1)
    return types


def _twins(twin: dict[int, int], claim: int, evidence: int) -> list[int]:
    if not twin:
        return [0] * claim
    first = min(twin)
    twins = [max(0, 1 + twin[first] - (first - i)) for i in range(first)]
    for i in range(first, claim):
        twins.append(1 + twin[i] if i in twin else min(twins[-1] + 1, evidence + 1))
    return twins


class Reader(nn.Module):
    """BERT over (evidence, claim); mean and maximum over the claim's tokens; three logits."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.twins = nn.Embedding(config.max_position_embeddings, config.hidden_size, padding_idx=0)
        self.head = nn.Linear(2 * config.hidden_size, 3)

    def forward(self, ids: Tensor, types: Tensor, twins: Tensor, mask: Tensor) -> Tensor:
        """Map (B, T) ids, types, twins and mask to (B, 3) logits: contradicted, supported, not stated."""
        embedded = self.bert.embeddings.word_embeddings(ids) + self.twins(twins)
        output = self.bert(inputs_embeds=embedded, token_type_ids=types, attention_mask=mask)
        hidden = output.last_hidden_state.float()  # (B, T, H)
        claim = ((types >= CLAIM) & (mask > 0))[..., None]
        mean = (hidden * claim).sum(1) / claim.sum(1)
        most = hidden.masked_fill(~claim, -torch.inf).amax(1)
        logits: Tensor = self.head(torch.cat([mean, most], dim=-1))
        return logits


def start_reader(encoder: Path, seed: int) -> Reader:
    """Build the network from a BERT checkpoint, its word embeddings frozen."""
    torch.manual_seed(seed)
    given = json.loads((encoder / "config.json").read_text())
    names = ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "num_hidden_layers")
    config = BertConfig(
        **{name: given[name] for name in names},
        type_vocab_size=TOKEN_TYPES,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.0,
    )
    model = Reader(config)
    state = model.bert.state_dict()
    weights = {k.removeprefix("bert."): v for k, v in load_file(encoder / "model.safetensors").items()}
    types = "embeddings.token_type_embeddings.weight"
    weights[types] = weights[types][:1] + 0.04 * torch.randn_like(state[types])
    model.bert.load_state_dict({name: weights[name].float() for name in state})
    with torch.no_grad():
        model.twins.weight[1:] = model.bert.embeddings.position_embeddings.weight[1:]
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return model


def collate(pairs: Sequence[AlignedPair]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Right-pad pairs to ids, types, twins and mask, (B, T) int64 each."""
    width = max(map(len, pairs))

    def padded(rows: Sequence[list[int]]) -> Tensor:
        return torch.tensor([row + [0] * (width - len(row)) for row in rows])

    mask = padded([[1] * len(p) for p in pairs])
    return padded([p.ids for p in pairs]), padded([p.types for p in pairs]), padded([p.twins for p in pairs]), mask


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns groups into pairs, with the evidence chosen as the aligner chooses it."""

    tokenizer: Tokenizer

    def encode(self, group: ContrastGroup, chunks: int) -> list[AlignedPair]:
        """Encode each claim with the chunks that share most with it, as many as fit."""
        index = EvidenceIndex(group.passages)
        known = (
            {i: self._ids(chunk.text) for i, chunk in enumerate(index.chunks)} if len(index.chunks) <= chunks else {}
        )
        return [self._pair(index, known, claim.text, chunks) for claim in group.claims]

    def _pair(self, index: EvidenceIndex, known: dict[int, list[int]], claim: str, chunks: int) -> AlignedPair:
        chosen: dict[int, list[int]] = {}
        room = EVIDENCE_TOKENS
        for best in index.best(claim, chunks):
            ids = known.get(best) or self._ids(index.chunks[best].text)
            if len(ids) <= room or not chosen:
                chosen[best] = ids[:room]
                room -= len(chosen[best])
        evidence = [token for best in sorted(chosen) for token in chosen[best]]
        claim_ids = self._ids(claim)[:CLAIM_TOKENS]
        return align_tokens(evidence, claim_ids)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


@dataclass(frozen=True, slots=True)
class Row:
    """An encoded group: pairs with labels and kinds."""

    pairs: list[AlignedPair]
    labels: list[int]
    kinds: list[str]

    @property
    def width(self) -> int:
        """Tokens of the longest pair."""
        return max(map(len, self.pairs))


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
    rows = sorted(rows, key=lambda row: row.width)
    batches: list[list[Row]] = [[]]
    for row in rows:
        pairs = sum(len(r.pairs) for r in batches[-1]) + len(row.pairs)
        if batches[-1] and pairs * row.width > BATCH_TOKENS:
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


def load_written(folder: Path) -> list[ContrastGroup]:
    """Read written claims: ``P:`` begins a passage, ``+`` one supported, ``-`` contradicted, ``?`` neither."""
    contexts = [context for path in sorted(folder.glob("*.txt")) for context in _written_in(path)]
    return [
        ContrastGroup(passages, claims[i : i + 6], "written", "")
        for passages, claims in contexts
        for i in range(0, len(claims), 6)
    ]


def _written_in(path: Path) -> list[tuple[tuple[str, ...], tuple[Claim, ...]]]:
    labels = {"+ ": SUPPORTED, "- ": CONTRADICTED, "? ": NOT_STATED}
    found: list[tuple[list[str], list[Claim]]] = []
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("P:"):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line[2:].strip())
        elif line[:2] in labels and found:
            found[-1][1].append(Claim(line[2:].strip(), labels[line[:2]], "written"))
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
    """Return True for one context in twelve."""
    return int(sha256(group.passages[0].encode()).hexdigest(), 16) % 12 == 0


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


@torch.no_grad()
def evaluated(model: Reader, rows: Sequence[Row], *, bf16: bool) -> dict[str, Any]:
    """Share of pairs of one context ordered rightly, and of claims on the right side, by kind."""
    model.eval()
    ordered: dict[str, list[float]] = defaultdict(list)
    right: dict[str, list[float]] = defaultdict(list)
    for batch in batches_of(random.Random(0), list(rows)):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits = model(*collate([p for row in batch for p in row.pairs]))
        margins = iter(support_margin(logits.float()).tolist())
        for row in batch:
            scored = [(next(margins), label, kind) for label, kind in zip(row.labels, row.kinds, strict=True)]
            for score, label, kind in scored:
                right[kind].append((score > 0) == (label == SUPPORTED))
                if label != SUPPORTED:
                    ordered[kind] += [float(score < s) for s, other, _ in scored if other == SUPPORTED]
    model.train()

    def mean(values: dict[str, list[float]]) -> dict[str, float]:
        total = [v for kind in values.values() for v in kind]
        means = {kind: round(sum(v) / len(v), 3) for kind, v in sorted(values.items()) if v}
        return {"all": round(sum(total) / max(1, len(total)), 3), **means}

    return {"ordered": mean(ordered), "right_side": mean(right)}


def learning_share(step: int, elapsed: float, hours: float) -> float:
    """Warm-up by steps, then constant, then linear down to a fiftieth over the last part of the time."""
    left = max(0.02, (1 - elapsed / (3600 * hours)) / DECAY_SHARE)
    return min((step + 1) / WARM_UP_STEPS, 1.0, left)


def new_optimizer(model: Reader, rate: float) -> torch.optim.AdamW:
    """AdamW; the head and the token types, which start from scratch, learn faster."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    fresh = [p for n, p in trained.items() if n.startswith("head") or "token_type" in n]
    names = {id(p) for p in fresh}
    body = [p for p in trained.values() if id(p) not in names]
    groups = [{"params": body, "start": rate}, {"params": fresh, "start": NEW_RATE * rate}]
    return torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, fused=True)


class Run:
    """A training run in a folder.

    Parameters
    ----------
    model
        To train.
    output
        Where it is saved.
    args
        Of the command.
    """

    def __init__(self, model: Reader, output: Path, args: argparse.Namespace) -> None:
        self.model, self.output, self.args = model, output, args
        self.optimizer = new_optimizer(model, args.learning_rate)
        self.progress: dict[str, float] = {"pool": 0, "step": 0, "pairs": 0, "seconds": 0.0}
        if (output / "progress.json").exists():
            self.progress = json.loads((output / "progress.json").read_text())
            model.load_state_dict(load_file(output / "weights.safetensors"))
            restore_optimizer(output, self.optimizer)
        self.average = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        if (output / "average.safetensors").exists():
            kept = load_file(output / "average.safetensors")
            self.average = {n: kept[n] for n in self.average}

    def step(self, batch: Sequence[Row]) -> float:
        """Take one step; return the loss."""
        share = learning_share(int(self.progress["step"]), self.progress["seconds"], self.args.hours)
        for group in self.optimizer.param_groups:
            group["lr"] = group["start"] * share
        torch.manual_seed(self.args.seed + int(self.progress["step"]))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.args.bf16):
            logits = self.model(*collate([p for row in batch for p in row.pairs]))
        loss = loss_of(logits.float(), batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, error_if_nonfinite=True)
        self.optimizer.step()
        self.progress["step"] += 1
        self.progress["pairs"] += sum(len(row.pairs) for row in batch)
        weight = 1 - min(AVERAGE, self.progress["step"] / (self.progress["step"] + 10))
        for name, parameter in self.model.named_parameters():
            if name in self.average:
                self.average[name].lerp_(parameter.detach(), weight)
        return loss.item()

    def told(self) -> dict[str, float]:
        """Return the progress of the run, for the log."""
        return {name: round(self.progress[name]) for name in ("pool", "step", "pairs", "seconds")}

    def save(self) -> None:
        """Write the weights, their running mean, the optimizer and the progress of the run."""
        state = {k: v.contiguous() for k, v in self.model.state_dict().items()}
        save_file(state, self.output / "weights.safetensors")
        save_file({**state, **self.average}, self.output / "average.safetensors")
        save_progress(self.output, self.optimizer, self.progress)


def train(run: Run, sources: Sources, encoder: Encoder, heldout: Sequence[Row]) -> None:
    """Train until the time is up."""
    args, log = run.args, (run.output / "log.jsonl").open("a")
    short = {s: w for s, w in sources.shares.items() if s not in {"made-long", *SUPPORT_SOURCES}}
    run.model.train()
    started, saved = time.perf_counter() - run.progress["seconds"], time.perf_counter()
    told_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told_to_stop.append(number))
    while run.progress["seconds"] < 3600 * args.hours and not told_to_stop:
        number = int(run.progress["pool"])
        rng = random.Random(f"{args.seed}-pool-{number}")
        early = run.progress["pairs"] < args.short_pairs
        drawn = sources.pool(number, short if early else sources.shares, run.progress)
        written = sources.groups["written"]
        drawn = [
            beside_others(with_easy_claims(g, rng, written), rng, written) if g.source == "written" else g
            for g in drawn
        ]
        rows = [
            Row(encoder.encode(g, rng.choice((2, 3, 4, 4))), [c.label for c in g.claims], [c.kind for c in g.claims])
            for g in drawn
        ]
        losses = []
        for batch in batches_of(rng, rows):
            losses.append(run.step(batch))
            run.progress["seconds"] = time.perf_counter() - started
        run.progress["pool"] += 1
        _log(log, {**run.told(), "loss": round(sum(losses) / len(losses), 4)})
        if time.perf_counter() - saved > 60 * args.save_minutes:
            run.save()
            _log(log, {**run.told(), **evaluated(run.model, heldout, bf16=args.bf16)})
            saved = time.perf_counter()
    run.save()


def _log(log: Any, record: dict[str, Any]) -> None:
    line = json.dumps(record)
    log.write(line + "\n")
    log.flush()
    print(line, flush=True)


def encoded(encoder: Encoder, groups: Sequence[ContrastGroup]) -> list[Row]:
    """Encode groups with four chunks each."""
    return [Row(encoder.encode(g, 4), [c.label for c in g.claims], [c.kind for c in g.claims]) for g in groups]


def main() -> None:
    """Train for a number of hours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--made", type=Path, nargs=2, required=True, help="short and long groups of contrast_pairs.py")
    parser.add_argument("--contrast", type=Path, required=True, help="folder of pairs with relations")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs with two labels")
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of written claims (%(default)s)")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--heldout", type=Path, required=True, help="groups to measure on")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=1.5)
    parser.add_argument("--short-pairs", type=int, default=40000, help="how many pairs with short contexts come first")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=8)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast; slow on processors without it")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    tokenizer = Tokenizer.from_file(str(args.encoder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(args.output / "tokenizer.json"))
    (args.output / "run.json").write_text(json.dumps(vars(args), default=str, indent=2))
    encoder = Encoder(tokenizer)
    groups = {name: load_groups(path) for name, path in zip(("made-short", "made-long"), args.made, strict=True)}
    groups |= {s: load_contrast(args.contrast, s) for s in CONTRAST_SOURCES}
    groups |= {s: load_support(args.pairs, s) for s in SUPPORT_SOURCES}
    written = load_written(args.written)
    groups["written"] = [g for g in written if not is_held_out(g)]
    shares = {
        "made-short": 0.2, "made-long": 0.3, "conjnli": 0.06, "counterfactual-nli": 0.06, "snli": 0.08,
        "fever-symmetric": 0.02, "fool-me-twice": 0.025, "med": 0.025,
        "defacto": 0.1, "bump": 0.03, "summedits": 0.03, "frank": 0.08,
        "written": 0.8,
    }  # fmt: skip
    for source, listed in groups.items():
        print(f"{source}: {len(listed)} contexts, {sum(len(g.claims) for g in listed)} claims", flush=True)
    heldout = encoded(encoder, [*load_groups(args.heldout), *filter(is_held_out, written)])
    run = Run(start_reader(args.encoder, args.seed), args.output, args)
    train(run, Sources(groups, shares, args.seed), encoder, heldout)


if __name__ == "__main__":
    main()
