"""The bundled aligner: packing, windows and the files it reads."""

from __future__ import annotations

import gc
import json
import shutil
import sys
from math import log
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file, save_file

import syncheck
from syncheck.alignment import BundledAligner, EvidenceIndex, load_aligner
from syncheck.alignment.bundled import CPU_BATCH_TOKENS, MAX_CLAIM_TOKENS, MAX_EVIDENCE_TOKENS
from syncheck.alignment.int8_encoder import Int8CrossEncoder, Int8Linear
from syncheck.alignment.packed import read_packed, save_packed
from syncheck.alignment.pairs import align_tokens
from syncheck.errors import CheckpointError

PACKAGED = Path(syncheck.__file__).parent / "assets" / "aligner"
ROUNDING = 0.1
"""What rounding the inputs of matrix products may change in the log-odds of the small random network."""
EVIDENCE, EVIDENCE_ELSEWHERE, EVIDENCE_ALIGNED, EVIDENCE_SKIPPED, CLAIM, CLAIM_ELSEWHERE, CLAIM_ALIGNED = range(7)
CONTRADICTED, SUPPORTED, NOT_STATED = range(3)


def pair_of(tokenizer, evidence, claim):
    return align_tokens(*(tokenizer.encode(text, add_special_tokens=False).ids for text in (evidence, claim)))


def log_odds_of(logits):
    others = torch.logsumexp(logits[:, [CONTRADICTED, NOT_STATED]], dim=1)
    return (logits[:, SUPPORTED] - others).tolist()


@pytest.fixture
def in_one_window(bundled_folder, read_in_float32):
    """Log-odds and P(contradicted) of a pair that fits a window, in float32 throughout."""
    read, tokenizer = read_in_float32(bundled_folder), read_packed(bundled_folder).tokenizer

    def one(evidence, claim):
        logits = read([pair_of(tokenizer, evidence, claim)])
        return log_odds_of(logits)[0], logits.softmax(1)[0, CONTRADICTED].item()

    return one


@pytest.mark.parametrize(
    ("evidence", "claim", "evidence_types", "claim_types", "twins"),
    [
        pytest.param(
            [7, 8, 9, 8],
            [8, 9, 5, 7],
            [EVIDENCE_ELSEWHERE, EVIDENCE_ALIGNED, EVIDENCE_ALIGNED, EVIDENCE_ELSEWHERE],
            [CLAIM_ALIGNED, CLAIM_ALIGNED, CLAIM, CLAIM_ELSEWHERE],
            [2, 3, 4, 5],
            id="what is out of order is elsewhere",
        ),
        pytest.param(
            [7, 1, 2, 8],
            [7, 5, 8],
            [EVIDENCE_ALIGNED, EVIDENCE_SKIPPED, EVIDENCE_SKIPPED, EVIDENCE_ALIGNED],
            [CLAIM_ALIGNED, CLAIM, CLAIM_ALIGNED],
            [1, 2, 4],
            id="what is in the place of something else meets it",
        ),
        pytest.param(
            [7, *[1] * 9, 8],
            [7, 8],
            [EVIDENCE_ALIGNED, *[EVIDENCE] * 9, EVIDENCE_ALIGNED],
            [CLAIM_ALIGNED, CLAIM_ALIGNED],
            [1, 11],
            id="nine tokens are no skip",
        ),
        pytest.param(
            [4, 8, 9],
            [1, 2, 3, 8],
            [EVIDENCE, EVIDENCE_ALIGNED, EVIDENCE],
            [CLAIM, CLAIM, CLAIM, CLAIM_ALIGNED],
            [0, 0, 1, 2],
            id="before the first",
        ),
        pytest.param([8], [8, 1, 2], [EVIDENCE_ALIGNED], [CLAIM_ALIGNED, CLAIM, CLAIM], [1, 2, 2], id="after the last"),
        pytest.param([4, 8], [1, 2], [EVIDENCE] * 2, [CLAIM] * 2, [0, 0], id="nothing shared"),
    ],
)
def test_tokens_in_both_have_types_and_twins(evidence, claim, evidence_types, claim_types, twins):
    pair = align_tokens(evidence, claim)
    assert pair.ids == [101, *evidence, 102, *claim, 102]
    assert pair.types == [EVIDENCE, *evidence_types, EVIDENCE, *claim_types, EVIDENCE]
    assert pair.twins == [0] * (len(evidence) + 2) + [*twins, 0]
    assert len(pair) == len(evidence) + len(claim) + 3


