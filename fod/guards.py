"""Guards: faults that scores miss, for which a sentence may not stand in place of a greedy one, whatever its score."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise, takewhile
from os.path import commonprefix
from typing import Any, Protocol

from fod.config import DecoderConfig
from fod.search import Beam, Candidate, Handle
from syncheck import SentenceScore

CUT_OFF = "cut off at the limit of tokens"
BESIDE = "it is beside the question"

_ASKED = re.compile(r"^\W*(?:question|q)\b\s*\d*\s*[:.]\W*", re.IGNORECASE)
"""Label of a question."""
_PASSED_OVER = frozenset("a an the according after as at before by during for from in of on since to with".split())
"""Words before a subject: articles, and prepositions with which a sentence opens."""


class Reader(Protocol):
    """Protocol of what reads sentences for :class:`Guards`."""

    def claim(self, text: str, earlier: Sequence[str] = ()) -> Any:  # noqa: ANN401 - a Claim of syncheck.reading
        """Read a sentence of an answer after those before it."""

    def absent(self, text: str) -> float | None:
        """Judge P(faithful) of what a sentence says that the passages lack; None if nothing judges it."""

    def relevance(self, text: str) -> float | None:
        """Rate how likely a sentence answers what was asked, in [0, 1]; None without a question."""


class Guards:
    """Reads candidates that may replace greedy sentences; see ``guards`` of :class:`fod.RepairConfig`.

    ``reader`` is the session that wrote them, or the ``continuations`` of a verifier; ``earlier`` are the sentences
    that the answer shows before them.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        earlier: Sequence[SentenceScore],
        replaced: Sequence[SentenceScore],
        config: DecoderConfig,
    ) -> None:
        self._reader = reader
        self._least_relevance = config.least_relevance
        self._earlier = [sentence.text for sentence in earlier]
        self._contents = [reader.claim(text, self._earlier[:n]).content for n, text in enumerate(self._earlier)]
        self._refusal = reader.claim(config.message).content
        claims = [reader.claim(sentence.text, self._earlier) for sentence in replaced]
        self._replaces_claim = any(claim.emptiness is None or claim.repeats for claim in claims)
        self._replaces_refusal = any(map(self._is_refusal, replaced))
        self._replaced = {word for claim in claims for word in claim.content}
        self._subjects = {_subject(claim.statement) for claim in claims} - {""}

    def judged(self, candidate: Candidate, *, is_cut_off: bool) -> Candidate:
        """Complete a candidate with its flaw and what else is known of it; ``is_cut_off`` is a flaw of its own."""
        sentences = candidate.sentences
        absent, relevance = self.absent(sentences), self.relevance(sentences)
        flaw = CUT_OFF if is_cut_off else self.flaw(sentences, absent=absent)
        if not flaw and self._replaces_claim and relevance is not None and relevance < self._least_relevance:
            flaw = BESIDE
        keeps_subject = self.keeps_subject(sentences)
        return replace(candidate, flaw=flaw, absent=absent, relevance=relevance, keeps_subject=keeps_subject)

    def flaw(self, sentences: Sequence[SentenceScore], *, absent: float | None) -> str:
        """Say why sentences may not be released whatever their scores; empty if they may.

        ``absent`` is that of :meth:`absent`: a refusal that nothing judges may not replace an answer.
        """
        texts, contents = list(self._earlier), list(self._contents)
        for sentence in sentences:
            claim = self._reader.claim(sentence.text, texts)
            if sentence.truncated:
                return CUT_OFF
            if self._replaces_claim and claim.emptiness is not None:
                return str(claim.emptiness)
            if claim.content and claim.content in contents:
                return "it repeats a sentence of the answer"
            replaces_answer = self._replaces_claim and not self._replaces_refusal
            if replaces_answer and absent is None and self._is_refusal(sentence):
                return "a refusal in place of an answer"
            texts.append(sentence.text)
            contents.append(claim.content)
        return ""

    def absent(self, sentences: Sequence[SentenceScore]) -> float | None:
        """Judge P(faithful) of what sentences call absent from the passages, the lowest; None if nothing judges it."""
        judged = (self._reader.absent(s.text) for s in sentences if self._is_refusal(s))
        return min((value for value in judged if value is not None), default=None)

    def relevance(self, sentences: Sequence[SentenceScore]) -> float | None:
        """Rate the most relevant of some sentences; None if nothing rates them, and for a refusal."""
        if any(map(self._is_refusal, sentences)):
            return None
        rated = (self._reader.relevance(sentence.text) for sentence in sentences)
        return max((value for value in rated if value is not None), default=None)

    def keeps_subject(self, sentences: Sequence[SentenceScore]) -> bool:
        """Tell whether sentences have the subject of those they replace, or most of their content words.

        The subject is the first word that is neither an article nor a preposition.
        """
        claims = [self._reader.claim(sentence.text, self._earlier) for sentence in sentences]
        shared = {word for claim in claims for word in claim.content} & self._replaced
        return 2 * len(shared) > len(self._replaced) or any(_subject(c.statement) in self._subjects for c in claims)

    def _is_refusal(self, sentence: SentenceScore) -> bool:
        is_configured = bool(self._refusal) and self._reader.claim(sentence.text).content == self._refusal
        return is_configured or "says_not_stated" in sentence.remarks


