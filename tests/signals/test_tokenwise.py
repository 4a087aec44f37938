import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from scipy.stats import entropy
from torch.utils._python_dispatch import TorchDispatchMode

from syncheck.base.errors import InputError
from syncheck.signals import token_statistics

INF, NAN = math.inf, math.nan
HALF, QUARTER = math.log(0.5), math.log(0.25)
FIELDS = ("log_prob", "log_prob_without_context", "entropy", "kl")


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
    found = token_statistics(torch.zeros(1, 2), None, torch.tensor([1]))
    assert (found.log_prob.item(), found.entropy.item()) == (pytest.approx(HALF), pytest.approx(math.log(2)))
    assert all(getattr(found, name).isnan().all() for name in ("log_prob_without_context", "kl"))


def test_no_tokens():
    found = token_statistics(torch.empty(0, 5), torch.empty(0, 5), torch.empty(0, dtype=torch.long))
    assert [(getattr(found, name).shape, getattr(found, name).dtype) for name in FIELDS] == [((0,), torch.float32)] * 4


@pytest.mark.parametrize(
    "row", [[0.0, NAN, 1.0], [0.0, INF, 1.0], [-INF, -INF, -INF]], ids=["NaN", "inf", "all excluded"]
)
def test_a_row_that_is_no_distribution_gives_nan_and_spoils_no_other(row):
    good = [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]]
    bad, other = torch.tensor([good[0], row, good[1]]), torch.tensor([good[1], good[1], good[0]])
    tokens = torch.tensor([0, 2, 1])
    without, within = token_statistics(bad, other, tokens), token_statistics(other, bad, tokens)
    assert {name for name in FIELDS if getattr(without, name)[1].isnan()} == {"log_prob", "entropy", "kl"}
    assert {name for name in FIELDS if getattr(within, name)[1].isnan()} == {"log_prob_without_context", "kl"}
    clean = token_statistics(bad[[0, 2]], other[[0, 2]], tokens[[0, 2]])
    assert all(torch.equal(getattr(without, name)[[0, 2]], getattr(clean, name)) for name in FIELDS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_lowest_finite_logit_excludes_as_well_as_minus_infinity(dtype):
    source = torch.Generator().manual_seed(1)
    p, q = torch.randn(2, 4, 50, generator=source).to(dtype)
    tokens = torch.tensor([1, 2, 3, 4])
    lowest, infinite = (
        token_statistics(*(x.index_fill(1, torch.arange(30, 50), value) for x in (p, q)), tokens)
        for value in (torch.finfo(dtype).min, -INF)
    )
    assert all(torch.equal(getattr(lowest, name), getattr(infinite, name)) for name in FIELDS)


@pytest.mark.parametrize("token", [5, -1])
def test_tokens_outside_the_vocabulary(token):
    with pytest.raises(InputError, match="token_ids"):
        token_statistics(torch.zeros(2, 5), None, torch.tensor([0, token]))


@pytest.mark.parametrize(
    ("logits", "without"), [((3, 5), None), ((2, 5), (2, 4)), ((2, 5), (3, 5)), ((2, 2, 5), None)], ids=str
)
def test_shapes_that_do_not_agree(logits, without):
    other = None if without is None else torch.zeros(without)
    with pytest.raises(InputError, match="shape"):
        token_statistics(torch.zeros(logits), other, torch.zeros(2, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_costs_nothing_beyond_its_own_rounding(dtype):
    """Against float64 on the same rounded logits, for a vocabulary and a spread at which float16 exp underflows."""
    source = torch.Generator().manual_seed(0)
    p, q = (torch.randn(20, 32_000, generator=source, dtype=torch.float64).mul(4).to(dtype) for _ in range(2))
    tokens = torch.randint(32_000, (20,), generator=source)
    found, wanted = token_statistics(p, q, tokens), exact(p.double().numpy(), q.double().numpy(), tokens.numpy())
    for name, values in wanted.items():
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=0, atol=5e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_dtype_is_computed_in_float32(dtype):
    source = torch.Generator().manual_seed(5)
    p, q = torch.randn(2, 4, 1000, generator=source).mul(5).to(dtype)
    tokens = torch.randint(1000, (4,), generator=source)
    found, wanted = token_statistics(p, q, tokens), token_statistics(p.float(), q.float(), tokens)
    assert all(torch.equal(getattr(found, name), getattr(wanted, name)) for name in FIELDS)
    assert {getattr(found, name).dtype for name in FIELDS} == {torch.float32}


@pytest.mark.parametrize(("vocabulary", "rows"), [(32_000, 26), (128_256, 5), (256_000, 3)])
def test_large_vocabularies_keep_their_digits(vocabulary, rows):
    """The sums have up to 256,000 terms; float32 rounds a log-probability of -20 by 1e-6."""
    source = torch.Generator().manual_seed(3)
    p = torch.randn(rows, vocabulary, generator=source) * 3
    q = p + torch.randn(rows, vocabulary, generator=source)
    tokens = torch.randint(vocabulary, (rows,), generator=source)
    found, wanted = token_statistics(p, q, tokens), exact(p.double().numpy(), q.double().numpy(), tokens.numpy())
    for name, values in wanted.items():
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=0, atol=4e-6, err_msg=name)


@pytest.mark.parametrize("noise", [1.0, 0.1, 1e-2, 1e-3])
def test_nearly_equal_branches_keep_the_digits_of_their_divergence(noise):
    """KL is about noise^2 / 2, down to 5e-7; a difference of expectations would lose it in rounding of 1e-6."""
    source = torch.Generator().manual_seed(4)
    p = torch.randn(8, 5000, generator=source) * 2
    q = p + torch.randn(8, 5000, generator=source) * noise
    tokens = torch.zeros(8, dtype=torch.long)
    wanted = exact(p.double().numpy(), q.double().numpy(), tokens.numpy())["kl"]
    np.testing.assert_allclose(token_statistics(p, q, tokens).kl.numpy(), wanted, rtol=1e-6 + 2e-7 / noise)


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


@st.composite
def branches(draw):
    """Logits of both branches, some entries excluded, and tokens; p allows nothing that q excludes."""
    count, vocabulary = draw(st.integers(1, 20)), draw(st.integers(2, 300))
    source = np.random.default_rng(draw(st.integers(0, 2**31)))
    p, q = source.normal(0, draw(st.floats(0.01, 8.0)), (2, count, vocabulary)).astype(np.float32)
    allowed = np.zeros((count, vocabulary), np.bool_)
    np.put_along_axis(allowed, source.integers(0, vocabulary, (count, 1)), True, axis=1)
    by_p = allowed | (source.random((count, vocabulary)) > draw(st.sampled_from([0.0, 0.5])))
    by_q = by_p | (source.random((count, vocabulary)) > draw(st.sampled_from([0.0, 0.5])))
    p[~by_p], q[~by_q] = -INF, -INF
    return torch.from_numpy(p), torch.from_numpy(q), torch.from_numpy(source.integers(0, vocabulary, count))


@settings(deadline=None, max_examples=60)
@given(branches())
def test_agrees_with_scipy(drawn):
    p, q, tokens = drawn
    found = token_statistics(p, q, tokens)
    for name, values in exact(p.double().numpy(), q.double().numpy(), tokens.numpy()).items():
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=1e-6, atol=4e-6, err_msg=name)
    assert (found.kl >= 0).all() and (found.entropy >= 0).all() and (found.log_prob <= 0).all()
    assert (found.entropy <= math.log(p.shape[1]) + 1e-6).all()


@settings(deadline=None, max_examples=30)
@given(branches())
def test_equal_branches_have_no_divergence(drawn):
    p, _, tokens = drawn
    found = token_statistics(p, p.clone(), tokens)
    assert (found.kl == 0).all()
    assert torch.equal(found.log_prob, found.log_prob_without_context)


def test_rounding_makes_no_divergence_negative():
    p = torch.randn(500, 50, generator=torch.Generator().manual_seed(8))
    assert (token_statistics(p, p + 1e-7, torch.zeros(500, dtype=torch.long)).kl >= 0).all()


@settings(deadline=None, max_examples=30)
@given(branches(), st.floats(-100, 100), st.floats(-100, 100))
def test_an_offset_of_a_row_changes_nothing(drawn, a, b):
    """Beyond the rounding of the shifted logits themselves, 8e-6 at 128."""
    p, q, tokens = drawn
    close(token_statistics(p + a, q + b, tokens), token_statistics(p, q, tokens), atol=4e-5)


@settings(deadline=None, max_examples=30)
@given(branches(), st.integers(0, 2**31))
def test_the_order_of_the_vocabulary_does_not_matter(drawn, seed):
    p, q, tokens = drawn
    order = torch.randperm(p.shape[1], generator=torch.Generator().manual_seed(seed))
    close(token_statistics(p[:, order], q[:, order], order.argsort()[tokens]), token_statistics(p, q, tokens))


@pytest.mark.parametrize("vocabulary", [11, 5000, 70_000, 400_000])
def test_rows_together_are_the_rows_one_by_one(vocabulary):
    """In groups of 7 rows for 70,000 entries, of one for 400,000; several threads may differ in the last digit."""
    source = torch.Generator().manual_seed(6)
    rows = 16 if vocabulary < 100_000 else 3
    p, q = torch.randn(2, rows, vocabulary, generator=source) * 3
    tokens = torch.randint(vocabulary, (rows,), generator=source)
    together = token_statistics(p, q, tokens)
    alone = [token_statistics(p[i : i + 1], q[i : i + 1], tokens[i : i + 1]) for i in range(rows)]
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(together, name), torch.cat([getattr(x, name) for x in alone]), rtol=0, atol=4e-6, err_msg=name
        )


