"""The bundled aligner: packing, windows and the files it reads."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import subprocess
import sys
from copy import deepcopy
from functools import partial
from importlib.resources import files

import pytest
import torch
from cross_encoder import collate, load_cross_encoder
from safetensors.torch import load_file, save_file

from syncheck.aligners import BundledAligner, load_aligner
from syncheck.aligners.bundled import (
    CLAIM,
    CLAIM_AFTER_SAME,
    CLAIM_IN_EVIDENCE,
    CPU_BATCH_TOKENS,
    EVIDENCE,
    EVIDENCE_IN_CLAIM,
    MAX_CLAIM_TOKENS,
    MAX_EVIDENCE_TOKENS,
    Int8CrossEncoder,
    encode_pair,
    read_packed,
)
from syncheck.aligners.reader import eight_bits
from syncheck.aligners.reader.eight_bits import Int8Linear
from syncheck.base.errors import CheckpointError
from syncheck.base.pretrained import weights_sha256
from syncheck.reading import EvidenceIndex

ROUNDING = 0.01
"""What rounding the inputs of matrix products may change in a probability of the small random network."""


def one_window_score(folder, evidence, claim, *, coverage=0.0, novel_pairs=0):
    """Score of one pair that fits a window, computed without the aligner and in float32 throughout."""
    model, tokenizer = load_cross_encoder(folder), read_packed(folder).tokenizer
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in (evidence, claim)]
    with torch.inference_mode():
        logit = model(*collate([encode_pair(*ids)]))
    offset = 0.5 * coverage - 0.75 * math.log1p(novel_pairs) - 0.25  # what the folder was saved with
    return torch.sigmoid(1.5 * logit + offset).item()


def test_token_types_say_which_tokens_match():
    pair = encode_pair([7, 8, 9, 8], [8, 9, 5, 7])
    assert pair.ids == [101, 7, 8, 9, 8, 102, 8, 9, 5, 7, 102]
    assert pair.types == [
        EVIDENCE,
        *[EVIDENCE_IN_CLAIM] * 4,
        EVIDENCE,
        *[CLAIM_IN_EVIDENCE, CLAIM_AFTER_SAME, CLAIM, CLAIM_IN_EVIDENCE],
        EVIDENCE,
    ]


def test_short_context_is_one_window_in_text_order(bundled_folder):
    aligner = BundledAligner.load(bundled_folder)
    passages = ["Rain fell. The bridge was built in 1903.", "It spans the Avon."]
    (support,) = aligner.align(passages, ["The bridge spans the Avon."])
    joined = "The bridge was built in 1903. It spans the Avon."
    expected = one_window_score(bundled_folder, joined, "The bridge spans the Avon.", coverage=1.0, novel_pairs=1)
    assert support.score == pytest.approx(expected, abs=ROUNDING)
    assert (support.evidence.passage, support.evidence.text) == (1, "It spans the Avon.")
    assert support.evidence.score == support.score


def test_chunk_longer_than_a_window_is_scored_in_overlapping_parts(bundled_folder):
    aligner = BundledAligner.load(bundled_folder)
    words = " ".join(f"{'ab' * 5}{i:02d}" for i in range(25))  # 300 characters, one token each
    (support,) = aligner.align([words], ["ab12."])
    letters = words.replace(" ", "")
    stride = MAX_EVIDENCE_TOKENS - 16
    parts = [letters[i : i + MAX_EVIDENCE_TOKENS] for i in (0, stride, 2 * stride)]
    expected = max(one_window_score(bundled_folder, p, "ab12.", novel_pairs=1) for p in parts)
    assert support.score == pytest.approx(expected, abs=ROUNDING)


def test_long_claim_is_as_weak_as_its_weakest_part(bundled_folder):
    aligner = BundledAligner.load(bundled_folder)
    claim = "abcdefghij" * 15  # 150 tokens: two parts
    (support,) = aligner.align(["abc def."], [claim])
    parts = [claim[:MAX_CLAIM_TOKENS], claim[MAX_CLAIM_TOKENS - 16 :]]
    expected = min(one_window_score(bundled_folder, "abc def.", p) for p in parts)
    assert support.score == pytest.approx(expected, abs=ROUNDING)


def test_packaged_aligner_fits_the_package_and_tells_support_from_contradiction():
    aligner = BundledAligner.load()
    passages = ["The Avon bridge was built in 1903 by Tom Smith. It is 120 metres long and carries two roads."]
    supported, wrong_year, elsewhere = aligner.align(
        passages,
        ["The bridge was built by Tom Smith in 1903.", "The bridge was built by Tom Smith in 1847.", "Cats sleep."],
    )
    assert supported.score > wrong_year.score
    assert supported.score > elsewhere.score


def test_packaged_aligner_finds_support_at_the_end_of_a_long_context():
    aligner = BundledAligner.load()
    filler = "The mill ground corn for the valley until the railway came. " * 400
    last = "Astronomers in Paris saw the comet of 1811 for nine months."
    claim = "The comet of 1811 was seen for nine months."
    found, missed = aligner.align([filler, last], [claim])[0], aligner.align([filler], [claim])[0]
    assert (found.evidence.passage, found.evidence.text) == (1, last)
    assert found.score > missed.score + 0.2


def test_int8_storage_rounds_each_row_by_half_a_step(bundled_folder):
    arrays = load_file(bundled_folder / "model.safetensors")
    model = load_cross_encoder(bundled_folder)
    name = "bert.encoder.layer.0.attention.self.query.weight"
    restored = arrays[f"{name}.int8"].float() * arrays[f"{name}.step"]
    assert torch.equal(model.state_dict()[name], restored)
    assert arrays[f"{name}.int8"].abs().amax(1).eq(127).all()  # every row uses the whole range


def packaged():
    """Return the packaged network in integers and in float32, and pairs of several lengths."""
    folder = files("syncheck") / "assets" / "aligner"
    packed = read_packed(folder)
    texts = [
        ("The bridge was built in 1903 by Tom Smith.", "Tom Smith built it in 1903."),
        ("It is 120 metres long and carries two roads. Rain fell on the valley for a week.", "It is 90 metres long."),
        ("The mill ground corn until the railway came, and was then sold to the town for its museum.", "Cats sleep."),
    ]
    pairs = [encode_pair(*(packed.tokenizer.encode(t, add_special_tokens=False).ids for t in pair)) for pair in texts]
    return Int8CrossEncoder(packed.sizes, packed.arrays), load_cross_encoder(folder), pairs


def test_integers_give_the_logits_of_float32():
    integers, floats, pairs = packaged()
    with torch.inference_mode():
        expected = floats(*collate(pairs))
    assert integers(pairs) == pytest.approx(expected, abs=0.15)  # of logits from -5 to 5


def test_a_logit_does_not_depend_on_the_batch():
    integers, _, pairs = packaged()
    alone = torch.cat([integers([pair]) for pair in pairs])
    assert torch.equal(integers(pairs), alone)
    assert torch.equal(integers(pairs[::-1]), alone.flip(0))


def test_autocast_of_the_caller_changes_nothing():
    integers, _, pairs = packaged()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = integers(pairs)
    assert torch.equal(mixed, integers(pairs))


ENGINES = {"integers": "x86", "packed floats": "x86", "floats": "qnnpack"}
"""PyTorch's engine of quantised products, by the way of multiplying."""


