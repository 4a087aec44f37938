"""Tiny random token classifiers, compared with a plain forward."""

import shutil

import numpy as np
import pytest
import torch
from span_doubles import one, saved_classifier, saved_tokenizer, tiny_bert
from transformers import BertForTokenClassification

from syncheck.base.errors import (
    CheckpointError,
)
from syncheck.spans import (
    CheckpointEncoder,
    ClassifierSource,
    TokenClassifierDetector,
    words_of,
)


@pytest.fixture(scope="module")
def config():
    torch.manual_seed(0)
    return tiny_bert()


@pytest.fixture(scope="module")
def classifier(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("classifier")
    model = BertForTokenClassification(config).eval()
    model.save_pretrained(folder)
    return folder, model, saved_tokenizer(folder, 8)


def risks_of(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0].softmax(-1)[:, 1].double().numpy()


def test_a_token_gives_its_characters_its_risk(classifier):
    folder, model, _ = classifier
    found = TokenClassifierDetector(str(folder)).detect(one("a  fox"))
    a, fox = risks_of(model, [1, 4, 6, 2])[1:3]
    assert [(s.start, s.end) for s in found.soft] == [(0, 1), (3, 6)]
    assert [s.prob for s in found.soft] == pytest.approx([a, fox], abs=1e-5)
    assert found.hard == tuple(span for span, risk in zip(((0, 1), (3, 6)), (a, fox), strict=True) if risk > 0.5)


def test_a_long_response_is_seen_in_windows_that_overlap(classifier):
    folder, model, _ = classifier
    found = TokenClassifierDetector(str(folder)).detect(one("a red fox in 1999 a red fox in"))
    ids = [4, 5, 6, 7, 8, 4, 5, 6, 7]
    first = risks_of(model, [1, *ids[:6], 2])[1:-1]
    second = risks_of(model, [1, *ids[3:], 2])[1:-1]
    expected = np.concatenate([first[:3], (first[3:] + second[:3]) / 2, second[3:]])
    assert [s.prob for s in found.soft] == pytest.approx(expected.tolist(), abs=1e-5)


def test_an_empty_response_has_no_labels(classifier):
    assert TokenClassifierDetector(str(classifier[0])).detect(one("")).soft == ()


def test_the_class_must_be_there(classifier):
    with pytest.raises(CheckpointError, match="classes"):
        TokenClassifierDetector(str(classifier[0]), wrong=2)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    for load in (TokenClassifierDetector, CheckpointEncoder):
        with pytest.raises(CheckpointError, match="load"):
            load(str(tmp_path))


def test_a_damaged_checkpoint_is_refused(classifier, tmp_path):
    shutil.copytree(classifier[0], tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    for load in (TokenClassifierDetector, CheckpointEncoder):
        with pytest.raises(CheckpointError, match="load"):
            load(str(tmp_path))


def test_a_word_has_the_mean_and_the_highest_risk_of_its_characters(tmp_path):
    model = saved_classifier(tmp_path)
    source = ClassifierSource(TokenClassifierDetector(str(tmp_path)))
    text = "a red:fox 1999:"
    with torch.inference_mode():  # ":" is unknown to the tokenizer, and no word here
        ids = torch.tensor([[1, 4, 5, 3, 6, 8, 3, 2]])
        a, red, _, fox, year, _ = model(ids).logits[0].softmax(-1)[1:-1, 1].double().tolist()
    found = source(one(text), words_of(text))
    assert source.columns == ("classifier_risk_mean", "classifier_risk_max")
    np.testing.assert_allclose(found, [[a, a], [red, red], [fox, fox], [year, year]], atol=1e-6)


def test_a_word_of_several_tokens_and_one_of_none():
    class Given:
        def risks(self, item):
            return np.array([0.25, 0.25, 0.5, 1.0, np.nan, np.nan, np.nan])

    found = ClassifierSource(Given())(one("1.23 fo"), words_of("1.23 fo"))
    assert np.array_equal(found, [[0.5, 1.0], [np.nan, np.nan]], equal_nan=True)


def test_classifiers_of_other_weights_or_another_class_are_told_apart(tmp_path):
    for seed in (0, 1):
        saved_classifier(tmp_path / str(seed), seed)
    first, again, other = (TokenClassifierDetector(str(tmp_path / name)).fingerprint for name in ("0", "0", "1"))
    turned = TokenClassifierDetector(str(tmp_path / "0"), wrong=0).fingerprint
    assert first == again
    assert [key for key in first if first[key] != other[key]] == ["weights_sha256"]
    assert [key for key in first if first[key] != turned[key]] == ["wrong"]
