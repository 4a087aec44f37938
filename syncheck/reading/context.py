"""Context: the passages of a query and their wording, read once for every sentence of every answer to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import RLock
from typing import TypeVar

from syncheck.reading.evidence import Chunk, EvidenceIndex
from syncheck.results.types import Query
from syncheck.text.languages import readable
from syncheck.text.sentences import SentenceCutter
from syncheck.text.words import NUMBER_WORDS, ContextLexicon, content_words, stem, words

BEST_CHUNKS = 4
"""Number of chunks that are compared with a sentence; the bundled aligner reads as many."""
PIECE = 5
"""Number of characters of a piece: enough to distinguish words, few enough to ignore their endings."""


@dataclass(frozen=True, slots=True)
class ContextChunks:
    """Chunks of a context, the stems of each (function words included), and the chunks in which each stem occurs."""

    texts: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    held_in: Mapping[str, tuple[int, ...]]
    _words: Sequence[Sequence[str]] = field(repr=False)
    _wordings: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(default_factory=dict, repr=False)
    _near: dict[str, frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> ContextChunks:
        """Read the chunks, of which there may be none."""
        read = [words(text) for text in texts]
        stems = tuple(frozenset(stem(digits(word)) for word in found) for found in read)
        held_in: dict[str, list[int]] = defaultdict(list)
        for number, chunk in enumerate(stems):
            for known in chunk:
                held_in[known].append(number)
        return cls(tuple(texts), stems, {known: tuple(found) for known, found in held_in.items()}, read)

    def wording(self, number: int) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Look up the pieces and the pairs of neighbouring words of a chunk, which are read at first use."""
        if number not in self._wordings:
            self._wordings[number] = pieces(self.texts[number]), bigrams(self._words[number])
        return self._wordings[number]

    def near(self, known: str) -> frozenset[int]:
        """Find the chunks that have a stem and their neighbours, from -1 up to the number of chunks."""
        if known not in self._near:
            found = self.held_in.get(known, ())
            self._near[known] = frozenset(n for place in found for n in (place - 1, place, place + 1))
        return self._near[known]


def digits(word: str) -> str:
    """Convert a number in words to digits, and leave any other word as it is."""
    return NUMBER_WORDS.get(word, word)


def pieces(text: str) -> frozenset[str]:
    """Cut a text into its distinct pieces of :data:`PIECE` characters, in lower case, with spaces for punctuation."""
    padded = " ".join(["", *re.findall(r"\w+", text.lower()), ""])
    return frozenset(padded[start : start + PIECE] for start in range(len(padded) - PIECE + 1))


def bigrams(read: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Collect the pairs of neighbouring words."""
    return frozenset(pairwise(read))


_View = TypeVar("_View")


class Context:
    """The passages of a query as others need them; each view is made when first asked for, and freed with the context.

    Parameters
    ----------
    query
        The question and its passages.
    languages
        Languages that the passages are read in (ISO 639-1); passages in others are left out. None reads all.
    abbreviations
        Words whose full stop ends no sentence of the passages; see :attr:`syncheck.SegmenterConfig.abbreviations`.

    Attributes
    ----------
    query : Query
    passages : tuple of str
        The passages that are read, with "" for those in none of the languages; all, if none is in one of them.
    language : str or None
        The language of the passages, if none of them is in one of the languages.
    """

    def __init__(
        self, query: Query, *, languages: Collection[str] | None = None, abbreviations: Sequence[str] = ()
    ) -> None:
        self.query = query
        self.passages, self.language = readable(query.passages, languages)
        self._abbreviations = abbreviations
        self._views: dict[Hashable, object] = {}
        self._making = RLock()

    @cached_property
    def index(self) -> EvidenceIndex:
        """The chunks of the passages, indexed by word."""
        return EvidenceIndex(self.passages, cut=SentenceCutter(self._abbreviations).texts)

    @property
    def chunks(self) -> list[Chunk]:
        """The sentences of the passages."""
        return self.index.chunks

    @property
    def lexicon(self) -> ContextLexicon | None:
        """The words of the passages; None without passages."""
        return self.index.lexicon if self.query.has_context else None

    @cached_property
    def wordings(self) -> ContextChunks | None:
        """Stems, pieces and word pairs of the chunks; None without passages."""
        return ContextChunks.from_texts([chunk.text for chunk in self.chunks]) if self.query.has_context else None

    @cached_property
    def question_words(self) -> frozenset[str]:
        """Content words of the question."""
        return frozenset(content_words(self.query.question))

    def view(self, key: Hashable, make: Callable[[], _View]) -> _View:
        """Look up the view that a reader of the passages keeps here under its key, made at the first call."""
        with self._making:
            if key not in self._views:
                self._views[key] = make()
            return self._views[key]  # type: ignore[return-value]
