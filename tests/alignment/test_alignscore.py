"""The port of AlignScore against scores of the original code, and its checkpoints."""

from __future__ import annotations

import json
import logging
import sys
import types
from pathlib import Path

import pytest
import torch

from syncheck.alignment import AlignScoreAligner, convert_alignscore, load_aligner
from syncheck.errors import CheckpointError, MismatchError

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
    aligner = load(mode=mode)
    found = [aligner.align([case["context"]], [case["claim"]])[0].score for case in CASES]
    assert found == pytest.approx([case["scores"][mode] for case in CASES], abs=1e-4)


def test_cut_context_is_logged_with_the_number_of_tokens(caplog):
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        load(mode="nli").align(["word " * 600], ["word"])
    assert "cut from the context" in caplog.text


def test_nothing_is_logged_when_all_fits(caplog):
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        load().align(["One sentence. Another one."], ["A claim."])
    assert caplog.text == ""


def test_split_scores_what_cut_drops(caplog):
    context = "The mill ground corn " * 200 + "and the comet of 1811 appeared"
    cut, split = load(mode="nli"), load(mode="nli", overflow="split")
    claim = "The comet of 1811 appeared."
    with caplog.at_level(logging.WARNING, logger="syncheck"):
        support = split.align([context], [claim])[0]
    assert caplog.text == ""
    assert support.evidence.text in context and support.evidence.text != context
    assert cut.align([context], [claim])[0].evidence.text == context


def test_split_is_cut_where_everything_fits():
    case = CASES[4]
    one, other = (load(overflow=o).align([case["context"]], [case["claim"]])[0] for o in ("cut", "split"))
    assert one == other


def test_chunks_of_about_350_words_with_their_passage():
    sentences = [f"Sentence {i} has exactly seven words here." for i in range(120)]  # 840 words: 3 chunks of 40
    aligner = load()
    passages = [" ".join(sentences[:60]), " ".join(sentences[60:])]
    evidence = {aligner.align(passages, [f"Claim {c}."])[0].evidence for c in "abcdefghij"}
    assert {(e.passage, e.text.split(" has")[0]) for e in evidence} <= {
        (0, "Sentence 0"),
        (0, "Sentence 40"),
        (1, "Sentence 80"),
    }


def test_converted_folder_scores_the_same(tmp_path):
    convert_alignscore(CHECKPOINT, tmp_path, backbone=BACKBONE)
    case = CASES[5]
    converted = load_aligner(tmp_path)
    assert isinstance(converted, AlignScoreAligner)
    assert converted.align([case["context"]], [case["claim"]]) == load().align([case["context"]], [case["claim"]])


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
    with pytest.raises(CheckpointError, match="could run code"):
        AlignScoreAligner.load(tmp_path / "bad.ckpt", backbone=BACKBONE)
    assert capsys.readouterr().out == ""


def test_missing_array_is_named(tmp_path):
    saved = checkpoint()
    del saved["state_dict"]["tri_layer.bias"]
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match=r"lacks 1 of .*tri_layer\.bias"):
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
    with pytest.raises(MismatchError, match=r"\(3, 7\)"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_checkpoint_without_a_backbone_says_what_to_pass():
    with pytest.raises(CheckpointError, match="backbone="):
        load_aligner(CHECKPOINT)


def test_file_without_a_state_dict_is_refused(tmp_path):
    torch.save({"weights": {}}, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match="state_dict"):
        AlignScoreAligner.load(tmp_path / "a.ckpt", backbone=BACKBONE)


def test_backbone_of_another_family_is_refused(classifier_folder):
    with pytest.raises(MismatchError, match="'bert'"):
        AlignScoreAligner.load(CHECKPOINT, backbone=classifier_folder)
