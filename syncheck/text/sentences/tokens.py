"""Text of tokens as they arrive, tokens of a text that is given, and sentences of a response by its tokens.

A token whose text ends at or before the first character of the next sentence belongs to the earlier sentence. One that
starts there, or has only the space before it and its text, belongs to the later sentence. One with text of both stays
in the earlier. A token without text goes with the next token that has text and completes its character.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from os.path import commonprefix
from typing import TYPE_CHECKING

from syncheck.base.errors import InputError, PromptError
from syncheck.results.types import SentenceSpan
from syncheck.text.sentences.boundaries import Boundary, BoundaryFinder, SegmenterConfig, spans_of, visible

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SEED_TOKENS = 6  # of the prompt, decoded before the response, so that its first space is kept (Llama-2 strips one)

WINDOW_TOKENS = 12
"""Number of tokens decoded again at each step; some must stay, since decoders look at neighbours."""

_UNFINISHED = "\ufffd"


class Detokenizer:
    """Decodes the text of a response token by token; the pieces, joined, are the text that the tokenizer decodes.

    At each step, a window of the last ids is decoded and compared with its earlier text: ``DecodeStream`` of tokenizers
    raises on bytes that are not UTF-8 and needs a fast tokenizer. A character is held back while the text ends in
    U+FFFD, the mark of unfinished bytes. Special tokens have no text without ``special``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int], *, special: bool = False) -> None:
        self._decode = _decoder(tokenizer, skip=not special)
        count = SEED_TOKENS  # more of the prompt's last ids if fewer would begin within a character
        while count < len(prompt_ids) and _UNFINISHED in self._decode(list(prompt_ids[-count:])):
            count *= 2
        self._ids = list(prompt_ids[-count:])
        self._given = len(self._ids)  # ids whose text has been handed out
        self._prefix = self._decode(self._ids).rstrip(_UNFINISHED)  # their text

    def push(self, token_id: int) -> str:
        """Decode the text that this token completes, which may be empty."""
        self._ids.append(token_id)
        text = self._decode(self._ids)
        return "" if text.endswith(_UNFINISHED) else self._hand_out(text)

    def flush(self) -> str:
        """Release the text of unfinished bytes at the end (U+FFFD); empty if there are none."""
        return self._hand_out(self._decode(self._ids))

    def _hand_out(self, text: str) -> str:
        if text == self._prefix:  # a special token, or bytes that some slow tokenizers leave out until complete
            return ""
        if text.startswith(self._prefix):
            new = text[len(self._prefix) :]
        else:  # byte fallback decodes a run of bytes as a whole: one bad byte voids those already handed out
            new = self._decode(self._ids[self._given :])
        if len(self._ids) >= WINDOW_TOKENS:
            self._ids = self._ids[self._given :]
            text = self._decode(self._ids)
        self._given, self._prefix = len(self._ids), text
        return new


def _decoder(tokenizer: PreTrainedTokenizerBase, *, skip: bool) -> Callable[[list[int]], str]:
    if tokenizer.is_fast:
        backend = tokenizer.backend_tokenizer
        return lambda ids: str(backend.decode(ids, skip_special_tokens=skip))
    exact = {"clean_up_tokenization_spaces": False, "spaces_between_special_tokens": False}
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=skip, **exact))


CharSpan = tuple[int, int]


def first_token_from(start: int, text: str, char_spans: Sequence[CharSpan], *, lowest: int) -> int:
    """Find the first token, from ``lowest`` on, of the sentence that starts at a character, which is in the text."""
    count = len(char_spans)
    first = bisect_right(char_spans, start, lo=min(lowest, count), key=lambda chars: chars[1])
    if first < count and text[char_spans[first][0] : start].strip():
        first += 1
    has_text = next((token for token in range(first, count) if char_spans[token][0] < char_spans[token][1]), count)
    while has_text < count and first > lowest and char_spans[first - 1][0] == char_spans[first - 1][1]:
        first -= 1
    return first if has_text < count else count


def last_text_token(span: SentenceSpan, char_spans: Sequence[CharSpan]) -> int:
    """Find the index of the token whose text reaches the end of the sentence, and whose hidden state is measured.

    For a sentence without tokens of its own, because one token has several sentences, it is that token.
    """
    reaches = bisect_left(char_spans, span.end, key=lambda chars: chars[1])
    first, last = sorted((span.token_start, span.token_end - 1))
    return max(first, min(reaches, last))


_HIDDEN = ")"
"""Stands for a character of a special token while sentences are looked for; it belongs to the sentence before it."""


