"""Classifier checkpoints: the supported class, windows over the whole context, MiniCheck's answers."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

from syncheck.alignment import ClassifierAligner, load_aligner
from syncheck.errors import CheckpointError


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
        ClassifierAligner.load(tmp_path)


def test_minicheck_reads_the_first_answer_token(minicheck_folder):
    model = AutoModelForSeq2SeqLM.from_pretrained(minicheck_folder)
    tokenizer = AutoTokenizer.from_pretrained(minicheck_folder)
    ids = tokenizer("predict: the cat sat.</s>a cat.", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = model(input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
    no, yes = (tokenizer(digit, add_special_tokens=False)["input_ids"][0] for digit in "01")
    (support,) = load_aligner(minicheck_folder).align(["the cat sat."], ["a cat."])
    assert support.score == pytest.approx(torch.sigmoid(logits[yes] - logits[no]).item(), abs=1e-6)


def test_aligner_is_named_after_what_was_loaded(classifier_folder, bundled_folder):
    assert load_aligner("bundled").name == "bundled"
    for folder in (classifier_folder, bundled_folder):
        assert load_aligner(str(folder)).name == str(folder)


def test_none_is_no_aligner():
    assert load_aligner("none") is None
