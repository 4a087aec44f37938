import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from scipy.stats import entropy

from syncheck import InputError, token_statistics
from syncheck.signals import context_sensitivity_ratio

INF = math.inf
HALF, QUARTER = math.log(0.5), math.log(0.25)


def statistics(p, q, tokens):
    """The four values of each token as lists, from rows of log-probabilities up to a constant."""
    found = token_statistics(torch.tensor(p), None if q is None else torch.tensor(q), torch.tensor(tokens))
    return [x.tolist() for x in (found.log_prob, found.log_prob_without_context, found.entropy, found.kl)]


@pytest.mark.parametrize("constant", [0.0, -50.0, 1e4])
def test_uniform_distributions(constant):
    log_p, log_q, entropies, kl = statistics([[constant] * 7], [[0.0] * 7], [3])
    assert log_p == log_q == pytest.approx([-math.log(7)], abs=1e-6)
    assert entropies == pytest.approx([math.log(7)], abs=1e-6)
    assert kl == pytest.approx([0.0], abs=1e-6)


def test_three_entries_by_hand():
    # p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), up to constants that must not count
    p, q = [HALF + 3, QUARTER + 3, QUARTER + 3], [QUARTER - 1, QUARTER - 1, HALF - 1]
    log_p, log_q, entropies, kl = statistics([p, p], [q, q], [0, 2])
    assert log_p == pytest.approx([HALF, QUARTER], abs=1e-6)
    assert log_q == pytest.approx([QUARTER, HALF], abs=1e-6)
    assert entropies == pytest.approx([1.5 * math.log(2)] * 2, abs=1e-6)
    assert kl == pytest.approx([0.25 * math.log(2)] * 2, abs=1e-6)  # 1/2 ln 2 + 0 - 1/4 ln 2


def test_kl_is_from_the_context_to_none():
    # KL((1/2, 1/2) || (1/4, 3/4)) = 1/2 ln 2 + 1/2 ln 2/3; the other way round it is 3/4 ln 3 - ln 2
    *_, kl = statistics([[HALF, HALF]], [[QUARTER, math.log(0.75)]], [0])
    assert kl == pytest.approx([0.5 * math.log(2) + 0.5 * math.log(2 / 3)], abs=1e-6)


def test_excluded_entries_have_no_share():
    log_p, log_q, entropies, kl = statistics([[0.0, -INF, 0.0, -INF]], [[0.0, -INF, 0.0, 0.0]], [0])
    assert log_p == pytest.approx([HALF])
    assert log_q == pytest.approx([-math.log(3)])
    assert entropies == pytest.approx([math.log(2)])
    assert kl == pytest.approx([math.log(3) - math.log(2)], abs=1e-6)


def test_kl_is_infinite_where_no_context_excludes_what_the_context_allows():
    *_, entropies, kl = statistics([[0.0, 0.0], [0.0, -INF]], [[0.0, -INF], [0.0, -INF]], [0, 0])
    assert entropies == pytest.approx([math.log(2), 0.0])
    assert kl == [INF, 0.0]


def test_an_excluded_token_has_probability_zero():
    log_p, log_q, *_ = statistics([[0.0, -INF]], [[-INF, 0.0]], [1])
    assert (log_p, log_q) == ([-INF], [0.0])


def test_certainty():
    log_p, _, entropies, kl = statistics([[0.0, -200.0]], [[0.0, -200.0]], [0])
    assert (log_p, entropies, kl) == ([0.0], [0.0], [0.0])


def test_without_a_second_branch():
    log_p, log_q, entropies, kl = statistics([[0.0, 0.0]], None, [1])
    assert (log_p, entropies) == (pytest.approx([HALF]), pytest.approx([math.log(2)]))
    assert np.isnan(log_q).all() and np.isnan(kl).all()


def test_no_tokens():
    found = token_statistics(torch.empty(0, 5), torch.empty(0, 5), torch.empty(0, dtype=torch.long))
    assert [x.shape for x in (found.log_prob, found.log_prob_without_context, found.entropy, found.kl)] == [(0,)] * 4


@pytest.mark.parametrize(
    ("logits", "without"), [((3, 5), None), ((2, 5), (2, 4)), ((2, 5), (3, 5)), ((2, 2, 5), None)], ids=str
)
def test_shapes_that_do_not_agree(logits, without):
    other = None if without is None else torch.zeros(without)
    with pytest.raises(InputError, match="must have shape"):
        token_statistics(torch.zeros(logits), other, torch.zeros(2, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_costs_nothing_beyond_its_own_rounding(dtype):
    """Against float64 on the same rounded logits, for a vocabulary and a spread at which float16 exp underflows."""
    source = torch.Generator().manual_seed(0)
    p, q = (torch.randn(20, 32_000, generator=source, dtype=torch.float64).mul(4).to(dtype) for _ in range(2))
    tokens = torch.randint(32_000, (20,), generator=source)
    found, wanted = token_statistics(p, q, tokens), exact(p.double().numpy(), q.double().numpy(), tokens.numpy())
    for name, values in wanted.items():
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=0, atol=5e-5, err_msg=name)
        assert getattr(found, name).dtype == torch.float32


def exact(p, q, tokens):
    """Second implementation: scipy in float64."""
    rows = np.arange(len(tokens))
    log_p, log_q = log_softmax(p, axis=-1), log_softmax(q, axis=-1)
    return {
        "log_prob": log_p[rows, tokens],
        "log_prob_without_context": log_q[rows, tokens],
        "entropy": entropy(np.exp(log_p), axis=-1),
        "kl": entropy(np.exp(log_p), np.exp(log_q), axis=-1),
    }


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 20), st.integers(2, 300), st.floats(0.01, 8.0), st.integers(0, 2**31))
def test_agrees_with_scipy(count, vocabulary, spread, seed):
    source = np.random.default_rng(seed)
    p, q = source.normal(0, spread, (2, count, vocabulary)).astype(np.float32)
    tokens = source.integers(0, vocabulary, count)
    found = token_statistics(torch.from_numpy(p), torch.from_numpy(q), torch.from_numpy(tokens))
    for name, values in exact(p.astype(np.float64), q.astype(np.float64), tokens).items():
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=1e-5, atol=1e-5, err_msg=name)
    assert (found.kl >= 0).all() and (found.entropy >= 0).all() and (found.log_prob <= 0).all()


def test_context_sensitivity_ratio():
    ratio = context_sensitivity_ratio(torch.tensor([-1.0, -2.0]), torch.tensor([-4.0, -1.0]))
    assert ratio.tolist() == pytest.approx([0.25, 2.0])
