"""The aligner that reads: a pretrained encoder that reads the passages and a claim together.

The network is :class:`~syncheck.alignment.reader_network.ReaderNetwork`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import Tensor

from syncheck.alignment.evidence import EvidenceIndex, split_to_fit
from syncheck.alignment.protocol import OfNetwork, check_asked
from syncheck.alignment.reader_network import (
    CONTRADICTED,
    NOT_STATED,
    SUPPORTED,
    ReaderNetwork,
    ReadText,
    read_reader,
)
from syncheck.types import Evidence, Support

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from tokenizers import Tokenizer

TEXT_TOKENS, CLAIM_TOKENS = 256, 100
"""Largest number of tokens of passages and claim together, and of a claim."""
RANKED_CHUNKS, CENTRES = 10, 3
"""Number of chunks that are ranked by the words they share with a claim, and of the best whose neighbours follow."""
BATCH_TOKENS, CPU_BATCH_TOKENS = 4096, 1024
"""Number of tokens that are read at once, at most, on a GPU and on the CPU."""


_LOADING = Lock()


class ReaderAligner(OfNetwork):
    """Aligner that reads: whether the passages support a claim, contradict it, or do not state it.

    Parameters
    ----------
    network
        The encoder and its head, in evaluation mode.
    tokenizer
        The tokenizer of the encoder, without truncation and padding.
    name
        The name that a saved monitor asks for when it is loaded.

    Attributes
    ----------
    languages : frozenset of str
        English alone.

    Notes
    -----
    Passages and claim are read as one text, so that each word of one sees the other. If this has more than
    ``TEXT_TOKENS`` tokens, of the passages the chunks closest to the claim are read (:func:`closest_chunks`). A claim
    of more than ``CLAIM_TOKENS`` is cut into parts, and its score is the lowest over these.
    """

    languages = frozenset({"en"})
    _shared: WeakValueDictionary[torch.device, ReaderAligner] = WeakValueDictionary()
    """The packaged reader on each device, as long as somebody uses it."""

    def __init__(self, network: ReaderNetwork, tokenizer: Tokenizer, *, name: str = "reader") -> None:
        self.name = name
        self._model = network
        self._tokenizer = tokenizer
        self._known: WeakKeyDictionary[EvidenceIndex, list[list[int]]] = WeakKeyDictionary()  # ids of its chunks

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> ReaderAligner:
        """Load the packaged reader, which a process holds but once on a device, or one from a folder.

        Parameters
        ----------
        path
            Folder with ``reader.json``, ``adapter.safetensors`` and ``tokenizer.json``; None loads the packaged one.
        device
            Where the network runs.

        Raises
        ------
        CheckpointError
            If the folder is not of this format, or the encoder that it updates is neither in the cache of Hugging
            Face nor installed.
        """
        device = torch.device(device)
        if path is not None:
            return cls._read(path, device, str(path))
        with _LOADING:
            shared = cls._shared.get(device)
            if shared is None:
                shared = cls._shared[device] = cls._read(files("syncheck") / "assets" / "reader", device, "reader")
        return shared

    @classmethod
    def _read(cls, folder: Traversable, device: torch.device, name: str) -> ReaderAligner:
        network, tokenizer = read_reader(folder)
        return cls(network.to(device), tokenizer, name=name)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim as :class:`~syncheck.alignment.protocol.Aligner` describes.

        The evidence is the chunk of the context that shares most with the claim, with the claim's score. Without
        context the score is 0, and there is no evidence.

        Raises
        ------
        WrongTypeError
            If passages or claims are not sequences of strings.
        """
        check_asked(passages, claims)
        return self.align_indexed(EvidenceIndex(passages), claims)

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against passages that are indexed; see :meth:`align`."""
        if not index.chunks or not claims:
            return [Support(0.0, None) for _ in claims]
        parts = [split_to_fit(" ".join(claim.split()), self._is_short) for claim in claims]
        asked = [part for of_claim in parts for part in of_claim]
        found = iter(zip(asked, self._logits(index, asked).log_softmax(dim=-1), strict=True))
        return [_support(index, [next(found) for _ in of_claim]) for of_claim in parts]

    def _logits(self, index: EvidenceIndex, claims: Sequence[str]) -> Tensor:
        """Return the logits (claims, 3), float32 on the CPU."""
        texts = [self._text(index, claim) for claim in claims]
        is_on_cpu = self._model.verdict.weight.device.type == "cpu"
        batches = _batches(texts, CPU_BATCH_TOKENS if is_on_cpu else BATCH_TOKENS)
        return torch.cat([self._model.judge(batch) for batch in batches])

    def _text(self, index: EvidenceIndex, claim: str) -> ReadText:
        """Return what is read: the claim after as much of the context as there is room for."""
        asked = self._ids(claim)
        room = TEXT_TOKENS - len(ReadText.of([], asked).ids)
        if index not in self._known:
            self._known[index] = [self._ids(chunk.text) for chunk in index.chunks]
        known = self._known[index]
        chosen = closest_chunks(index, claim, list(map(len, known)), room)
        return ReadText.of([token for chunk in chosen for token in known[chunk]][:room], asked)

    def _is_short(self, claim: str) -> bool:
        return len(self._ids(claim)) <= CLAIM_TOKENS

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def closest_chunks(index: EvidenceIndex, claim: str, lengths: Sequence[int], room: int) -> list[int]:
    """Return the indices of the chunks that are read with a claim, in the order of the context.

    All of them, if their ``lengths`` together are at most ``room``. Otherwise those that fit, taken in this order: the
    best by the words they share with the claim, the neighbours of the first of these, and the rest from the beginning.
    If none fits, the best one alone.
    """
    if sum(lengths) <= room:
        return list(range(len(lengths)))
    best = index.best(claim, RANKED_CHUNKS)
    beside = [near for chunk in best[:CENTRES] for near in (chunk - 1, chunk + 1) if 0 <= near < len(lengths)]
    chosen: list[int] = []
    for chunk in dict.fromkeys((*best, *beside, *range(len(lengths)))):
        if lengths[chunk] <= room:
            chosen.append(chunk)
            room -= lengths[chunk]
    return sorted(chosen) or best[:1]


def _batches(texts: Sequence[ReadText], room: int) -> Iterator[list[ReadText]]:
    batch: list[ReadText] = []
    for text in texts:
        if batch and sum(len(other.ids) for other in batch) + len(text.ids) > room:
            yield batch
            batch = []
        batch.append(text)
    yield batch


def _support(index: EvidenceIndex, parts: Sequence[tuple[str, Tensor]]) -> Support:
    """Return the lowest support over the parts of a claim, each with its three log-probabilities."""
    claim, lowest = min(parts, key=lambda part: float(part[1][SUPPORTED]))
    score = float(lowest[SUPPORTED].exp())
    others = lowest[[CONTRADICTED, NOT_STATED]].logsumexp(0)
    contradicted = max(float(found[CONTRADICTED].exp()) for _, found in parts)
    (best,) = index.best(claim, 1)
    evidence = Evidence(index.chunks[best].passage, index.quoted(best), score)
    return Support(score, evidence, float(lowest[SUPPORTED] - others), min(contradicted, 1 - score))
