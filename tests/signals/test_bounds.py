"""Bounds from the likeliest tokens hold the exact entropy and KL, and close on them as more tokens are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.base.errors import InputError
from syncheck.results.types import Bounds
from syncheck.signals import entropy_bounds, kl_bounds

V = 2000
KNOWN = (1, 4, 20, 100, 1000, V)
SCALES = st.sampled_from([0.0, 0.3, 1.0, 3.0, 10.0, 100.0])


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def drawn(seed, scale, size=V, rows=6):
    return log_softmax(np.random.default_rng(seed).normal(scale=scale, size=(rows, size)))


def entropy(log_p):
    return -(np.exp(log_p) * log_p).sum(-1)


def kl(log_p, log_q):
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


def likeliest(log_p, k):
    return np.argsort(-log_p, axis=-1, kind="stable")[:, :k]


@pytest.mark.parametrize("k", KNOWN)
@given(seed=st.integers(0, 2**32 - 1), scale=SCALES)
@settings(max_examples=30)
def test_the_entropy_lies_within(k, seed, scale):
    log_p = drawn(seed, scale)
    top = np.take_along_axis(log_p, likeliest(log_p, k), -1)
    exact = entropy(log_p)
    for bounds in (entropy_bounds(top, V), entropy_bounds(top, V, largest_other=top[:, -1])):
        assert (bounds.low <= exact).all() and (exact <= bounds.high).all()
        if k == V:
            np.testing.assert_allclose(bounds.high, bounds.low, atol=1e-5)


@given(seed=st.integers(0, 2**32 - 1), scale=SCALES, size=st.integers(1, 6), data=st.data())
def test_the_entropy_of_few_entries_lies_within(seed, scale, size, data):
    log_p = drawn(seed, scale, size=size, rows=20)
    k = data.draw(st.integers(1, size))
    top = np.take_along_axis(log_p, likeliest(log_p, k), -1)
    bounds = entropy_bounds(top, size, largest_other=top[:, -1])
    assert (bounds.low <= entropy(log_p)).all() and (entropy(log_p) <= bounds.high).all()


@given(seed=st.integers(0, 2**32 - 1), scale=SCALES, error=st.sampled_from([1e-7, 1e-4, 1e-2]))
def test_log_probabilities_that_are_off_are_allowed_for(seed, scale, error):
    log_p, log_q = drawn(seed, scale), drawn(seed + 1, scale)
    noise = np.random.default_rng(seed).uniform(-error, error, size=(2, 6, 20))
    ids = likeliest(log_p, 20)
    top_p, top_q = (np.take_along_axis(rows, ids, -1) for rows in (log_p, log_q))
    found = np.minimum(top_p + noise[0], 0.0)
    bounds = entropy_bounds(found, V, largest_other=found.min(-1), error=error)
    assert (bounds.low <= entropy(log_p)).all() and (entropy(log_p) <= bounds.high).all()
    least = kl_bounds(found, np.minimum(top_q + noise[1], 0.0), error=error)
    assert (least.low <= kl(log_p, log_q) + 1e-9).all()


def test_the_entropy_s_bounds_by_hand():
    # known 1/2 and 1/4: t = 1/4 on one entry, or spread over two
    known = np.log([[0.5, 0.25]])
    bounds = entropy_bounds(known, 4, error=0.0)
    assert bounds.low == pytest.approx([1.5 * np.log(2)])
    assert bounds.high == pytest.approx([1.75 * np.log(2)])
    capped = entropy_bounds(known, 10, largest_other=np.log(0.125), error=0.0)
    assert capped.low == pytest.approx([1.75 * np.log(2)])


@pytest.mark.parametrize("k", KNOWN)
@given(seed=st.integers(0, 2**32 - 1), scale=SCALES, near=st.sampled_from([1e-3, 0.1, 1.0]))
@settings(max_examples=30)
def test_the_kl_is_at_least_the_bound(k, seed, scale, near):
    log_p = drawn(seed, scale)
    log_q = log_softmax(log_p + near * np.random.default_rng(seed + 1).normal(size=log_p.shape))
    ids = likeliest(log_p, k)
    top_p, top_q = (np.take_along_axis(rows, ids, -1) for rows in (log_p, log_q))
    bounds = kl_bounds(top_p, top_q)
    assert (bounds.low <= kl(log_p, log_q) + 1e-9).all() and np.isposinf(bounds.high).all()
    if k == V:
        np.testing.assert_allclose(bounds.low, kl(log_p, log_q), atol=1e-5)


def test_more_known_entries_never_widen_the_bounds():
    log_p, log_q = drawn(0, 3.0), drawn(1, 3.0)
    found = []
    for k in KNOWN:
        ids = likeliest(log_p, k)
        top_p, top_q = (np.take_along_axis(rows, ids, -1) for rows in (log_p, log_q))
        found.append((entropy_bounds(top_p, V, largest_other=top_p[:, -1]), kl_bounds(top_p, top_q)))
    for (wide, least), (narrow, more) in zip(found, found[1:], strict=False):
        assert (wide.low <= narrow.low + 1e-6).all() and (narrow.high <= wide.high + 1e-6).all()
        assert (least.low <= more.low + 1e-6).all()


def test_a_log_probability_whose_exponential_is_0_leaves_the_kl_finite():
    bounds = kl_bounds(np.log([[0.75, 0.25]]), [[-1000.0, 0.0]], error=0.0)
    assert bounds.low == pytest.approx([0.75 * (np.log(0.75) + 1000) + 0.25 * np.log(0.25)])


def test_an_entry_that_one_branch_lacks_belongs_to_the_tail():
    log_p, log_q = np.log([[0.5, 0.25]]), np.log([[0.25, 0.5]])
    of_one = kl_bounds(log_p, [[log_q[0, 0], np.nan]], error=0.0)
    np.testing.assert_array_equal(of_one.low, kl_bounds(log_p[:, :1], log_q[:, :1], error=0.0).low)


def test_excluded_entries_have_no_share():
    log_p = np.log([[0.5, 0.5]])
    with np.errstate(divide="ignore"):
        zero = np.log([[0.0, 1.0]])
    assert entropy_bounds(np.hstack([log_p, [[-np.inf]]]), 3).high == pytest.approx([np.log(2)], abs=1e-6)
    assert kl_bounds(zero, log_p).low == pytest.approx([np.log(2)], abs=1e-6)
    assert np.isposinf(kl_bounds(log_p, zero).low).all()


@pytest.mark.parametrize("rows", [[0.0], [[0.1]], [[-0.1, -0.1]], [[-1.0] * 3]])
def test_what_is_no_part_of_a_distribution_is_refused(rows):
    with pytest.raises(InputError):
        entropy_bounds(rows, 2)


def test_entries_that_do_not_belong_together_are_refused():
    with pytest.raises(InputError, match="shape"):
        kl_bounds([[-1.0]], [[-1.0, -2.0]])


def test_each_value_says_how_well_it_is_known():
    bounds = Bounds(np.array([1.0, 0.0, np.nan, -np.inf]), np.array([1.0, 2.0, np.nan, np.inf]))
    assert bounds.kinds.tolist() == ["exact", "bounded", "missing", "missing"]
    assert repr(bounds) == "<Bounds 1 exact, 1 bounded, 2 missing>"
    assert Bounds.exact([1.0, np.nan]).kinds.tolist() == ["exact", "missing"]


@pytest.mark.parametrize(("low", "high"), [([1.0], [0.0]), ([np.nan], [1.0]), ([0.0], [0.0, 1.0])])
def test_bounds_that_bound_nothing_are_refused(low, high):
    with pytest.raises(InputError):
        Bounds(np.array(low), np.array(high))
