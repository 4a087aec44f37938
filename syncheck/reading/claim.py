"""Claim: a sentence of an answer as it is checked, with what comes before it, and what states nothing.

Whether a word states something is an open question, so the words that a courtesy or a label in bold may have are
listed. Anything else, such as a verb, a number or a name, makes the sentence a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import nan

from syncheck.base.files import asset_patterns, asset_words
from syncheck.reading.evidence import Context
from syncheck.reading.lists import FENCE, HEADED_WORDS, KEY_VALUE, title_in
from syncheck.reading.records import Leaf, json_leaves
from syncheck.reading.structure import worded
from syncheck.reading.tables import cells_of, is_rule, number_of_words, row_as_texts
from syncheck.results.types import Remark, SentenceSignals, SentenceSpan, Status
from syncheck.text.markup import Mark, without_marks
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, SentenceCutter, is_checkable
from syncheck.text.words import NUMBER_WORDS, content_words, has_letter, stem, without_stop_words, words

_PATTERNS = asset_patterns("english/claimless.txt")
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
            return replace(claim, answering=f"{heading}: {_unlisted(self.statement)}")
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
        is_fragment = self.reading is None and len(words(self.statement)) < 2
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

    A sentence that consists only of these is returned as it is. Results are cached for repeated use.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = " ".join(_PATTERNS["aside"].sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Tell whether an English sentence calls something not stated: "The passages do not mention a price.".

    Results are cached, since a sentence is asked about more than once.
    """
    return bool(_PATTERNS["not stated"].search(sentence))


_MARKED_WORDS, _LABEL_WORDS = 5, 3
"""Largest numbers of words of a heading, and of a label with a colon."""
_VERBS = _WORDS["verbs"] - _NEGATIONS - {"only"}
_SHORT_WORDS, _ASKED_WORDS = 6, 30
"""Largest numbers of words of an answer in short, and of a question that is read with it."""
_ITEM = re.compile(r"\W*(?:step\s+#?\d+|\d+|[a-z])\s*[.):]\s+|\s*[-*+\u2022]\s", re.IGNORECASE)
"""Mark with which an item of a list begins, numbered or not."""
_BULLET = re.compile(r"(?:[-*+\u2022\u25e6\u25aa\u2013]|\d+[.)]|\([a-z\d]+\))\s+")
_QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d")
_REPEATED_WORDS = 5
"""Number of times in a row from which a word is repeated as no writer does."""


def is_bare_answer(sentence: str) -> bool:
    """Tell whether a sentence is "Yes.", "No." or the like, which says nothing without its question."""
    return _WORDS["answers"].issuperset(words(sentence))


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

    Examples
    --------
    >>> heading_of("- Price: \u00a39", ["**Pro plan:**", "- API: yes"])
    'Pro plan'
    """
    if not _is_short_item(sentence):
        return ""
    place = next((n for n in range(len(earlier) - 1, -1, -1) if not _is_short_item(earlier[n])), -1)
    if place < 0 or not (is_label(earlier[place]) or earlier[place].rstrip(" *_").endswith(":")):
        return ""
    title = title_in(_unlisted(statement(earlier[place])))
    is_told = number_of_words(title) > HEADED_WORDS or is_conversation(earlier[place])
    return "" if is_told else title


def _unlisted(text: str) -> str:
    mark = _BULLET.match(text)
    return text[mark.end() :] if mark else text


def _is_short_item(sentence: str) -> bool:
    """Tell whether a sentence is an item of a list, or a key with its value, of a few words, and no heading itself."""
    text = sentence.strip()
    if number_of_words(text) > HEADED_WORDS or text.rstrip(" *_").endswith(":") or is_label(text):
        return False
    return _BULLET.match(text) is not None or KEY_VALUE.fullmatch(text) is not None


def is_reference(sentence: str) -> bool:
    """Tell whether a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    if _PATTERNS["locates"].fullmatch(sentence.strip(" *_#>-")) or not re.search(
        r"\w", _PATTERNS["aside"].sub(" ", sentence)
    ):
        return True
    first, *rest = words(sentence) or [""]
    return first in _WORDS["citing"] and all(word.isdigit() or word in _WORDS["cited parts"] for word in rest)


