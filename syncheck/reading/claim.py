"""Claim: a sentence of an answer as it is checked, read with what comes before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan

from syncheck.base.files import asset_words
from syncheck.reading.claimless import (
    PATTERNS,
    is_bare_answer,
    is_conversation,
    is_degenerate,
    is_label,
    is_question,
    is_reference,
    repeats_sentence,
)
from syncheck.reading.evidence import Context
from syncheck.reading.lists import FENCE, HEADED_WORDS, ITEMS_ABOVE, KEY_VALUE, title_in
from syncheck.reading.records import Leaf, json_leaves
from syncheck.reading.structure import worded
from syncheck.reading.tables import cells_of, is_rule, number_of_words, row_as_texts
from syncheck.results.types import Remark, SentenceSignals, SentenceSpan, Status
from syncheck.text.markup import Mark, without_marks
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, SentenceCutter, is_checkable
from syncheck.text.words import NUMBER_WORDS, content_words, has_letter, stem, words

_WORDS = asset_words("english/words.txt")
_NEGATIONS = frozenset("cannot neither no none nor not never without".split())
_LISTED = re.compile(r"\W*(?:step\s+#?\d+|\d+|[a-z])\s*[.):]\s+", re.IGNORECASE)
"""Mark with which an item of a list begins."""


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
    answering: str | None = None
    """What is read of an answer in short, with its question, and of a short item, with what it stands under; None for
    a sentence of its own."""

    opposite: str | None = None
    """What "no" in place of "yes" would be read as, or "yes" in place of "no"; None if it is neither."""

    marks: tuple[Mark, ...] = ()
    """Its citation marks, which are no part of what is read."""

    @classmethod
    def measured(cls, signals: SentenceSignals) -> Claim:
        """Take a sentence with the signals of its tokens."""
        return cls(signals.text, signals.span, signals)

    repeats: bool = False
    """True if it repeats a word, or sentences before it, as text of a model that loops does."""

    def after(self, earlier: Sequence[str], *, question: str | None = None) -> Claim:
        """Read it after the sentences before it: as part of a table or of JSON, or as a repetition.

        Unless ``question`` is None, a short item is read after what it stands under, as "Pro plan: Price: £9", and an
        answer in short after the question, if there is one: "What does it cost: £18.".
        """
        repeats = is_degenerate(self.text) or repeats_sentence(self.text, earlier)
        claim = replace(self, reading=in_structure(self.prose, earlier), repeats=repeats)
        if question is None or claim.reading is not None:
            return claim
        if heading := heading_of(self.prose, earlier):
            return replace(claim, answering=f"{heading}: {_unmarked(self.statement, self.prose)}")
        if not all(map(_is_opening, earlier)):
            return claim
        asked = asked_in_short(question, self.prose)
        says = claim.without_claim is None or (is_bare_answer(self.prose) and not is_conversation(self.prose))
        if not asked or not says:
            return claim
        if not _WORDS["answers"].isdisjoint(words(self.prose)[:1]):
            yes, no = (f"{asked}: {answer}." for answer in ("Yes", "No"))
            is_no = words(self.prose)[0] in ("no", "nope")
            return replace(claim, answering=no if is_no else yes, opposite=yes if is_no else no)
        return replace(claim, answering=f"{asked}: {self.statement}")

    @property
    def prose(self) -> str:
        """The sentence without its citation marks."""
        return without_marks(self.text, self.marks) if self.marks else self.text

    @property
    def read(self) -> str:
        """What is read of it; see :attr:`reading` and :attr:`answering`."""
        return self.answering or self.reading or self.prose

    @property
    def statement(self) -> str:
        """What it states itself, without list numbers, citation marks and phrases such as "According to passage 2,"."""
        return statement(self.reading or self.prose)

    @property
    def is_checkable(self) -> bool:
        """True if it has a letter or digit of any script."""
        return is_checkable(self.text)

    @property
    def is_tokenless(self) -> bool:
        """True if it lies within a token of another sentence, so that nothing could be measured."""
        return self.signals is not None and not len(self.signals.token_ids)

    @property
    def content(self) -> frozenset[str]:
        """The stems of its content words and negations, and its numbers in digits, without the mark of a list."""
        read = words(_LISTED.sub("", self.statement, count=1))
        kept = {*content_words(" ".join(read)), *_NEGATIONS.intersection(read)}
        return frozenset(stem(NUMBER_WORDS.get(word, word)) for word in kept)

    @property
    def emptiness(self) -> str | None:
        """Why it claims nothing, whatever the monitor reads; None if it claims something.

        Beyond what :attr:`without_claim` lists, a single word claims nothing.
        """
        if not self.is_checkable:
            return "no letter or digit"
        if self.without_claim is not None:
            return self.without_claim[1]
        is_fragment = self.reading is None is self.answering and len(words(self.statement)) < 2
        return "a single word, which claims nothing" if is_fragment else None

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
        if self.reading is not None:
            return None
        if is_bare_answer(self.prose) and not is_conversation(self.prose) and self.answering is None:
            return "not_checkable", "a bare yes or no, which says nothing without its question"
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


_KEY = re.compile(r'[\s\[\]{},]*"(?:[^"\\\n]|\\.)*"\s*:')


def in_structure(sentence: str, earlier: Sequence[str]) -> str | None:
    """Word a sentence of an answer that is a row of a table, or a value of JSON with its key, after those before it.

    None stands for prose, and "" for a header, a key without a value, or with null, or a mark of code. The first row of
    a table with bars on the left is its header.

    Examples
    --------
    >>> in_structure("| Basic | 10 GB |", ["| Plan | Storage |", "|---|---|"])
    'Basic (Plan) has Storage 10 GB.'
    >>> in_structure('"first": "Ann",', ['{"name": "Mill",', '"owner": {'])
    'owner first: Ann'
    >>> in_structure('"inStock": false}', ['{"name": "Lamp",'])
    'Not in stock.'
    """
    sentence = sentence.strip()
    if sentence.startswith("|"):
        if is_rule(sentence):
            return None
        first = len(earlier)
        while first and earlier[first - 1].lstrip().startswith("|"):
            first -= 1
        return " ".join(row_as_texts(cells_of(earlier[first]), cells_of(sentence))) if first < len(earlier) else ""
    if FENCE.fullmatch(sentence):
        return "" if any(char.isalnum() for char in sentence) else None
    return _value_in(sentence, earlier) if _KEY.match(sentence) else None


def _value_in(sentence: str, earlier: Sequence[str]) -> str | None:
    first = len(earlier)
    while first and _KEY.match(earlier[first - 1]):
        first -= 1
    before = "\n".join(earlier[first:])
    text = f"{before}\n{sentence}".strip().rstrip("`")
    added = "" if text.startswith(("{", "[")) else "{"
    leaves, stop = json_leaves(added + text, 0)
    if leaves is None or (added + text)[stop:].strip():
        return None
    own = [leaf for leaf in leaves if leaf.end > len(added + before)]
    own = own[:-1] if sentence.endswith(("{", "[")) else own  # what it opens is still empty
    own = [leaf for leaf in own if leaf.value not in ("", "null", "None")]  # which claims nothing
    return "; ".join(unit.text for unit in worded(map(_stated, own), lambda value: [value]))


_WORD_BORDER = re.compile(r"(?<=[a-z\d])(?=[A-Z])|[_-]+")


def _stated(leaf: Leaf) -> Leaf:
    """Word true and false as what the key states, which an aligner reads better than "in_stock: true"."""
    if leaf.value.lower() not in ("true", "false") or not leaf.key:
        return leaf
    stated = "not " * (leaf.value.lower() == "false") + _WORD_BORDER.sub(" ", leaf.key).strip().lower()
    before = leaf.path.removesuffix(leaf.key).strip()
    return replace(leaf, path=before, value=stated if before else f"{stated[:1].upper()}{stated[1:]}.")


@lru_cache(maxsize=256)
def statement(sentence: str) -> str:
    """Strip a sentence of list numbers, citation marks and phrases such as "According to passage 2,".

    A sentence that consists only of these, or speaks of no passage ("None of the passages says ..."), is returned as it
    is. Results are cached for repeated use.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = "" if PATTERNS["none"].match(sentence) else _without_asides(sentence)
    return rest if re.search(r"\w", rest) else sentence


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Tell whether an English sentence calls something not stated: "The passages do not mention a price.".

    Results are cached, since a sentence is asked about more than once.
    """
    return bool(PATTERNS["not stated"].search(sentence))


_VERBS = _WORDS["verbs"] - _NEGATIONS - {"only"}
_SHORT_WORDS, _ASKED_WORDS = 6, 30
"""Largest numbers of words of an answer in short, and of a question that is read with it."""
_ITEM = re.compile(r"\W*(?:step\s+#?\d+|\d+|[a-z])\s*[.):]\s+|\s*[-*+\u2022]\s", re.IGNORECASE)
"""Mark with which an item of a list begins, numbered or not."""
_MARK = re.compile(
    r"(?:(?P<bullet>[-*+\u2022\u25e6\u25aa\u2013])|\d{1,3}[.)]|[a-z][.)]|\((?:\d{1,2}|[a-z]|[ivx]{2,4})\))\s+"
)


def asked_in_short(question: str, sentence: str) -> str:
    """Find the question, without its mark, that a sentence answers in short; "" if the sentence says it all.

    A question of "yes" or "no" is answered in short by these, also with an echo ("No, you can't."). Any other is by up
    to six words that have no verb, or a pronoun for their subject.

    Examples
    --------
    >>> asked_in_short("I have one bag. What does it cost?", "\u00a318 each.")
    'What does it cost'
    >>> asked_in_short("What does it cost?", "A bag costs \u00a318.")
    ''
    """
    asked, said = _last_question(question), words(sentence)
    if not asked or not said or _ITEM.match(sentence):
        return ""
    is_polar = not _WORDS["polar"].isdisjoint(words(asked)[:1])
    if said[0] in _WORDS["answers"]:
        is_echo = all(word in _VERBS | _NEGATIONS | _WORDS["echo"] or word.endswith("n't") for word in said[1:])
        return asked if is_polar and is_echo else ""
    has_verb = not _VERBS.isdisjoint(said) or any(word.endswith("ed") for word in said)
    is_short = len(said) <= _SHORT_WORDS and (said[0] in _WORDS["leaning"] or not has_verb)
    return asked if is_short and not is_polar else ""


@lru_cache(maxsize=16)
def _last_question(question: str) -> str:
    """Find the sentence with which a question ends, without its mark; "" if it asks several things, or at length."""
    *_, last = ("", *SentenceCutter(ENGLISH_ABBREVIATIONS).texts(question))
    is_one = last.endswith("?") and question.count("?") == 1 and len(words(last)) <= _ASKED_WORDS
    return last.removesuffix("?").strip() if is_one else ""


def _is_opening(sentence: str) -> bool:
    claims_nothing = is_conversation(sentence) or is_label(sentence) or is_reference(sentence)
    return claims_nothing or is_bare_answer(sentence) or not is_checkable(sentence)


def heading_of(sentence: str, earlier: Sequence[str]) -> str:
    """Find the heading or announcement that a short item or line ``Key: value`` of an answer stands under; else "".

    Indents are not known here, so what has the same mark may be an item or a heading of items, and is no heading.

    Examples
    --------
    >>> heading_of("- Price: \u00a39", ["**Pro plan:**", "- API: yes"])
    'Pro plan'
    """
    kind, place = _kind_of_item(sentence), len(earlier) - 1
    while kind and place >= max(0, len(earlier) - ITEMS_ABOVE) and _kind_of_item(earlier[place]) == kind:
        place -= 1
    if not kind or place < 0 or _mark_of(earlier[place]) == kind:
        return ""
    above = _without_asides(earlier[place])
    announces = kind != "key" and above.rstrip(" *_").endswith(":")
    if not (announces or is_label(above)) or is_conversation(above) or is_reference(earlier[place]):
        return ""
    title = title_in(_unmarked(above, earlier[place]))
    return "" if number_of_words(title) > HEADED_WORDS or says_not_stated(earlier[place]) else title


def _kind_of_item(sentence: str) -> str:
    """Find the mark of an item of a few words, "key" for a key with its value, and "" for others and headings."""
    plain = _without_asides(sentence)
    if number_of_words(plain) > HEADED_WORDS or plain.rstrip(" *_").endswith(":") or is_label(plain):
        return ""
    return _mark_of(sentence) or ("key" if KEY_VALUE.fullmatch(plain) else "")


def _without_asides(sentence: str) -> str:
    return " ".join(PATTERNS["aside"].sub(" ", sentence).split())


def _mark_of(sentence: str) -> str:
    """Find the mark of an item, with "1" for all numbers and letters; "" without any."""
    mark = _MARK.match(sentence)
    return "" if mark is None else mark["bullet"] or "1"


def _unmarked(text: str, written: str) -> str:
    """Take the mark of an item off a text, if it still has that with which it was written."""
    mark = _MARK.match(written)
    return text.removeprefix(mark[0].strip()).lstrip() if mark else text