def use_processor(way, monkeypatch):
    if ENGINES[way] not in torch.backends.quantized.supported_engines:
        pytest.skip(f"PyTorch has no {ENGINES[way]} here")
    if way == "integers" and not eight_bits.multiplies_integers():
        pytest.skip("this processor does not multiply integers fast")
    monkeypatch.setattr(eight_bits, "multiplies_integers", lambda: way == "integers")
    monkeypatch.setattr(torch.backends.quantized, "engine", ENGINES[way])


@pytest.fixture(params=ENGINES)
def processor(request, monkeypatch):
    use_processor(request.param, monkeypatch)
    return request.param


def test_products_are_the_same_in_every_way_of_multiplying(monkeypatch):
    logits, digests = [], set()
    for way in ENGINES:
        use_processor(way, monkeypatch)
        network, _, pairs = packaged()
        logits.append(network(pairs[:4]))
        digests.add(weights_sha256(network))
    assert all(torch.equal(logits[0], other) for other in logits[1:])
    assert len(digests) == 1


@pytest.mark.parametrize("instructions", ["ALL", "AVX2"])
def test_no_sum_of_products_overflows_whatever_onednn_may_use(instructions):
    program = """
import torch
from syncheck.aligners.reader.eight_bits import Int8Linear
print(Int8Linear(torch.full((1, 64), 127, dtype=torch.int8), torch.ones(1, 1), torch.zeros(1))(torch.ones(1, 64)))
"""
    run = partial(subprocess.run, capture_output=True, text=True, check=True, timeout=120)
    found = run([sys.executable, "-c", program], env={**os.environ, "ONEDNN_MAX_CPU_ISA": instructions})
    assert found.stdout.strip() == "tensor([[8128.]])"


