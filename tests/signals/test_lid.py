import math
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from skdim.id import MLE
from torch.utils._python_dispatch import TorchDispatchMode

from syncheck import LidReferences
from syncheck.base.errors import CheckpointError, InputError


def by_hand(references, query, variant="mle"):
    """The estimate over all T references, or over all but the farthest, one term at a time in float64."""
    distances = sorted(math.dist(map(float, r), map(float, query)) for r in references)
    terms = distances if variant == "mle" else distances[:-1]
    farthest = terms[-1]
    total = sum(math.log(farthest / max(d, 1e-8 * farthest)) for d in terms)
    return (len(distances) - 1) / total


def lid(references, query, variant="mle"):
    lid_references = LidReferences({3: np.array(references, np.float32)}, variant=variant)
    return lid_references.lid_of_states({3: torch.tensor(np.array(query, np.float32))[None]}).item()


@contextmanager
def matmul_precision(name):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.fixture(params=["highest", "high"], ids=["by products", "by differences"])
def precision(request):
    """Full precision takes matrix products on a CPU; less of it, and any other device, takes differences."""
    with matmul_precision(request.param):
        yield


@pytest.mark.parametrize(
    "references",
    [[[1, 0], [0, 2], [-4, 0]], [[0, 2], [-4, 0], [1, 0]], [[1e3, 0], [0, 2e3], [-4e3, 0]]],
    ids=["three distances", "in another order", "at another scale"],
)
def test_three_distances(references):
    # distances 1, 2, 4: 2 / (ln 4 + ln 2 + ln 1) = 2 / ln 8
    assert lid(references, [0, 0]) == pytest.approx(2 / math.log(8), rel=1e-6)


def test_the_official_variant_drops_the_farthest_and_counts_all_that_are_left():
    # distances 1, 2, 4, 9 without the 9: 3 / (ln 4 + ln 2 + ln 1) = 3 / ln 8
    references = [[1, 0], [0, 2], [9, 0], [-4, 0]]
    assert lid(references, [0, 0], "official") == pytest.approx(3 / math.log(8), rel=1e-6)
    assert math.isnan(lid(references[:2], [0, 0], "official"))


def test_a_query_equal_to_a_reference_is_floored_at_1e_minus_8_of_the_farthest():
    # distances 0 (as 4e-8), 4: 1 / ln(1e8)
    assert lid([[1, 0], [5, 0]], [1, 0]) == pytest.approx(1 / math.log(1e8), rel=1e-6)


@pytest.mark.parametrize("variant", ["mle", "official"])
@pytest.mark.parametrize(
    "references",
    [np.empty((0, 2)), [[1, 0]], [[1, 0], [0, 1], [-1, 0]], [[0, 0], [0, 0]]],
    ids=["none", "one", "all as far", "all equal to the query"],
)
def test_undefined(references, variant, precision):
    assert math.isnan(lid(references, [0, 0], variant))


@pytest.mark.parametrize("count", [2, 3, 33, 500])
@pytest.mark.parametrize("variant", ["mle", "official"])
def test_references_that_are_all_equal_leave_it_undefined(count, variant, precision):
    """Whatever rounding makes of their equal distances."""
    source = np.random.default_rng(count)
    references = np.tile(source.normal(3, 1, 77), (count, 1))
    for query in (source.normal(size=77), references[0]):
        assert math.isnan(lid(references, query, variant))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30], ids=["NaN", "inf", "squares overflow"])
def test_an_activation_that_cannot_be_measured_spoils_no_other(value, precision):
    references = np.random.default_rng(6).normal(size=(9, 4))
    queries = torch.ones(3, 4)
    queries[1, 2] = value
    found = LidReferences({0: references}).lid_of_states({0: queries})[:, 0]
    assert found.isnan().tolist() == [False, True, False]
    assert found[0].item() == pytest.approx(by_hand(np.float32(references), [1] * 4), rel=1e-5)


def test_half_precision_is_widened_before_it_is_squared(precision):
    """60,000 squared is far beyond float16's 65,504."""
    references = np.float16([[6e4, 0], [0, 3e4], [-1e4, 1]])
    for dtype in (torch.float16, torch.bfloat16):
        query = torch.tensor([[-256.0, 512.0]], dtype=dtype)
        found = LidReferences({0: references}).lid_of_states({0: query}).item()
        assert found == pytest.approx(by_hand(references, query[0].tolist()), rel=1e-5)


