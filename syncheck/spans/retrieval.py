"""The parts of a user's texts for a question: by BM25, then, with an encoder, by meaning (REFIND, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from huggingface_hub import try_to_load_from_cache

from syncheck.alignment.evidence import split_passages
from syncheck.errors import InputError
from syncheck.labelling.passages import Bm25, Passage
from syncheck.spans.encoders import CheckpointEncoder, SentenceEncoder
from syncheck.spans.words import normalised, words_of

__all__ = ["ChunkRetriever", "DEFAULT_RERANKER", "cached_reranker"]


DEFAULT_RERANKER = "intfloat/multilingual-e5-large"
_RERANKER_PREFIX = "query: "
_RERANKER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

CANDIDATES = 10
KEPT = 5
"""Ten by BM25, five of them by the encoder."""


class ChunkRetriever:
    """Finds sentences of texts for a question.

    Parameters
    ----------
    texts
        Of any length and in any script; cut into sentences, long ones into overlapping pieces of at most 60 words.
        Words are those of :func:`~syncheck.spans.words_of`: Chinese is searched by ideographs.
    encoder
        Orders what BM25 finds; None leaves BM25's order. For multilingual-e5-large, where it is on this machine:
        :func:`cached_reranker`.

    Raises
    ------
    InputError
        If no text has a word.
    MissingExtraError
        If ``bm25s`` is not installed.
    """

    def __init__(self, texts: Sequence[str], *, encoder: SentenceEncoder | None = None) -> None:
        self._pieces = {_spelled(chunk.text): chunk.text for chunk in split_passages(texts)}
        self._index = Bm25([Passage("", spelled) for spelled in self._pieces])
        self._encoder = encoder

    def best(self, question: str, *, count: int = KEPT, candidates: int = CANDIDATES) -> tuple[str, ...]:
        """Return the best pieces, best first; fewer where fewer share a word with the question.

        Parameters
        ----------
        question
        count
            How many are kept.
        candidates
            How many BM25 hands to the encoder, at least ``count``.

        Raises
        ------
        InputError
            If ``count`` is below 1 or above ``candidates``.
        """
        if not 1 <= count <= candidates:
            raise InputError(f"count must be 1 to {candidates}, the number of candidates; found {count}")
        found = [self._pieces[passage.text] for passage in self._index.best(_spelled(question), candidates)]
        if self._encoder is not None and found:
            vectors = self._encoder([question, *found])  # (1 + K, D)
            order = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
            found = [found[i] for i in order]
        return tuple(found[:count])


def cached_reranker(*, device: str = "cpu") -> CheckpointEncoder | None:
    """Return multilingual-e5-large from the local Hugging Face cache, None where it is not there whole.

    Nothing is downloaded and nobody asked for a newer version: what is loaded is the folder in the cache.

    Parameters
    ----------
    device
        Where it runs.

    Raises
    ------
    CheckpointError
        If its files are there and transformers cannot load them.
    """
    found = [try_to_load_from_cache(DEFAULT_RERANKER, name) for name in _RERANKER_FILES]
    if not all(isinstance(file, str) for file in found):  # else None, or that the repository has no such file
        return None
    return CheckpointEncoder(str(Path(str(found[0])).parent), prefix=_RERANKER_PREFIX, device=device)


def _spelled(text: str) -> str:
    """Write every word in hexadecimal: the index takes runs of letters for words, and would cut Hindi at its vowels."""
    return " ".join(normalised(word.text).encode("utf-8", "surrogatepass").hex() for word in words_of(text))
