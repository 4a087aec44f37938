"""The aligner that ships with the package: small, fast on a CPU, and modest (see its model card)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from syncheck.alignment.cross_encoder import UNKNOWN, EncodedPair, encode_pair
from syncheck.alignment.evidence import EvidenceIndex
from syncheck.alignment.int8_encoder import Int8CrossEncoder
from syncheck.alignment.packed import read_packed
from syncheck.alignment.protocol import check_asked
from syncheck.lexical import ContextLexicon, novel_pairs
from syncheck.pretrained import weights_sha256
from syncheck.types import Evidence, Support

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["BundledAligner"]

MAX_CHUNKS = 4
MAX_EVIDENCE_TOKENS = 144
MAX_CLAIM_TOKENS = 96
"""Sizes of the pairs that the network was trained on."""
CLAIM_OVERLAP_TOKENS = 16
BATCH_TOKENS, CPU_BATCH_TOKENS = 4096, 768
"""Tokens scored at once; what a processor holds of more leaves its cache."""


@dataclass(frozen=True, slots=True)
class _Window:
    """One forward row: which claim, which part of it, the chunk that came first, and the encoded pair.

    ``offset`` is added to the scaled logit.
    """

    claim: int
    part: int
    chunk: int
    pair: EncodedPair
    offset: float


class BundledAligner:
    """Scores a claim against the few sentences of the context that share most of its words.

    Parameters
    ----------
    model
        On ``device``.
    tokenizer
        Without truncation and padding.
    scale, coverage, novel_pairs, shift
        P(supported) = sigmoid(scale * logit + coverage * c + novel_pairs * q + shift), c the share of the claim's
        content words that the whole context holds, for the network sees only the chosen chunks, and q
        :func:`~syncheck.lexical.novel_pairs`: what is put together in the claim and nowhere in the context.
    device
        Where the model is.
    name
        Stored with a monitor: ``"bundled"``, or the folder it was loaded from.

    Notes
    -----
    Up to four chunks of the context are chosen for each claim. They are packed in windows of 144 tokens,
    usually one; a chunk that is longer than a window fills several. A claim of more than 96 tokens is cut in
    overlapping parts. The score is the lowest over the parts of the claim, each of which needs support, of
    the highest over the windows. Nothing is dropped.
    """

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
        self._known: tuple[EvidenceIndex | None, dict[int, list[int]]] = (None, {})

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> BundledAligner:
        """Load the packaged aligner, or one of the same format.

        Parameters
        ----------
        path
            A folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``; None for the packaged.
        device
            Where to run it.

        Raises
        ------
        CheckpointError
            The folder is incomplete, damaged or of another format.
        """
        folder = files("syncheck") / "assets" / "aligner" if path is None else path
        packed = read_packed(folder)
        model = Int8CrossEncoder(packed.config, packed.arrays).to(device)
        name = "bundled" if path is None else str(path)
        return cls(model, packed.tokenizer, device=device, name=name, **packed.calibration)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages; see :class:`~syncheck.alignment.protocol.Aligner`.

        A context without text supports nothing: score 0 and no evidence. The evidence is the chunk that
        shares most with the claim in the window that decided, with the claim's score.

        Raises
        ------
        InputError
            A claim is blank.
        """
        check_asked(passages, claims)
        index = _index(tuple(passages))
        if not index.chunks:
            return [Support(0.0, None) for _ in claims]
        lexicon = _lexicon(tuple(passages))
        offsets = [self._offset(index, lexicon, claim) for claim in claims]
        windows = [
            w for number, claim in enumerate(claims) for w in self._windows(index, number, claim, offsets[number])
        ]
        probabilities = self._probabilities(windows)
        best: list[dict[int, tuple[float, int]]] = [{} for _ in claims]
        for window, probability in zip(windows, probabilities, strict=True):
            parts = best[window.claim]
            if window.part not in parts or probability > parts[window.part][0]:
                parts[window.part] = (probability, window.chunk)
        return [self._support(index, parts) for parts in best]

    def weights_sha256(self) -> str | None:
        """Return what tells the weights from others; see :class:`~syncheck.alignment.protocol.KnowsWeights`."""
        return weights_sha256(self._model)

    def _support(self, index: EvidenceIndex, parts: dict[int, tuple[float, int]]) -> Support:
        score, chunk = min(parts.values())
        return Support(score, Evidence(index.chunks[chunk].passage, index.chunks[chunk].text, score))

    def _offset(self, index: EvidenceIndex, lexicon: ContextLexicon, claim: str) -> float:
        """Return what plain wording adds to the scaled logit."""
        return self._coverage * index.coverage(claim) + self._novel_pairs * novel_pairs(claim, lexicon) + self._shift

    def _windows(self, index: EvidenceIndex, number: int, claim: str, offset: float) -> Iterator[_Window]:
        ranked = index.best(claim, MAX_CHUNKS)
        packed = list(self._pack({chunk: self._chunk_ids(index, chunk) for chunk in ranked}))
        claim_ids = self._ids(claim) or [UNKNOWN]
        for part, ids in enumerate(_parts(claim_ids, MAX_CLAIM_TOKENS, CLAIM_OVERLAP_TOKENS)):
            for first, evidence in packed:
                yield _Window(number, part, first, encode_pair(evidence, ids), offset)

    def _pack(self, ranked: dict[int, list[int]]) -> Iterator[tuple[int, list[int]]]:
        """Fill windows with chunks, the best first; yield the best chunk of each and its ids in text order."""
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
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _chunk_ids(self, index: EvidenceIndex, chunk: int) -> list[int]:
        """Return the ids of a chunk, kept until another context is asked about: claims share their evidence."""
        known = self._known
        if known[0] is not index:
            known = self._known = (index, {})
        if chunk not in known[1]:
            known[1][chunk] = self._ids(index.chunks[chunk].text)
        return known[1][chunk]

    def _probabilities(self, windows: Sequence[_Window]) -> list[float]:
        """Score windows, some at once; none depends on what else is in its batch."""
        scores: list[float] = []
        for batch in _batches(windows, CPU_BATCH_TOKENS if self._device.type == "cpu" else BATCH_TOKENS):
            offsets = torch.tensor([window.offset for window in batch], device=self._device)
            logits = self._model([window.pair for window in batch])  # (B,)
            scores += torch.sigmoid(self._scale * logits + offsets).tolist()
        return scores


def _batches(windows: Sequence[_Window], tokens: int) -> Iterator[list[_Window]]:
    batch: list[_Window] = []
    for window in windows:
        if batch and sum(len(w.pair) for w in batch) + len(window.pair) > tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


@lru_cache(maxsize=4)
def _index(passages: tuple[str, ...]) -> EvidenceIndex:
    """Keep the last indices: live monitoring asks about one context sentence by sentence."""
    return EvidenceIndex(passages)


@lru_cache(maxsize=4)
def _lexicon(passages: tuple[str, ...]) -> ContextLexicon:
    return ContextLexicon.from_passages(passages)


def _parts(ids: list[int], size: int, overlap: int) -> Iterator[list[int]]:
    """Cut ids into parts of at most ``size`` that share ``overlap`` with their neighbours."""
    start = 0
    while True:
        yield ids[start : start + size]
        if start + size >= len(ids):
            return
        start += size - overlap