def test_a_near_duplicate_far_from_the_origin_keeps_its_digits(precision):
    """The matrix product alone would lose the distance 0.05 between vectors of length 1,000."""
    source = np.random.default_rng(0)
    query = np.float32(source.normal(0, 1, 64) * 125)
    near = query.copy()
    near[0] += 0.05
    references = np.float32([near, *(source.normal(0, 1, (10, 64)) * 125)])
    assert lid(references, query) == pytest.approx(by_hand(references, query), rel=1e-5)


def test_more_near_duplicates_than_fit_into_one_part_keep_their_digits():
    """9,000 pairs of width 2,048 are 70 MiB, and 32 MiB are measured at once."""
    source = np.random.default_rng(1)
    queries = np.tile(np.float32(source.normal(0, 100, 2048)), (6, 1))
    near = queries[0] + source.normal(0, 1e-3, (1500, 2048)) * source.uniform(1, 9, (1500, 1))
    references = np.float32([*near, *(source.normal(0, 100, (50, 2048)))])
    found = LidReferences({0: references}).lid_of(0, queries)
    distances = np.linalg.norm(np.float64(references) - queries[0], axis=1)
    assert found == pytest.approx([1549 / np.log(distances.max() / distances).sum()] * 6, rel=1e-5)


@pytest.mark.parametrize("length", [0.0, 5.0])
@pytest.mark.parametrize("distance", [0.0, 1e-3])
def test_a_near_duplicate_counts_as_near_also_at_the_origin(length, distance, precision):
    source = np.random.default_rng(5)
    reference = np.full(60, length)
    query = reference + source.normal(0, 1, 60) * distance
    references = np.float32([reference, *source.normal(7, 1, (4, 60))])
    assert lid(references, query) == pytest.approx(by_hand(references, np.float32(query)), rel=1e-5)


@pytest.mark.parametrize("offset", [1.0, 10.0, 30.0, 300.0, 1e4])
def test_what_activations_have_in_common_costs_no_digits(offset, precision):
    """Activations of a language model can point nearly the same way; here their cosine is 0.5 to 1 - 1e-8."""
    source = np.random.default_rng(2)
    references, queries = (np.float32(source.normal(offset, 1, (n, 200))) for n in (60, 3))
    found = LidReferences({0: references}).lid_of_states({0: torch.from_numpy(queries)})[:, 0]
    assert found.tolist() == pytest.approx([by_hand(references, query) for query in queries], rel=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("count", [6, 30, 200])
def test_agrees_with_scikit_dimension(dimension, count, precision):
    """Its estimate at a point from all of its neighbours, which it searches itself, in float64.

    ``MLE`` without noise model and without bias correction is Levina and Bickel's; with n_neighbors one less it leaves
    the farthest out, as the official variant does, which has k in place of its k - 1. K is for whole data sets.
    """
    source = np.random.default_rng(dimension * 1000 + count)
    embedding = source.normal(size=(dimension, 40))
    references, queries = (np.float32(source.normal(size=(n, dimension)) @ embedding) for n in (count, 4))
    banks = {variant: LidReferences({7: references}, variant=variant) for variant in ("mle", "official")}
    found = {
        k: lid_references.lid_of_states({7: torch.from_numpy(queries)})[:, 0].tolist()
        for k, lid_references in banks.items()
    }
    for i, query in enumerate(queries):
        points = np.float64([query, *references])
        assert found["mle"][i] == pytest.approx(MLE(K=1).fit(points, n_neighbors=count).dimension_pw_[0], rel=2e-6)
        nearest = MLE(K=1).fit(points, n_neighbors=count - 1).dimension_pw_[0]
        assert found["official"][i] == pytest.approx(nearest * (count - 1) / (count - 2), rel=2e-6)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(3, 40),
    st.integers(1, 30),
    st.floats(-3, 3),
    st.sampled_from(["mle", "official"]),
    st.sampled_from(["highest", "high"]),
    st.integers(0, 2**31),
)
def test_agrees_with_one_term_at_a_time(count, width, exponent, variant, precision, seed):
    source = np.random.default_rng(seed)
    references, query = np.float32(source.normal(size=(count, width)) * 10**exponent), np.float32(np.zeros(width))
    with matmul_precision(precision):
        expected = by_hand(references, query, variant)
    # float32 rounds distances by 6e-8; LID is the reciprocal of a mean logarithm of their ratios.
    assert lid(references, query, variant) == pytest.approx(expected, rel=1e-4 + 1e-7 * expected)