@pytest.mark.parametrize(
    ("way", "library", "packing"),
    [
        ("integers", torch.ops.onednn, "qlinear_prepack"),
        ("packed floats", torch.ops.quantized, "linear_prepack_fp16"),
    ],
)
def test_weights_are_packed_once_and_can_be_copied(way, library, packing, monkeypatch):
    use_processor(way, monkeypatch)
    packed, pack = [], getattr(library, packing)
    monkeypatch.setattr(library, packing, lambda *weights: packed.append(weights) or pack(*weights))
    linear = Int8Linear(torch.ones(2, 8, dtype=torch.int8), torch.ones(2, 1), torch.zeros(2))
    first = linear(torch.ones(1, 8))
    assert torch.equal(first, linear(torch.ones(1, 8)))
    assert len(packed) == 1
    for copied in (deepcopy(linear), pickle.loads(pickle.dumps(linear))):
        assert torch.equal(first, copied(torch.ones(1, 8)))


def test_a_token_without_any_input_gets_the_bias(processor):
    linear = Int8Linear(
        torch.full((2, 8), 100, dtype=torch.int8), torch.tensor([[0.5], [0.25]]), torch.tensor([1, -2.0])
    )
    inputs = torch.cat([torch.zeros(1, 8), torch.eye(8)[:1] * 2])
    assert linear(inputs) == pytest.approx(torch.tensor([[1.0, -2.0], [101.0, 48.0]]), rel=1e-6)


def test_pairs_are_scored_in_order_some_at_once(bundled_folder):
    class Recorder:
        """Scores a pair by its length."""

        def __init__(self):
            self.batches = []

        def __call__(self, pairs):
            self.batches.append([len(pair) for pair in pairs])
            return torch.tensor([len(pair) / 100 for pair in pairs])

    model, tokenizer = Recorder(), read_packed(bundled_folder).tokenizer
    claims = ["ab" * (n % 7 + 10) for n in range(40)] + ["abc"]
    scores = [s.score for s in BundledAligner(model, tokenizer, coverage=2.0).align(["abc " + "d" * 90 + "."], claims)]
    lengths = [len(claim) + 3 + 94 for claim in claims]  # three special tokens and the context
    assert [length for batch in model.batches for length in batch] == lengths
    sizes = [sum(batch) for batch in model.batches]
    assert max(sizes) <= CPU_BATCH_TOKENS
    assert all(size + later[0] > CPU_BATCH_TOKENS for size, later in zip(sizes, model.batches[1:], strict=False))
    offsets = [0.0] * 40 + [2.0]  # only the last claim's word is in the context
    expected = torch.tensor([length / 100 + offset for length, offset in zip(lengths, offsets, strict=True)]).sigmoid()
    assert scores == pytest.approx(expected.tolist(), abs=1e-6)


def test_what_is_kept_of_one_context_does_not_serve_another():
    contexts = (["The mill was sold in 1956."], ["A farm lies far from the sea.", "The mill burnt down."])
    claim, aligner = ["The mill was sold in 1956."], BundledAligner.load()
    for context in (*contexts, *contexts):
        assert aligner.align(context, claim) == BundledAligner.load().align(context, claim)


