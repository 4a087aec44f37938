"""What the reader is trained on: groups of claims by source, and the batches into which draws of them are encoded.

A group has a context's passages and claims about them. Each draw takes some of the claims, and as many of the passages
as a budget of tokens leaves room for. To those of a written group come a sentence of its passages, nearly as it stands
there, and mostly a claim about another context.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from claim_files import WRITTEN_SOURCES, source_of
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED, Claim, ContrastGroup, load_groups
from edited_claims import edited_groups
from near_copies import near_copy
from numpy.typing import NDArray
from support_pairs import load_pairs, part_of
from tokenizers import Tokenizer
from torch.utils.data import Dataset
from tqdm import tqdm

from syncheck.alignment.evidence import EvidenceIndex
from syncheck.alignment.reader import CLAIM_TOKENS, closest_chunks
from syncheck.alignment.reader_network import BEGIN, END
from syncheck.segments import ENGLISH_ABBREVIATIONS, SentenceCutter

BATCH_TOKENS, POOL_GROUPS = 24_576, 160
"""Tokens of a batch, padding included, and groups that are sorted by length into batches together."""
BUDGETS = (160, 200, 250)
"""Tokens of passages that are read with a claim, drawn for each group; the largest is for measuring."""
MOST_CLAIMS = 12
"""Most claims of a group that are drawn at once."""
FOREIGN_SHARE, BESIDE_SHARE = 0.15, 0.25
"""How often a group that was not written gets a claim about another context, and such a group other passages."""
SHARES = {
    "matched": 0.36, "written": 0.15, "answers": 0.05, "snli": 0.06, "counterfactual-nli": 0.06, "conjnli": 0.03,
    "med": 0.02, "fever-symmetric": 0.02, "fool-me-twice": 0.05, "defacto": 0.05, "bump": 0.01, "summedits": 0.02,
    "frank": 0.02, "edits": 0.10, "made": 0.05,
}  # fmt: skip
"""Part of the groups that comes from each source, in proportion to those of the sources that there are."""
CONTRAST_SOURCES = ("conjnli", "counterfactual-nli", "fever-symmetric", "fool-me-twice", "med", "snli")
SUPPORT_SOURCES = ("defacto", "bump", "summedits", "frank")
RELATIONS = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_STATED}


@dataclass(frozen=True, slots=True)
class Row:
    """A claim and the passages that are read with it, as token ids; ``context`` is the number of its context."""

    premise: Sequence[int]
    claim: Sequence[int]
    label: int
    kind: str
    context: int

    def __len__(self) -> int:
        return len(self.premise) + len(self.claim) + 3


class Batch(NamedTuple):
    """B claims that are read at once: tokens (B, T), where each claim starts and its last mark is, labels, contexts."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: NDArray[np.int64]
    contexts: NDArray[np.int64]


