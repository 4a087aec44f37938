"""What the signals are, from one forward pass a prompt without any cache; and how near everything else has to come.

Nothing here is taken from syncheck but the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from families import Family

from syncheck import RagPrompt

SIGNALS = ("log_prob", "log_prob_without_context", "entropy", "kl")

NATS = 1e-4
"""Absolute, float32, for signals and raw logits: a tenth of what tests/golden/signals allows. Found: 2e-5."""
STATE = 3e-5
"""Relative to the largest entry of a hidden state, float32. Found: 4e-6."""


@dataclass(frozen=True)
class Expected:
    """(T,) float64 for each signal, in nats; states: block -> (T, H) float32."""

    log_prob: np.ndarray
    log_prob_without_context: np.ndarray
    entropy: np.ndarray
    kl: np.ndarray
    states: dict[int, np.ndarray]


def from_scratch(family: Family, prompt: RagPrompt, token_ids: Sequence[int]) -> Expected:
    """Run the model over both prompts with the response behind them."""
    own, states = one_pass(family, prompt.with_context_ids, tuple(token_ids))
    other, _ = one_pass(family, prompt.without_context_ids, tuple(token_ids))
    log_p, log_q = own[:-1].double().log_softmax(-1), other[:-1].double().log_softmax(-1)  # (T, V)
    p, columns = log_p.exp(), torch.tensor(token_ids, dtype=torch.long)[:, None]
    return Expected(
        log_prob=log_p.gather(-1, columns)[:, 0].numpy(),
        log_prob_without_context=log_q.gather(-1, columns)[:, 0].numpy(),
        entropy=-(p * log_p).sum(-1).numpy(),
        kl=(p * (log_p - log_q)).sum(-1).numpy(),
        states=states,
    )


@cache
def one_pass(
    family: Family, prompt_ids: tuple[int, ...], token_ids: tuple[int, ...]
) -> tuple[torch.Tensor, dict[int, np.ndarray]]:
    """Run the model once.

    Returns the (T + 1, V) logits that predicted each token and the one to come, and the tapped states of the tokens.
    """
    before_norm: list[torch.Tensor] = []
    handle = family.final_norm.register_forward_pre_hook(lambda module, args: before_norm.append(args[0]))
    try:
        with torch.no_grad():
            ids = torch.tensor([[*prompt_ids, *token_ids]])
            output = family.model(input_ids=ids, use_cache=False, output_hidden_states=True)
    finally:
        handle.remove()
    n = len(prompt_ids)
    # transformers shows the last block's state behind the final norm.
    hidden = [*output.hidden_states[family.recipe.first_hidden : -1], before_norm[0]]
    states = {layer: hidden[layer][0, n:].float().numpy() for layer in family.layers}
    return output.logits[0, n - 1 :], states


def assert_signals(found, expected: Expected, *, start=0, atol=NATS):
    """``found`` has the four signals of some tokens, the first of which is token ``start``."""
    for name in SIGNALS:
        values = getattr(found, name)
        wanted = getattr(expected, name)[start : start + len(values)]
        np.testing.assert_allclose(values, wanted, rtol=0, atol=atol, err_msg=name)


def assert_states(sentence, text_token: int, expected: Expected):
    """``sentence`` has the activations of its last text token, which is token ``text_token`` of the response."""
    assert set(sentence.activations) == set(expected.states)
    for layer, states in expected.states.items():
        wanted = states[text_token]
        np.testing.assert_allclose(
            np.asarray(sentence.activations[layer]),
            wanted,
            rtol=0,
            atol=STATE * np.abs(wanted).max(),
            err_msg=str(layer),
        )