def test_what_is_excluded_does_not_count():
    source = np.random.default_rng(2)
    references, queries = np.float32(source.normal(size=(9, 4))), np.float32(source.normal(size=(3, 4)))
    references[0] *= 10  # the farthest without the last
    references[8] *= 20
    excluded = np.zeros((3, 9), np.bool_)
    excluded[0, :4] = excluded[1, 8] = True
    excluded[2, 1:] = True  # one is left
    found = LidReferences({1: references}).lid_of(1, queries, excluded=excluded)
    assert found[:2] == pytest.approx([by_hand(references[4:], queries[0]), by_hand(references[:8], queries[1])])
    assert math.isnan(found[2])
    official = LidReferences({1: references}, variant="official").lid_of(1, queries, excluded=excluded)
    assert official[:2] == pytest.approx(
        [by_hand(references[4:], queries[0], "official"), by_hand(references[:8], queries[1], "official")]
    )
    assert math.isnan(official[2])


def test_many_queries_are_the_queries_one_by_one():
    source = np.random.default_rng(8)
    lid_references = LidReferences({1: source.normal(size=(20, 4))})
    queries, excluded = np.float32(source.normal(size=(600, 4))), source.random((600, 20)) < 0.3
    alone = [lid_references.lid_of(1, queries[i : i + 1], excluded=excluded[i : i + 1])[0] for i in range(600)]
    np.testing.assert_allclose(lid_references.lid_of(1, queries, excluded=excluded), alone, rtol=1e-5)
    assert lid_references.lid_of(1, queries[:0]).shape == (0,)


def test_a_layer_without_references_is_refused_by_name():
    with pytest.raises(InputError, match="layer"):
        LidReferences({2: np.eye(3)}).lid_of(1, np.ones((1, 3), np.float32))


@pytest.mark.parametrize("sentences", [0, 1, 2, 5])
def test_sentences_and_layers_together_are_each_by_itself(sentences, precision):
    source = torch.Generator().manual_seed(3)
    shapes = {4: (12, 6), 1: (12, 6), 2: (9, 6), 7: (12, 6), 3: (12, 8)}
    references = {k: torch.randn(*shape, generator=source).numpy() for k, shape in shapes.items()}
    lid_references = LidReferences(references)
    states = {k: torch.randn(sentences, shapes.get(k, (0, 5))[1], generator=source) for k in (3, 7, 9, 4, 1, 2)}
    found = lid_references.lid_of_states(states)
    assert (found.shape, found.dtype) == ((sentences, 6), torch.float32)
    assert found[:, 2].isnan().all()  # no references of layer 9
    for column, layer in enumerate(states):
        if layer != 9:
            expected = [by_hand(references[layer], state) for state in states[layer].tolist()]
            assert found[:, column].tolist() == pytest.approx(expected, rel=1e-5)
            np.testing.assert_allclose(lid_references.lid_of(layer, states[layer].numpy()), expected, rtol=1e-5)
    some = lid_references.lid_of_states({7: states[7], 4: states[4]})  # two of the three that are kept together
    torch.testing.assert_close(some, found[:, [1, 3]], rtol=1e-5, atol=0)


def test_without_references_nothing_is_defined():
    assert LidReferences({}).lid_of_states({3: torch.ones(2, 4)}).isnan().tolist() == [[True], [True]]


def test_a_bank_moves_whole_and_only_if_it_must():
    lid_references = LidReferences({1: np.eye(3), 4: np.ones((2, 3))}, variant="official")
    assert lid_references.to("cpu") is lid_references
    moved = lid_references.to("meta")
    assert (moved.layers, moved.variant) == ((1, 4), "official")
    assert {x.device.type for x in moved.references.values()} == {"meta"}
    assert {x.device.type for x in lid_references.references.values()} == {"cpu"}


