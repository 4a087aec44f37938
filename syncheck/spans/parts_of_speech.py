"""Parts of speech as a word source, by a tagger that the user has: NLTK's, spaCy's, or any callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import CheckpointError, InputError, MissingExtraError, NotReadyError
from syncheck.spans.items import SpanItem
from syncheck.spans.words import Word

__all__ = ["TagSource", "Tagger", "UNIVERSAL_TAGS", "nltk_tags", "spacy_tagger"]


UNIVERSAL_TAGS = (
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "SYM",
    "VERB",
    "X",
)
"""Those of Universal Dependencies, version 2."""

_OLDER = {"CONJ": "CCONJ", "PRT": "PART", ".": "PUNCT"}
"""The three of the universal tag set of 2012 that have another name there."""

_NLTK = {"en": "eng", "ru": "rus"}
"""Languages that NLTK has a tagger for, by the code of an item."""

Tagger = Callable[[Sequence[str], str], Sequence[str] | None]
"""Takes the words of a response and its language (two letters, lower case); gives one universal tag a word, or None
where it does not know the language."""


@dataclass(frozen=True, slots=True)
class TagSource:
    """One column for each universal tag: 1 in that of the word, 0 in all others; see ``WordSource``.

    Parameters
    ----------
    tagger
        Tags of 2012, as NLTK's, are read too.
    identity
        What tells the tagger from another, as JSON can hold it; saved with the regression.
    name
    """

    tagger: Tagger
    identity: Mapping[str, Any]
    name: str = "tags"

    @property
    def columns(self) -> tuple[str, ...]:
        """``<name>_adj`` to ``<name>_x``."""
        return tuple(f"{self.name}_{tag.lower()}" for tag in UNIVERSAL_TAGS)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The tagger's identity."""
        return self.identity

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> NDArray[np.float64]:
        """Return the columns, (W, 17) float64; all NaN where the tagger does not know the language.

        Raises
        ------
        InputError
            If the tagger gives another number of tags than there are words, or one that is no universal tag.
        """
        tags = self.tagger([word.text for word in words], item.lang.lower())
        values = np.full((len(words), len(UNIVERSAL_TAGS)), np.nan)
        if tags is None:
            return values
        if len(tags) != len(words):
            raise InputError(f"the tagger must give one tag a word, {len(words)} for {item.id!r}; found {len(tags)}")
        for row, tag in zip(values, tags, strict=True):
            known = _OLDER.get(tag, tag)
            if known not in UNIVERSAL_TAGS:
                raise InputError(f"the tagger must give universal tags, {', '.join(UNIVERSAL_TAGS)}; found {tag!r}")
            row[:] = [known == one for one in UNIVERSAL_TAGS]
        return values


def nltk_tags(words: Sequence[str], lang: str) -> list[str] | None:
    """Tag words by NLTK's perceptron (English and Russian; None for others), a :data:`Tagger`.

    Raises
    ------
    NotReadyError
        If NLTK's data is not on this machine; nothing is downloaded.
    """
    import nltk

    if lang not in _NLTK:
        return None
    try:
        return [tag for _, tag in nltk.pos_tag(list(words), tagset="universal", lang=_NLTK[lang])]
    except LookupError as error:
        data = f"averaged_perceptron_tagger_{_NLTK[lang]} universal_tagset"
        raise NotReadyError(
            f"NLTK's tagger for {lang!r} is not on this machine; run: python -m nltk.downloader {data}"
        ) from error


def spacy_tagger(pipelines: Mapping[str, str]) -> Tagger:
    """Return a tagger of spaCy's pipelines, such as ``{"en": "en_core_web_sm", "de": "de_core_news_sm"}``.

    Parameters
    ----------
    pipelines
        Name or folder by language, two letters in lower case; other languages are not tagged.

    Raises
    ------
    MissingExtraError
        If spaCy is not installed.
    CheckpointError
        If a pipeline is not; nothing is downloaded.
    """
    try:
        import spacy
        from spacy.tokens import Doc
    except ImportError as error:
        raise MissingExtraError("spacy", "tags") from error
    loaded = {}
    for lang, name in pipelines.items():
        try:
            loaded[lang] = spacy.load(name)
        except OSError as error:
            raise CheckpointError(
                f"spaCy has no pipeline {name!r} on this machine; run: python -m spacy download {name}"
            ) from error

    def tag(words: Sequence[str], lang: str) -> list[str] | None:
        if lang not in loaded:
            return None
        pipeline = loaded[lang]
        return [token.pos_ for token in pipeline(Doc(pipeline.vocab, words=list(words)))]

    return tag
