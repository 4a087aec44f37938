"""Configuration of sentences: the rules by which text is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError

LineBreaks = Literal["none", "paragraphs", "lists", "lines"]

MAX_SENTENCE_TOKENS = 256
"""A sentence that has not ended by then is cut there and marked ``truncated``."""
MAX_SENTENCE_CHARACTERS = 1024
"""The same in characters, for text that no tokenizer has read: about four to a token."""


@dataclass(frozen=True, slots=True)
class SegmenterConfig:
    """Segmentation of text into sentences; the defaults are those of NLTK's untrained Punkt, as in the paper.

    A monitor keeps the config it was trained with, so that it segments new text in the same way.

    Raises
    ------
    InputError
        If a value is outside the range described here.
    """

    max_tokens: int = MAX_SENTENCE_TOKENS
    """Longest sentence (or sentences taken as one) in tokens, at least 1; longer ones are cut there and marked
    ``truncated``."""
    max_characters: int = MAX_SENTENCE_CHARACTERS
    """The same in characters, where text alone is read."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop ends no sentence, with the stop (``"Dr."``), in any case; with a ``#`` (``"No.#"``), only
    before a number; with a ``~`` (``"p.m.~"``), only before a small letter. Untrained Punkt knows none;
    :data:`syncheck.text.sentences.ENGLISH_ABBREVIATIONS` has English ones. A sentence that ends in an abbreviation is
    joined with the next."""
    line_breaks: LineBreaks = "none"
    """Line breaks that end a sentence. ``none``: none, as in Punkt. ``paragraphs``: those before a blank line.
    ``lists``: also those around a heading (``#``), a row of a table and a line ``Key: value``, and before an item
    (``-``, ``*``, ``1.``, ``1)``, ``(a)`` and the like), whose mark then stays with its text; a value of JSON is a
    sentence too. Citation marks after a full stop ("[1]", links) then stay with
    the sentence before them. ``lines``: every line break."""
    cjk_stops: bool = False
    """True ends a sentence after a Chinese or Japanese full stop, and the closing quotes and brackets that follow it,
    with or without white space."""
    clauses: bool = False
    """True also ends a sentence at commas, semicolons and colons before white space (full-width ones anywhere)."""
    sentences: int = 1
    """Number of sentences (or clauses, with that option) that are taken together as one, at least 1."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_characters", "sentences"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1; found {value!r}")
        for name in ("cjk_stops", "clauses"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} must be True or False; found {getattr(self, name)!r}")
        check_choice(self.line_breaks, "line_breaks", LineBreaks)
        if not isinstance(self.abbreviations, tuple):
            raise InputError(f"abbreviations must be a tuple of strings; found {self.abbreviations!r}")
        for entry in self.abbreviations:
            if not isinstance(entry, str) or entry.split() != [entry] or not any(map(str.isalpha, entry)):
                raise InputError(
                    f"each entry of abbreviations must be a word with a letter, such as 'Dr.'; found {entry!r}"
                )
