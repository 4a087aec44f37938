"""Texts as vectors of length 1, so that their product is the cosine: by letters alone, or by any encoder checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from syncheck.errors import InputError
from syncheck.pretrained import load_pretrained

__all__ = ["CheckpointEncoder", "LetterEncoder", "SentenceEncoder"]


Floats = NDArray[np.float64]

_BATCH = 16
_COLUMNS = 2**15


class SentenceEncoder(Protocol):
    """Turns N texts into vectors (N, D) of length 1; a text without anything to encode may be 0."""

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors, (N, D) float64."""
        ...


class LetterEncoder:
    """Counts of letter trigrams within words, hashed; needs no checkpoint and no training.

    It sees spelling and no meaning, so that similarities run lower than those of an encoder.
    """

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors, (N, 32768) float64."""
        from sklearn.feature_extraction.text import HashingVectorizer

        counted = HashingVectorizer(
            analyzer="char_wb", ngram_range=(3, 3), n_features=_COLUMNS, alternate_sign=False, norm="l2"
        )
        return np.asarray(counted.transform(list(texts)).toarray(), dtype=np.float64)


class CheckpointEncoder:
    """Any Hugging Face encoder, the mean of its last states; multilingual-e5-large for one.

    Parameters
    ----------
    name
        Folder or id of the checkpoint.
    prefix
        Put before each text: E5 models want ``"query: "``.
    device
        Where it runs.

    Raises
    ------
    CheckpointError
        If transformers cannot load it.
    """

    def __init__(self, name: str, *, prefix: str = "", device: str = "cpu") -> None:
        self._tokenizer: Any = load_pretrained(AutoTokenizer, name, what="a tokenizer")
        self._model = load_pretrained(AutoModel, name, what="an encoder").to(device).eval()
        self._prefix = prefix

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors, (N, H) float64.

        Raises
        ------
        InputError
            If a text does not fit the encoder's window: nothing is cut off.
        """
        parts = [self._encoded(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self._model.config.hidden_size))

    def _encoded(self, texts: Sequence[str]) -> Floats:
        given = self._tokenizer([self._prefix + t for t in texts], padding=True, return_tensors="pt", verbose=False)
        tokens, window = given["input_ids"].shape[1], self._tokenizer.model_max_length
        if tokens > window:
            raise InputError(f"a text takes {tokens} tokens, but the encoder's window is {window}; cut it in sentences")
        given = given.to(self._model.device)
        states = self._model(**given).last_hidden_state  # (N, T, H)
        mask = given["attention_mask"][:, :, None]
        means = (states * mask).sum(1) / mask.sum(1)  # (N, H)
        return np.asarray(torch.nn.functional.normalize(means.double(), dim=-1).cpu())
