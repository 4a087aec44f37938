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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
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

from syncheck.aligners.reader.aligner import (
    CLAIM_TOKENS,
    JOINT_TOKENS,
    SEEN_TOKENS,
    Part,
    PassageWindows,
    chosen_parts,
    closest_chunks,
)
from syncheck.aligners.reader.network import BEGIN, END, PADDING
from syncheck.reading.evidence import Chunk, EvidenceIndex, split_passages
from syncheck.text.notation import written_out
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, SentenceCutter

BATCH_TOKENS, LONG_BATCH_TOKENS, SMALL_BATCH_TOKENS, POOL_GROUPS = 24_576, 4_096, 2_048, 160
"""Tokens of a batch, of one of a run on long contexts and of a small one, with padding, and groups that are sorted by
length into batches together."""
SEEN, JOINT, WIDE = (112, 128, 144), (48, 64, 80), (250,)
"""Tokens of passages that a claim sees and that are read with it, and that a reader of one text reads; drawn for each
group."""
UNLABELLED = -1
"""Label of a claim that was changed, or whose passages were, so that only another reader's verdict is known."""
CHANGED_PASSAGES_SHARE, CHANGED_CLAIM_SHARE = 0.35, 0.25
"""How often passages are changed, and a changed claim is added."""
MOST_CLAIMS, MOST_OF_LONG = 12, 6
"""Most claims of a group that are drawn at once, and in a run on long contexts."""
FOREIGN_SHARE, BESIDE_SHARE = 0.15, 0.3
"""How often a group that was not written gets a claim about another context, and a group other passages."""
BESIDE_SOURCES = (*WRITTEN_SOURCES, "edits", "made", "infoboxes", "tables")
BESIDE_TOTALS = (250, 250, 450)
"""Tokens of the passages with others beside them, one of which is drawn."""


class Reach(NamedTuple):
    """What is drawn for each group: tokens as for ``SEEN``, ``JOINT`` and ``WIDE``, and those of passages beside it."""

    seen: Sequence[int]
    joint: Sequence[int]
    wide: Sequence[int]
    beside_share: float = BESIDE_SHARE
    beside_totals: Sequence[int] = BESIDE_TOTALS


SHORT = Reach(SEEN, JOINT, WIDE)
LONG = Reach((112, 128, 192), (64, 96), (0,), 0.7, (250, 450, 800))
LONG_WHOLE = Reach((0,), (0,), (192, 256, 352), 0.7, (250, 450, 800))
"""The same in a run on long contexts, for a reader that reads passages once, and for one of one text."""
SHARES = {
    "matched": 0.36, "written": 0.15, "answers": 0.05, "snli": 0.06, "counterfactual-nli": 0.06, "conjnli": 0.03,
    "med": 0.02, "fever-symmetric": 0.02, "fool-me-twice": 0.05, "defacto": 0.05, "bump": 0.01, "summedits": 0.02,
    "frank": 0.02, "edits": 0.10, "made": 0.05, "infoboxes": 0.25, "tables": 0.06,
}  # fmt: skip
"""Part of the groups that comes from each source, in proportion to those of the sources that there are."""
CONTRAST_SOURCES = ("conjnli", "counterfactual-nli", "fever-symmetric", "fool-me-twice", "med", "snli")
SUPPORT_SOURCES = ("defacto", "bump", "summedits", "frank")
RELATIONS = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_STATED}


@dataclass(frozen=True, slots=True)
class Row:
    """A claim as token ids, and the windows of its context.

    Attributes
    ----------
    seen, joint, wide : sequence of Part
        What it sees, what is read with it, and what a reader of one text reads.
    context : int
        Number of the context.
    """

    windows: PassageWindows
    seen: Sequence[Part]
    joint: Sequence[Part]
    wide: Sequence[Part]
    claim: Sequence[int]
    label: int
    kind: str
    context: int

    def __len__(self) -> int:
        return max(tokens_of(self.seen), tokens_of(self.wide)) + len(self.claim) + 2


def tokens_of(parts: Sequence[Part]) -> int:
    """Return the number of tokens of parts of windows."""
    return sum(part.end - part.begin for part in parts)


class Places(NamedTuple):
    """What is before each of C claims, and the claim.

    Attributes
    ----------
    tokens : ndarray of shape (C, L), int64
        The places of its tokens among those of all windows and then all claims of the batch.
    first, ends : ndarray of shape (C,), int64
        Where in the text its claim is, from the END before it up to but without ``ends``.
    """

    tokens: NDArray[np.int64]
    first: NDArray[np.int64]
    ends: NDArray[np.int64]


