"""Where the characters that tokens decode to stand in the text that the tokens were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from syncheck.errors import PromptError
from syncheck.segments.assignment import CharSpan, visible
from syncheck.types import SentenceSpan

__all__ = ["in_given", "positions_in"]


def positions_in(
    given: str, decoded: str, char_spans: Sequence[CharSpan], offsets: Sequence[CharSpan] | None
) -> list[int]:
    """Return the position in ``given`` of each character of ``decoded``, and of its end.

    They differ where a tokenizer puts a space before the first word (Llama-2) or rewrites characters (NFC, as Qwen's).
    Positions never fall, begin at 0 and end at the end of ``given``.

    Parameters
    ----------
    given
        The text that was tokenized.
    decoded
        What its tokens decode to.
    char_spans
        ``(start, stop)`` of each token in ``decoded``.
    offsets
        ``(start, stop)`` of each token in ``given``, as fast tokenizers tell them; None where unknown.

    Raises
    ------
    PromptError
        If the texts differ by more than a first space, and ``offsets`` is None.
    """
    if decoded == given:
        return list(range(len(given) + 1))
    if decoded == " " + given:
        return [0, *range(len(given) + 1)]
    if offsets is None:
        at = next((i for i, (a, b) in enumerate(zip(given, decoded, strict=False)) if a != b), len(given))
        raise PromptError(
            f"expected a response that its tokens decode to; found that from character {at} on {given[at : at + 20]!r} "
            f"became {decoded[at : at + 20]!r}, and this tokenizer does not tell where. Pass response_token_ids, or a "
            "fast tokenizer"
        )
    positions = [0] * len(decoded)
    for (start, stop), (first, last) in zip(char_spans, offsets, strict=True):
        added = _leading_spaces(decoded[start:stop]) - _leading_spaces(given[first:last])
        for k in range(start, stop):
            positions[k] = min(first + max(k - start - max(added, 0), 0), last)
    return [0, *list(accumulate(positions, max))[1:], len(given)] if decoded else [len(given)]


def in_given(given: str, positions: Sequence[int], spans: Sequence[SentenceSpan]) -> list[SentenceSpan]:
    """Return sentences with their characters counted in ``given``."""
    bounds = (visible(given, positions[span.char_start], positions[span.char_stop]) for span in spans)
    return [replace(span, char_start=start, char_stop=stop) for span, (start, stop) in zip(spans, bounds, strict=True)]


def _leading_spaces(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