def test_autocast_costs_no_digits(precision):
    source = np.random.default_rng(9)
    references, query = np.float32(source.normal(size=(30, 16))), np.float32(source.normal(size=16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert lid(references, query) == pytest.approx(by_hand(references, query), rel=1e-5)


class Operations(TorchDispatchMode):
    """Names of the operations that ran."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def test_differences_never_wait_for_the_device():
    """Nothing in them has a size or a value that the host would have to read."""
    lid_references = LidReferences({k: np.eye(5) for k in (1, 2)}, variant="official")
    waiting = {"nonzero", "_local_scalar_dense", "masked_select", "unique", "equal", "is_nonzero"}
    for name, waits in (("high", set()), ("highest", {"nonzero"})):
        with matmul_precision(name), Operations() as operations:
            lid_references.lid_of_states({k: torch.ones(2, 5) for k in (1, 2)})
        assert operations.names & waiting == waits


def test_layers_are_named_in_ascending_order():
    assert LidReferences({2: np.eye(3), 1: np.eye(3), 9: np.eye(4), 4: np.eye(3)}).layers == (1, 2, 4, 9)


def test_activations_of_another_width():
    with pytest.raises(InputError, match="width"):
        LidReferences({2: np.eye(3)}).lid_of_states({2: torch.ones(1, 4)})


@pytest.mark.parametrize("shapes", [{}, {2: (3,)}, {2: (1, 3), 4: (2, 3)}, {2: (1, 1, 3)}], ids=str)
def test_states_whose_sentences_do_not_agree(shapes):
    with pytest.raises(InputError, match=r"\(N, H\)"):
        LidReferences({2: np.eye(3)}).lid_of_states({k: torch.ones(shape) for k, shape in shapes.items()})


def test_an_unknown_variant():
    with pytest.raises(InputError, match="'mean'"):
        LidReferences({2: np.eye(3)}, variant="mean")


@pytest.mark.parametrize(
    "array",
    [np.ones(3), np.array([[1.0, np.nan]]), np.array([[1.0, 1e39]]), np.ones((2, 2, 2))],
    ids=["1-d", "NaN", "beyond float32", "3-d"],
)
def test_references_that_cannot_be_used(array):
    with pytest.raises(InputError, match=r"\(T, H\)"):
        LidReferences({0: array})


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_saved_equals_loaded(tmp_path, dtype):
    arrays = {k: np.random.default_rng(k).normal(size=(6, 5)).astype(dtype) for k in (1, 4)}
    LidReferences(arrays).save(tmp_path / "lid_references.safetensors")
    loaded = LidReferences.load(tmp_path / "lid_references.safetensors")
    assert loaded.layers == (1, 4)
    for layer, array in arrays.items():
        assert torch.equal(loaded.references[layer], torch.tensor(array, dtype=torch.float32))


@pytest.mark.parametrize("variant", ["mle", "official"])
def test_the_variant_is_saved(tmp_path, variant):
    LidReferences({1: np.eye(3)}, variant=variant).save(tmp_path / "lid_references.safetensors")
    assert LidReferences.load(tmp_path / "lid_references.safetensors").variant == variant


def test_a_file_with_an_unknown_variant(tmp_path):
    save_file({"layer_1": np.eye(3)}, tmp_path / "lid_references.safetensors", metadata={"variant": "newer"})
    with pytest.raises(CheckpointError, match="'newer'"):
        LidReferences.load(tmp_path / "lid_references.safetensors")


def test_activations_too_large_for_half_precision_are_saved_in_full(tmp_path):
    array = np.array([[1e5, 1.0], [0.0, 2.0]], np.float32)
    LidReferences({1: array}).save(tmp_path / "lid_references.safetensors")
    assert torch.equal(
        LidReferences.load(tmp_path / "lid_references.safetensors").references[1], torch.from_numpy(array)
    )


def test_files_that_name_no_variant_hold_levina_and_bickels(tmp_path):
    save_file({"layer_1": np.eye(3)}, tmp_path / "lid_references.safetensors")
    assert LidReferences.load(tmp_path / "lid_references.safetensors").variant == "mle"


def test_npz_is_read(tmp_path):
    np.savez(tmp_path / "lid_references.npz", layer_2=np.eye(3))
    assert LidReferences.load(tmp_path / "lid_references.npz").layers == (2,)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04 not an archive", b"\xff" * 64], ids=["missing", "empty", "zip", "ff"]
)
def test_files_that_cannot_be_read(tmp_path, suffix, content):
    path = tmp_path / f"bank{suffix}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=path.name):
        LidReferences.load(path)


def test_one_array_alone_is_no_archive(tmp_path):
    np.save(tmp_path / "lid_references.npy", np.eye(3))
    (tmp_path / "lid_references.npy").rename(tmp_path / "lid_references.npz")
    with pytest.raises(CheckpointError, match="readable"):
        LidReferences.load(tmp_path / "lid_references.npz")


def test_a_pickled_array_is_not_loaded(tmp_path):
    np.savez(tmp_path / "lid_references.npz", layer_2=np.array([{}], dtype=object))
    with pytest.raises(CheckpointError):
        LidReferences.load(tmp_path / "lid_references.npz")


@pytest.mark.parametrize("name", ["block_2", "layer_x", "layer"])
def test_arrays_with_other_names(tmp_path, name):
    save_file({name: np.eye(2, dtype=np.float32)}, tmp_path / "lid_references.safetensors")
    with pytest.raises(CheckpointError, match="layer_<k>"):
        LidReferences.load(tmp_path / "lid_references.safetensors")
