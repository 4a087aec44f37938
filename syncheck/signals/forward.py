"""How a causal language model of transformers is called: which arguments it takes, under which names."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from torch import Tensor

from syncheck.errors import UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["ForwardArguments", "require_watchable"]

_CACHE_ARGUMENTS = ("past_key_values", "cache_params")

_OWN_STATE = frozenset(("minimax", "recurrent_gemma"))
"""Models that name a cache argument but keep their state in themselves or in a cache of their own."""

_NEED_NO_POSITIONS = frozenset(("bloom", "mpt", "roformer"))
"""Models that take no positions and see only differences of columns, so that padding moves nothing."""


class ForwardArguments:
    """The keyword arguments of a model's forward beside ``input_ids``.

    Attributes
    ----------
    cache : str
        Name under which it takes and returns its cache.
    takes_positions : bool
        Whether it is told each token's position.

    Raises
    ------
    UnsupportedModelError
        If it keeps its state elsewhere.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        require_watchable(model)
        names = inspect.signature(model.forward).parameters
        cache = next((name for name in _CACHE_ARGUMENTS if name in names), None)
        model_type = getattr(model.config, "model_type", None)
        if cache is None or model_type in _OWN_STATE:
            raise UnsupportedModelError(
                f"{type(model).__name__} keeps its state outside a transformers cache, so that the runs with and "
                "without the context cannot be held apart; use another model"
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
            (B, columns in the cache and fed), or None when nothing is padded; or with four dimensions, as attention
            itself takes it.
        positions
            (1 or B, n) of the tokens that are fed.
        cache
            None for a forward without one.
        keep
            Last positions whose logits are wanted.
        is_first
            Whether nothing has been fed before.
        """
        if mask is not None and not self._takes_padding:
            raise UnsupportedModelError(
                f"{self._model_name} takes no position_ids, so that rows padded on the left would be misread; run one "
                "prompt at a time, without a search"
            )
        found: dict[str, Any] = {self.cache: cache, "use_cache": cache is not None}
        # A model that is nothing but a recurrent state has its padding behind it after the prompt.
        if is_first or self.cache == "past_key_values":
            found["attention_mask"] = mask
        if self.takes_positions:
            found["position_ids"] = positions
        if self._takes_keep:
            found["logits_to_keep"] = keep
        return found


def require_watchable(model: PreTrainedModel) -> None:
    """Refuse a model whose forwards cannot be looked into.

    Raises
    ------
    UnsupportedModelError
        If it is compiled, since hooks attached to the blocks of a compiled model are passed over in silence, if it is
        a wrapper of PEFT's, or if it has an encoder.
    """
    is_compiled = (
        hasattr(model, "_orig_mod")  # torch.compile(model)
        or hasattr(model.forward, "_torchdynamo_orig_callable")  # model.forward = torch.compile(model.forward)
        or any(module._compiled_call_impl is not None for module in model.modules())  # model.compile()
    )
    if is_compiled:
        raise UnsupportedModelError(
            "the model is compiled, and a compiled model runs past the hooks that read its hidden states; pass it as "
            "it was before torch.compile (its _orig_mod, or loaded anew)"
        )
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        raise UnsupportedModelError(
            f"{type(model).__name__} wraps the model that generate runs, so that hooks on the wrapper see nothing; "
            "pass its get_base_model(), in which the adapters stay active, or merge_and_unload()"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{type(model).__name__} has an encoder; use a causal language model")
