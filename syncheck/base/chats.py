"""Chats written by a tokenizer's template, in the sandbox that transformers runs templates in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from syncheck.base.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

REMEDY = "leave the system prompt out, use template='plain', or write prompts of your own with prompt_from_texts"


def write_chat(tokenizer: PreTrainedTokenizerBase, turns: Sequence[Mapping[str, str]]) -> str:
    """Write a chat and the beginning of the answer; InputError if the template refuses the turns or fails."""
    try:
        return str(tokenizer.apply_chat_template([*map(dict, turns)], tokenize=False, add_generation_prompt=True))
    except Exception as error:  # whatever a template calls may raise anything
        said = f"{type(error).__name__}: {error}"[:500]
        raise InputError(f"the tokenizer's chat template refuses these turns: {said}; {REMEDY}") from error
