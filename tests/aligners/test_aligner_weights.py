"""Aligners told apart by their weights, wherever they were loaded from."""

import copy
import shutil
from pathlib import Path

import pytest
import torch
from transformers import BertForSequenceClassification

from syncheck import load_aligner
from syncheck.aligners import is_same_aligner, weights_of
from syncheck.base.pretrained import same_weights, weights_sha256

GOLDEN = Path(__file__).parents[1] / "golden" / "alignscore"


class Named:
    """Knows no weights."""

    def __init__(self, name):
        self.name = name

    def align(self, passages, claims):
        return []


@pytest.mark.parametrize(("prefix", "kind"), [("", "bundled"), ("", "classifier"), ("minicheck:", "minicheck")])
def test_a_copy_in_another_folder_is_the_same(request, tmp_path, prefix, kind):
    folder = request.getfixturevalue(f"{kind}_folder")
    copy = shutil.copytree(folder, tmp_path / "other name")
    first, second = load_aligner(f"{prefix}{folder}"), load_aligner(f"{prefix}{copy}")
    assert first.name != second.name and weights_of(first) == weights_of(second)
    assert is_same_aligner(first, second) and is_same_aligner(second, first)
    assert not is_same_aligner(first, load_aligner("bundled"))


def test_alignscore_is_the_same_in_another_place_and_mode(tmp_path):
    checkpoint, backbone = GOLDEN / "AlignScore-tiny.ckpt", GOLDEN / "tiny-roberta"
    copy = shutil.copy(checkpoint, tmp_path / "other.ckpt")
    first, second = (
        load_aligner(path, backbone=backbone, mode=mode) for path, mode in ((checkpoint, "nli"), (copy, "bin"))
    )
    assert is_same_aligner(first, second)


def test_every_aligner_knows_its_weights(aligner):
    found = weights_of(aligner)
    assert len(bytes.fromhex(found)) == 32 and found == weights_of(aligner)
    assert is_same_aligner(aligner, aligner) and not is_same_aligner(aligner, Named("other"))


def test_other_weights_of_one_architecture_are_told_apart(classifier_folder, tmp_path):
    folders = classifier_folder, shutil.copytree(classifier_folder, tmp_path / "changed")
    model = BertForSequenceClassification.from_pretrained(folders[1])
    with torch.no_grad():
        model.classifier.weight[0, 0] += 1.0
    model.save_pretrained(folders[1])
    first, second = map(load_aligner, folders)
    assert not is_same_aligner(first, second)
    second.name = first.name
    assert is_same_aligner(first, second)


def test_what_knows_no_weights_is_told_apart_by_its_name():
    asked = [Named(name) for name in ("a", "b", "a")]
    assert [weights_of(each) for each in asked] == [None] * 3
    assert is_same_aligner(asked[0], asked[2]) and not is_same_aligner(asked[0], asked[1])


def test_names_do_not_matter_but_values_and_shapes_do():
    model = torch.nn.Linear(3, 2)
    digest = weights_sha256(model)
    assert weights_sha256(torch.nn.Sequential(model)) == digest
    turned = torch.nn.Linear(2, 3)
    turned.weight.data, turned.bias.data = model.weight.data.reshape(3, 2), model.bias.data
    changed = torch.nn.Linear(3, 2)
    changed.weight.data, changed.bias.data = model.weight.data * 1.1, model.bias.data
    assert len({digest, *(weights_sha256(other) for other in (turned, changed))}) == 3


@pytest.mark.parametrize("kept_in", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("loaded_in", [torch.float32, torch.bfloat16, torch.float16])
def test_the_type_that_weights_are_loaded_in_does_not_matter(kept_in, loaded_in):
    torch.manual_seed(0)
    kept = torch.nn.Linear(64, 64).to(kept_in)
    with torch.no_grad():
        kept.weight[0] *= 1e-6  # below what float16 holds with all its digits
    digest, other = weights_sha256(kept), weights_sha256(torch.nn.Linear(64, 64).to(loaded_in))
    assert same_weights(digest, weights_sha256(copy.deepcopy(kept).to(loaded_in)))
    assert not same_weights(digest, other)


def test_weights_on_the_disk_have_no_digest():
    assert weights_sha256(torch.nn.Linear(3, 2, device="meta")) is None