def _subject(statement: str) -> str:
    """Find the first word of a statement that may be its subject; empty if there is none."""
    return next((word for word in re.findall(r"\w+", statement.casefold()) if word not in _PASSED_OVER), "")


LONG_NAME = 5
"""Length, in letters, from which a name is recognised on its own when some letters are altered."""

_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"(?:(?<=[^.!?:\s])\s+[\"'(\[“‘]*|[-–—/(])([^\W\d_]+)")

_PRONOUN = re.compile(
    r"\W*(?:(?:also|additionally|furthermore|however|in addition|moreover|then),?\s+)?"
    r"(he|she|it|they|his|her|its|their|this|these)\b",
    re.IGNORECASE,
)


def loose_pronoun(text: str, shown: str, hidden: Sequence[str], sources: Sequence[str]) -> str | None:
    """Find the pronoun with which a sentence opens, if its noun is in a hidden sentence.

    ``shown`` is the question with the answer before it, as a reader sees them, and ``hidden`` the sentences that the
    model wrote in between. By the ``sources``, names are told from other words at the beginning of a sentence.

    Returns None if the sentence opens with no pronoun, if the last hidden sentence that does not open with one has a
    name that is shown, or if all hidden sentences open with one.
    """
    opening = _PRONOUN.match(text)
    named = next((sentence for sentence in reversed(hidden) if not _PRONOUN.match(sentence)), None)
    if opening is None or named is None:
        return None
    common = {word for each in (*sources, *hidden) for word in _WORD.findall(each) if word[0].islower()}
    names = {word.casefold() for word in _WORD.findall(named) if word[0].isupper() and word.casefold() not in common}
    return None if names & {word.casefold() for word in _WORD.findall(shown)} else opening[1]


def hidden_noun_pronoun(
    candidate: str, beam: Beam, written: Callable[[Handle], str], *, replaced: str | None, sources: Sequence[str]
) -> str | None:
    """Find a pronoun without its noun, as :func:`loose_pronoun`, after the text of a beam.

    ``written`` gives the text of a part of it, and ``sources`` are the question and the passages. If nothing is shown
    yet, the sentence that is ``replaced`` counts as hidden.
    """
    handles = takewhile(lambda handle: handle in beam.skipped, reversed(beam.handles))
    hidden = [written(handle) for handle in handles][::-1]
    if replaced is not None and not beam.sentences:
        hidden.append(replaced)
    question, *passages = sources
    return loose_pronoun(candidate, f"{question} {beam.text}", hidden, passages)


