"""Calls of a causal language model of transformers: its arguments, and the lengths at which it encodes anew.

LongRoPE (as in Phi-3) turns keys and queries by one set of frequencies in a short text and by another in a long
one, and "dynamic" RoPE by ever slower ones past the window. What was cached before the switch is not what the model
would compute after it, so a text that crosses it has no single measurement: ``model.generate`` encodes all tokens again
at that point, and a replay sees them all as part of a long text. Such texts are refused before anything is decoded.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from threading import RLock
from types import MethodType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from syncheck.errors import InputError, PromptError, UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CACHE_ARGUMENTS = ("past_key_values", "cache_params")

_OWN_STATE = frozenset(("minimax", "recurrent_gemma"))
"""Models that name a cache argument but keep their state in themselves or in their own cache."""

_NEED_NO_POSITIONS = frozenset(("bloom", "mpt", "roformer"))
"""Models that take no positions and see only differences of columns, so that padding moves nothing."""


class ForwardArguments:
    """The keyword arguments of a model's forward apart from ``input_ids``.

    ``cache`` is the name of its cache argument, and ``takes_positions`` says whether it takes each token's position.

    Raises
    ------
    UnsupportedModelError
        If it keeps its state outside a cache.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        require_watchable(model)
        names = inspect.signature(model.forward).parameters
        cache = next((name for name in _CACHE_ARGUMENTS if name in names), None)
        model_type = getattr(model.config, "model_type", None)
        if cache is None or model_type in _OWN_STATE:
            raise UnsupportedModelError(
                f"{type(model).__name__} keeps its state outside a transformers cache, so that the runs with and "
                "without the context cannot be kept apart; use another model"
            )
        self.cache = cache
        self.takes_positions = "position_ids" in names
        self._takes_padding = self.takes_positions or cache == "cache_params" or model_type in _NEED_NO_POSITIONS
        self._model_name = type(model).__name__
        self._takes_keep = "logits_to_keep" in names

    def of(
        self, mask: Tensor | None, positions: Tensor, cache: object | None, keep: int, *, is_first: bool
    ) -> dict[str, Any]:
        """Return the arguments of one forward.

        Parameters
        ----------
        mask
            (B, columns in the cache and fed), or four-dimensional as attention takes it; None if nothing is padded.
        positions
            (1 or B, n) of the tokens that are fed.
        cache
            None for a forward without one.
        keep
            Number of last positions whose logits are wanted.
        is_first
            True if nothing has been fed before.
        """
        if mask is not None and not self._takes_padding:
            raise UnsupportedModelError(
                f"{self._model_name} takes no position_ids, so that rows padded on the left would be misread; run one "
                "prompt at a time, without a search"
            )
        found: dict[str, Any] = {self.cache: cache, "use_cache": cache is not None}
        # After the prompt, a purely recurrent model has its padding in the past.
        if is_first or self.cache == "past_key_values":
            found["attention_mask"] = mask
        if self.takes_positions:
            found["position_ids"] = positions
        if self._takes_keep:
            found["logits_to_keep"] = keep
        return found


def require_watchable(model: PreTrainedModel) -> None:
    """Refuse a model whose forwards cannot be observed.

    Raises
    ------
    UnsupportedModelError
        If it is compiled (a compiled model silently skips hooks on its blocks), a PEFT wrapper, or has an encoder.
    """
    is_compiled = (
        hasattr(model, "_orig_mod")  # torch.compile(model)
        or hasattr(model.forward, "_torchdynamo_orig_callable")  # model.forward = torch.compile(model.forward)
        or any(module._compiled_call_impl is not None for module in model.modules())  # model.compile()
    )
    if is_compiled:
        raise UnsupportedModelError(
            "the model is compiled, and a compiled model skips the hooks that read its hidden states; pass it as "
            "it was before torch.compile (its _orig_mod, or loaded anew)"
        )
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        raise UnsupportedModelError(
            f"{type(model).__name__} wraps the model that generate runs, so that hooks on the wrapper see nothing; "
            "pass its get_base_model(), in which the adapters stay active, or merge_and_unload()"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{type(model).__name__} has an encoder; use a causal language model")


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
    """Return the index of the model's encoding for a text of so many tokens."""
    return sum(tokens > switch for switch in switches)


def check_one_encoding(model: PreTrainedModel, before: int, after: int) -> None:
    """Refuse, by a PromptError, a text that may grow past a length at which the model encodes all of it anew.

    ``before`` and ``after`` are its tokens at first, and at most.
    """
    for switch in switches_of(model):
        if before <= switch < after:
            raise PromptError(
                f"{type(model).__name__} encodes every token anew once a text is longer than {switch} tokens; expected "
                f"a prompt and its response on one side of that, found a prompt of {before} tokens that may grow to "
                f"{after}. Pass a max_new_tokens (or a response) of at most {switch - before}, or a shorter prompt"
            )


def check_same_encoding(model: PreTrainedModel, lengths: Sequence[int]) -> None:
    """Refuse, by an InputError, a batch of prompts of these lengths that the model encodes in different ways."""
    switches = switches_of(model)
    if len({encoding_of(switches, length) for length in lengths}) > 1:
        raise InputError(
            f"{type(model).__name__} encodes texts of more than {' and '.join(map(str, switches))} tokens in another "
            f"way, a whole batch by its longest row; found prompts of {min(lengths)} to {max(lengths)} tokens. Pass "
            "those of each side in a separate batch"
        )


_TURN = RLock()
"""One for all models: it is held for the few products of an embedding's frequencies and positions."""


def take_turns_in_rotary(model: nn.Module) -> None:
    """Let one thread at a time into rotary embeddings that keep the frequencies of the last forward.

    LongRoPE and dynamic scaling choose them by the longest sequence that is fed and store them in a buffer: a thread
    with a long sequence would change those of a thread with a short one. Other embeddings, and models that are prepared
    already, are left as they are.
    """
    for module in model.modules():
        if _sets_frequencies(module) and not hasattr(module, "_forward_of_one_thread"):
            module._forward_of_one_thread = module.forward  # type: ignore[assignment]
            module.forward = MethodType(_in_turn, module)  # a bound method is copied with its module


def _in_turn(module: Any, *args: Any, **kwargs: Any) -> Any:
    with _TURN:
        return module._forward_of_one_thread(*args, **kwargs)


def _sets_frequencies(module: nn.Module) -> bool:
    kinds = getattr(module, "rope_type", None)
    kinds = list(kinds.values()) if isinstance(kinds, dict) else [kinds]
    return any(isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind) for kind in kinds)
