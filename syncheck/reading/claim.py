"""Claim: a sentence of an answer as it is checked, with what comes before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan

from syncheck.reading.context import Context
from syncheck.reading.structure import in_structure
from syncheck.results.types import Remark, SentenceSignals, SentenceSpan, Status
from syncheck.text.citations import Mark, without_marks
from syncheck.text.claimless import (
    is_bare_answer,
    is_conversation,
    is_degenerate,
    is_label,
    is_question,
    is_reference,
    repeats_sentence,
)
from syncheck.text.sentences import is_checkable
from syncheck.text.statements import says_not_stated, statement
from syncheck.text.words import content_words, has_letter, stem


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer."""

    text: str
    """The sentence without the white space around it."""
    span: SentenceSpan
    """Its characters in the answer, and its tokens if a language model's tokenizer has read it."""
    signals: SentenceSignals | None = None
    """What was measured of its tokens; None for text alone."""
    reading: str | None = None
    """What is read in place of the text of a row or a value, with its column or path; "" if it has nothing to read, as
    a header. None for prose, which is read as it is."""

    marks: tuple[Mark, ...] = ()
    """Its citation marks, which are no part of what is read."""

    @classmethod
    def measured(cls, signals: SentenceSignals) -> Claim:
        """Take a sentence with the signals of its tokens."""
        return cls(signals.text, signals.span, signals)

    repeats: bool = False
    """True if it repeats a word, or sentences before it, as text of a model that loops does."""

    def after(self, earlier: Sequence[str]) -> Claim:
        """Read it after the sentences before it: as part of a table or of JSON, or as a repetition."""
        repeats = is_degenerate(self.text) or repeats_sentence(self.text, earlier)
        return replace(self, reading=in_structure(self.prose, earlier), repeats=repeats)

    @property
    def prose(self) -> str:
        """The sentence without its citation marks."""
        return without_marks(self.text, self.marks) if self.marks else self.text

    @property
    def read(self) -> str:
        """What is read of it; see :attr:`reading`."""
        return self.reading or self.prose

    @property
    def statement(self) -> str:
        """The sentence without list numbers, citation marks and phrases such as "According to passage 2,"."""
        return statement(self.read)

    @property
    def is_checkable(self) -> bool:
        """True if it has a letter or digit of any script."""
        return is_checkable(self.text)

    @property
    def is_tokenless(self) -> bool:
        """True if it lies within a token of another sentence, so that nothing could be measured."""
        return self.signals is not None and not len(self.signals.token_ids)

    def remarks(self, context: Context) -> tuple[Remark, ...]:
        """Remark on the sentence beside passages: it calls something not stated, or no passage has its words."""
        if context.lexicon is None or not self.is_checkable:
            return ()
        if says_not_stated(self.prose):
            return ("says_not_stated",)
        stems = {stem(word) for word in content_words(self.statement)}
        return ("no_passage_touches",) if stems and stems.isdisjoint(context.lexicon.stems) else ()

    @property
    def without_claim(self) -> tuple[Status, str] | None:
        """Status and reason if it claims nothing, as far as its text alone tells; else None."""
        if self.repeats:
            return "degenerate", "it repeats a word or a sentence, as a model does that loops"
        if self.reading == "":
            return "not_a_claim", "a header, a key or a mark of code, which claims nothing"
        if is_bare_answer(self.prose) and not is_conversation(self.prose):
            return "not_checkable", "a bare yes or no, which says nothing without its question"
        if self.reading is not None:
            return None
        if is_reference(self.text) or (self.marks and (self.prose == self.text or is_reference(self.prose))):
            return "not_a_claim", "a reference to passages, which claims nothing"
        if is_question(self.prose):
            return "not_a_claim", "a question, which claims nothing"
        if is_conversation(self.prose):
            return "not_a_claim", "a phrase of conversation, which claims nothing"
        if is_label(self.prose):
            return "not_a_claim", "a heading or label, which claims nothing"
        return None


@dataclass(frozen=True, slots=True)
class EarlierSentences:
    """Earlier sentences of an answer that have a letter: their supports, and the text of the last one.

    A support is NaN if the aligner was not called.
    """

    supports: tuple[float, ...] = ()
    last: str = ""

    @classmethod
    def of(cls, sentences: Iterable[tuple[str, float | None]]) -> EarlierSentences:
        """Collect sentences with their supports; None means not measured."""
        kept = [(text, nan if support is None else support) for text, support in sentences if has_letter(text)]
        return cls(tuple(support for _, support in kept), kept[-1][0] if kept else "")

    def followed_by(self, text: str, support: float | None) -> EarlierSentences:
        """Append one more sentence to a copy of these; a ``support`` of None means not measured."""
        if not has_letter(text):
            return self
        return EarlierSentences((*self.supports, nan if support is None else support), text)