def test_short_context_is_one_window_in_text_order(bundled_folder, in_one_window):
    aligner = BundledAligner.load(bundled_folder)
    passages = ["Rain fell. The bridge was built in 1903.", "It spans the Avon."]
    (support,) = aligner.align(passages, ["The bridge spans the Avon."])
    joined = "The bridge was built in 1903. It spans the Avon."
    log_odds, contradicted = in_one_window(joined, "The bridge spans the Avon.")
    assert support.log_odds == pytest.approx(log_odds, abs=ROUNDING)
    assert support.contradicted == pytest.approx(contradicted, abs=ROUNDING)
    assert (support.evidence.passage, support.evidence.text) == (1, "It spans the Avon.")
    assert support.evidence.score == support.score


def test_the_score_is_the_calibrated_log_odds(bundled_folder):
    (support,) = BundledAligner.load(bundled_folder).align(["The bridge was built."], ["It was built."])
    expected = torch.tensor(1.5 * support.log_odds - 0.25).sigmoid()  # what the folder was saved with
    assert support.score == pytest.approx(expected.item(), abs=1e-6)


def test_chunk_longer_than_a_window_is_scored_in_overlapping_parts(bundled_folder, in_one_window):
    aligner = BundledAligner.load(bundled_folder)
    words = " ".join(f"{'ab' * 5}{i:02d}" for i in range(25))  # 300 characters, one token each
    (support,) = aligner.align([words], ["ab12."])
    letters = words.replace(" ", "")
    stride = MAX_EVIDENCE_TOKENS - 16
    parts = [letters[i : i + MAX_EVIDENCE_TOKENS] for i in (0, stride, 2 * stride)]
    expected = max(in_one_window(part, "ab12.")[0] for part in parts)
    assert support.log_odds == pytest.approx(expected, abs=ROUNDING)


def test_long_claim_is_as_weak_as_its_weakest_part(bundled_folder, in_one_window):
    aligner = BundledAligner.load(bundled_folder)
    claim = "abcdefghij" * 15  # 150 tokens: two parts
    (support,) = aligner.align(["abc def."], [claim])
    parts = [claim[:MAX_CLAIM_TOKENS], claim[MAX_CLAIM_TOKENS - 16 :]]
    expected = min(in_one_window("abc def.", part)[0] for part in parts)
    assert support.log_odds == pytest.approx(expected, abs=ROUNDING)


class Scripted:
    """Reads what it is told from each pair."""

    def __init__(self, logits):
        self.logits = logits
        self.batches = []

    def __call__(self, pairs):
        self.batches.append([len(pair) for pair in pairs])
        return torch.tensor([self.logits(pair) for pair in pairs])


def test_the_three_outputs_become_log_odds_and_contradicted(bundled_folder):
    model = Scripted(lambda pair: [log(2), log(6), log(1)])  # 2 : 6 : 1
    (support,) = BundledAligner(model, read_packed(bundled_folder).tokenizer).align(["abc."], ["abd."])
    assert support.log_odds == pytest.approx(log(6 / 3))
    assert support.score == pytest.approx(6 / 9)
    assert support.contradicted == pytest.approx(2 / 9)


def test_what_is_contradicted_is_read_where_the_support_was_decided(bundled_folder):
    tokenizer = read_packed(bundled_folder).tokenizer
    logits = {  # by the first letters of the evidence and of the claim's part
        ("o", "o"): [0.0, 3.0, 0.0],
        ("t", "o"): [9.0, 0.0, 0.0],
        ("o", "b"): [0.0, 0.0, 5.0],
        ("t", "b"): [2.0, 1.0, 0.0],
    }

    def read(pair):
        return logits[tuple(tokenizer.id_to_token(pair.ids[i]) for i in (1, pair.ids.index(102) + 1))]

    passages = [word + " " + "a" * 137 + "." for word in ("one", "two")]  # a window each
    claim = "one two " + "c" * 58 + "b" * 40  # parts of 80 tokens, the second from the 65th on
    (support,) = BundledAligner(Scripted(read), tokenizer).align(passages, [claim])
    contradicted, supported, _ = torch.tensor(logits["t", "b"]).softmax(0).tolist()
    assert (support.contradicted, support.score) == pytest.approx((contradicted, supported))
    assert support.evidence.passage == 1