class TextTokens:
    """Tokenizer of given texts that assigns every character to a token; ``prompt_ids`` are those before the text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._prompt_ids = prompt_ids
        added = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._special = (added | set(tokenizer.all_special_ids)) - {tokenizer.unk_token_id}

    def skipped(self, text: str) -> int:
        """Count the spaces that the tokenizer itself puts at the start of a text: 0, or 1 as Llama-2's does."""
        if not text.startswith(" "):
            return 0
        ids = self._tokenizer(" a", add_special_tokens=False, verbose=False)["input_ids"]
        return int("".join(self._pieces(ids)) == "  a")

    def __call__(self, text: str, start: int) -> tuple[list[int], list[CharSpan]]:
        """Tokenise a text from character ``start`` on; return the ids, and where each token lies in the text.

        Tokens of one character may each have all of it. A slow tokenizer cannot say where its tokens lie: they are
        looked for, and if they decode to another text, by more than white space, PromptError is raised.
        """
        fast, given = self._tokenizer.is_fast, text[start:]
        encoded = self._tokenizer(given, add_special_tokens=False, return_offsets_mapping=fast, verbose=False)
        ids: list[int] = encoded["input_ids"]
        places = encoded["offset_mapping"] if fast else _located(given, self._pieces(ids))
        return ids, [(a + start, b + start) for a, b in places]

    def as_read(self, token_id: int, written: str) -> str:
        """Write the characters of a token as the sentence rules read them: those of a special token are hidden."""
        return re.sub(r"\S", _HIDDEN, written) if token_id in self._special else written

    def _pieces(self, ids: Sequence[int]) -> Iterator[str]:
        """Decode tokens to the text that each completes."""
        detokenizer = Detokenizer(self._tokenizer, self._prompt_ids, special=True)
        return map(detokenizer.push, ids)


def ends_of(places: Sequence[CharSpan], *, start: int) -> list[int]:
    """Find where the characters of each token end, so that every character from ``start`` on belongs to one token.

    A character of several tokens belongs to the last of them; what no token has, to the next one.
    """
    nexts = [first for first, _ in places[1:]]
    stops = [min(stop, after) for (_, stop), after in zip(places, nexts, strict=False)]
    return list(accumulate([*stops, *(stop for _, stop in places[-1:])], max, initial=start))[1:]


def _located(given: str, pieces: Iterable[str]) -> list[CharSpan]:
    """Locate each piece in a text that differs at most in white space; one without text where the next one lies."""
    places: list[CharSpan] = []
    at = waiting = 0
    for piece in pieces:
        start = at
        for char in piece:
            place = at
            while place < len(given) and given[place] != char and given[place].isspace():
                place += 1
            if given[place : place + 1] == char:
                at = place + 1
            elif not char.isspace():
                raise PromptError(
                    f"the tokens of the response must decode to it; found {char!r} where character {place} on is "
                    f"{given[place : place + 20]!r}, and this tokenizer cannot locate the change. Pass "
                    "response_token_ids, or a fast tokenizer"
                )
        waiting += 1
        if piece:
            places += [(start, at)] * waiting
            waiting = 0
    return [*places, *[(at, len(given))] * waiting]


