"""Threads take turns in a rotary embedding that keeps the frequencies of the last forward."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from families import COMMON
from transformers import AutoConfig, AutoModelForCausalLM

from syncheck.signals import take_turns_in_rotary

ORIGINAL = 64
"""Longer sequences get the other set of frequencies."""


@pytest.fixture(scope="module")
def model():
    factors = {"short_factor": [1.0] * 4, "long_factor": [1.0, 2.0, 4.0, 8.0]}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": ORIGINAL, **factors}
    options = {**COMMON, "original_max_position_embeddings": ORIGINAL, "rope_parameters": rope}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20)
        return AutoModelForCausalLM.from_config(AutoConfig.for_model("phi3", **options)).eval()


@pytest.fixture
def impatient():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_two_lengths_at_once(model, impatient):
    take_turns_in_rotary(model)
    rotary = model.model.rotary_emb
    states = torch.zeros(1, 1, 1)
    positions = [torch.arange(length)[None] for length in (ORIGINAL // 2, ORIGINAL * 2)]
    expected = [rotary(states, at)[0].clone() for at in positions]

    def same(worker):
        which = worker % 2
        return sum(torch.equal(rotary(states, positions[which])[0], expected[which]) for _ in range(300))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(same, range(4))) == [300] * 4


def test_a_copy_runs_its_own_embedding(model):
    take_turns_in_rotary(model)
    twin = copy.deepcopy(model)
    twin.model.rotary_emb.inv_freq.zero_()
    twin.model.rotary_emb.original_inv_freq = torch.zeros_like(twin.model.rotary_emb.inv_freq)
    cosines, _ = twin.model.rotary_emb(torch.zeros(1, 1, 1), torch.arange(8)[None])
    assert cosines.unique().numel() == 1
    assert model.model.rotary_emb(torch.zeros(1, 1, 1), torch.arange(8)[None])[0].unique().numel() > 1


def test_other_embeddings_are_left_alone(llama):
    take_turns_in_rotary(llama.model)
    assert "forward" not in vars(llama.model.model.rotary_emb)