def test_pairs_are_scored_in_order_some_at_once(bundled_folder):
    model = Scripted(lambda pair: [log(0.25), len(pair) / 100, log(0.75)])
    claims = ["ab" * (n % 7 + 10) for n in range(40)] + ["abc"]
    aligner = BundledAligner(model, read_packed(bundled_folder).tokenizer)
    found = [support.log_odds for support in aligner.align(["abc " + "d" * 90 + "."], claims)]
    lengths = [len(claim) + 3 + 94 for claim in claims]  # three special tokens and the context
    assert [length for batch in model.batches for length in batch] == lengths
    sizes = [sum(batch) for batch in model.batches]
    assert max(sizes) <= CPU_BATCH_TOKENS
    assert all(size + later[0] > CPU_BATCH_TOKENS for size, later in zip(sizes, model.batches[1:], strict=False))
    assert found == pytest.approx([length / 100 for length in lengths], abs=1e-6)


def test_packaged_aligner_fits_the_package_and_tells_support_from_contradiction():
    aligner = BundledAligner.load()
    passages = ["The Avon bridge was built in 1903 by Tom Smith. It is 120 metres long and carries two roads."]
    supported, wrong_year, elsewhere = aligner.align(
        passages,
        ["The bridge was built by Tom Smith in 1903.", "The bridge was built by Tom Smith in 1847.", "Cats sleep."],
    )
    assert supported.score > wrong_year.score
    assert supported.score > elsewhere.score
    assert wrong_year.contradicted > max(supported.contradicted, elsewhere.contradicted)


def test_packaged_aligner_finds_support_at_the_end_of_a_long_context():
    aligner = BundledAligner.load()
    filler = "The mill ground corn for the valley until the railway came. " * 400
    last = "Astronomers in Paris saw the comet of 1811 for nine months."
    claim = "The comet of 1811 was seen for nine months."
    found, missed = aligner.align([filler, last], [claim])[0], aligner.align([filler], [claim])[0]
    assert (found.evidence.passage, found.evidence.text) == (1, last)
    assert found.score > missed.score


def test_int8_storage_rounds_each_row_by_half_a_step(bundled_folder, tmp_path, new_reader):
    packed = read_packed(bundled_folder)
    torch.manual_seed(5)
    weights = new_reader(packed.config).state_dict()
    save_packed(tmp_path, packed.config, weights, packed.tokenizer)
    arrays = load_file(tmp_path / "model.safetensors")
    name = "bert.encoder.layer.0.attention.self.query.weight"
    integers, step = arrays[f"{name}.int8"], arrays[f"{name}.step"]
    assert ((integers * step - weights[name]).abs() <= step / 2 + 1e-6).all()
    assert integers.abs().amax(1).eq(127).all()  # every row uses the whole range
    assert torch.equal(arrays["head.bias"], weights["head.bias"])


def packaged():
    """Return the packaged network, and pairs of several lengths."""
    packed = read_packed(PACKAGED)
    texts = [
        ("The bridge was built in 1903 by Tom Smith.", "Tom Smith built it in 1903."),
        ("It is 120 metres long and carries two roads. Rain fell on the valley for a week.", "It is 90 metres long."),
        ("The mill ground corn until the railway came, and was then sold to the town for its museum.", "Cats sleep."),
    ]
    return Int8CrossEncoder(packed.config, packed.arrays), [pair_of(packed.tokenizer, *pair) for pair in texts]


def test_integers_give_the_log_odds_of_float32(read_in_float32):
    integers, pairs = packaged()
    expected = log_odds_of(read_in_float32(PACKAGED)(pairs))
    assert log_odds_of(integers(pairs)) == pytest.approx(expected, abs=0.15)  # of log-odds from -6 to 5


def test_a_logit_does_not_depend_on_the_batch():
    integers, pairs = packaged()
    alone = torch.cat([integers([pair]) for pair in pairs])
    assert alone.shape == (3, 3)
    assert torch.equal(integers(pairs), alone)
    assert torch.equal(integers(pairs[::-1]), alone.flip(0))


