"""Words of a response: grapheme clusters, frequencies, the characters of tokens, and what is measured of each word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal, cast, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from syncheck.base.checks import check_choice
from syncheck.base.errors import MissingExtraError
from syncheck.results.spans import SpanItem
from syncheck.results.types import Floats

Kind = Literal["letters", "number", "ideograph", "symbol"]


@dataclass(frozen=True, slots=True)
class Word:
    """Word, characters ``start`` to ``end``, half-open; a ``symbol`` is a currency sign, operator or emoji."""

    start: int
    end: int
    text: str
    kind: Kind


# Kana and Han are written without spaces: each character is a word.
_UNSPACED = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
# Zero-width (non-)joiners occur inside words of Persian and Hindi, and inside emoji.
_MARK = r"[\p{M}\u200c\u200d]"
_LETTER = rf"(?!{_UNSPACED})[\p{{L}}\p{{M}}\p{{Nl}}\p{{No}}]"
_WORD = regex.compile(
    rf"(?P<ideograph>{_UNSPACED}{_MARK}*)"
    rf"|(?P<number>\p{{Nd}}(?:{_MARK}|\p{{Nd}}|(?<=\p{{Nd}})[.,:/\u066b\u066c](?=\p{{Nd}}))*)"
    rf"|(?P<letters>{_LETTER}(?:{_MARK}|{_LETTER})*)"
    rf"|(?P<symbol>\p{{S}}(?:{_MARK}|[\U0001f3fb-\U0001f3ff]|(?<=\u200d).)*)",
    regex.DOTALL,
)


def words_of(text: str) -> list[Word]:
    """Split a text into words, in order, without white space and punctuation.

    Combining marks belong to the letter before them. "3.141" and "12/04/1999" are one number each; apostrophes and
    hyphens end a word.
    """
    return [Word(match.start(), match.end(), match[0], cast(Kind, match.lastgroup)) for match in _WORD.finditer(text)]


def normalised(word: str) -> str:
    """Normalise a word for comparisons: NFKC, with case folded and digits of any script as 0 to 9."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)


_CLUSTER = regex.compile(r"\X")


def cluster_borders(text: str) -> list[int]:
    """Find the starts of a text's extended grapheme clusters (Unicode, annex 29), then its length."""
    return [*(cluster.start() for cluster in _CLUSTER.finditer(text)), len(text)]


Direction = Literal["ltr", "rtl", "auto"]


def reading_direction(text: str) -> Direction:
    """Find the direction of most letters in a text, not of the first ones; ``auto`` if both are equally many."""
    classes = Counter(unicodedata.bidirectional(character) for character in text)
    right, left = classes["R"] + classes["AL"], classes["L"]
    return "auto" if right == left else "rtl" if right > left else "ltr"


def word_rarity(words: Sequence[str], lang: str) -> NDArray[np.float64]:
    """Look up the Zipf frequency of each word, (W,) float64 in [0, 8]: log10 of its occurrences in a billion words.

    0 means that a word was never seen. All are NaN in a language without counts, such as Basque.
    """
    with MissingExtraError.unless("wordfreq", "rarity"):
        import wordfreq
    code = lang.casefold()  # the counts of Chinese, Japanese and Korean need their own segmenter
    if code in ("zh", "ja", "ko") or code not in wordfreq.available_languages():
        return np.full(len(words), np.nan)
    return np.array([float(wordfreq.zipf_frequency(word, code)) for word in words])


_SKIPPED_BYTES = 24  # bytes that may lie before the next token; a clean-up of spaces adds and removes some


def token_char_spans(text: str, tokens: Sequence[str]) -> NDArray[np.int64]:
    """Locate the characters that each token covers, (T, 2) int64, half-open.

    A token that is part of a character covers all of it. One that is special or not in the text has an empty span at
    the end of the token before it. Tokens are spelled as in the vocabulary, in byte-level BPE (``"Ġà¤¹"``),
    SentencePiece (``"▁je"``, ``"<0xE2>"``) or plain, whichever covers most bytes of the text.
    """
    data = _utf8(text)
    tries = [_placed(data, [spelling(token) for token in tokens]) for spelling in (_byte_level, _sentence_piece)]
    best = max(tries, key=lambda spans: int((spans[:, 1] - spans[:, 0]).sum()))
    return _characters(text, best)