def close(found, wanted, atol=4e-6):
    for name in FIELDS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-6, atol=atol, err_msg=name)


class Allocated(TorchDispatchMode):
    """Adds up the bytes of what every operation newly allocates."""

    def __init__(self):
        super().__init__()
        self.bytes = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in (*args, *(kwargs or {}).values()) if torch.is_tensor(x)}
        for x in result if isinstance(result, tuple | list) else [result]:
            if torch.is_tensor(x) and x.untyped_storage().data_ptr() not in given:
                self.bytes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("tokens", "vocabulary", "limit"), [(600, 20_000, 2**23), (3, 700_000, 4 * 4 * 700_000)])
def test_temporaries_do_not_grow_with_the_number_of_tokens(dtype, tokens, vocabulary, limit):
    p, q = torch.zeros(2, tokens, vocabulary, dtype=dtype)
    ids = torch.zeros(tokens, dtype=torch.long)
    with Allocated() as allocated:
        token_statistics(p, q, ids)
    assert limit / 2 < sum(allocated.bytes.values()) < limit * 1.1


def test_the_logits_are_left_as_they_are():
    p, q = torch.randn(2, 3, 9, generator=torch.Generator().manual_seed(7))
    kept = p.clone(), q.clone()
    token_statistics(p.requires_grad_(), q, torch.tensor([0, 1, 2]))
    assert torch.equal(p, kept[0]) and torch.equal(q, kept[1])
