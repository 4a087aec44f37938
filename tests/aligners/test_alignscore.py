"""The port of AlignScore against scores of the original code, and its checkpoints."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import types
from collections import Counter
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from syncheck.aligners import AlignScoreAligner, load_aligner
from syncheck.base.errors import CheckpointError, InputError, MismatchError

GOLDEN = Path(__file__).parents[1] / "golden" / "alignscore"
CHECKPOINT, BACKBONE = GOLDEN / "AlignScore-tiny.ckpt", GOLDEN / "tiny-roberta"
CASES = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))
MODES = ("nli_sp", "nli", "bin_sp", "bin")


def load(**options):
    return AlignScoreAligner.load(CHECKPOINT, backbone=BACKBONE, **options)


def checkpoint():
    return torch.load(CHECKPOINT, weights_only=True)


@pytest.mark.parametrize("mode", MODES)
def test_scores_agree_with_the_original_code(mode):
    aligner = load(mode=mode, overflow="cut")
    found = [aligner.align([case["context"]], [case["claim"]])[0].score for case in CASES]
    assert found == pytest.approx([case["scores"][mode] for case in CASES], abs=1e-4)


def test_cut_context_is_logged_with_the_number_of_tokens(caplog):
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        load(mode="nli", overflow="cut").align(["word " * 600], ["word"])
    assert "cut from the context" in caplog.text


def test_nothing_is_logged_when_all_fits(caplog):
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        load().align(["One sentence. Another one."], ["A claim."])
    assert caplog.text == ""


def test_split_scores_what_cut_drops(caplog):
    context = "The mill ground corn " * 200 + "and the comet of 1811 appeared"
    cut, split = load(mode="nli", overflow="cut"), load(mode="nli", overflow="split")
    claim = "The comet of 1811 appeared."
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        support = split.align([context], [claim])[0]
    assert caplog.text == ""
    assert support.evidence.text in context and support.evidence.text != context
    assert cut.align([context], [claim])[0].evidence.text == context


@pytest.mark.parametrize("claim", [CASES[4]["claim"], "The mill ground corn " * 45], ids=["short", "long"])
def test_split_is_cut_where_everything_fits(caplog, claim):
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        one, other = (load(overflow=o).align([CASES[4]["context"]], [claim])[0] for o in ("cut", "split"))
    assert one == other and caplog.text == ""


def test_a_claim_is_split_only_beside_a_context_that_leaves_it_no_room(caplog):
    tokenizer, model = AutoTokenizer.from_pretrained(BACKBONE), Recorder()
    aligner = AlignScoreAligner(model, tokenizer)
    claim = "the mill ground corn " * 60
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        aligner.align(["one word. " * 130], [claim])
    assert caplog.text == ""
    rows, model.rows = [tokenizer.decode(row) for row in model.rows], []
    assert len(rows) > 1 and max(row.count("mill") for row in rows) < 60
    aligner.align(["one word. " * 20], [claim])
    assert [tokenizer.decode(row).count("mill") for row in model.rows] == [60]


def test_chunks_of_about_350_words_with_their_passage():
    sentences = [f"Sentence {i} has exactly seven words here." for i in range(120)]  # 840 words: 3 chunks of 40
    aligner = load(overflow="cut")
    passages = [" ".join(sentences[:60]), " ".join(sentences[60:])]
    evidence = {aligner.align(passages, [f"Claim {c}."])[0].evidence for c in "abcdefghij"}
    assert {(e.passage, e.text.split(" has")[0]) for e in evidence} <= {
        (0, "Sentence 0"),
        (0, "Sentence 40"),
        (1, "Sentence 80"),
    }


def test_a_checkpoint_is_loaded_by_its_path():
    case = CASES[5]
    found = load_aligner(CHECKPOINT, backbone=BACKBONE)
    assert isinstance(found, AlignScoreAligner)
    assert found.options == {"mode": "nli_sp", "overflow": "split", "backbone": str(BACKBONE)}
    assert found.align([case["context"]], [case["claim"]]) == load().align([case["context"]], [case["claim"]])


def test_lightning_dictionary_of_hyper_parameters_is_read_as_a_plain_one(tmp_path, monkeypatch):
    module = types.ModuleType("pytorch_lightning.utilities.parsing")
    module.AttributeDict = type("AttributeDict", (dict,), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, "pytorch_lightning", types.ModuleType("pytorch_lightning"))
    monkeypatch.setitem(sys.modules, "pytorch_lightning.utilities", types.ModuleType("utilities"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    torch.save(checkpoint() | {"hyper_parameters": module.AttributeDict(model="roberta-base")}, tmp_path / "a.ckpt")
    monkeypatch.undo()
    aligner = AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)
    assert aligner.align(["A."], ["A."]) == load().align(["A."], ["A."])


class Runs:
    """Would run code when unpickled."""

    def __reduce__(self):
        return (print, ("ran",))


def test_checkpoint_that_could_run_code_is_refused(tmp_path, capsys):
    torch.save({"state_dict": {}, "extra": Runs()}, tmp_path / "bad.ckpt")
    with pytest.raises(CheckpointError, match="code"):
        AlignScoreAligner.load(tmp_path / "bad.ckpt", backbone=BACKBONE)
    assert capsys.readouterr().out == ""


def test_missing_array_is_named(tmp_path):
    saved = checkpoint()
    del saved["state_dict"]["tri_layer.bias"]
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match="tri_layer"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_foreign_array_is_named(tmp_path):
    saved = checkpoint()
    saved["state_dict"]["base_model.encoder.layer.2.output.dense.bias"] = torch.zeros(48)
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(MismatchError, match=r"layer\.2"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_other_shape_is_named(tmp_path):
    saved = checkpoint()
    saved["state_dict"]["tri_layer.weight"] = torch.zeros(3, 7)
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(MismatchError, match=r"\[3, 7\]"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_options_are_known_and_found_in_what_is_stored():
    assert load().options == {"mode": "nli_sp", "overflow": "split", "backbone": str(BACKBONE)}
    for wrong in ({"mode": "tri"}, {"overflow": "drop"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            load(**wrong)


class Recorder(torch.nn.Module):
    """Scores every pair 0.5 and keeps its ids."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def forward(self, ids, mask):
        self.rows += [row[kept.bool()].tolist() for row, kept in zip(ids, mask, strict=True)]
        return torch.full((2, len(ids)), 0.5)


