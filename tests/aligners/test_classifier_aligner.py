"""Classifier checkpoints: the supported class, windows over the whole context, MiniCheck's answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BartConfig,
    BartForSequenceClassification,
    RobertaForSequenceClassification,
    XLNetConfig,
    XLNetForSequenceClassification,
)

from syncheck.aligners import ClassifierAligner, load_aligner
from syncheck.aligners.classifier import load_scorer
from syncheck.base.errors import CheckpointError, InputError
from syncheck.results.types import Evidence


class WordScorer:
    """Counts words as tokens; a premise supports a claim as far as it holds its words."""

    window = 12

    def __init__(self):
        self.seen = []

    def length(self, premise, claim):
        return len(premise.split()) + len(claim.split()) + 2

    def score(self, pairs):
        self.seen += pairs
        shares = []
        for premise, claim in pairs:
            words = claim.split()
            shares.append(sum(word in premise.split() for word in words) / len(words))
        return shares


def test_premises_cover_the_context_and_fit_the_window():
    scorer = WordScorer()
    passages = ["a b c. d e f. g h i j k l m n o p q r s t."]
    ClassifierAligner(scorer).align(passages, ["a b"])
    assert all(scorer.length(*pair) <= scorer.window for pair in scorer.seen)
    assert " ".join(premise for premise, _ in sorted(scorer.seen)).split() == passages[0].split()


def test_support_at_the_end_of_a_long_context_is_found():
    passages = ["x y z. " * 300, "the comet came."]
    (support,) = ClassifierAligner(WordScorer()).align(passages, ["comet came."])
    assert support.score == 1.0
    assert support.evidence.text.endswith("the comet came.")


def test_evidence_is_the_sentence_of_the_deciding_premise_that_shares_most_with_the_claim():
    scorer = WordScorer()
    (support,) = ClassifierAligner(scorer).align(["rain.", "cats.", "comet came."], ["comet came."])
    assert [premise for premise, _ in scorer.seen] == ["rain. cats. comet came."]
    assert support.evidence == Evidence(2, "comet came.", 1.0)


def test_evidence_of_a_long_claim_is_that_of_its_weakest_part():
    (support,) = ClassifierAligner(WordScorer()).align(["a b.", "e f."], ["a b. a b. e f. z z"])
    assert support.evidence == Evidence(1, "e f.", 0.5)


def test_evidence_of_a_sentence_longer_than_a_premise_is_the_part_that_was_read():
    scorer = WordScorer()
    supports = ClassifierAligner(scorer).align(["c d e f g h", "k."], ["g", "k."])
    assert {premise for premise, _ in scorer.seen} == {"c d e", "f g h k."}
    assert [support.evidence for support in supports] == [Evidence(0, "f g h", 1.0), Evidence(1, "k.", 1.0)]


def test_long_claim_is_as_weak_as_its_weakest_part():
    claim = "a b c d e f g z"  # cut in halves; the second holds three of four words
    (support,) = ClassifierAligner(WordScorer()).align(["a b c d. e f g h."], [claim])
    assert support.score == 0.75


def test_entailment_is_found_by_name_and_scored_by_softmax(classifier_folder):
    model = AutoModelForSequenceClassification.from_pretrained(classifier_folder)
    tokenizer = AutoTokenizer.from_pretrained(classifier_folder)
    with torch.inference_mode():
        logits = model(**tokenizer("the cat sat.", "a cat.", return_tensors="pt")).logits[0]
    (support,) = ClassifierAligner.load(classifier_folder).align(["the cat sat."], ["a cat."])
    assert support.score == pytest.approx(logits.softmax(-1)[1].item(), abs=1e-6)


def test_given_class_is_used(classifier_folder):
    named = ClassifierAligner.load(classifier_folder).align(["the cat sat."], ["a cat."])
    other = ClassifierAligner.load(classifier_folder, entailment=2).align(["the cat sat."], ["a cat."])
    assert named[0].score != other[0].score


def test_classes_without_a_known_name_ask_for_one(classifier_folder, tmp_path):
    shutil.copytree(classifier_folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="entailment="):
        load_aligner(tmp_path)
    pair = ["the cat sat."], ["a cat."]
    given = load_aligner(tmp_path, entailment=1)
    assert given.align(*pair)[0].score == ClassifierAligner.load(classifier_folder).align(*pair)[0].score
    assert (given.options, load_aligner(classifier_folder).options) == ({"entailment": 1}, {})


def test_class_that_does_not_exist_is_refused(classifier_folder, minicheck_folder):
    with pytest.raises(InputError, match="entailment"):
        load_aligner(classifier_folder, entailment=3)
    with pytest.raises(InputError, match="classes"):
        load_aligner(minicheck_folder, entailment=1)


def test_options_of_another_kind_are_refused(classifier_folder):
    with pytest.raises(InputError, match="overflow"):
        load_aligner(classifier_folder, overflow="cut", backbone="roberta-base")
    with pytest.raises(InputError, match="entailment"):
        load_aligner("bundled", entailment=0)


def test_network_without_a_classifier_is_refused(tmp_path):
    roberta = Path(__file__).parents[1] / "golden" / "alignscore" / "tiny-roberta"  # its head would be random
    with pytest.raises(CheckpointError, match="weights"):
        load_aligner(roberta, entailment=0)


def save(model, folder, classifier_folder, **options):
    """Write a model with the tokenizer of characters."""
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(classifier_folder, **options)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(folder)
    return folder


BART = {
    **dict(vocab_size=44, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4),
    **dict(decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64),
    **dict(pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3, forced_eos_token_id=None),
}


@pytest.fixture(scope="module")
def bart_folder(tmp_path_factory, classifier_folder):
    """A three-way NLI checkpoint of an encoder-decoder with a window of 64 tokens, as BART's, with random weights."""
    torch.manual_seed(5)
    config = BartConfig(**BART, init_std=0.5, id2label={0: "contradiction", 1: "neutral", 2: "entailment"})
    return save(BartForSequenceClassification(config), tmp_path_factory.mktemp("bart"), classifier_folder)


