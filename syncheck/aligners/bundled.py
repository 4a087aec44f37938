"""The bundled aligner: small, fast on a CPU, and modest (see its model card)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from syncheck.aligners.eight_bits import UNKNOWN, EncodedPair, Int8CrossEncoder, batches, encode_pair, read_packed
from syncheck.aligners.protocol import OfNetwork, check_asked
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.text.words import novel_pairs

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_CHUNKS = 4
MAX_EVIDENCE_TOKENS = 144
MAX_CLAIM_TOKENS = 96
"""Largest sizes, in tokens, of the pairs that the network was trained on."""
CLAIM_OVERLAP_TOKENS = 16
BATCH_TOKENS, CPU_BATCH_TOKENS = 4096, 768
"""Number of tokens scored at once; more would not fit the cache of a processor."""


@dataclass(frozen=True, slots=True)
class _Window:
    """One input of the network: indices of the claim and of its part, best chunk, and encoded pair."""

    claim: int
    part: int
    chunk: int
    pair: EncodedPair


class BundledAligner(OfNetwork):
    """Scores a claim against the few sentences of the context that share the most words with it.

    P(supported) = sigmoid(scale * logit + coverage * c + novel_pairs * q + shift), where c is the share of the claim's
    content words in the whole context, since the network sees only the chosen chunks, and q is
    :func:`~syncheck.text.words.novel_pairs`: words that are close in the claim but nowhere in the context. ``name`` is
    stored with a monitor: ``"bundled"``, or the folder it was loaded from.

    Up to four chunks of the context are chosen for each claim and packed into windows of 144 tokens, usually one; a
    chunk that is longer than a window fills several. A claim of more than 96 tokens is cut into overlapping parts. The
    score of a part is the highest over the windows; that of the claim is the lowest over its parts, each of which needs
    support. Nothing is dropped.
    """

    languages = frozenset({"en"})

    def __init__(
        self,
        model: Int8CrossEncoder,
        tokenizer: Tokenizer,
        *,
        scale: float = 1.0,
        coverage: float = 0.0,
        novel_pairs: float = 0.0,
        shift: float = 0.0,
        device: str | torch.device = "cpu",
        name: str = "bundled",
    ) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        self._scale = scale
        self._coverage = coverage
        self._novel_pairs = novel_pairs
        self._shift = shift
        self._device = torch.device(device)
        self._known: WeakKeyDictionary[EvidenceIndex, dict[int, list[int]]] = WeakKeyDictionary()  # ids of its chunks

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> BundledAligner:
        """Load a folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``; None takes the bundled one.

        An incomplete or damaged folder raises CheckpointError.
        """
        folder = files("syncheck") / "assets" / "aligner" if path is None else path
        packed = read_packed(folder)
        model = Int8CrossEncoder(packed.sizes, packed.arrays).to(device)
        name = "bundled" if path is None else str(path)
        return cls(model, packed.tokenizer, device=device, name=name, **packed.calibration)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0.

        The evidence is the chunk that shares most with the claim in the deciding window, with the claim's score.
        """
        check_asked(passages, claims)
        return self.align_indexed(EvidenceIndex(passages), claims)

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against indexed passages; see :meth:`align`."""
        if not index.chunks:
            return [Support(0.0, None) for _ in claims]
        offsets = [  # what shared wording adds to the scaled logit
            self._coverage * index.coverage(c) + self._novel_pairs * novel_pairs(c, index.lexicon) + self._shift
            for c in claims
        ]
        ids_of = self._known.setdefault(index, {})  # claims share their evidence
        windows = [w for number, claim in enumerate(claims) for w in self._windows(index, ids_of, number, claim)]
        best: list[dict[int, tuple[float, int]]] = [{} for _ in claims]
        room = CPU_BATCH_TOKENS if self._device.type == "cpu" else BATCH_TOKENS
        pairs = [window.pair for window in windows]
        cuts = batches([len(pair) for pair in pairs], room)  # no score depends on the rest of its batch
        logits = [logit for cut in cuts for logit in self._model(pairs[cut]).tolist()]
        for window, logit in zip(windows, logits, strict=True):
            parts = best[window.claim]
            if window.part not in parts or logit > parts[window.part][0]:
                parts[window.part] = (logit, window.chunk)
        return [self._support(index, parts, offset) for parts, offset in zip(best, offsets, strict=True)]

    def _support(self, index: EvidenceIndex, parts: dict[int, tuple[float, int]], offset: float) -> Support:
        logit, chunk = min(parts.values())
        score = torch.sigmoid(self._scale * torch.tensor(logit) + torch.tensor(offset)).item()
        evidence = Evidence(index.chunks[chunk].passage, index.quoted(chunk), score)
        return Support(score, evidence, log_odds=logit)

    def _windows(
        self, index: EvidenceIndex, ids_of: dict[int, list[int]], number: int, claim: str
    ) -> Iterator[_Window]:
        ranked = index.best(claim, MAX_CHUNKS)
        for chunk in ranked:
            if chunk not in ids_of:
                ids_of[chunk] = self._ids(index.chunks[chunk].read)
        packed = list(self._pack({chunk: ids_of[chunk] for chunk in ranked}))
        claim_ids = self._ids(claim) or [UNKNOWN]
        for part, ids in enumerate(_parts(claim_ids, MAX_CLAIM_TOKENS, CLAIM_OVERLAP_TOKENS)):
            for first, evidence in packed:
                yield _Window(number, part, first, encode_pair(evidence, ids))

    def _pack(self, ranked: dict[int, list[int]]) -> Iterator[tuple[int, list[int]]]:
        """Fill windows with chunks, the best first; yield the best chunk of each window and its ids in text order."""
        waiting = dict(ranked)
        while waiting:
            first, ids = next(iter(waiting.items()))
            if len(ids) > MAX_EVIDENCE_TOKENS:
                del waiting[first]
                for part in _parts(ids, MAX_EVIDENCE_TOKENS, CLAIM_OVERLAP_TOKENS):
                    yield first, part
                continue
            room = MAX_EVIDENCE_TOKENS
            taken = []
            for chunk, chunk_ids in waiting.items():
                if len(chunk_ids) <= room:
                    taken.append(chunk)
                    room -= len(chunk_ids)
            yield first, [token for chunk in sorted(taken) for token in waiting[chunk]]
            waiting = {chunk: ids for chunk, ids in waiting.items() if chunk not in taken}

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _parts(ids: list[int], size: int, overlap: int) -> Iterator[list[int]]:
    """Cut ids into parts of at most ``size`` that share ``overlap`` with their neighbours."""
    start = 0
    while True:
        yield ids[start : start + size]
        if start + size >= len(ids):
            return
        start += size - overlap
