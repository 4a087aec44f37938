"""Forward passes of a causal language model: arguments, lengths at which it encodes again, hidden states of its blocks.

LongRoPE (as in Phi-3) rotates by other frequencies in a long text than in a short one, and "dynamic" RoPE by ever lower
ones past the window. A text that grows past such a length has no single measurement: ``model.generate`` encodes all
tokens again there, whereas a replay sees them all as part of a long text. It is refused before decoding begins.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from syncheck.base.errors import InputError, PromptError, UnsupportedModelError, WrongTypeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CACHE_ARGUMENTS = ("past_key_values", "cache_params")

_OWN_STATE = frozenset(("minimax", "recurrent_gemma"))
"""Models with a cache argument that keep their state elsewhere, in themselves or in a cache of their own."""

_NEED_NO_POSITIONS = frozenset(("bloom", "mpt", "roformer"))
"""Models that take no positions and depend only on differences of columns, so that padding has no effect."""


class ForwardArguments:
    """Keyword arguments of a model's ``forward``, apart from ``input_ids``.

    ``cache`` is the name of its cache argument; ``takes_positions`` and ``takes_padding`` tell whether it takes the
    position of each token, and padded rows. A model that cannot be watched, or keeps its state outside its cache,
    raises UnsupportedModelError.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        require_watchable(model)
        names = inspect.signature(model.forward).parameters
        cache = next((name for name in _CACHE_ARGUMENTS if name in names), None)
        model_type = getattr(model.config, "model_type", None)
        if cache is None or model_type in _OWN_STATE:
            raise UnsupportedModelError(
                f"{type(model).__name__} keeps its state outside a transformers cache, so the passes with and "
                "without the context cannot be kept apart; use another model"
            )
        self.cache = cache
        self.takes_positions = "position_ids" in names
        self.takes_padding = self.takes_positions or cache == "cache_params" or model_type in _NEED_NO_POSITIONS
        self._model_name = type(model).__name__
        self._takes_keep = "logits_to_keep" in names

    def of(
        self, mask: Tensor | None, positions: Tensor, cache: object | None, keep: int, *, is_first: bool
    ) -> dict[str, Any]:
        """Build the arguments of one forward pass; ``is_first`` is True if nothing has been fed before.

        ``mask`` is (B, columns in the cache and fed), or four-dimensional as attention takes it, or None if nothing is
        padded; ``positions`` (1 or B, n) are those of the tokens, and the logits of the last ``keep`` are wanted.
        """
        if mask is not None and not self.takes_padding:
            raise UnsupportedModelError(
                f"{self._model_name} takes no position_ids, so left-padded rows would be misread; run one "
                "prompt at a time, without a search"
            )
        arguments: dict[str, Any] = {self.cache: cache, "use_cache": cache is not None}
        # After the prompt, a purely recurrent model has its padding in the past.
        if is_first or self.cache == "past_key_values":
            arguments["attention_mask"] = mask
        if self.takes_positions:
            arguments["position_ids"] = positions
        if self._takes_keep:
            arguments["logits_to_keep"] = keep
        return arguments


def require_watchable(model: PreTrainedModel) -> None:
    """Refuse, with an UnsupportedModelError, a model that cannot be monitored; with a WrongTypeError, a non-model.

    Such a model is compiled, wrapped by PEFT, has an encoder, or has torch's dynamic int8 layers.
    """
    if not callable(getattr(model, "forward", None)):
        raise WrongTypeError(
            "model must be a loaded causal language model, as AutoModelForCausalLM.from_pretrained(...) returns; found "
            f"{repr(model) if isinstance(model, str) else type(model).__name__}"
        )
    is_compiled = (
        hasattr(model, "_orig_mod")  # torch.compile(model)
        or hasattr(model.forward, "_torchdynamo_orig_callable")  # model.forward = torch.compile(model.forward)
        or any(module._compiled_call_impl is not None for module in model.modules())  # model.compile()
    )
    if is_compiled:
        raise UnsupportedModelError(
            "the model is compiled, and a compiled model skips the hooks that read its hidden states; pass it as "
            "it was before torch.compile (its _orig_mod, or loaded again)"
        )
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        raise UnsupportedModelError(
            f"{type(model).__name__} wraps the model that generate runs, so hooks on the wrapper see nothing; "
            "pass its get_base_model(), in which the adapters stay active, or merge_and_unload()"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{type(model).__name__} has an encoder; use a causal language model")
    quantized = [m for m in model.modules() if type(m).__module__.startswith("torch.ao.nn.quantized.dynamic")]
    if any(getattr(getattr(m, "_packed_params", None), "dtype", None) == torch.qint8 for m in quantized):
        raise UnsupportedModelError(
            "the model has torch's dynamic int8 layers, which scale all activations of a forward pass by the largest "
            "of them; a token's signals would depend on the other tokens in the pass, and a replay would differ from "
            "the generated answer. Quantise only the weights, or the activations of each token separately"
        )


def switches_of(model: PreTrainedModel) -> tuple[int, ...]:
    """Find the lengths, in tokens, past which a model encodes every token again; empty for most models."""
    config = model.config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer = [rope for rope in parameters.values() if isinstance(rope, dict)] or [parameters]
    lengths = set()
    for rope in by_layer:
        kind = rope.get("rope_type") or "default"
        if kind == "longrope":
            lengths.add(int(rope["original_max_position_embeddings"]))
        elif "dynamic" in kind:
            lengths.add(int(config.max_position_embeddings))
    return tuple(sorted(lengths))


def encoding_of(switches: Sequence[int], tokens: int) -> int:
    """Find the index of the encoding that the model uses for a text of so many tokens."""
    return sum(tokens > switch for switch in switches)


def check_one_encoding(model: PreTrainedModel, before: int, after: int) -> None:
    """Refuse, with a PromptError, a text that may grow from ``before`` to ``after`` tokens, past a switch."""
    for switch in switches_of(model):
        if before <= switch < after:
            raise PromptError(
                f"{type(model).__name__} re-encodes every token once a text is longer than {switch} tokens; expected "
                f"a prompt and its response on one side of that, found a prompt of {before} tokens that may grow to "
                f"{after}. Pass a max_new_tokens (or a response) of at most {switch - before}, or a shorter prompt"
            )


def check_same_encoding(model: PreTrainedModel, lengths: Sequence[int]) -> None:
    """Refuse, with an InputError, a batch of prompts with lengths that the model encodes in different ways."""
    switches = switches_of(model)
    if len({encoding_of(switches, length) for length in lengths}) > 1:
        raise InputError(
            f"{type(model).__name__} encodes texts of more than {' and '.join(map(str, switches))} tokens in another "
            f"way, a whole batch by its longest row; found prompts of {min(lengths)} to {max(lengths)} tokens. Pass "
            "those of each side in a separate batch"
        )


_TURN = RLock()
"""Lock for all models; it is held only while an embedding multiplies frequencies and positions."""


def take_turns_in_rotary(model: nn.Module) -> None:
    """Let one thread at a time into rotary embeddings that store the frequencies of the last forward pass.

    LongRoPE and dynamic scaling choose them by the longest sequence that is fed, so that a thread with a long sequence
    would change those of a thread with a short one. Other embeddings, and models prepared already, stay as they are.
    """
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        kinds = list(kinds.values()) if isinstance(kinds, dict) else [kinds]
        stores_frequencies = any(isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind) for kind in kinds)
        if stores_frequencies and not hasattr(module, "_forward_of_one_thread"):
            module._forward_of_one_thread = module.forward  # type: ignore[assignment]
            module.forward = MethodType(_in_turn, module)  # a bound method is copied with its module