def is_conversation(sentence: str) -> bool:
    """Tell whether an English sentence is no more than a phrase of conversation, or what an assistant says of itself.

    Such a phrase has no number, nothing after it but punctuation, and only words that occur in labels or courtesies, or
    says that an AI speaks.
    """
    if _PATTERNS["of itself"].fullmatch(sentence.strip()):
        return True
    if _PATTERNS["phrases"].fullmatch(sentence.strip()) is None:
        return False
    return all(_is_of_labels(word, also=_WORDS["polite"]) for word in without_stop_words(words(sentence)))


def is_label(sentence: str) -> bool:
    """Tell whether a sentence is a short heading that says what follows it and states nothing.

    Headings are those of Markdown, lines in bold, and up to three words with a colon: "## Overview", "**Key points**",
    "Side effects:". A text that may be a short statement ("treatment useful"), or have a verb that looks like a
    plural ("treatment causes symptoms"), is not a heading.
    """
    heading = _PATTERNS["heading"].fullmatch(sentence.strip())
    if heading is None:
        return False
    named = words(heading["marked"] or heading["label"])
    if (re.match(r"\#{1,6}\s", sentence.strip()) or heading["label"]) and _is_noun_phrase(
        named, heading["label"] is None
    ):
        return True
    if (
        not 0 < len(named) <= (_MARKED_WORDS if heading["marked"] else _LABEL_WORDS)
        or named[0] in _WORDS["between nouns"]
    ):
        return False
    if not all(word in _WORDS["before nouns"] | _WORDS["between nouns"] or _is_of_labels(word) for word in named):
        return False
    ends_in_noun = _is_of_labels(named[-1]) and (len(named) == 1 or named[-1] not in _WORDS["qualifying"])
    return ends_in_noun and not any(
        word.endswith("s") and word not in _WORDS["labels"] and after not in _WORDS["between nouns"]
        for word, after in pairwise(named)
    )


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks; "Did you know that ..." does not."""
    text = sentence.strip(" *_)")
    if text[-1:] in _QUOTES and text[:1] in _QUOTES:
        text = text[1:-1]  # a question that is quoted at the end of a sentence does not make it one
    return text.endswith(("?", "\uff1f")) and not text.lower().startswith("did you know")


def is_degenerate(sentence: str) -> bool:
    """Tell whether a sentence is a word or phrase again and again: "phone phone phone", "the cat the cat the cat"."""
    read = [word for word in words(sentence) if not word.isdigit()]
    if len(read) > 2 and len({*read}) == 1 and not _WORDS["answers"].issuperset(read):
        return True
    for size in range(1, 5):
        run = 1
        for at in range(size, len(read) - size + 1, 1 if size == 1 else size):
            run = run + 1 if read[at : at + size] == read[at - size : at] else 1
            if run >= _REPEATED_WORDS:
                return True
    return any(len(word) > 15 and word.isalpha() and len({*word}) < 3 for word in read)


def repeats_sentence(sentence: str, earlier: Sequence[str]) -> bool:
    """Tell whether a sentence of three words or more is the one before it again, or comes for the third time."""
    read = words(sentence)
    if len(read) < 3 or not earlier:
        return False
    plain = sentence.strip()
    return plain == earlier[-1].strip() or sum(plain == one.strip() for one in earlier) > 1


def _is_noun_phrase(named: Sequence[str], is_heading: bool) -> bool:
    """Tell whether the words of a heading, or of a label with a colon, hold no verb, number or negation."""
    if not 0 < len(named) <= (_MARKED_WORDS if is_heading else _LABEL_WORDS) or not named[0].isalpha():
        return False
    if not _WORDS["verbs"].isdisjoint(named) or any(
        (word.endswith("ed") and word != "asked") or any(map(str.isdigit, word)) for word in named
    ):
        return False
    inner = [word for word, after in pairwise(named) if after not in _WORDS["between nouns"]]
    return not any(word.endswith("s") and word not in _WORDS["labels"] for word in inner) and not any(
        word.endswith("ing") for word in named[1:-1]
    )


def _is_of_labels(word: str, *, also: frozenset[str] = frozenset()) -> bool:
    """Tell whether a word is an adjective or noun of labels, or another listed word, in the singular or the plural."""
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return word in _WORDS["qualifying"] or not (_WORDS["labels"] | also).isdisjoint((word, singular))
