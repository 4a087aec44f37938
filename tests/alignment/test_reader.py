"""The aligner that reads: passages once, claims apart from each other, three outputs, a language model to install."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from syncheck import Monitor
from syncheck.alignment import EvidenceIndex, ReaderAligner, load_aligner, reader, reader_network
from syncheck.alignment.reader_network import BEGIN, END
from syncheck.errors import CheckpointError
from syncheck.kit import kit_language_model, load_kit

PASSAGES = ["The bridge was built in 1903. It spans the river Avon.", "Tom Smith designed it."]
CLAIMS = ["It was built in 1903.", "It was built in 1930.", "Tom Smith painted it."]
PACKAGED = Path(str(files("syncheck") / "assets" / "reader"))


def whole(aligner, claim):
    """Return the log-probabilities of a claim that is read with the passages, by transformers, in one go.

    In MPNet's own forward, passages see the claim; so its layers are run with a mask.
    """
    network = aligner._model
    premise = [BEGIN, *aligner._ids("\n".join(PASSAGES)), END]
    ids = torch.tensor([[*premise, END, *aligner._ids(claim), END]])
    seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool)
    seen[: len(premise), len(premise) :] = False
    mask = torch.zeros(1, 1, *seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    with torch.inference_mode():
        embedded = network.encoder.embeddings(input_ids=ids)
        hidden = network.encoder.encoder(embedded, attention_mask=mask, return_dict=True).last_hidden_state
        return network.verdicts([hidden[0, len(premise) :]])[0].log_softmax(dim=-1)


def test_a_claim_is_read_after_the_passages_as_if_alone(tiny_reader):
    for claim, support in zip(CLAIMS, tiny_reader.align(PASSAGES, CLAIMS), strict=True):
        contradicted, supported, not_stated = whole(tiny_reader, claim).exp().tolist()
        assert support.score == pytest.approx(supported, abs=1e-5)
        assert support.contradicted == pytest.approx(contradicted, abs=1e-5)
        odds = torch.tensor(supported / (contradicted + not_stated)).log().item()
        assert support.log_odds == pytest.approx(odds, abs=1e-4)


def test_passages_are_read_once_for_an_index(tiny_reader, monkeypatch):
    read = []
    inner = tiny_reader._model.encode

    def counted(stretches):
        read.append(sum(len(stretch.ids) for stretch in stretches))
        return inner(stretches)

    monkeypatch.setattr(tiny_reader._model, "encode", counted)
    index = EvidenceIndex(PASSAGES)
    first = tiny_reader.align_indexed(index, CLAIMS)
    assert len(read) == 2
    assert tiny_reader.align_indexed(index, CLAIMS) == first
    assert len(read) == 3 and read[2] == read[1] < read[0] + read[1]


def test_nothing_of_a_prompt_is_kept_longer_than_its_index(tiny_reader):
    index = EvidenceIndex(PASSAGES)
    tiny_reader.align_indexed(index, CLAIMS)
    assert len(tiny_reader._read) == 1
    del index
    assert len(tiny_reader._read) == 0


def test_only_the_last_prompts_stay_read(tiny_reader):
    indexes = [EvidenceIndex([f"Room {number} is blue."]) for number in range(reader.KEPT_PROMPTS + 3)]
    supports = [tiny_reader.align_indexed(index, ["Room 1 is blue."]) for index in indexes]
    assert len(tiny_reader._read) == reader.KEPT_PROMPTS
    assert tiny_reader.align_indexed(indexes[0], ["Room 1 is blue."]) == supports[0]


def test_a_long_context_is_read_in_parts_of_which_the_best_counts(tiny_reader):
    passages = [f"Room {i} has {i} chairs and a blue door." for i in range(40)]  # of one token a character
    (support,) = tiny_reader.align(passages, ["Room 7 has 7 chairs."])
    index = EvidenceIndex(passages)
    tiny_reader.align_indexed(index, ["Room 7 has 7 chairs."])
    parts = tiny_reader._read[index]
    assert len(parts) > 1 and max(part.premise[0][0].shape[1] for part in parts) <= reader.PREMISE_TOKENS + 2
    assert [chunk.text for part in parts for chunk in part.chunks] == passages
    texts = ["\n".join(chunk.text for chunk in part.chunks) for part in parts]
    alone = [tiny_reader.align([text], ["Room 7 has 7 chairs."])[0].score for text in texts]
    assert support.score == pytest.approx(max(alone), abs=1e-5)


def test_every_part_of_a_long_claim_needs_support(tiny_reader):
    claim = " ".join(f"Tom Smith designed bridge {i}." for i in range(12))
    (whole,) = tiny_reader.align(PASSAGES, [claim])
    parts = reader.split_to_fit(claim, tiny_reader._is_short)
    assert len(parts) > 1
    assert whole.score == pytest.approx(min(s.score for s in tiny_reader.align(PASSAGES, parts)), abs=1e-5)


@pytest.mark.slow
def test_the_packaged_reader_reads():
    aligner = load_aligner("reader")
    good, bad = aligner.align(
        ["Adults may take up to 4 g of paracetamol in 24 hours."],
        ["Adults may take 4 g in 24 hours.", "Adults may take 8 g in 24 hours."],
    )
    assert good.score > 0.5 > bad.score
    assert bad.contradicted > 0.4 > good.contradicted
    assert aligner.weights_sha256() == ReaderAligner.load(PACKAGED).weights_sha256()
    assert aligner.align(PASSAGES, CLAIMS) == [aligner.align(PASSAGES, [claim])[0] for claim in CLAIMS]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert aligner.align(PASSAGES, CLAIMS[:1]) == aligner.align(PASSAGES, CLAIMS)[:1]


@pytest.mark.slow
def test_with_the_packaged_reader_a_monitor_is_the_generic_one_that_was_trained_with_it(tiny_reader):
    model, tokenizer = kit_language_model()
    monitor = Monitor(model, tokenizer, aligner=load_aligner("reader"))
    prompt = monitor.prompt(question="Who may enter?", context=["Dogs are not allowed in the museum."])
    report = monitor.score(prompt, response="Dogs are allowed in the museum.")
    assert report.monitor == "generic-reader"
    assert [s.verdict for s in report.sentences] == ["contradicted"]
    kit = load_kit("generic-reader").score(prompt, response="Dogs are allowed in the museum.")
    assert (kit.monitor, kit.lowest.score) == ("generic-reader", report.lowest.score)
    assert Monitor(model, tokenizer, aligner=tiny_reader).config.schema == "aligner.v1"  # other weights


def test_without_its_encoder_it_says_what_to_download(monkeypatch):
    monkeypatch.setattr(reader_network, "_cached", lambda: None)
    monkeypatch.setattr(reader_network, "_packaged", list)
    assert not reader_network.can_read()
    with pytest.raises(CheckpointError, match="hf download"):
        load_aligner("reader")


@pytest.mark.slow
def test_the_encoder_is_taken_from_the_cache_first(tmp_path, monkeypatch):
    save_file(reader_network.encoder_weights(), tmp_path / "model.safetensors")
    monkeypatch.setattr(reader_network, "try_to_load_from_cache", lambda *asked: str(tmp_path / asked[1]))
    monkeypatch.setattr(reader_network, "_packaged", list)
    assert reader_network.can_read()
    (support,) = load_aligner("reader").align(["The door is blue."], ["The door is red."])
    assert support.score < 0.5


def test_another_encoder_is_refused(tmp_path, monkeypatch):
    save_file({"norm": torch.ones(3)}, tmp_path / "model.safetensors")
    monkeypatch.setattr(reader_network, "_cached", lambda: tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="trained"):
        load_aligner("reader")


@pytest.fixture
def of_no_encoder(monkeypatch):
    """Loading stops where a good folder would need the encoder."""
    monkeypatch.setattr(reader_network, "encoder_weights", dict)


@pytest.mark.parametrize("file", ["reader.json", "adapter.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"{"])
@pytest.mark.usefixtures("of_no_encoder")
def test_an_incomplete_or_damaged_folder_is_refused(tmp_path, file, content):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    if content is None:
        (tmp_path / "copy" / file).unlink()
    else:
        (tmp_path / "copy" / file).write_bytes(content)
    with pytest.raises(CheckpointError, match="copy"):
        ReaderAligner.load(tmp_path / "copy")


def test_another_format_is_refused(tmp_path):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    spec = json.loads((PACKAGED / "reader.json").read_text())
    (tmp_path / "copy" / "reader.json").write_text(json.dumps(spec | {"format": "other"}))
    with pytest.raises(CheckpointError, match="format"):
        ReaderAligner.load(tmp_path / "copy")