class Batch(NamedTuple):
    """C claims that are judged at once.

    Attributes
    ----------
    windows, claims : ndarray of shape (W, V) and (C, T), int64
        Token ids: BEGIN and a window, and a claim between two END, padded to multiples of eight, which suits GPUs.
    window_lengths, claim_lengths, labels, contexts : ndarray of shape (W,), or (C,), int64
    seen, joint, wide : Places
        See :class:`Row`.
    """

    windows: NDArray[np.int64]
    window_lengths: NDArray[np.int64]
    claims: NDArray[np.int64]
    claim_lengths: NDArray[np.int64]
    labels: NDArray[np.int64]
    contexts: NDArray[np.int64]
    seen: Places
    joint: Places
    wide: Places


def collated(rows: Sequence[Row]) -> Batch:
    """Bring the rows of a batch together, each window once."""
    used = {(id(row.windows), part.window): row.windows for row in rows for part in (*row.seen, *row.wide)}
    windows, window_lengths = _padded([[BEGIN, *of.ids[number]] for (_, number), of in used.items()])
    claims, claim_lengths = _padded([[END, *row.claim, END] for row in rows])
    begins = {window: place * windows.shape[1] for place, window in enumerate(used)}

    def places(of: Callable[[Row], Sequence[Part]]) -> Places:
        texts, first = [], []
        for number, row in enumerate(rows):
            text: list[int] = []
            for part in of(row):
                begin = begins[id(row.windows), part.window]
                text += range(begin + part.begin, begin + part.end)
            first.append(len(text))
            own = windows.size + number * claims.shape[1]
            texts.append([*text, *range(own, own + len(row.claim) + 2)])
        return Places(_padded(texts)[0], np.array(first), np.array([len(text) for text in texts]))

    labels, contexts = np.array([row.label for row in rows]), np.array([row.context for row in rows])
    seen, joint, wide = (places(of) for of in (lambda row: row.seen, lambda row: row.joint, lambda row: row.wide))
    return Batch(windows, window_lengths, claims, claim_lengths, labels, contexts, seen, joint, wide)


