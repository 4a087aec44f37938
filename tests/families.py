"""Tiny random models of many families, all with the tokenizer of tests/golden/signals/llama.

Weights are drawn wide, so that the next token's distribution is not flat and the passages matter: the KL between the
branches has a median of 0.1 to 5 nats in every family. Windows are shorter than the prompts of the tests.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from doubles import PASSAGES, QUESTION
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from syncheck import RagPrompt
from syncheck.prompts import build_prompt

TOKENIZER = Path(__file__).parent / "golden" / "signals" / "llama"

COMMON = {
    "vocab_size": 900,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "initializer_range": 0.35,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
ALTERNATING = {"sliding_window": 16, "layer_types": ["full_attention", "sliding_attention", "full_attention"]}
SWITCH = 48
"""Tokens past which LongRoPE turns by its other frequencies; prompts with the passages are longer, others shorter."""
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.5, 2.0, 3.0, 4.0],
    "attention_factor": 1.0,
}
SCALED_BY_POSITION = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 8.0,
    "original_max_position_embeddings": SWITCH,
    "llama_4_scaling_beta": 0.5,
}
LATENT = {
    "num_key_value_heads": 4,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
}


@dataclass(frozen=True)
class Recipe:
    """How a model of the family is made.

    ``model_type`` is transformers' name, ``options`` what differs from ``COMMON``, ``final_norm`` where the norm
    behind the last block is, ``first_hidden`` which of transformers' hidden states the first block puts out.
    """

    model_type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    final_norm: str = "model.norm"
    first_hidden: int = 1

    def build(self) -> PreTrainedModel:
        config = AutoConfig.for_model(self.model_type, **copy.deepcopy({**COMMON, **self.options}))
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(20)
            if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
                model = AutoModelForCausalLM.from_config(config).eval()
            else:  # it is known by its own class only
                model = getattr(transformers, type(config).__name__.replace("Config", "ForCausalLM"))(config).eval()
            for name, parameter in model.named_parameters():
                if name.endswith("A_log"):
                    parameter -= 3  # recurrent states decay slowly, or they would forget the passages
        return model


REWINDABLE = {
    "llama": Recipe("llama"),
    "mistral": Recipe("mistral", {"sliding_window": 32}),
    "qwen2": Recipe("qwen2", {"vocab_size": 928}),  # more rows than the tokenizer has tokens
    "qwen3": Recipe("qwen3"),
    "gemma2": Recipe("gemma2", {**ALTERNATING, "query_pre_attn_scalar": 8}),
    "gemma3": Recipe("gemma3_text", {**ALTERNATING, "query_pre_attn_scalar": 8}),
    "phi3": Recipe("phi3"),
    "gpt2": Recipe("gpt2", final_norm="transformer.ln_f"),  # learned positions
    "gpt_neox": Recipe("gpt_neox", final_norm="gpt_neox.final_layer_norm"),  # attention and MLP side by side
    "opt": Recipe(
        "opt", {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.35}, "model.decoder.final_layer_norm"
    ),
    "bloom": Recipe("bloom", final_norm="transformer.ln_f"),  # ALiBi, from the mask
    "llama4": Recipe("llama4_text", {**EXPERTS, "attention_chunk_size": 32}),  # chunks
    "mixtral": Recipe("mixtral", EXPERTS),
    "gpt_oss": Recipe(  # attention sinks
        "gpt_oss", {**EXPERTS, **ALTERNATING, "rope_parameters": {"rope_type": "default"}}
    ),
    "llama_dynamic": Recipe("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}}),
    "phi3_longrope": Recipe("phi3", {"original_max_position_embeddings": SWITCH, "rope_parameters": LONGROPE}),
    "phimoe_longrope": Recipe(
        "phimoe",
        {
            **EXPERTS,
            "rope_parameters": {
                **LONGROPE,
                "original_max_position_embeddings": SWITCH,
                "short_mscale": 1.0,
                "long_mscale": 1.1,
            },
        },
    ),
    "ministral3": Recipe("ministral3", {"rope_parameters": SCALED_BY_POSITION}),  # one token at a time: no switch
    "mistral4": Recipe(
        "mistral4", {**EXPERTS, **LATENT, "head_dim": 16, "n_routed_experts": 4, "rope_parameters": SCALED_BY_POSITION}
    ),
    "deepseek_v3": Recipe(  # keys and values of different widths
        "deepseek_v3",
        {**LATENT, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    ),
}
STATEFUL = {
    "mamba": Recipe("mamba", {"state_size": 8}, "backbone.norm_f", first_hidden=0),
    "mamba2": Recipe(
        "mamba2",
        {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 16},
        "backbone.norm_f",
        first_hidden=0,
    ),
    "qwen3_next": Recipe(
        "qwen3_next",
        {
            **EXPERTS,
            "shared_expert_intermediate_size": 24,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["full_attention", "linear_attention", "full_attention"],
        },
    ),
    "falcon_h1": Recipe(
        "falcon_h1",
        {"mamba_d_state": 8, "mamba_n_heads": 8, "mamba_d_ssm": 64, "mamba_chunk_size": 16},
        "model.final_layernorm",
    ),
    "lfm2": Recipe("lfm2", {"layer_types": ["full_attention", "conv", "full_attention"]}, "model.embedding_norm"),
}


@dataclass(frozen=True, eq=False)
class Family:
    """A model of one family with its tokenizer, and the blocks that are tapped: the first, the middle and the last."""

    name: str
    recipe: Recipe
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    layers: tuple[int, ...]

    @property
    def final_norm(self) -> nn.Module:
        """What the last block's output goes through before the vocabulary."""
        return self.model.get_submodule(self.recipe.final_norm)

    @property
    def has_experts(self) -> bool:
        """Whether tokens choose experts, which half precision may decide otherwise."""
        return "num_experts_per_tok" in self.recipe.options

    def prompt(self, question: str = QUESTION, context: str | Sequence[str] = PASSAGES) -> RagPrompt:
        return build_prompt(self.tokenizer, question=question, context=context)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


@cache
def family(name: str, dtype: torch.dtype = torch.float32) -> Family:
    """Return a family by name, built once."""
    recipe = {**REWINDABLE, **STATEFUL}[name]
    model = recipe.build().to(dtype)
    blocks = model.config.num_hidden_layers
    return Family(name, recipe, model, _tokenizer(), (0, blocks // 2, blocks - 1))


@cache
def _tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(TOKENIZER)
