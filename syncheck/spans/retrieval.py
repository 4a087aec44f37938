"""Retrieval of sentences for a question from given texts: by BM25, then by a sentence encoder (REFIND, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from syncheck.base.errors import InputError, MissingExtraError
from syncheck.base.model_files import cached_file
from syncheck.base.pretrained import load_pretrained
from syncheck.base.records import read_records
from syncheck.reading.evidence import split_passages
from syncheck.results.types import Floats
from syncheck.spans.words import normalised, words_of


def load_passages(path: str | Path) -> list[str]:
    """Read passages from JSON Lines with ``text`` and, optionally, the ``title`` of the page, which is put before it.

    A file without passages raises InputError, and a record that cannot be used raises RecordError.
    """
    passages = []
    for record in read_records(Path(path)):
        title, text = record.optional("title", str), record.get("text", str)
        if not text.strip():
            raise record.error("expected a passage, found nothing but white space", "text")
        passages.append(f"{title}\n{text}" if title else text)
    if not passages:
        raise InputError(f"{path} has no passage")
    return passages


class SentenceEncoder(Protocol):
    """Protocol of an encoder of texts as vectors of length 1, so that their product is the cosine.

    A text with nothing to encode may have the vector 0.
    """

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Embed N texts as vectors (N, D) float64."""


class LetterEncoder:
    """Encoder by hashed counts of letter trigrams within words, which needs no checkpoint.

    It compares spelling and not meaning; similarities are lower than those of a trained encoder.
    """

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Embed N texts as vectors (N, 32768) float64."""
        from sklearn.feature_extraction.text import HashingVectorizer

        counted = HashingVectorizer(
            analyzer="char_wb", ngram_range=(3, 3), n_features=2**15, alternate_sign=False, norm="l2"
        )
        return np.asarray(counted.transform(list(texts)).toarray(), dtype=np.float64)


_BATCH = 16


class CheckpointEncoder:
    """Encoder by the mean of the last hidden states of a Hugging Face encoder, such as multilingual-e5-large.

    The ``prefix`` is put before each text: E5 models need ``"query: "``.
    """

    def __init__(self, name: str, *, prefix: str = "", device: str = "cpu") -> None:
        self._tokenizer: Any = load_pretrained(AutoTokenizer, name, what="a tokenizer")
        self._model = load_pretrained(AutoModel, name, what="an encoder").to(device).eval()
        self._prefix = prefix

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Floats:
        """Embed N texts as vectors (N, H) float64."""
        parts = [self._encoded(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self._model.config.hidden_size))

    def _encoded(self, texts: Sequence[str]) -> Floats:
        given = self._tokenizer([self._prefix + t for t in texts], padding=True, return_tensors="pt", verbose=False)
        tokens, window = given["input_ids"].shape[1], self._tokenizer.model_max_length
        if tokens > window:
            raise InputError(f"a text takes {tokens} tokens, but the encoder's window is {window}; split it")
        given = given.to(self._model.device)
        states = self._model(**given).last_hidden_state  # (N, T, H)
        mask = given["attention_mask"][:, :, None]
        means = (states * mask).sum(1) / mask.sum(1)  # (N, H)
        return np.asarray(torch.nn.functional.normalize(means.double(), dim=-1).cpu())


CANDIDATES = 10
KEPT = 5
"""Number of texts that are kept: REFIND retrieves ten by BM25, of which the encoder keeps five."""


class ChunkRetriever:
    """Retriever of sentences for a question.

    The texts, of any length and in any script, are cut into sentences, and long ones into overlapping pieces of at most
    60 words. Words are those of :func:`~syncheck.spans.words_of`, so that Chinese is searched by ideographs. The
    encoder, such as that of :func:`cached_reranker`, orders the results of BM25; None keeps their order. Texts without
    a word raise InputError; without ``bm25s``, MissingExtraError is raised. BM25 is Lucene's with the
    defaults of ``bm25s`` (k1 = 1.5, b = 0.75), since the paper names neither.
    """

    def __init__(self, texts: Sequence[str], *, encoder: SentenceEncoder | None = None) -> None:
        pieces = {_spelled(chunk.text): chunk.text for chunk in split_passages(texts)}
        if not any(pieces):
            raise InputError("expected passages to search in; found none with a word")
        with MissingExtraError.unless("bm25s", "retrieval"):
            from bm25s import BM25
        self._pieces = tuple(pieces.values())
        self._index = BM25(method="lucene", k1=1.5, b=0.75)
        self._index.index([list(spelled) for spelled in pieces], show_progress=False)
        self._encoder = encoder

    def best(self, question: str, *, count: int = KEPT) -> tuple[str, ...]:
        """Find the best ``count`` pieces, best first; fewer if fewer share a word with the question.

        The encoder orders the first ten results of BM25; a count that is not from 1 to 10 raises InputError.
        """
        if not 1 <= count <= CANDIDATES:
            raise InputError(f"count must be 1 to {CANDIDATES}, the number of candidates; found {count}")
        pieces = self._ranked(question)
        if self._encoder is not None and pieces:
            vectors = self._encoder([question, *pieces])  # (1 + K, D)
            pieces = [pieces[i] for i in np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")]
        return tuple(pieces[:count])

    def _ranked(self, question: str) -> list[str]:
        """Rank the pieces that share a word with a question, best first, the earlier of equals first."""
        words = _spelled(question)
        if not words:
            return []
        scores = np.asarray(self._index.get_scores(list(words)))  # (N,)
        order = np.argsort(-scores, kind="stable")[:CANDIDATES]
        return [self._pieces[i] for i in order if scores[i] > 0]


def _spelled(text: str) -> tuple[str, ...]:
    """List the words of a text as they are compared."""
    return tuple(normalised(word.text) for word in words_of(text))


DEFAULT_RERANKER = "intfloat/multilingual-e5-large"
_RERANKER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def cached_reranker(*, device: str = "cpu") -> CheckpointEncoder | None:
    """Load multilingual-e5-large from the local Hugging Face cache; None if it is missing or incomplete.

    Nothing is downloaded, and no server is queried for a newer version.
    """
    paths = [cached_file(DEFAULT_RERANKER, name) for name in _RERANKER_FILES]
    if paths[0] is None or None in paths:
        return None
    return CheckpointEncoder(str(paths[0].parent), prefix="query: ", device=device)
