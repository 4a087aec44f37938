"""Text of tokens as they arrive, tokens of a text that is given, and the tokens that belong to a sentence.

A token whose text ends at or before the first character of the next sentence belongs to the earlier sentence. One that
starts there, or has only the space before it and its text, belongs to the later sentence. One with text of both stays
in the earlier. A token without text goes with the next token that has text and completes its character.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from syncheck.base.errors import PromptError
from syncheck.results.types import SentenceSpan

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
    """Find the first token, from ``lowest`` on, of the sentence that starts at a character, which is in the text.

    ``char_spans`` has the characters of each token in the text so far; the last one must reach ``start``.
    """
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