def test_classifier_of_an_encoder_decoder_is_scored_by_its_head(bart_folder):
    model = AutoModelForSequenceClassification.from_pretrained(bart_folder)
    ids = AutoTokenizer.from_pretrained(bart_folder)("the cat sat.", "a cat.", return_tensors="pt")
    with torch.inference_mode():
        expected = model(**ids).logits[0].softmax(-1)
    for aligner, index in ((load_aligner(bart_folder), 2), (load_aligner(bart_folder, entailment=0), 0)):
        (support,) = aligner.align(["the cat sat."], ["a cat."])
        assert support.score == pytest.approx(expected[index].item(), abs=1e-6)


def test_positions_of_an_encoder_decoder_are_its_window(bart_folder):
    scorer = load_scorer(bart_folder)
    assert scorer.window == 64
    assert scorer.score([("a" * 58, "bcd")])  # 64 tokens, the last that have a position
    (support,) = ClassifierAligner(scorer).align(["the cat sat. " * 30], ["a cat."])
    assert 0.0 <= support.score <= 1.0


def test_encoder_decoder_that_is_neither_classifier_nor_minicheck_is_refused(tmp_path):
    BartConfig(**BART, architectures=["BartForConditionalGeneration"]).save_pretrained(tmp_path)
    for name in (tmp_path, f"minicheck:{tmp_path}"):
        with pytest.raises(CheckpointError, match="bart"):
            load_aligner(name)


def test_network_without_a_limit_of_positions_takes_what_its_tokenizer_states_or_512(tmp_path, classifier_folder):
    torch.manual_seed(6)
    config = XLNetConfig(
        **dict(vocab_size=44, d_model=32, n_layer=1, n_head=4, d_inner=48, pad_token_id=0),
        **dict(id2label={0: "entailment", 1: "neutral"}),
    )
    model = XLNetForSequenceClassification(config)
    scorer = load_scorer(save(model, tmp_path / "unstated", classifier_folder))
    assert scorer.window == 512
    (support,) = ClassifierAligner(scorer).align(["the cat sat on the mat."], ["a cat sat."])
    assert support.score == pytest.approx(scorer.score([("the cat sat on the mat.", "a cat sat.")])[0], abs=1e-6)
    assert load_scorer(save(model, tmp_path / "stated", classifier_folder, model_max_length=640)).window == 640