def test_autocast_of_the_caller_changes_nothing():
    integers, pairs = packaged()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = integers(pairs)
    assert torch.equal(mixed, integers(pairs))


def test_products_of_integers_are_the_same_in_float32(monkeypatch):
    integers, pairs = packaged()
    expected = integers(pairs)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)  # as on a GPU
    assert integers(pairs) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("with_integer_products", [True, False])
def test_a_token_without_any_input_gets_the_bias(monkeypatch, with_integer_products):
    if not with_integer_products:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    linear = Int8Linear(
        torch.full((2, 8), 100, dtype=torch.int8), torch.tensor([[0.5], [0.25]]), torch.tensor([1, -2.0])
    )
    inputs = torch.cat([torch.zeros(1, 8), torch.eye(8)[:1] * 2])
    assert linear(inputs) == pytest.approx(torch.tensor([[1.0, -2.0], [101.0, 48.0]]), rel=1e-6)


def texts_reached(*roots):
    """Return every string that is kept by objects, but for the globals of other packages."""
    others = {id(vars(module)) for name, module in list(sys.modules.items()) if not name.startswith("syncheck")}
    waiting, seen, texts = list(roots), set(others), []
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, ModuleType):
            continue
        seen.add(id(each))
        if isinstance(each, str):
            texts.append(each)
        else:
            waiting += gc.get_referents(each)
    return texts


def test_no_text_is_kept_between_calls(bundled_folder):
    aligner = BundledAligner.load(bundled_folder)
    marks = ["".join(letters) for letters in ("zqv", "xqz")]  # made here, so that no constant of the code is one
    aligner.align([f"A {marks[0]} ran."], [f"The {marks[1]} ran."])
    own = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("syncheck.")]
    assert any("bundled" in text or str(bundled_folder) in text for text in texts_reached(aligner))
    assert [text for text in texts_reached(aligner, *own) if any(mark in text for mark in marks)] == []


def test_what_was_asked_before_changes_nothing(bundled_folder):
    contexts = (["The mill was sold in 1956."], ["A farm lies far from the sea.", "The mill burnt down."])
    claim, aligner = ["The mill was sold in 1956."], BundledAligner.load(bundled_folder)
    for context in (*contexts, *contexts):
        assert aligner.align(context, claim) == BundledAligner.load(bundled_folder).align(context, claim)


def test_passages_that_are_indexed_give_the_same_supports(bundled_folder):
    aligner = BundledAligner.load(bundled_folder)
    claims = ["The mill was sold in 1956.", "A farm lies by the sea."]
    for passages in (["The mill was sold in 1956.", "A farm lies far from the sea."], [" "], []):
        index = EvidenceIndex(passages)
        assert aligner.align_indexed(index, claims) == aligner.align(passages, claims)
        assert aligner.align_indexed(index, []) == []


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
    for load in (BundledAligner.load, load_aligner):
        with pytest.raises(CheckpointError):
            load(tmp_path)


def test_other_format_is_refused(bundled_folder, tmp_path):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.json").write_text(json.dumps({"format": "syncheck.reader.v9"}))
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
    with pytest.raises(CheckpointError, match=r"expected 'tail\.bias' of shape None, found \(3,\)"):
        BundledAligner.load(tmp_path)


@pytest.mark.parametrize("shape", [(32,), (1, 32), (32, 32)])
def test_a_step_for_each_row_is_needed(bundled_folder, tmp_path, shape):
    shutil.copytree(bundled_folder, tmp_path, dirs_exist_ok=True)
    name = "bert.encoder.layer.0.attention.self.query.weight.step"
    arrays = load_file(tmp_path / "model.safetensors")
    save_file(arrays | {name: torch.ones(shape)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"query\.weight\.step' of shape \(32, 1\), found"):
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
    with pytest.raises(CheckpointError, match=r"\(50,\), found \(48,\)"):
        BundledAligner.load(tmp_path)


def test_evidence_index_serves_the_same_chunks_as_the_aligner(bundled_folder):
    passages = ["Rain fell. The bridge was built in 1903."]
    chunks = {chunk.text for chunk in EvidenceIndex(passages).chunks}
    (support,) = BundledAligner.load(bundled_folder).align(passages, ["A bridge was built."])
    assert support.evidence.text in chunks
