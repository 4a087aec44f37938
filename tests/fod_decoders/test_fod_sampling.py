"""The nucleus is that of transformers' warpers, and draws follow it."""

import pytest
import torch
from transformers.generation import TemperatureLogitsWarper, TopPLogitsWarper

from fod import nucleus, sample_nucleus


def by_warpers(scores, temperature, top_p):
    ids = torch.zeros(len(scores), 1, dtype=torch.long)
    return TopPLogitsWarper(top_p)(ids, TemperatureLogitsWarper(temperature)(ids, scores)).softmax(-1)


def spread(probabilities, token_ids, vocabulary):
    found = torch.zeros(len(probabilities), vocabulary).scatter(1, token_ids, probabilities)
    return found / found.sum(-1, keepdim=True)


@pytest.mark.parametrize("vocabulary", [7, 256, 3000])
@pytest.mark.parametrize(("temperature", "top_p"), [(0.9, 0.95), (1.0, 0.3), (5.0, 0.99), (0.01, 0.5), (1.0, 1.0)])
def test_probabilities_are_those_of_the_warpers(vocabulary, temperature, top_p):
    scores = 3 * torch.randn(5, vocabulary, generator=torch.Generator().manual_seed(0))
    scores[:, 3] = -torch.inf
    found = spread(*nucleus(scores, temperature=temperature, top_p=top_p), vocabulary)
    torch.testing.assert_close(found, by_warpers(scores, temperature, top_p), rtol=1e-4, atol=1e-5)


def test_a_nucleus_wider_than_the_first_look():
    probabilities, token_ids = nucleus(torch.zeros(1, 2000), temperature=1.0, top_p=0.5)
    assert token_ids.shape == (1, 2000)
    assert int((probabilities > 0).sum()) == pytest.approx(1000, abs=1)


def test_draws_follow_the_probabilities():
    scores = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(20_000, 1)
    drawn = sample_nucleus(scores, temperature=1.0, top_p=0.9, generator=torch.Generator().manual_seed(1))
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.15, 0.0]) / 0.95, rtol=0, atol=0.015)
    assert shares[3] == 0


def test_the_same_generator_draws_the_same():
    scores = torch.randn(6, 500, generator=torch.Generator().manual_seed(0))
    one, two = (
        sample_nucleus(scores, temperature=0.9, top_p=0.95, generator=torch.Generator().manual_seed(4))
        for _ in range(2)
    )
    assert torch.equal(one, two)


def test_one_token_left():
    scores = torch.full((2, 9), -torch.inf)
    scores[0, 4] = scores[1, 8] = 1.0
    assert sample_nucleus(scores, temperature=0.9, top_p=0.95).tolist() == [4, 8]
