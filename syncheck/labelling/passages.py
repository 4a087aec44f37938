"""Passages of a corpus, and their ranking by BM25."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from syncheck.base.errors import InputError, MissingExtraError
from syncheck.base.records import read_records

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a corpus, with the title of its page."""

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text


def load_passages(path: str | Path) -> list[Passage]:
    """Read passages from JSON Lines with ``text`` and, optionally, the ``title`` of the page.

    A file without passages raises InputError, and a record that cannot be used raises RecordError.
    """
    passages = []
    for record in read_records(Path(path)):
        text = record.get("text", str)
        if not text.strip():
            raise record.error("expected a passage, found nothing but white space", "text")
        passages.append(Passage(record.optional("title", str) or "", text))
    if not passages:
        raise InputError(f"{path} has no passage")
    return passages


def words_of(text: str) -> list[str]:
    """List the runs of letters and digits in a text, in lower case."""
    return _WORD.findall(text.casefold())


class Bm25:
    """Ranking of passages for a query by BM25, with the package ``bm25s``.

    The form is Lucene's with k1 = 1.5 and b = 0.75, the defaults of ``bm25s``; the paper names neither. Title and text
    are searched together. No word is ignored, since "X" and "I" can belong to names.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        words = [words_of(str(passage)) for passage in passages]
        if not any(words):
            raise InputError("expected passages to search in; found none with a word")
        self._passages = tuple(passages)
        with MissingExtraError.unless("bm25s", "retrieval"):
            from bm25s import BM25
        self._index = BM25(method="lucene", k1=1.5, b=0.75)
        self._index.index(words, show_progress=False)

    def best(self, query: str, count: int) -> tuple[Passage, ...]:
        """Find up to ``count`` passages that share a word with a query, best first, the earlier of equals first."""
        if count < 1:
            raise InputError(f"count must be 1 or more; found {count}")
        words = words_of(query)
        if not words:
            return ()
        scores = np.asarray(self._index.get_scores(words))  # (N,)
        order = np.argsort(-scores, kind="stable")[:count]
        return tuple(self._passages[i] for i in order if scores[i] > 0)