def test_unbroken_context_is_covered_by_default(caplog):
    context = json.dumps({f"field_{i}": i * 37 for i in range(1500)})
    tokenizer = AutoTokenizer.from_pretrained(BACKBONE)
    model = Recorder()
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        AlignScoreAligner(model, tokenizer).align([context], ["Field 7 is 259."])
    assert caplog.text == ""
    assert max(map(len, model.rows)) <= 512
    read = Counter()
    for row in model.rows:
        premise = row[1 : row.index(tokenizer.eos_token_id)]
        read += Counter(tokenizer.decode(premise).replace(" ", ""))
    assert read == Counter(context.replace(" ", ""))


def named(folder, model, name="a.ckpt"):
    """Write the checkpoint with hyper-parameters that name another model, or no hyper-parameters."""
    saved = checkpoint()
    if model is None:
        del saved["hyper_parameters"]
    else:
        saved["hyper_parameters"] = {"model": model}
    torch.save(saved, folder / name)
    return folder / name


def test_backbone_beside_the_checkpoint_is_found_by_its_name(tmp_path):
    shutil.copytree(BACKBONE, tmp_path / "roberta-base")
    path = named(tmp_path, "FacebookAI/roberta-base")
    found = load_aligner(str(path))
    assert found.align(["A cat sat."], ["A cat."]) == load().align(["A cat sat."], ["A cat."])
    assert found.options == {"mode": "nli_sp", "overflow": "split"}


def test_backbone_that_cannot_be_found_is_named_with_what_to_do(tmp_path):
    path = named(tmp_path, "no/such/roberta")
    with pytest.raises(CheckpointError, match="no/such/roberta") as found:
        load_aligner(path)
    place = str(tmp_path / "roberta")
    assert repr(place) in str(found.value) and "backbone=" in str(found.value)


def test_checkpoint_without_a_backbone_says_what_to_pass(tmp_path):
    with pytest.raises(CheckpointError, match="backbone="):
        load_aligner(named(tmp_path, None))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An offline Hugging Face cache with one repository that holds the checkpoint, twice, and no config."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    repository = tmp_path / "hub" / "models--yzha--AlignScore"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123")
    for name in ("AlignScore-tiny.ckpt", "more/AlignScore-tiny.ckpt"):
        file = repository / "snapshots" / "0123" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKPOINT, file)


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("file", ["AlignScore-tiny.ckpt", "more/AlignScore-tiny.ckpt"])
def test_file_of_a_repository_of_the_hub_is_loaded(file):
    name = f"yzha/AlignScore/{file}"
    aligner = load_aligner(name, backbone=BACKBONE)
    assert aligner.align(["A cat sat."], ["A cat."]) == load().align(["A cat sat."], ["A cat."])
    assert aligner.name == name


@pytest.mark.usefixtures("hub")
def test_file_that_a_repository_lacks_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="yzha/AlignScore"):
        load_aligner("yzha/AlignScore/AlignScore-base.ckpt", backbone=BACKBONE)


@pytest.mark.parametrize("name", ["{0}/no/such/a.ckpt", "./no/such/a.ckpt", "here/b/a.ckpt", "b/a.ckpt"])
def test_the_hub_is_not_asked_for_what_is_a_path(tmp_path, monkeypatch, name):
    def refuse(*args, **kwargs):
        raise AssertionError(f"asked for {args}")

    monkeypatch.setattr("syncheck.aligners.alignscore.hf_hub_download", refuse)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "b").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"a\.ckpt"):
        load_aligner(name.format(tmp_path), backbone=BACKBONE)


@pytest.mark.usefixtures("hub")
def test_repository_without_a_config_says_how_to_name_a_file_of_it():
    for name in ("yzha/AlignScore", "minicheck:yzha/AlignScore"):
        with pytest.raises(CheckpointError, match="FILE"):
            load_aligner(name)


GARBAGE = [
    b"hello world",
    b"this is text",
    b"\xff" * 50,
    b"\x80\x02",
    b"K\x01.",
    b"U\x10\x00",
    b"(lp0\n.",
    b"\x8a\xffab",
]
"""Bytes on which reading a pickle fails in several ways."""


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 no archive", "half", *GARBAGE])
def test_checkpoint_that_is_missing_or_damaged_is_refused(tmp_path, content):
    path = tmp_path / "a.ckpt"
    if content is not None:
        path.write_bytes(CHECKPOINT.read_bytes()[:400_000] if content == "half" else content)
    with pytest.raises(CheckpointError, match=r"a\.ckpt"):
        load_aligner(path, backbone=BACKBONE)


def test_file_without_a_state_dict_is_refused(tmp_path):
    torch.save({"weights": {}}, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match="state_dict"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_backbone_of_another_family_is_refused(classifier_folder):
    with pytest.raises(MismatchError, match="'bert'"):
        AlignScoreAligner.load(CHECKPOINT, backbone=classifier_folder)
