"""Evidence: the passages of a query, read once for every sentence of every answer, and the few chunks that matter.

A chunk is a sentence of a passage (by untrained Punkt by default, and by the full stops of Chinese
and Japanese), or a piece of one that is longer than ``MAX_CHUNK_WORDS`` words or ``MAX_CHUNK_CHARACTERS`` characters;
consecutive pieces share ``OVERLAP_WORDS`` words, so that no phrase is cut in all of them. Rows of tables, records and
the like are chunks in words of their own (:mod:`syncheck.reading.structure`), which are quoted as the passage has them.
A chunk is read after the title of its passage, unless it has the title's words; a quotation is of the passage alone.
Every word of the context is in some chunk.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import regex

from syncheck.base.checks import names_of
from syncheck.base.files import asset_words
from syncheck.reading.structure import units
from syncheck.reading.tables import LONG_WORDS, Cut, Unit, number_of_words
from syncheck.results.types import Query
from syncheck.text.notation import written_out
from syncheck.text.sentences import SentenceCutter
from syncheck.text.sentences.rules import Punkt
from syncheck.text.words import NUMBER_WORDS, ContextLexicon, content_words, has_letter, readable, stem, words

MAX_CHUNK_WORDS = 60
MAX_CHUNK_CHARACTERS = 480
OVERLAP_WORDS = 10
MAX_TITLE_WORDS = 20

COVERED_WEIGHT = 0.25
"""Weight of a claim word that a chosen chunk already has: the next chunk should contribute new words."""
FUNCTION_WORD_WEIGHT = 0.1

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
"""Scripts that are written without spaces, so that each letter counts as a word."""
_LETTER = r"\p{L}\p{N}"
_MARK = r"[\p{Mn}\p{Mc}--[\ufe00-\ufe0f\U000e0100-\U000e01ef]]"
"""Accents and vowel signs, which belong to the letter before them, but not variation selectors."""
_WORD = regex.compile(
    r"(?V1)\d++(?:[.,]\d++)+|"
    r"[0-9A-Za-z]++(?=[\0-\x7f]|\Z)|"  # nothing else: quick, and true of most words
    rf"[[{_LETTER}]--[{_UNSPACED}]][[{_LETTER}{_MARK}]--[{_UNSPACED}]]*|[[{_LETTER}]&&[{_UNSPACED}]]{_MARK}*"
)
_MEMBER = re.compile(r"\"[^\"]*\"\s*:")
_OBJECTS = re.compile(r"\{(?:[^{}]++|\{[^{}]*+\})*+\}"), re.compile(r"\{[^{}]*+\}")
"""JSON objects, those that have others in them first."""
_VALUES = re.compile(r"[^\s\"',:{}\[\]]+")
"""Words of JSON, which may have no white space."""
_OF_STRUCTURE = re.compile(r"[\[{|?#`~<>&\u2500-\u257f]|^\s")
"""Characters of which one is in each line of structure, if that is the only line."""
_ANSWER = re.compile(r"(?:Yes|No)\b")
"""Beginning of an answer, which is read with the question before it."""
_CJK_SENTENCE = re.compile(r"""[^。！？｡]+(?:[。！？｡][。！？｡"')\]}’”）］｝〉》」』】〕｣]*)?|[。！？｡]+""")
"""A sentence without white space after its full stop, with the closing quotes and brackets after it."""
FUNCTION_WORDS = asset_words("english/words.txt")["function words"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the context: the index of its passage, from 0, and its text."""

    passage: int
    text: str
    place: tuple[int, int] | None = None
    """The characters of the passage, half-open, that it was read from; None for prose, which is read as it stands."""
    title: str = ""
    """The title of the passage, which is read before the text; "" if there is none, or the text has it."""

    @property
    def read(self) -> str:
        """What is read: the text after the title, as a row of a table is read with its header."""
        return f"{self.title}: {self.text}" if self.title else self.text

    def quoted_from(self, passages: Sequence[str]) -> str:
        """Quote it as its passage has it, and a value of JSON as its object, if that has at most ``LONG_WORDS`` words.

        A piece that stands in the passage is quoted alone.
        """
        if self.place is None:
            return self.text
        passage, (start, end) = passages[self.passage], self.place
        if _MEMBER.match(passage, start, end) and (around := object_around(passage, start, end)):
            return around
        quote = passage[start:end].strip()
        return self.text if self.text in quote else quote


def object_around(passage: str, start: int, end: int) -> str:
    """Find the JSON object that holds a part of a passage; "" if there is none, or none short enough.

    It has at most ``LONG_WORDS`` words and ``MAX_CHUNK_CHARACTERS`` characters. One that has others in it comes first.
    """
    for pattern in _OBJECTS:
        around = next((m[0] for m in pattern.finditer(passage) if m.start() < start and end < m.end()), "")
        if 0 < len(_VALUES.findall(around)) <= LONG_WORDS and len(around) <= MAX_CHUNK_CHARACTERS:
            return around
    return ""


def split_passages(passages: Sequence[str], *, cut: Cut | None = None) -> list[Chunk]:
    """Cut passages into sentences and units of structure, in order; those too long into overlapping pieces."""
    by_space = cut or Punkt().texts

    def sentences(line: str) -> list[str]:
        return [sentence for spaced in by_space(line) for sentence in _CJK_SENTENCE.findall(spaced)]

    chunks: list[Chunk] = []
    for index, passage in enumerate(passages):
        title, before = title_of(passage), ""
        plain = [Unit(passage, 0, len(passage), is_prose=True)] if _is_plain(passage) else None
        for unit in plain or units(passage, sentences):
            for sentence in sentences(unit.text) if unit.is_prose else [unit.text]:
                for piece in filter(None, _parts(sentence.strip())):
                    is_answer = before.endswith("?") and _ANSWER.match(piece) is not None
                    has_title = is_answer or bool(title and _occurs_in(title, piece))
                    place = None if unit.is_prose else (unit.start, unit.end)
                    chunks.append(Chunk(index, piece, place, "" if has_title else title))
                    before = piece
    return chunks


def _is_plain(passage: str) -> bool:
    """Tell whether a passage is one line, without any mark that structure has."""
    return len(passage.splitlines()) == 1 and _OF_STRUCTURE.search(passage) is None


def title_of(passage: str) -> str:
    """Look up the title that a passage is read with; "" if there is none with a letter, or if it is the first line.

    A title of more than ``MAX_TITLE_WORDS`` words is not read.
    """
    title = " ".join((names_of(passage).title or "").split()).rstrip(":")
    if not has_letter(title) or number_of_words(title) > MAX_TITLE_WORDS:
        return ""
    first_line = passage.lstrip().partition("\n")[0]
    return "" if words(title) == words(first_line) else title


def _occurs_in(title: str, piece: str) -> bool:
    return f" {' '.join(words(title))} " in f" {' '.join(words(piece))} "


class EvidenceIndex:
    """The chunks of one context, of any length, indexed by word.

    ``cut`` is as in :func:`split_passages`; ``chunks`` are those of a context that is cut already.
    """

    def __init__(
        self, passages: Sequence[str], *, cut: Cut | None = None, chunks: Sequence[Chunk] | None = None
    ) -> None:
        self.passages = tuple(passages)
        self.chunks = split_passages(passages, cut=cut) if chunks is None else list(chunks)
        self._words = [distinct_words(chunk.read) for chunk in self.chunks]
        self._postings: dict[str, list[int]] = defaultdict(list)
        for index, of_chunk in enumerate(self._words):
            for word in of_chunk:
                self._postings[word].append(index)

    @cached_property
    def lexicon(self) -> ContextLexicon:
        """The words of the passages, read at first use."""
        titles = map(title_of, self.passages)
        return ContextLexicon.from_passages(
            f"{title}: {passage}" if title else passage for title, passage in zip(titles, self.passages, strict=True)
        )

    def best(self, claim: str, count: int) -> list[int]:
        """Find the indices of the chunks that together have most of the claim's words, by weight, the best first.

        The weight of a word is its inverse document frequency over the chunks of this context, ln(1 + N / n), reduced
        once a chosen chunk has it. Of equal chunks, the earlier is chosen; only the first one if none shares a word
        with the claim.
        """
        postings = {w: self._postings[w] for w in distinct_words(claim) if w in self._postings}
        weights = {
            w: math.log1p(len(self.chunks) / len(holding)) * (FUNCTION_WORD_WEIGHT if w in FUNCTION_WORDS else 1)
            for w, holding in postings.items()
        }
        chosen: list[int] = []
        while len(chosen) < min(count, len(self.chunks)):
            gains: dict[int, float] = defaultdict(float)
            for word, holding in postings.items():
                for index in holding:
                    gains[index] += weights[word]
            for index in chosen:
                gains.pop(index, None)
            if not gains:
                break
            most = max(gains.values())
            best = min(index for index, gain in gains.items() if gain == most)
            chosen.append(best)
            for word in self._words[best]:
                if word in weights:
                    weights[word] *= COVERED_WEIGHT
        return chosen or list(range(min(1, len(self.chunks))))

    def quoted(self, chunk: int) -> str:
        """Quote a chunk as its passage has it, with the chunks around it that are the same sentence.

        Punkt cuts "from 4 p.m. to 10 p.m." after each "p.m."; a chunk that begins with a small letter on the same line
        goes on.
        """
        if self.chunks[chunk].place is not None:
            return self.chunks[chunk].quoted_from(self.passages)
        first = last = chunk
        while self._continues(first):
            first -= 1
        while self._continues(last + 1):
            last += 1
        return " ".join(piece.text for piece in self.chunks[first : last + 1])

    def _continues(self, chunk: int) -> bool:
        if not 0 < chunk < len(self.chunks) or not self.chunks[chunk].text[0].islower():
            return False
        before, own = self.chunks[chunk - 1 : chunk + 1]
        if before.place is not None or own.place is not None:
            return False
        beside = re.escape(before.text) + r"[^\S\r\n]+" + re.escape(own.text)  # pieces of one sentence overlap
        return before.passage == own.passage and re.search(beside, self.passages[own.passage]) is not None

    def coverage(self, claim: str) -> float:
        """Compute the share of the claim's content words that occur in the context, in [0, 1]; 0 without any."""
        content = [word for word in distinct_words(claim) if word not in FUNCTION_WORDS]
        return sum(word in self._postings for word in content) / max(1, len(content))


def distinct_words(text: str) -> list[str]:
    """List the distinct words of a text, written out, in order, in lower case and without a plural or possessive s.

    Each letter of a script without spaces is a word, as in :mod:`syncheck.text.words`.
    """
    read = (word.lower() for word in _WORD.findall(unicodedata.normalize("NFC", written_out(text))))
    return list(dict.fromkeys(_singular(word) for word in read if word != "s"))


def split_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a text near its middle, if possible at white space, until every part fits or is one character."""
    if len(text) < 2 or fits(text):
        return [text]
    middle = len(text) // 2
    spaces = [m.start() for m in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
    cut = min(spaces, key=lambda place: abs(place - middle), default=middle)
    return split_to_fit(text[:cut].rstrip(), fits) + split_to_fit(text[cut:].lstrip(), fits)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word not in FUNCTION_WORDS else word


def _parts(sentence: str) -> Iterator[str]:
    if len(sentence) <= MAX_CHUNK_CHARACTERS and sentence.count(" ") < MAX_CHUNK_WORDS:
        yield sentence
        return
    size = MAX_CHUNK_CHARACTERS // 10  # of a part of text without spaces, as in Chinese
    written = [word[i : i + size] for word in sentence.split() for i in range(0, len(word), size)]
    start = 0
    while True:
        stop, length = start, 0
        while stop < len(written) and stop - start < MAX_CHUNK_WORDS:
            length += len(written[stop]) + 1
            if length > MAX_CHUNK_CHARACTERS and stop > start:
                break
            stop += 1
        yield " ".join(written[start:stop])
        if stop == len(written):
            return
        start = max(start + 1, stop - OVERLAP_WORDS)


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
        stems = tuple(frozenset(stem(digits(word)) for word in chunk) for chunk in read)
        held_in: dict[str, list[int]] = defaultdict(list)
        for number, chunk in enumerate(stems):
            for known in chunk:
                held_in[known].append(number)
        return cls(tuple(texts), stems, {known: tuple(numbers) for known, numbers in held_in.items()}, read)

    def wording(self, number: int) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Look up the pieces and the pairs of neighbouring words of a chunk, which are read at first use."""
        if number not in self._wordings:
            self._wordings[number] = pieces(self.texts[number]), bigrams(self._words[number])
        return self._wordings[number]

    def near(self, known: str) -> frozenset[int]:
        """Find the chunks that have a stem and their neighbours, from -1 up to the number of chunks."""
        if known not in self._near:
            places = self.held_in.get(known, ())
            self._near[known] = frozenset(n for place in places for n in (place - 1, place, place + 1))
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


class Context:
    """The passages of a query as others need them; each view is made when first asked for, and freed with the context.

    ``languages`` are those that the passages are read in (ISO 639-1); None reads all. ``passages`` has "" for passages
    in none of them; all, if none is in one of them, and then ``language`` is theirs. The full stop of ``abbreviations``
    ends no sentence of the passages; see :attr:`syncheck.SegmenterConfig.abbreviations`.
    """

    def __init__(
        self, query: Query, *, languages: Collection[str] | None = None, abbreviations: Sequence[str] = ()
    ) -> None:
        self.query = query
        self.passages, self.language = readable(query.passages, languages)
        self._abbreviations = abbreviations

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
        return ContextChunks.from_texts([chunk.read for chunk in self.chunks]) if self.query.has_context else None

    @cached_property
    def question_words(self) -> frozenset[str]:
        """Content words of the question."""
        return frozenset(content_words(self.query.question))
