import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from syncheck import CheckpointError, InputError, ReferenceBank


def by_hand(references, query):
    """Levina and Bickel's estimate over all T references, one term at a time in float64."""
    distances = sorted(math.dist(map(float, r), map(float, query)) for r in references)
    farthest = distances[-1]
    total = sum(math.log(farthest / max(d, 1e-8 * farthest)) for d in distances)
    return (len(distances) - 1) / total


def lid(references, query):
    bank = ReferenceBank({3: np.array(references, np.float32)})
    return bank.lid({3: np.array(query, np.float32)})[3]


def test_three_distances():
    # distances 1, 2, 4: 2 / (ln 4 + ln 2 + ln 1) = 2 / ln 8
    assert lid([[1, 0], [0, 2], [-4, 0]], [0, 0]) == pytest.approx(2 / math.log(8), rel=1e-6)


def test_order_of_references_does_not_matter():
    assert lid([[0, 2], [-4, 0], [1, 0]], [0, 0]) == pytest.approx(2 / math.log(8), rel=1e-6)


def test_scale_does_not_matter():
    assert lid([[1e3, 0], [0, 2e3], [-4e3, 0]], [0, 0]) == pytest.approx(2 / math.log(8), rel=1e-6)


def test_a_query_equal_to_a_reference_is_floored_at_1e_minus_8_of_the_farthest():
    # distances 0 (as 4e-8), 4: 1 / ln(1e8)
    assert lid([[1, 0], [5, 0]], [1, 0]) == pytest.approx(1 / math.log(1e8), rel=1e-6)


@pytest.mark.parametrize(
    "references",
    [np.empty((0, 2)), [[1, 0]], [[1, 0], [0, 1], [-1, 0]], [[0, 0], [0, 0]]],
    ids=["none", "one", "all as far", "all equal to the query"],
)
def test_undefined(references):
    assert math.isnan(lid(references, [0, 0]))


def test_a_near_duplicate_far_from_the_origin_keeps_its_digits():
    """The matrix product alone would lose the distance 0.05 between vectors of length 1,000."""
    source = np.random.default_rng(0)
    query = np.float32(source.normal(0, 1, 64) * 125)
    near = query.copy()
    near[0] += 0.05
    references = np.float32([near, *(source.normal(0, 1, (10, 64)) * 125)])
    assert lid(references, query) == pytest.approx(by_hand(references, query), rel=1e-5)


def test_agrees_with_the_formula_of_scikit_dimension():
    """``skdim.id.MLE``'s inverse-mean form with the k-th neighbour among the k: k - 1 terms, unbiased by none."""
    source = np.random.default_rng(1)
    references, queries = source.normal(size=(50, 12)), source.normal(size=(5, 12))
    found = ReferenceBank({0: references}).lid_of(0, np.float32(queries))
    distances = np.sort(np.linalg.norm(queries[:, None] - references, axis=-1), axis=1)  # (5, T)
    neighbours = distances[:, :-1]
    expected = 1 / np.mean(np.log(distances[:, -1:] / neighbours), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 40), st.integers(1, 30), st.floats(-3, 3), st.integers(0, 2**31))
def test_agrees_with_one_term_at_a_time(count, width, exponent, seed):
    source = np.random.default_rng(seed)
    references, query = np.float32(source.normal(size=(count, width)) * 10**exponent), np.float32(np.zeros(width))
    assert lid(references, query) == pytest.approx(by_hand(references, query), rel=1e-4)


def test_what_is_excluded_does_not_count():
    source = np.random.default_rng(2)
    references, queries = np.float32(source.normal(size=(9, 4))), np.float32(source.normal(size=(3, 4)))
    excluded = np.zeros((3, 9), np.bool_)
    excluded[0, :4] = excluded[1, 8] = True
    excluded[2, 1:] = True  # one is left
    found = ReferenceBank({1: references}).lid_of(1, queries, excluded=excluded)
    assert found[:2] == pytest.approx([by_hand(references[4:], queries[0]), by_hand(references[:8], queries[1])])
    assert math.isnan(found[2])


def test_layers_without_activation_or_references_are_left_out():
    bank = ReferenceBank({2: np.eye(3), 1: np.eye(3)})
    assert bank.layers == (1, 2)
    assert set(bank.lid({2: np.ones(3, np.float32), 7: np.ones(3, np.float32)})) == {2}


def test_activations_of_another_width():
    with pytest.raises(InputError, match="width 3, but the model's activations have 4"):
        ReferenceBank({2: np.eye(3)}).lid({2: np.ones(4, np.float32)})


@pytest.mark.parametrize(
    "array", [np.ones(3), np.array([[1.0, np.nan]]), np.ones((2, 2, 2))], ids=["1-d", "NaN", "3-d"]
)
def test_references_that_cannot_be_used(array):
    with pytest.raises(InputError, match=r"finite \(T, H\) array"):
        ReferenceBank({0: array})


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_saved_equals_loaded(tmp_path, dtype):
    arrays = {k: np.random.default_rng(k).normal(size=(6, 5)).astype(dtype) for k in (1, 4)}
    ReferenceBank(arrays).save(tmp_path / "bank.safetensors")
    loaded = ReferenceBank.load(tmp_path / "bank.safetensors")
    assert loaded.layers == (1, 4)
    for layer, array in arrays.items():
        assert torch.equal(loaded.references[layer], torch.tensor(array, dtype=torch.float32))


def test_npz_is_read(tmp_path):
    np.savez(tmp_path / "bank.npz", layer_2=np.eye(3))
    assert ReferenceBank.load(tmp_path / "bank.npz").layers == (2,)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04 not an archive", b"\xff" * 64], ids=["missing", "empty", "zip", "ff"]
)
def test_files_that_cannot_be_read(tmp_path, suffix, content):
    path = tmp_path / f"bank{suffix}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a readable file of LID references"):
        ReferenceBank.load(path)


def test_one_array_alone_is_no_archive(tmp_path):
    np.save(tmp_path / "bank.npy", np.eye(3))
    (tmp_path / "bank.npy").rename(tmp_path / "bank.npz")
    with pytest.raises(CheckpointError, match="not a readable file"):
        ReferenceBank.load(tmp_path / "bank.npz")


def test_a_pickled_array_is_not_loaded(tmp_path):
    np.savez(tmp_path / "bank.npz", layer_2=np.array([{}], dtype=object))
    with pytest.raises(CheckpointError):
        ReferenceBank.load(tmp_path / "bank.npz")


@pytest.mark.parametrize("name", ["block_2", "layer_x", "layer"])
def test_arrays_with_other_names(tmp_path, name):
    save_file({name: np.eye(2, dtype=np.float32)}, tmp_path / "bank.safetensors")
    with pytest.raises(CheckpointError, match="expected names layer_<k>"):
        ReferenceBank.load(tmp_path / "bank.safetensors")
