"""Text of token ids as they come, each character with the token that completes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Detokenizer"]

SEED_TOKENS = 6
"""Tokens of the prompt decoded before the response, so that its first space is kept (Llama-2 strips one)."""

WINDOW_TOKENS = 12
"""Tokens decoded again at each step; some must stay, since decoders look at neighbours."""

_UNFINISHED = "\ufffd"


class Detokenizer:
    """Streams the text of a response: the pieces, joined, are what the tokenizer decodes after the prompt.

    Parameters
    ----------
    tokenizer
        A Hugging Face tokenizer, fast or slow.
    prompt_ids
        Ids that come before the response; only the last few are used.

    Notes
    -----
    The window of the last ids is decoded at each step and compared with what it gave before, as
    ``tokenizers.decoders.DecodeStream`` does; that one raises on bytes that are not UTF-8 and serves fast
    tokenizers only. A character is held back while the text ends in U+FFFD, the mark of unfinished bytes.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int]) -> None:
        self._decode = _decoder(tokenizer)
        self._ids = self._seed(prompt_ids)
        self._given = len(self._ids)  # ids whose text has been handed out
        self._prefix = self._decode(self._ids).rstrip(_UNFINISHED)  # their text

    def push(self, token_id: int) -> str:
        """Return the text that this token completes; empty for special tokens and unfinished characters."""
        self._ids.append(token_id)
        text = self._decode(self._ids)
        return "" if text.endswith(_UNFINISHED) else self._hand_out(text)

    def flush(self) -> str:
        """Return what unfinished bytes at the end decode to (U+FFFD), empty when there are none."""
        return self._hand_out(self._decode(self._ids))

    def _seed(self, prompt_ids: Sequence[int]) -> list[int]:
        """Return the last ids of the prompt, more of them where fewer would begin within a character."""
        count = SEED_TOKENS
        while count < len(prompt_ids) and _UNFINISHED in self._decode(list(prompt_ids[-count:])):
            count *= 2
        return list(prompt_ids[-count:])

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


def _decoder(tokenizer: PreTrainedTokenizerBase) -> Callable[[list[int]], str]:
    if tokenizer.is_fast:
        backend = tokenizer.backend_tokenizer
        return lambda ids: str(backend.decode(ids, skip_special_tokens=True))
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