def _placed(data: bytes, pieces: Sequence[bytes]) -> NDArray[np.int64]:
    """Locate the pieces, in bytes, one after the other; the span is empty for a piece that is not found."""
    spans = np.zeros((len(pieces), 2), dtype=np.int64)
    place = 0
    for index, piece in enumerate(pieces):
        start, length = _found(data, place, piece)
        if length:
            place = start + length
        spans[index] = (place - length, place)
    return spans


def _found(data: bytes, place: int, piece: bytes) -> tuple[int, int]:
    bare = piece.strip(b" ")
    for form in (piece, bare):
        if form and data.startswith(form, place):
            return place, len(form)
    start = data.find(bare, place, place + _SKIPPED_BYTES + len(bare)) if len(bare) > 1 else -1
    # White space alone may always be skipped; more only for a piece long enough not to be there by chance.
    if start < 0 and bare and data[place:].lstrip().startswith(bare):
        start = data.index(bare, place)
    return (start, len(bare)) if start >= 0 else (place, 0)


def _characters(text: str, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.cumsum([0, *(len(_utf8(character)) for character in text)])  # (C + 1,) byte where a character begins
    first = np.searchsorted(starts, spans[:, 0], side="right") - 1
    last = np.searchsorted(starts, spans[:, 1], side="left")
    empty = spans[:, 0] == spans[:, 1]
    return np.stack([np.where(empty, last, first), last], axis=1)


def _byte_level(token: str) -> bytes:
    known = _byte_alphabet()
    return bytes(known[c] for c in token) if all(c in known for c in token) else _utf8(token)


def _sentence_piece(token: str) -> bytes:
    byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token)
    return bytes([int(byte[1], 16)]) if byte else _utf8(token.replace("\u2581", " "))


@cache
def _byte_alphabet() -> dict[str, int]:
    """Map each character of byte-level BPE to its byte (Radford et al., 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


SpanSchema = Literal["spans.v1", "spans-rarity.v1"]
_Columns = dict[str, Any]
"""Values by name: of each word, (W,) float64, or one for all of them."""

_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f\u0964\u061f\u06d4]")
_QUOTES = frozenset('"\u00ab\u00bb\u201c\u201d\u201e')
_SNIPPET_BORDER = re.compile(r"\|\||\n")

_NEIGHBOURS = (-2, -1, 1, 2)
_OF_NEIGHBOURS = ("near_context", "near_question", "capital", "number", "logit", "length")
_KINDS = get_args(Kind)
_SHORT = 3  # letters up to which words are taken for function words
_SHORTEST_NEAR = 3  # letters below which words are matched exactly or not at all


def span_feature_names(schema: SpanSchema) -> tuple[str, ...]:
    """Name a schema's features, in order; an unknown schema raises InputError."""
    check_choice(schema, "schema", SpanSchema)
    sample = SpanItem("", "en", "?", "word")
    return tuple(_columns(sample, words_of(sample.response), rarity=schema == "spans-rarity.v1"))


def word_features(item: SpanItem, words: Sequence[Word], schema: SpanSchema = "spans.v1") -> Floats:
    """Compute the features of all words of a response, (W, F) float64, in the order of :func:`span_feature_names`."""
    if not words:
        return np.zeros((0, len(span_feature_names(schema))))
    columns = _columns(item, words, rarity=schema == "spans-rarity.v1")
    return np.stack([np.broadcast_to(column, len(words)) for column in columns.values()], axis=1, dtype=np.float64)


def _columns(item: SpanItem, words: Sequence[Word], *, rarity: bool) -> _Columns:
    texts = [normalised(word.text) for word in words]
    columns = _support(item, texts) | _shape(words, texts) | _position(item.response, words)
    columns |= _logits(item, words)
    if rarity:
        columns["rarity"] = word_rarity([word.text for word in words], item.lang)
        columns["rarity_around"] = _around(columns["rarity"], 5)
        columns["rarity_mean"] = _mean(columns["rarity"])
    columns |= _whole(item, words, columns)
    for name in (*_OF_NEIGHBOURS, *(["rarity"] if rarity else [])):
        columns |= {f"{name}{offset:+d}": _shifted(columns[name], offset) for offset in _NEIGHBOURS}
    return columns


