"""Prompt lookup: drafts the next tokens of a text that copies, from what followed its last tokens before."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_MATCH = 5
"""Largest number of last tokens that are looked up."""

FIRST_DRAFT = 4
"""Number of tokens that are drafted until one was found right or wrong."""


class PromptLookup:
    """Drafts the next tokens of one response from its prompt and from itself (Saxena, 2023, "Prompt Lookup Decoding").

    The length of drafts adapts: it doubles with each token that was foreseen, and is halved, down to none, with each
    that was not. What would have been drafted counts too, so that drafts begin again where the text copies again.

    Parameters
    ----------
    prompt_ids
        Token ids of the prompt, passages included.
    longest
        Largest number of tokens in a draft.

    Examples
    --------
    >>> PromptLookup([7, 8, 9, 5, 6], longest=2).draft([4, 7, 8])
    [9, 5]
    """

    def __init__(self, prompt_ids: Sequence[int], *, longest: int) -> None:
        self._prompt = _as_text(prompt_ids)
        self._longest = longest
        self._length = min(FIRST_DRAFT, longest)
        self._foreseen: tuple[int, int] | None = None  # length of the response, and the token expected after it

    def draft(self, token_ids: Sequence[int]) -> list[int]:
        """Find tokens that may follow the response so far; none if its last token occurs nowhere before.

        They are those after the latest place where the longest run of the response's last tokens occurs.
        """
        if self._foreseen is not None and self._foreseen[0] == len(token_ids) - 1:
            is_right = self._foreseen[1] == token_ids[-1]
            self._length = min(2 * self._length + 1, self._longest) if is_right else self._length // 2
        drafted = self._after(self._prompt + _as_text(token_ids))
        self._foreseen = (len(token_ids), drafted[0]) if drafted else None
        return drafted[: self._length]

    def _after(self, text: str) -> list[int]:
        for length in range(LONGEST_MATCH, 0, -1):
            place = text.rfind(text[-length:], 0, len(text) - 1)
            if place >= 0:
                return [ord(token) for token in text[place + length :][: self._longest]]
        return []


def _as_text(token_ids: Sequence[int]) -> str:
    """Convert tokens to a string with a character for each, which is searched faster than a list."""
    return "".join(map(chr, token_ids))
