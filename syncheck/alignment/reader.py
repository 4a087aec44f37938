"""The aligner that reads: a pretrained encoder that reads the passages once, and after them each claim.

The network is :class:`~syncheck.alignment.reader_network.ReaderNetwork`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from syncheck.alignment.evidence import Chunk, EvidenceIndex, split_to_fit
from syncheck.alignment.protocol import OfNetwork, check_asked
from syncheck.alignment.reader_network import (
    BEGIN,
    CONTRADICTED,
    END,
    NOT_STATED,
    SUPPORTED,
    Premise,
    ReaderNetwork,
    Stretch,
    read_reader,
)
from syncheck.types import Evidence, Support

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PREMISE_TOKENS, CLAIM_TOKENS = 390, 100
"""Largest number of tokens of passages and of a claim that are read at once; longer ones are cut into parts."""
BATCH_TOKENS = 512
"""Number of tokens of claims that are read at once, at most, unless one claim has more."""
KEPT_PROMPTS = 8
"""Number of prompts for which what was read is kept: 0.07 MB a token."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive chunks that are read together."""

    chunks: tuple[Chunk, ...]
    premise: Premise


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
    The passages are read once, and each claim after them; claims do not see each other. What was read of a prompt is
    kept with its index (:class:`~syncheck.alignment.protocol.IndexedAligner`), for the last ``KEPT_PROMPTS`` prompts,
    so a claim costs only its own tokens. A context of more than ``PREMISE_TOKENS`` tokens is cut between sentences, and
    the score is the highest over its parts. A claim of more than ``CLAIM_TOKENS`` is cut too, and its score is the
    lowest over its parts.
    """

    languages = frozenset({"en"})

    def __init__(self, network: ReaderNetwork, tokenizer: Tokenizer, *, name: str = "reader") -> None:
        self.name = name
        self._model = network
        self._tokenizer = tokenizer
        self._read: WeakKeyDictionary[EvidenceIndex, list[_Part]] = WeakKeyDictionary()

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> ReaderAligner:
        """Load the packaged reader, or one from a folder.

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
        folder = files("syncheck") / "assets" / "reader" if path is None else path
        network, tokenizer = read_reader(folder)
        return cls(network.to(device), tokenizer, name="reader" if path is None else str(path))

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim as :class:`~syncheck.alignment.protocol.Aligner` describes.

        The evidence is the sentence that shares most with the claim in the part of the context that decided. Without
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
        read = self._parts(index)
        parts = [split_to_fit(" ".join(claim.split()), self._is_short) for claim in claims]
        asked = [part for of_claim in parts for part in of_claim]
        logits = self._logits([part.premise for part in read], asked)
        found = iter(zip(asked, logits.log_softmax(dim=-1), strict=True))
        return [_support(index, read, [next(found) for _ in of_claim]) for of_claim in parts]

    def _parts(self, index: EvidenceIndex) -> list[_Part]:
        """Read the passages, or return what was read of them; that of the oldest prompts is forgotten."""
        found = self._read.get(index)
        if found is None:
            found = self._read[index] = [
                _Part(chunks, self._model.read([BEGIN, *self._ids(text), END])) for text, chunks in self._texts(index)
            ]
            for old in list(self._read)[:-KEPT_PROMPTS]:
                self._read.pop(old, None)
        return found

    def _texts(self, index: EvidenceIndex) -> Iterator[tuple[str, tuple[Chunk, ...]]]:
        """Yield the whole context if it fits, otherwise consecutive chunks that do, with their text."""
        whole = "\n".join(index.passages)
        if len(self._ids(whole)) <= PREMISE_TOKENS:
            yield whole, tuple(index.chunks)
            return
        taken: list[tuple[str, Chunk]] = []
        for chunk in index.chunks:
            for text in split_to_fit(chunk.text, lambda text: len(self._ids(text)) <= PREMISE_TOKENS):
                if taken and len(self._ids(_joined([*taken, (text, chunk)]))) > PREMISE_TOKENS:
                    yield _joined(taken), tuple(chunk for _, chunk in taken)
                    taken = []
                taken.append((text, chunk))
        yield _joined(taken), tuple(chunk for _, chunk in taken)

    def _logits(self, premises: Sequence[Premise], claims: Sequence[str]) -> Tensor:
        """Return the logits of each claim after each premise, (claims, premises, 3) float32 on the CPU."""
        rows = [[END, *self._ids(claim), END] for claim in claims]
        stretches = [Stretch(row, premise) for row in rows for premise in premises]
        logits = torch.cat([self._model.judge(batch) for batch in _batches(stretches)])
        return logits.view(len(claims), len(premises), -1)

    def _is_short(self, claim: str) -> bool:
        return len(self._ids(claim)) <= CLAIM_TOKENS

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _joined(taken: Sequence[tuple[str, Chunk]]) -> str:
    return "\n".join(text for text, _ in taken)


def _batches(stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
    batch: list[Stretch] = []
    for stretch in stretches:
        if batch and sum(len(other.ids) for other in batch) + len(stretch.ids) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(stretch)
    yield batch


def _support(index: EvidenceIndex, read: Sequence[_Part], claims: Sequence[tuple[str, Tensor]]) -> Support:
    """Return the lowest support over the parts of a claim, log-probabilities (parts of the context, 3) each."""
    claim, found = min(claims, key=lambda item: float(item[1][:, SUPPORTED].max()))
    deciding = int(found[:, SUPPORTED].argmax())
    score = float(found[deciding, SUPPORTED].exp())
    others = found[deciding, [CONTRADICTED, NOT_STATED]].logsumexp(0)
    contradicted = min(float(found[:, CONTRADICTED].exp().max()), 1 - score)
    chunks = read[deciding].chunks
    (best,) = EvidenceIndex.of_chunks(chunks).best(claim, 1)
    evidence = Evidence(chunks[best].passage, index.quoted(index.chunks.index(chunks[best])), score)
    return Support(score, evidence, float(found[deciding, SUPPORTED] - others), contradicted)