def _support(item: SpanItem, texts: Sequence[str]) -> _Columns:
    """Compare each word with the retrieved texts and the question."""
    context, question = _WordEvidence("\n".join(item.passages)), _WordEvidence(item.question)
    parts = [
        {normalised(w.text) for w in words_of(part)} for text in item.passages for part in _SNIPPET_BORDER.split(text)
    ]
    columns = {
        "in_context": context.holds(texts),
        "in_question": question.holds(texts),
        "near_context": context.nearness(texts),
        "near_question": question.nearness(texts),
        "run_context": context.run_lengths(texts),
        "run_question": question.run_lengths(texts),
        "log_count_context": np.log1p([context.counts[text] for text in texts]),
        "parts_with": np.array([float(sum(text in part for part in parts)) for text in texts]),
        "log_words_context": np.log1p(context.counts.total()),
        "numbers_context": min(sum(word[0].isdecimal() for word in context.counts), 10),
        "words_question": question.counts.total(),
        "question_in_context": _mean(context.holds([word for word in question.counts if len(word) > _SHORT])),
    }
    for name in ("near_context", "near_question"):
        columns |= {f"{name}_around{radius}": _around(columns[name], radius) for radius in (2, 5)}
    return columns


class _WordEvidence:
    """Words of a text, normalised, for comparison with other words."""

    def __init__(self, text: str) -> None:
        words = [normalised(word.text) for word in words_of(text)]
        self.counts = Counter(words)
        self._pairs = set(pairwise(words))
        self._trigrams = [(len(w), _trigrams(w)) for w in self.counts if len(w) >= _SHORTEST_NEAR]

    def holds(self, words: Sequence[str]) -> Floats:
        """Mark each word that occurs in the text as 1 and the others as 0, (W,) float64."""
        return np.array([float(word in self.counts) for word in words])

    def nearness(self, words: Sequence[str]) -> Floats:
        """Compute the similarity (Dice, of trigrams) of each word to the nearest word of similar length in the text.

        The result is (W,) float64 in [0, 1].
        """
        near = {word: self._near(word) for word in {*words}}
        return np.array([near[word] for word in words])

    def run_lengths(self, words: Sequence[str]) -> Floats:
        """Measure the run of consecutive words of the text that each word is in, (W,) float64."""
        lengths = np.zeros(len(words))
        start = 0
        while start < len(words):
            stop = start
            while stop < len(words) and words[stop] in self.counts:
                stop += 1
                if stop < len(words) and (words[stop - 1], words[stop]) not in self._pairs:
                    break
            lengths[start:stop] = stop - start
            start = max(stop, start + 1)
        return lengths

    def _near(self, word: str) -> float:
        if word in self.counts:
            return 1.0
        wanted, size = _trigrams(word), len(word)
        near = (
            2 * len(wanted & known) / (len(wanted) + len(known))
            for length, known in self._trigrams
            if 2 * abs(length - size) <= max(length, size)
        )
        return max(near, default=0.0)


def _trigrams(word: str) -> frozenset[str]:
    bordered = f"^{word}$"
    return frozenset(bordered[i : i + 3] for i in range(len(bordered) - 2))


def _shape(words: Sequence[Word], texts: Sequence[str]) -> _Columns:
    """Compute features of each word alone."""
    capital = np.array([float(word.text[0].isupper()) for word in words])
    number = np.array([float(any(c.isdecimal() for c in text)) for text in texts])
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    return {
        "kind": np.array([float(_KINDS.index(word.kind)) for word in words]),
        "length": np.array([float(len(word.text)) for word in words]),
        "capital": capital,
        "number": number,
        "capital_around": _around(capital, 2),
        "number_around": _around(number, 3),
        "repeated": np.array([float(first[text] < i) for i, text in enumerate(texts)]),
    }