def test_folder_of_the_format_is_found_by_load_aligner(bundled_folder):
    aligner = load_aligner(bundled_folder)
    assert isinstance(aligner, BundledAligner)


def test_missing_file_is_named(bundled_folder, tmp_path):
    shutil.copy(bundled_folder / "config.json", tmp_path)
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        BundledAligner.load(tmp_path)


DAMAGE = {
    "cut short": ("config.json", lambda data: data[:40]),
    "a list": ("config.json", lambda data: b"[]"),
    "no text": ("config.json", lambda data: b"\xff\xfe"),
    "no encoder": ("config.json", lambda data: data.replace(b'"encoder"', b'"network"')),
    "encoder a list": ("config.json", lambda data: json.dumps(json.loads(data) | {"encoder": []}).encode()),
    "no size": ("config.json", lambda data: data.replace(b'"hidden_size"', b'"hidden"')),
    "size in words": ("config.json", lambda data: data.replace(b'"hidden_size": 32', b'"hidden_size": "small"')),
    "odd size": ("config.json", lambda data: data.replace(b'"num_attention_heads": 4', b'"num_attention_heads": 5')),
    "no calibration": ("config.json", lambda data: data.replace(b'"calibration"', b'"calibrated"')),
    "calibration of another kind": ("config.json", lambda data: data.replace(b'"scale"', b'"slope"')),
    "calibration in words": ("config.json", lambda data: data.replace(b'"scale": 1.5', b'"scale": "steep"')),
    "half the weights": ("model.safetensors", lambda data: data[: len(data) // 2]),
    "no weights": ("model.safetensors", lambda data: b""),
    "half the tokenizer": ("tokenizer.json", lambda data: data[: len(data) // 2]),
    "another tokenizer": ("tokenizer.json", lambda data: b'{"a": 1}'),
    "a tokenizer of bytes": ("tokenizer.json", lambda data: b"\xff\xfe"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_folder_is_refused(bundled_folder, tmp_path, damage):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    name, damaged = DAMAGE[damage]
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damaged(data))
    assert (tmp_path / name).read_bytes() != data
    for load in (BundledAligner.load, load_aligner, load_cross_encoder):
        with pytest.raises(CheckpointError):
            load(tmp_path)


def test_other_format_is_refused(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.json").write_text(json.dumps({"format": "syncheck.cross-encoder.v9"}))
    with pytest.raises(CheckpointError, match=r"v9"):
        BundledAligner.load(tmp_path)


def test_missing_weights_are_refused(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    arrays = load_file(tmp_path / "model.safetensors")
    del arrays["head.bias"]
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"head\.bias"):
        BundledAligner.load(tmp_path)


def test_weights_that_no_layer_has_are_refused(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    arrays = load_file(tmp_path / "model.safetensors")
    save_file(arrays | {"tail.bias": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="tail"):
        BundledAligner.load(tmp_path)


@pytest.mark.parametrize("shape", [(32,), (1, 32), (32, 32)])
def test_a_step_for_each_row_is_needed(bundled_folder, tmp_path, shape):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    name = "bert.encoder.layer.0.attention.self.query.weight.step"
    arrays = load_file(tmp_path / "model.safetensors")
    save_file(arrays | {name: torch.ones(shape)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="step"):
        BundledAligner.load(tmp_path)


def test_truncation_and_padding_of_a_stored_tokenizer_are_off(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    tokenizer = read_packed(tmp_path).tokenizer
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = read_packed(tmp_path).tokenizer
    assert [len(found.encode(text).ids) for text in ("ab", "abcdef")] == [2, 6]


def test_weights_of_another_shape_are_refused(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["encoder"]["intermediate_size"] = 50
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="48"):
        BundledAligner.load(tmp_path)


def test_evidence_index_serves_the_same_chunks_as_the_aligner(bundled_folder):
    passages = ["Rain fell. The bridge was built in 1903."]
    chunks = {chunk.text for chunk in EvidenceIndex(passages).chunks}
    (support,) = BundledAligner.load(bundled_folder).align(passages, ["A bridge was built."])
    assert support.evidence.text in chunks
