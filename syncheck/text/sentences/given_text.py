"""Tokens of a text that is given as it is written, special tokens included, and the characters that belong to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from syncheck.base.errors import PromptError
from syncheck.text.sentences.token_text import CharSpan, Detokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_HIDDEN = ")"
"""Character that stands for those of a special token while sentences are looked for: it ends and begins none, and it
belongs to the sentence before it."""


class TextTokens:
    """Tokenizer of given texts that assigns every character to a token.

    Parameters
    ----------
    tokenizer
        The tokenizer of the model that reads the text.
    prompt_ids
        The prompt before the text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._prompt_ids = prompt_ids
        added = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._special = (added | set(tokenizer.all_special_ids)) - {tokenizer.unk_token_id}

    def skipped(self, text: str) -> int:
        """Count the spaces that the tokenizer itself puts at the start of a text: 0 or 1.

        Llama-2's tokenizer puts one before every text, so its answers begin with one.
        """
        if not text.startswith(" "):
            return 0
        ids = self._tokenizer(" a", add_special_tokens=False, verbose=False)["input_ids"]
        return int("".join(self._pieces(ids)) == "  a")

    def __call__(self, text: str, start: int) -> tuple[list[int], list[CharSpan]]:
        """Tokenise a text from character ``start`` on; return the ids, and where each token lies in the text.

        Tokens of one character may each have all of it. A slow tokenizer cannot say where its tokens lie: they are
        looked for, and if they decode to another text, by more than white space, PromptError is raised.
        """
        fast = self._tokenizer.is_fast
        given = text[start:]
        encoded = self._tokenizer(given, add_special_tokens=False, return_offsets_mapping=fast, verbose=False)
        ids: list[int] = encoded["input_ids"]
        if fast:
            return ids, [(a + start, b + start) for a, b in encoded["offset_mapping"]]
        return ids, [(a + start, b + start) for a, b in _located(given, self._pieces(ids))]

    def as_read(self, token_id: int, written: str) -> str:
        """Write the characters of a token as the sentence rules read them: those of a special token are hidden."""
        if token_id not in self._special:
            return written
        return "".join(char if char.isspace() else _HIDDEN for char in written)

    def _pieces(self, ids: Sequence[int]) -> Iterator[str]:
        """Decode tokens to the text that each completes."""
        detokenizer = Detokenizer(self._tokenizer, self._prompt_ids, special=True)
        return map(detokenizer.push, ids)


def ends_of(places: Sequence[CharSpan], *, start: int) -> list[int]:
    """Find where the characters of each token end, so that every character from ``start`` on belongs to one token.

    A character of several tokens belongs to the last of them, which completes it; what no token has, such as spaces
    that a tokenizer leaves out, to the next one.
    """
    nexts = [first for first, _ in places[1:]]
    stops = [min(stop, after) for (_, stop), after in zip(places, nexts, strict=False)]
    return list(accumulate([*stops, *(stop for _, stop in places[-1:])], max, initial=start))[1:]


def _located(given: str, pieces: Iterable[str]) -> list[CharSpan]:
    """Locate each piece in a text that differs from the pieces at most in white space.

    Pieces without text, of tokens that complete no character, lie where the next one with text does.
    """
    found: list[CharSpan] = []
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
            found += [(start, at)] * waiting
            waiting = 0
    return [*found, *[(at, len(given))] * waiting]