def _position(response: str, words: Sequence[Word]) -> _Columns:
    """Compute the position of each word in the response and its sentence, and the gaps around it."""
    gaps = [response[a:b] for a, b in zip([0, *(w.end for w in words)], [w.start for w in words], strict=False)]
    sentence = np.cumsum([bool(i) and bool(_SENTENCE_END.search(gap)) for i, gap in enumerate(gaps)])
    first = np.searchsorted(sentence, sentence, side="left")
    size = np.searchsorted(sentence, sentence, side="right") - first
    place = np.arange(len(words), dtype=np.float64)
    before = np.array([0.0, *(2.0 if gap.strip() else 1.0 for gap in gaps[1:])])
    return {
        "position": place / len(words),
        "index": place,
        "from_end": len(words) - 1 - place,
        "index_sentence": place - first,
        "words_sentence": size.astype(np.float64),
        "position_sentence": (place - first) / size,
        "sentence": sentence.astype(np.float64),
        "sentences": float(sentence[-1] + 1),
        "quoted": np.cumsum([sum(c in _QUOTES for c in gap) for gap in gaps]) % 2.0,
        "gap_before": before,
        "gap_after": np.array([*before[1:], 3.0]),
    }


def _logits(item: SpanItem, words: Sequence[Word]) -> _Columns:
    """Collect the raw logits of each word's tokens, as they are and relative to the response's mean and deviation."""
    none = np.full(len(words), np.nan)
    if item.tokens is None or item.logits is None:
        return dict.fromkeys(("logit", "logit_min", "logit_mean", "logit_raw", "logit_all", "logit_around"), none)
    # Some files have one more logit, that of the end of the text.
    spans, logits = token_char_spans(item.response, item.tokens), np.array(item.logits[: len(item.tokens)])
    spans = spans[: len(logits)]
    shown = spans[:, 1] > spans[:, 0]
    centre, spread = _mean(logits[shown]), float(np.std(logits[shown])) + 1e-6 if shown.any() else np.nan
    of_words = np.full((len(words), 3), np.nan)  # first, least, mean
    for index, word in enumerate(words):
        own = logits[(spans[:, 0] < word.end) & (spans[:, 1] > word.start)]
        if len(own):
            of_words[index] = own[0], own.min(), own.mean()
    first = (of_words[:, 0] - centre) / spread
    return {
        "logit": first,
        "logit_min": (of_words[:, 1] - centre) / spread,
        "logit_mean": (of_words[:, 2] - centre) / spread,
        "logit_raw": of_words[:, 0],
        "logit_all": centre,
        "logit_around": _around(first, 2),
    }


def _whole(item: SpanItem, words: Sequence[Word], columns: _Columns) -> _Columns:
    """Compute features of the whole response: its length, and how much of it occurs in the texts."""
    content = (columns["length"] > _SHORT) | (columns["number"] > 0) | (columns["kind"] == _KINDS.index("ideograph"))
    unknown = (columns["in_context"] == 0) & (columns["in_question"] == 0)
    new = np.flatnonzero(content & (columns["near_question"] < 0.6))
    size = len(words)
    return {
        "number_unknown": columns["number"] * unknown,
        "words": size,
        "log_characters": np.log1p(len(item.response)),
        "share_context": _mean(columns["near_context"]),
        "share_question": _mean(columns["near_question"]),
        "share_unknown": float((unknown & content).sum() / max(1, content.sum())),
        "share_numbers": _mean(columns["number"]),
        "since_new": np.arange(size, dtype=np.float64) - (new[0] if len(new) else size),
    }


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _around(values: Floats, radius: int) -> Floats:
    """Average the known values at most ``radius`` words away; NaN if there is none."""
    known = ~np.isnan(values)
    window = np.ones(2 * radius + 1)
    sums, counts = (np.convolve(v, window)[radius:-radius] for v in (np.where(known, values, 0), known))
    means = np.full(len(values), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _shifted(values: Floats, offset: int) -> Floats:
    """Shift the values to the words ``offset`` words earlier; NaN beyond the ends."""
    reach = abs(offset)
    return np.pad(values, reach, constant_values=np.nan)[reach + offset :][: len(values)]
