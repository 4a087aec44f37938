"""Models that encode every token anew once a text is longer than some length.

LongRoPE (Phi-3 and its kin) turns keys and queries by one set of frequencies in a short text and by another in a long
one, and "dynamic" RoPE by ever slower ones past the window. What was cached before the switch is not what the model
would compute after it, so that a text which crosses has no one measurement: ``model.generate`` encodes all tokens again
at that point, a replay sees them all as of a long text. Such texts are refused before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncheck.errors import InputError, PromptError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["check_one_encoding", "check_same_encoding", "encoding_of", "switches_of"]


def switches_of(model: PreTrainedModel) -> tuple[int, ...]:
    """Return the lengths, in tokens, past which a model encodes every token anew; none for most models."""
    config = model.config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer = [found for found in parameters.values() if isinstance(found, dict)] or [parameters]
    lengths = set()
    for found in by_layer:
        kind = found.get("rope_type") or "default"
        if kind == "longrope":
            lengths.add(int(found["original_max_position_embeddings"]))
        elif "dynamic" in kind:
            lengths.add(int(config.max_position_embeddings))
    return tuple(sorted(lengths))


def encoding_of(switches: Sequence[int], tokens: int) -> int:
    """Return which of a model's encodings a text of so many tokens has, from 0."""
    return sum(tokens > switch for switch in switches)


def check_one_encoding(model: PreTrainedModel, before: int, after: int) -> None:
    """Refuse a text that grows past a length where the model encodes all of it anew.

    Parameters
    ----------
    model
        A causal language model.
    before, after
        Its tokens at first, and at most.

    Raises
    ------
    PromptError
        If a switch of the model lies between.
    """
    for switch in switches_of(model):
        if before <= switch < after:
            raise PromptError(
                f"{type(model).__name__} encodes every token anew once a text is longer than {switch} tokens; expected "
                f"a prompt and its response on one side of that, found a prompt of {before} tokens that may grow to "
                f"{after}. Pass a max_new_tokens (or a response) of at most {switch - before}, or a shorter prompt"
            )


def check_same_encoding(model: PreTrainedModel, lengths: Sequence[int]) -> None:
    """Refuse a batch of prompts, of these many tokens, that the model encodes in different ways.

    Raises
    ------
    InputError
        If a switch of the model lies between them.
    """
    switches = switches_of(model)
    if len({encoding_of(switches, length) for length in lengths}) > 1:
        raise InputError(
            f"{type(model).__name__} encodes texts of more than {' and '.join(map(str, switches))} tokens in another "
            f"way, a whole batch by its longest row; found prompts of {min(lengths)} to {max(lengths)} tokens. Pass "
            "those of each side in a batch of their own"
        )