def collated(rows: Sequence[Row]) -> Batch:
    """Write each row as BEGIN, passages, END, claim, END, and pad to a multiple of eight, which suits GPUs."""
    ids = np.full((len(rows), -max(map(len, rows)) // 8 * -8), END)
    for own, row in zip(ids, rows, strict=True):
        own[: len(row)] = [BEGIN, *row.premise, END, *row.claim, END]
    ends = np.array([len(row) - 1 for row in rows])
    starts = ends - [len(row.claim) for row in rows]
    return Batch(ids, starts, ends, np.array([row.label for row in rows]), np.array([row.context for row in rows]))


def batches_of(rng: random.Random, contexts: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Sort contexts by length and cut them into batches of at most ``BATCH_TOKENS``, if they can be, in random order.

    The claims of a context stay together.
    """
    batches: list[list[Row]] = [[]]
    for rows in sorted(contexts, key=lambda rows: max(map(len, rows))):  # so the last is the longest
        longest = -max(map(len, rows)) // 8 * -8
        if batches[-1] and (len(batches[-1]) + len(rows)) * longest > BATCH_TOKENS:
            batches.append([])
        batches[-1] += rows
    rng.shuffle(batches)
    return batches


@dataclass(frozen=True, slots=True)
class Context:
    """Passages that are cut into chunks: their index, and the token ids of each chunk."""

    index: EvidenceIndex
    chunks: list[list[int]]

    @property
    def tokens(self) -> int:
        """Number of tokens of all chunks."""
        return sum(map(len, self.chunks))

    def closest(self, claim: str, room: int) -> list[int]:
        """Return the tokens of all chunks if there is room for them, otherwise of those closest to the claim."""
        chosen: Sequence[int] = range(len(self.chunks))
        if self.tokens > room:
            chosen = closest_chunks(self.index, claim, [len(chunk) for chunk in self.chunks], room)
        return [token for place in chosen for token in self.chunks[place]][:room]

    def first(self, room: int) -> list[list[int]]:
        """Return the chunks from the first on, without those for which no room is left."""
        taken = []
        for chunk in self.chunks:
            if len(chunk) <= room:
                taken.append(chunk)
                room -= len(chunk)
        return taken


class Encoder:
    """Turns texts into token ids.

    Parameters
    ----------
    tokenizer
        Of the language model, without truncation and padding.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._cut = SentenceCutter(ENGLISH_ABBREVIATIONS).texts

    def context(self, passages: Sequence[str]) -> Context:
        """Cut passages into chunks."""
        index = EvidenceIndex(passages, cut=self._cut)
        return Context(index, [self._ids(chunk.text) for chunk in index.chunks])

    def row(self, premise: Sequence[int], claim: Claim, number: int) -> Row:
        """Encode a claim about passages that are encoded."""
        return Row(premise, self._ids(claim.text)[:CLAIM_TOKENS], claim.label, claim.kind, number)

    def rows(self, group: ContrastGroup, number: int) -> list[Row]:
        """Encode all claims of a group, with as many of the passages as can be read."""
        context = self.context(group.passages)
        return [self.row(context.closest(claim.text, BUDGETS[-1]), claim, number) for claim in group.claims]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


class Pools(Dataset[list[Batch]]):
    """Batches of groups that are drawn at random, by the number of the pool.

    Parameters
    ----------
    groups
        By source. Written groups are those whose own ``source`` is one of :data:`WRITTEN_SOURCES`.
    encoder
        Of their texts.
    seed
        Of what is drawn.
    """

    def __init__(self, groups: Mapping[str, Sequence[ContrastGroup]], encoder: Encoder, seed: int) -> None:
        self.groups = {source: groups[source] for source in sorted(groups) if groups[source]}
        self.encoder, self.seed = encoder, seed
        self._others = [self.groups[source] for source in ("matched", "written") if source in self.groups]

    def __getitem__(self, number: int) -> list[Batch]:
        rng = random.Random(f"{self.seed}-{number}")
        return [collated(batch) for batch in batches_of(rng, self.contexts(rng))]

    def contexts(self, rng: random.Random) -> list[list[Row]]:
        """Draw ``POOL_GROUPS`` groups and some claims of each."""
        sources = rng.choices(list(self.groups), [SHARES[source] for source in self.groups], k=POOL_GROUPS)
        return [self.drawn(rng, rng.choice(self.groups[source]), place) for place, source in enumerate(sources)]

    def drawn(self, rng: random.Random, group: ContrastGroup, number: int) -> list[Row]:
        """Draw some claims of a group, and mostly one about another context, sometimes between other passages."""
        room = rng.choice(BUDGETS)
        context = self.encoder.context(group.passages)
        rows = [
            self.encoder.row(context.closest(claim.text, room), claim, number)
            for claim in some_claims(rng, group, [chunk.text for chunk in context.index.chunks])
        ]
        if self._others and (group.source in WRITTEN_SOURCES or rng.random() < FOREIGN_SHARE):
            other = rng.choice(rng.choice(self._others))
            if other.passages != group.passages:
                foreign = Claim(rng.choice(other.claims).text, NOT_STATED, "unrelated")
                rows.append(self.encoder.row(rows[0].premise, foreign, number))
            if rng.random() < BESIDE_SHARE:
                rows = self._beside(rng, rows, group, room - context.tokens)
        return rows

    def _beside(self, rng: random.Random, rows: list[Row], group: ContrastGroup, room: int) -> list[Row]:
        """Put other passages around those of the rows, as far as there is room."""
        passages = rng.choice(rng.choice(self._others)).passages
        if room <= 0 or passages == group.passages:
            return rows
        chunks = self.encoder.context(passages).first(room)
        place = rng.randint(0, len(chunks))
        before, after = sum(chunks[:place], []), sum(chunks[place:], [])
        return [replace(row, premise=[*before, *row.premise, *after]) for row in rows]


def some_claims(rng: random.Random, group: ContrastGroup, sentences: Sequence[str]) -> list[Claim]:
    """Draw at most ``MOST_CLAIMS`` claims; of a written group neighbouring pairs, and what a passage says nearly."""
    claims = list(group.claims)
    if group.source not in WRITTEN_SOURCES:
        first = rng.randint(0, max(0, len(claims) - MOST_CLAIMS))
        return claims[first : first + MOST_CLAIMS]
    pairs = [claims[start : start + 2] for start in range(0, len(claims), 2)]
    rng.shuffle(pairs)  # neighbours mostly are a pair that differs in one thing
    near = Claim(near_copy(rng, sentences), SUPPORTED, "copy")
    return [*[claim for pair in pairs for claim in pair][:MOST_CLAIMS], near]


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


def load_training(args: argparse.Namespace, written: Sequence[ContrastGroup]) -> dict[str, list[ContrastGroup]]:
    """Return the groups of each source; ``written`` are those that are not held out."""
    groups: dict[str, list[ContrastGroup]] = {source: [] for source in WRITTEN_SOURCES}
    for group in written:
        groups[source_of(group)].append(replace(group, source=source_of(group)))
    groups |= {source: load_contrast(args.contrast, source) for source in CONTRAST_SOURCES}
    groups |= {source: load_support(args.pairs, source) for source in SUPPORT_SOURCES}
    groups["edits"] = list(edited_groups(tqdm(written, desc="edits", unit=" contexts", mininterval=5), args.seed))
    groups["made"] = [group for path in args.made for group in load_groups(path)]
    return groups