def _in_turn(module: Any, *args: Any, **kwargs: Any) -> Any:
    with _TURN:
        return module._forward_of_one_thread(*args, **kwargs)


_recording: ContextVar[tuple[Taps, ...]] = ContextVar("_recording", default=())
"""Taps that record in this context. Each thread and each asyncio task has a context of its own."""


class Taps:
    """Collects the outputs of chosen decoder blocks of a causal language model, on request.

    Forward passes of other threads or asyncio tasks are not recorded. Block k, counted from 0, gives
    ``hidden_states[k + 1]`` of transformers (``hidden_states[k]`` of Mamba), the last one without the final norm.
    """

    def __init__(self, model: PreTrainedModel, layers: Sequence[int]) -> None:
        blocks = decoder_blocks(model) if layers else nn.ModuleList()
        outside = [k for k in layers if not 0 <= k < len(blocks)]
        if outside:
            raise InputError(f"layers must be in 0..{len(blocks) - 1} for this model; found {outside}")
        self.layers = tuple(layers)
        self._blocks = [blocks[k] for k in layers]
        self._sink: list[list[Tensor]] | None = None

    @property
    def is_recording(self) -> bool:
        """True if forward passes of this thread or asyncio task are recorded."""
        return self._sink is not None and self in _recording.get()

    @contextmanager
    def attached(self) -> Iterator[Taps]:
        """Attach the hooks inside a ``with`` block; they are removed on exit, even after an exception."""
        handles = [block.register_forward_hook(self._hook(index)) for index, block in enumerate(self._blocks)]
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def recording(self) -> Iterator[list[list[Tensor]]]:
        """Record inside a ``with`` block; yield one list per layer, which each forward pass extends by (B, n, H)."""
        before, self._sink = self._sink, [[] for _ in self.layers]
        _recording.set((*_recording.get(), self))
        try:
            yield self._sink
        finally:
            self._sink = before
            # Not reset by a token, which is refused where a generator is closed in another context.
            inner = [*_recording.get()]
            if self in inner:
                inner.remove(self)  # one of them: what was recording before continues
            _recording.set(tuple(inner))

    def _hook(self, index: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - torch's hook signature
        def collect(module: nn.Module, args: object, output: Tensor | tuple[Tensor, ...]) -> None:
            if self._sink is not None and self in _recording.get():  # else another thread runs its own
                # A block puts out a tensor in transformers 5 and a tuple in some older models.
                states = output if isinstance(output, torch.Tensor) else output[0]
                if states.ndim != 3:  # Gemma 3n and DeepSeek V4 carry several streams from block to block
                    raise UnsupportedModelError(
                        f"{type(module).__name__} returns states of shape {tuple(states.shape)}; expected (rows, "
                        "tokens, width). Its hidden states cannot be recorded; use a schema without LID"
                    )
                self._sink[index].append(states.detach())  # a loop by hand may keep gradients

        return collect


def decoder_blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Find the decoder blocks of a causal language model, or raise UnsupportedModelError if there are none."""
    count = model.config.get_text_config().num_hidden_layers
    # A vision tower may have as many blocks, and come first.
    text_model = getattr(model, "get_decoder", lambda: model)()
    for module in text_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise UnsupportedModelError(
        f"no list of {count} decoder blocks found in {type(model).__name__}; its hidden states cannot be recorded; "
        "use a schema without LID"
    )
