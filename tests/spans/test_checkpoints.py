"""Detectors that load a checkpoint: tiny random ones, made here and compared with a plain forward."""

import shutil
import sys

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForTokenClassification, BertModel, PreTrainedTokenizerFast

from syncheck.errors import CheckpointError, InputError, MissingExtraError
from syncheck.spans import CheckpointEncoder, SpanItem, TokenClassifierDetector, load_span_regressor, word_rarity

WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "red", "fox", "in", "1999")


def saved_tokenizer(folder, window):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=window
    )
    fast.save_pretrained(folder)
    return fast


def tiny_bert():
    return BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=64,
        initializer_range=1.0,
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


def item(response):
    return SpanItem(id="1", lang="en", question="?", response=response)


def risks_of(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0].softmax(-1)[:, 1].double().numpy()


def test_a_token_gives_its_characters_its_risk(classifier):
    folder, model, _ = classifier
    found = TokenClassifierDetector(str(folder)).detect(item("a  fox"))
    a, fox = risks_of(model, [1, 4, 6, 2])[1:3]
    assert [(s.start, s.end) for s in found.soft] == [(0, 1), (3, 6)]
    assert [s.prob for s in found.soft] == pytest.approx([a, fox], abs=1e-5)
    assert found.hard == tuple(span for span, risk in zip(((0, 1), (3, 6)), (a, fox), strict=True) if risk > 0.5)


def test_a_long_response_is_seen_in_windows_that_overlap(classifier):
    folder, model, _ = classifier
    found = TokenClassifierDetector(str(folder)).detect(item("a red fox in 1999 a red fox in"))
    ids = [4, 5, 6, 7, 8, 4, 5, 6, 7]
    first = risks_of(model, [1, *ids[:6], 2])[1:-1]
    second = risks_of(model, [1, *ids[3:], 2])[1:-1]
    expected = np.concatenate([first[:3], (first[3:] + second[:3]) / 2, second[3:]])
    assert [s.prob for s in found.soft] == pytest.approx(expected.tolist(), abs=1e-5)


def test_an_empty_response_has_no_labels(classifier):
    assert TokenClassifierDetector(str(classifier[0])).detect(item("")).soft == ()


def test_the_class_must_be_there(classifier):
    with pytest.raises(CheckpointError, match="classes 0 to 1"):
        TokenClassifierDetector(str(classifier[0]), wrong=2)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    for load in (TokenClassifierDetector, CheckpointEncoder):
        with pytest.raises(CheckpointError, match="cannot load"):
            load(str(tmp_path))


def test_a_damaged_checkpoint_is_refused(classifier, tmp_path):
    shutil.copytree(classifier[0], tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    for load in (TokenClassifierDetector, CheckpointEncoder):
        with pytest.raises(CheckpointError, match="cannot load"):
            load(str(tmp_path))


def test_an_encoder_gives_the_mean_of_the_last_states_of_length_one(tmp_path, config):
    model = BertModel(config).eval()
    model.save_pretrained(tmp_path)
    saved_tokenizer(tmp_path, 8)
    found = CheckpointEncoder(str(tmp_path), prefix="a ")(["fox", "red fox in"])
    for row, ids in zip(found, ([1, 4, 6, 2], [1, 4, 5, 6, 7, 2]), strict=True):
        with torch.inference_mode():
            mean = model(torch.tensor([ids])).last_hidden_state[0].mean(0).double().numpy()
        assert row == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    with pytest.raises(InputError, match="window is 8"):
        CheckpointEncoder(str(tmp_path))(["a red fox in 1999 a red fox"])


def test_rarity_is_the_zipf_frequency():
    pytest.importorskip("wordfreq")
    common, rare, unseen = word_rarity(["the", "lighthouse", "xqzzyv"], "EN")
    assert common > 7 > 4.5 > rare > 2
    assert unseen == 0
    assert np.isnan(word_rarity(["etxe"], "eu")).all()


def test_the_model_with_rarity_marks_a_wrong_year():
    pytest.importorskip("wordfreq")
    response = "The castle was built in 1950."
    one = SpanItem(id="1", lang="en", question="When was the castle built?", response=response, passages=("In 1342.",))
    assert load_span_regressor("bundled-rarity").detect(one).hard == ((24, 28),)


def test_without_wordfreq_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(MissingExtraError, match=r"syncheck\[rarity\]"):
        load_span_regressor("bundled-rarity").detect(item("a fox"))