class IncrementalSegmenter:
    """Cuts a growing response into sentences; by default, those that NLTK's untrained Punkt finds in the whole text.

    Reported sentences depend on the text alone, not on its tokens, and never change. Only one that has not ended after
    ``max_tokens`` is cut after the last of these tokens that completes a character.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        self._max_tokens = config.max_tokens
        self._sentences = config.sentences
        self._finder = BoundaryFinder(config)
        self._text = ""
        self._char_spans: list[CharSpan] = []
        self._starts: list[tuple[int, int]] = []  # of each sentence reported: its first character, its block
        self._token_start = 0  # the open sentence's first token
        self._char_start = 0  # its first character
        self._block = 0  # and its block
        self._complete = 0  # sentences found in it, when several are taken as one

    @property
    def text(self) -> str:
        """The response so far."""
        return self._text

    @property
    def char_spans(self) -> list[CharSpan]:
        """Characters ``(start, stop)`` of each token in :attr:`text`, half-open."""
        return self._char_spans

    def push(self, text: str) -> list[SentenceSpan]:
        """Add the text of one token and return the sentences that it closes, usually as the first of the next one."""
        start = len(self._text)
        self._text += text
        self._char_spans.append((start, len(self._text)))
        boundaries = self._finder.find(self._text)
        closed = self._close_at(boundaries) if boundaries else []
        while text and len(self._char_spans) - self._token_start > self._max_tokens:
            closed.append(self._cut())
            closed += self._close_at(self._finder.find(self._text))
        return closed

    def finish(self, text: str = "") -> list[SentenceSpan]:
        """Close the open sentence at the end of the response, with all remaining tokens.

        ``text`` is text of the last token that was held back (:meth:`Detokenizer.flush`).
        """
        if text:
            self._text += text
            self._char_spans[-1] = (self._char_spans[-1][0], len(self._text))
        closed = self._close_at(self._finder.find(self._text, final=True))
        has_tokens = self._starts and self._token_start < len(self._char_spans)
        if has_tokens or self._text[self._char_start :].strip():
            closed.append(self._close(len(self._text), len(self._char_spans)))
            self._restart(len(self._text), len(self._text))
        return closed

    @property
    def breaks_off(self) -> bool:
        """True if the response, which is finished, ends before the end of its last sentence, or after a list's mark."""
        return self._finder.breaks_off(self._text[self._starts[-1][0] :] if self._starts else "")

    def fork(self) -> IncrementalSegmenter:
        """Make an independent copy that continues from here."""
        twin = copy(self)
        twin._char_spans, twin._starts = self._char_spans.copy(), self._starts.copy()
        twin._finder = self._finder.fork()
        return twin

    def rewound(self, tokens: int, *, sentences: int) -> IncrementalSegmenter:
        """Make a copy rewound to a reported boundary, with so many tokens and sentences."""
        twin = self.fork()
        twin._char_spans = self._char_spans[:tokens]
        twin._text = self._text[: twin._char_spans[-1][1]] if tokens else ""
        twin._token_start = tokens
        char, block = [*self._starts, (self._char_start, self._block)][sentences]
        twin._starts = self._starts[:sentences]
        twin._restart(min(char, len(twin._text)), block)
        return twin

    def _restart(self, char: int, block: int) -> None:
        """Open a sentence at a character and read the text after it again."""
        self._char_start, self._block, self._complete = char, block, 0
        self._finder.restart(char, block=block)

    def _close_at(self, boundaries: Iterable[Boundary]) -> list[SentenceSpan]:
        """Close the open sentence at these boundaries, or at each n-th if n sentences are taken as one."""
        closed: list[SentenceSpan] = []
        for stop, after, block, _ in boundaries:
            token_end = first_token_from(after, self._text, self._char_spans, lowest=self._token_start)
            if token_end - self._token_start > self._max_tokens:
                break  # too long: push cuts it and reads what follows again
            self._complete += 1
            if self._complete == self._sentences:
                closed.append(self._close(stop, token_end))
                self._char_start, self._block, self._complete = after, block, 0
        return closed

    def _cut(self) -> SentenceSpan:
        """Close the open sentence after the last token within the limit that has text; no character is divided."""
        limit = self._token_start + self._max_tokens
        opened = range(self._token_start, len(self._char_spans))
        with_text = [t for t in opened if self._char_spans[t][0] < self._char_spans[t][1]]
        last = max((t for t in with_text if t < limit), default=with_text[0])
        cut = self._char_spans[last][1]
        span = self._close(cut, last + 1, truncated=True)
        self._restart(cut, cut)
        return span

    def _close(self, end: int, token_end: int, *, truncated: bool = False) -> SentenceSpan:
        start, end = visible(self._text, self._char_start, end)
        span = SentenceSpan(len(self._starts), start, end, self._token_start, token_end, truncated)
        self._starts.append((self._char_start, self._block))
        self._token_start = token_end
        return span


def segment_given(token_texts: Sequence[str], sentences: Sequence[str]) -> list[SentenceSpan]:
    """Assign tokens, by their texts, to given sentences; the texts of both, joined, must be the response.

    A token of white space belongs to the sentence whose string contains it. Texts that differ raise InputError.
    """
    text, joined = "".join(token_texts), "".join(sentences)
    if joined != text:
        at = len(commonprefix((text, joined)))
        raise InputError(
            f"the joined sentences must equal the response; they differ from character {at} on: expected "
            f"{text[at : at + 40]!r}, found {joined[at : at + 40]!r}; pass them in order, with all white space"
        )
    char_spans = list(pairwise(accumulate(map(len, token_texts), initial=0)))
    stops = accumulate(map(len, sentences))
    spans: list[SentenceSpan] = []
    token = 0
    for span, after in zip(spans_of(sentences), stops, strict=True):
        is_last = span.index == len(sentences) - 1
        token_end = len(char_spans) if is_last else first_token_from(after, text, char_spans, lowest=token)
        spans.append(replace(span, token_start=token, token_end=token_end))
        token = token_end
    return spans