def altered_names(text: str, sources: Sequence[str]) -> list[str]:
    """Find the names in a text that are nearly, but not quite, names in the sources: "Elvador" for "Salvador".

    Names are capitalised words; in the sources, only those that also occur inside a sentence. A name that no source
    has, in upper or lower case, counts as altered if a few edits turn it into a name of a source: at most a third of
    its letters, or one letter of a short word next to the same word. Words with the same beginning are taken for
    derived forms, such as "Mexican" of "Mexico".
    """
    names, long_names, known, pairs = _read(tuple(sources))
    words = ["", *_WORD.findall(text), ""]
    altered = []
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if not word[0].isupper() or word.casefold() in known:
            continue
        rivals = {name for name in names if (before, name) in pairs or (name, after) in pairs}
        if len(word) >= LONG_NAME:
            rivals |= long_names
        if any(_is_altered(word.casefold(), name.casefold()) for name in rivals):
            altered.append(word)
    return altered


@lru_cache(maxsize=8)
def _read(
    sources: tuple[str, ...],
) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[tuple[str, str]]]:
    """Find the names in the sources, the long ones among them, all words in lower case, and pairs of neighbours."""
    names = frozenset(name for source in sources for name in _NAME.findall(source) if name[0].isupper())
    spelled = [_WORD.findall(source) for source in sources]
    known = frozenset(word.casefold() for words in spelled for word in words)
    pairs = frozenset(pair for words in spelled for pair in pairwise(words))
    return names, frozenset(name for name in names if len(name) >= LONG_NAME), known, pairs


def _is_altered(word: str, name: str) -> bool:
    most = max(1, len(word) // 3)
    if abs(len(word) - len(name)) > most:
        return False
    if len(commonprefix([word, name])) >= min(len(word), len(name)) - (2 if len(word) >= LONG_NAME else 0):
        return False
    return _edits(word, name) <= most


def _edits(one: str, other: str) -> int:
    """Compute the edit distance of two words: letters added, dropped or replaced (Levenshtein, 1966)."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for place, wanted in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != wanted))
    return row[-1]


NEARLY, ASKED_AGAIN = 0.9, 0.7
"""Share of words that match in order from which one sentence counts as a repeat of another, and a question as one."""


def is_near_repeat(text: str, other: str, *, share: float = NEARLY) -> bool:
    """Tell whether such a share of the words of two sentences match in order, whatever their case."""
    one, two = (re.findall(r"\w+", sentence.lower()) for sentence in (text, other))
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= share


def is_echo(text: str, question: str) -> bool:
    """Tell whether a sentence only repeats the question: nearly its words, from the first one on or as a question."""
    text = _ASKED.sub("", text)
    is_asked = text.rstrip().endswith("?")
    first, asked = (re.search(r"\w+", part.casefold()) for part in (text, question))
    opens_alike = first is not None and asked is not None and first[0] == asked[0]
    return (opens_alike or is_asked) and is_near_repeat(text, question, share=ASKED_AGAIN if is_asked else NEARLY)


_PASSAGE = re.compile(r"\W*passage\s*#?\d+\W*(?:\n.*)?", re.IGNORECASE | re.DOTALL)


def is_label_of_passage(text: str) -> bool:
    """Tell whether a sentence copies a line "Passage 2:", as it stands before a passage in the prompt."""
    return _PASSAGE.fullmatch(text) is not None


TERSE = 4
"""Number of words up to which an answer need not name what it answers."""


def is_beside(text: str, relevance: float | None, least: float) -> bool:
    """Tell whether an answer opens beside the question.

    A sentence that opens with a pronoun, or of up to four words and a full stop, is not judged by its ``relevance``.
    """
    text = text.strip()
    is_terse = len(text.split()) <= TERSE and text.endswith((".", "!"))
    is_judged = bool(text) and not is_terse and not _PRONOUN.match(text)
    return is_judged and relevance is not None and relevance < least
