"""Context: the passages of a query, read once for every sentence of every answer to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cached_property
from threading import RLock
from typing import TypeVar

from syncheck.reading.evidence import Chunk, EvidenceIndex
from syncheck.reading.wording import ContextChunks
from syncheck.results.types import Query
from syncheck.text.languages import readable
from syncheck.text.sentences import SentenceCutter
from syncheck.text.words import ContextLexicon, content_words

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
        """Return the view that a reader of the passages keeps here under its key, made at the first call."""
        with self._making:
            if key not in self._views:
                self._views[key] = make()
            return self._views[key]  # type: ignore[return-value]