@pytest.fixture(scope="module")
def minicheck_roberta(tmp_path_factory):
    """A two-class RoBERTa whose config names no class, as MiniCheck's, with random weights."""
    torch.manual_seed(4)
    source = Path(__file__).parents[1] / "golden" / "alignscore" / "tiny-roberta"
    config = AutoConfig.from_pretrained(source, num_labels=2, initializer_range=0.5)
    folder = tmp_path_factory.mktemp("minicheck-roberta")
    RobertaForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def test_minicheck_encoder_reads_document_and_claim_as_one_text(minicheck_roberta):
    model, tokenizer = (
        auto.from_pretrained(minicheck_roberta) for auto in (AutoModelForSequenceClassification, AutoTokenizer)
    )
    plain = tokenizer("The cat sat.", add_special_tokens=False)["input_ids"]
    claim = tokenizer("A cat.", add_special_tokens=False)["input_ids"]
    expected = [0, *plain, 2, *claim, 2]  # <s> document </s> claim </s>, one end of sequence between them
    scorer = load_scorer(minicheck_roberta, minicheck=True)
    assert scorer.encode([("The cat sat.", "A cat.")])["input_ids"] == [expected]
    assert scorer.length("The cat sat.", "A cat.") == len(expected)
    with torch.inference_mode():
        logits = model(torch.tensor([expected])).logits[0]
    aligner = load_aligner(f"minicheck:{minicheck_roberta}")
    (support,) = aligner.align(["The cat sat."], ["A cat."])
    assert support.score == pytest.approx(logits.softmax(-1)[1].item(), abs=1e-6)
    assert aligner.name == f"minicheck:{minicheck_roberta}"
    (as_pair,) = load_aligner(minicheck_roberta, entailment=1).align(["The cat sat."], ["A cat."])
    assert abs(as_pair.score - support.score) > 1e-4


def test_minicheck_is_no_other_classifier(classifier_folder, minicheck_folder):
    with pytest.raises(CheckpointError, match="MiniCheck"):
        load_aligner(f"minicheck:{classifier_folder}")
    pair = ["the cat sat."], ["a cat."]
    assert load_aligner(f"minicheck:{minicheck_folder}").align(*pair) == load_aligner(minicheck_folder).align(*pair)


def test_minicheck_reads_the_first_answer_token(minicheck_folder):
    model = AutoModelForSeq2SeqLM.from_pretrained(minicheck_folder)
    tokenizer = AutoTokenizer.from_pretrained(minicheck_folder)
    ids = tokenizer("predict: the cat sat.</s>a cat.", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = model(input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
    no, yes = (tokenizer(digit, add_special_tokens=False)["input_ids"][0] for digit in "01")
    (support,) = load_aligner(minicheck_folder).align(["the cat sat."], ["a cat."])
    assert support.score == pytest.approx(torch.sigmoid(logits[yes] - logits[no]).item(), abs=1e-6)


def test_minicheck_that_cannot_answer_is_refused(minicheck_folder, tmp_path):
    shutil.copytree(minicheck_folder, tmp_path, dirs_exist_ok=True)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {token: i for token, i in vocabulary.items() if not token.isdecimal()}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(CheckpointError, match="tokens"):
        load_aligner(tmp_path)


def test_aligner_is_named_after_what_was_loaded(classifier_folder, bundled_folder):
    assert load_aligner("bundled").name == "bundled"
    for folder in (classifier_folder, bundled_folder):
        assert load_aligner(str(folder)).name == str(folder)


def test_none_is_no_aligner():
    assert load_aligner("none") is None