def _padded(texts: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return texts in one array, and their lengths."""
    lengths = np.array([len(text) for text in texts])
    padded = np.full((len(texts), -lengths.max() // 8 * -8), PADDING)
    for own, text in zip(padded, texts, strict=True):
        own[: len(text)] = text
    return padded, lengths


def batches_of(rng: random.Random, contexts: Sequence[Sequence[Row]], most: int = BATCH_TOKENS) -> list[list[Row]]:
    """Sort contexts by length and cut them into batches of at most so many tokens, if they can be, in random order.

    The claims of a context stay together.
    """
    batches: list[list[Row]] = [[]]
    for rows in sorted(contexts, key=lambda rows: max(map(len, rows))):  # so the last is the longest
        longest = -max(map(len, rows)) // 8 * -8
        if batches[-1] and (len(batches[-1]) + len(rows)) * longest > most:
            batches.append([])
        batches[-1] += rows
    rng.shuffle(batches)
    return batches


@dataclass(frozen=True, slots=True)
class Context:
    """Passages that are cut into chunks: their index, and the windows of these chunks."""

    index: EvidenceIndex
    windows: PassageWindows

    @property
    def tokens(self) -> int:
        """Number of tokens of all chunks."""
        return sum(self.windows.lengths)

    def parts(self, claim: str, seen: int, joint: int, wide: int) -> tuple[list[Part], list[Part], list[Part]]:
        """Return what a claim sees, what is read with it, and what a reader of one text reads."""
        parts = chosen_parts(self.windows, self.index, claim, seen=seen, joint=joint) if seen else ([], [])
        chunks = closest_chunks(self.index, claim, self.windows.lengths, wide) if wide else []
        return *parts, self.windows.parts(chunks, wide) if wide else []


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
        return self.of_chunks(self.chunks(passages))

    def chunks(self, passages: Sequence[str]) -> list[Chunk]:
        """Cut passages into sentences, and long sentences into pieces."""
        return split_passages(passages, cut=self._cut)

    def of_chunks(self, chunks: Sequence[Chunk]) -> Context:
        """Put chunks into windows."""
        return Context(EvidenceIndex((), chunks=chunks), PassageWindows([self.ids(chunk.text) for chunk in chunks]))

    def row(
        self,
        context: Context,
        claim: Claim,
        number: int,
        *,
        seen: int = SEEN_TOKENS,
        joint: int = JOINT_TOKENS,
        wide: int = WIDE[0],
    ) -> Row:
        """Encode a claim about a context, of which it sees so many tokens, and is read with so many."""
        parts = context.parts(claim.text, seen, joint, wide)
        return Row(context.windows, *parts, self.ids(claim.text)[:CLAIM_TOKENS], claim.label, claim.kind, number)

    def rows(self, group: ContrastGroup, number: int) -> list[Row]:
        """Encode all claims of a group."""
        context = self.context(group.passages)
        return [self.row(context, claim, number) for claim in group.claims]

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        ids: list[int] = self.tokenizer.encode(written_out(text), add_special_tokens=False).ids
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
    unlabelled
        Draw changed passages and claims, which are :data:`UNLABELLED`, too.
    long
        What is drawn in a run on long contexts.
    """

    def __init__(
        self,
        groups: Mapping[str, Sequence[ContrastGroup]],
        encoder: Encoder,
        seed: int,
        *,
        unlabelled: bool = False,
        long: Reach | None = None,
    ) -> None:
        self.groups = {source: groups[source] for source in sorted(groups) if groups[source]}
        self.encoder, self.seed, self.unlabelled, self.long = encoder, seed, unlabelled, long
        self._others = [self.groups[source] for source in ("matched", "written") if source in self.groups]

    def __getitem__(self, number: int) -> list[Batch]:
        rng = random.Random(f"{self.seed}-{number}")
        most = LONG_BATCH_TOKENS if self.long else BATCH_TOKENS
        return [collated(batch) for batch in batches_of(rng, self.contexts(rng), most)]

    def small_batches(self, number: int) -> Iterator[Batch]:
        """Yield so many batches of at most ``SMALL_BATCH_TOKENS``."""
        rng = random.Random(f"{self.seed}-small")
        pools = (batch for _ in count() for batch in batches_of(rng, self.contexts(rng), SMALL_BATCH_TOKENS))
        return (collated(batch) for batch in islice(pools, number))

    def contexts(self, rng: random.Random) -> list[list[Row]]:
        """Draw ``POOL_GROUPS`` groups and some claims of each."""
        sources = rng.choices(list(self.groups), [SHARES[source] for source in self.groups], k=POOL_GROUPS)
        return [self.drawn(rng, source, rng.choice(self.groups[source]), n) for n, source in enumerate(sources)]

    def drawn(self, rng: random.Random, source: str, group: ContrastGroup, number: int) -> list[Row]:
        """Draw some claims of a group, and mostly one about another context, sometimes between other passages."""
        reach = self.long or SHORT
        seen, joint, wide = (rng.choice(sizes) for sizes in (reach.seen, reach.joint, reach.wide))
        chunks = self.encoder.chunks(group.passages)
        most = MOST_OF_LONG if self.long else MOST_CLAIMS
        claims = some_claims(rng, group, [chunk.text for chunk in chunks], most)
        if self._others and (group.source in WRITTEN_SOURCES or rng.random() < FOREIGN_SHARE):
            other = self._other(rng)
            if other.passages != group.passages:
                claims.append(Claim(rng.choice(other.claims).text, NOT_STATED, "unrelated"))
        if self.unlabelled and len(chunks) > 1 and rng.random() < CHANGED_PASSAGES_SHARE:
            chunks = self._changed(rng, chunks)
            claims = [replace(claim, label=UNLABELLED) for claim in claims]
        if self._others and source in BESIDE_SOURCES and rng.random() < reach.beside_share:
            chunks = self._beside(rng, chunks, group)
        context = self.encoder.of_chunks(chunks)
        if self.unlabelled:
            texts = [chunk.text for chunk in chunks]
            swapped = [swapped_word(rng, c.text, texts) for c in claims if rng.random() < CHANGED_CLAIM_SHARE]
            claims += [Claim(text, UNLABELLED, "swapped") for text in swapped if text is not None]
        return [self.encoder.row(context, claim, number, seen=seen, joint=joint, wide=wide) for claim in claims]

    def _other(self, rng: random.Random) -> ContrastGroup:
        return rng.choice(rng.choice(self._others))

    def _changed(self, rng: random.Random, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Leave out a chunk, put all in another order, or put a foreign one in the place of one."""
        changed, place, kind = list(chunks), rng.randrange(len(chunks)), rng.random()
        if kind < 0.6 or not self._others:
            del changed[place]
        elif kind < 0.8:
            rng.shuffle(changed)
        else:
            changed[place] = rng.choice(self.encoder.chunks(self._other(rng).passages))
        return changed

    def _beside(self, rng: random.Random, chunks: Sequence[Chunk], group: ContrastGroup) -> list[Chunk]:
        """Put chunks of other passages around those of a group, as far as there is room."""
        room = rng.choice((self.long or SHORT).beside_totals) - sum(
            len(self.encoder.ids(chunk.text)) for chunk in chunks
        )
        beside = []
        for _ in range(1 if room < WIDE[0] else 6 if self.long else 3):
            other = self._other(rng)
            for chunk in self.encoder.chunks(other.passages) if other.passages != group.passages else ():
                length = len(self.encoder.ids(chunk.text))
                if length <= room:
                    beside.append(chunk)
                    room -= length
        place = rng.randint(0, len(beside))
        return [*beside[:place], *chunks, *beside[place:]]


_PUNCTUATION = ".,;:!?"


def swapped_word(rng: random.Random, claim: str, sentences: Sequence[str]) -> str | None:
    """Put a word of the passages in the place of one of the claim: a number, a name, or another; None without one."""
    words = claim.split(" ")
    places = [place for place, word in enumerate(words) if place > 0 and _sort(word)]
    rng.shuffle(places)
    for place in places[:3]:
        old = words[place]
        others = [
            word.strip(_PUNCTUATION)
            for word in rng.choice(sentences).split(" ")[1:]
            if _sort(word) == _sort(old) and word.strip(_PUNCTUATION) != old.strip(_PUNCTUATION)
        ]
        if others:
            words[place] = rng.choice(others) + old[len(old.rstrip(_PUNCTUATION)) :]
            return " ".join(words)
    return None


def _sort(word: str) -> str:
    """Tell numbers, capitalised and other words apart; short ones are of no sort."""
    return "number" if word[:1].isdigit() else "name" if word[:1].isupper() else "word" if len(word) > 3 else ""


def some_claims(
    rng: random.Random, group: ContrastGroup, sentences: Sequence[str], most: int = MOST_CLAIMS
) -> list[Claim]:
    """Draw at most ``most`` claims; of a written group neighbouring pairs, and what a passage says nearly."""
    claims = list(group.claims)
    if group.source not in WRITTEN_SOURCES:
        first = rng.randint(0, max(0, len(claims) - most))
        return claims[first : first + most]
    pairs = [claims[start : start + 2] for start in range(0, len(claims), 2)]
    rng.shuffle(pairs)  # neighbours mostly are a pair that differs in one thing
    near = Claim(near_copy(rng, sentences), SUPPORTED, "copy")
    return [*[claim for pair in pairs for claim in pair][:most], near]


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


def load_tables(folder: Path) -> dict[str, list[ContrastGroup]]:
    """Read the training part of claims about infoboxes, and claims about tables, a row of which tells its header."""
    infoboxes = load_contrast(folder, "infotabs-train")
    raw = load_contrast(folder, "tabfact-validation")
    told = [replace(group, passages=(with_header(group.passages[0]),)) for group in raw]
    return {"infoboxes": infoboxes, "tables": [*raw, *told]}


def with_header(table: str) -> str:
    """Write a table, whose cells are between bars, as its title and rows that name each cell's column."""
    title, header, *rows = table.split("\n")
    names = [name.strip() for name in header.split("|")]
    lines = ["; ".join(f"{n}: {c.strip()}" for n, c in zip(names, row.split("|"), strict=False)) for row in rows]
    return "\n".join([title, *lines])


def load_training(args: argparse.Namespace, written: Sequence[ContrastGroup]) -> dict[str, list[ContrastGroup]]:
    """Return the groups of each source; ``written`` are those that are not held out."""
    groups: dict[str, list[ContrastGroup]] = {source: [] for source in WRITTEN_SOURCES}
    for group in written:
        groups[source_of(group)].append(replace(group, source=source_of(group)))
    groups |= {source: load_contrast(args.contrast, source) for source in CONTRAST_SOURCES}
    groups |= {source: load_support(args.pairs, source) for source in SUPPORT_SOURCES}
    groups["edits"] = list(edited_groups(tqdm(written, desc="edits", unit=" contexts", mininterval=5), args.seed))
    if args.tables:
        groups |= load_tables(args.tables)
    groups["made"] = [group for path in args.made for group in load_groups(path)]
    return groups
