"""The benchmark of long contexts: what its file holds, and how its figures are computed."""

import json

import efforts
import long_contexts
import numpy as np
import pytest

from syncheck import Verifier
from syncheck.aligners import BundledAligner

UNSUPPORTED = {
    "splice", "dropped", "exchanged", "wrong_thing", "comparison", "number", "partly", "negation", "invented",
}  # fmt: skip
SUPPORTED = {"paraphrase", "synthesis", "inference", "condition", "copy"}
QUESTIONS = long_contexts.load_questions("both")
SENTENCES = [sentence for question in QUESTIONS for sentence in question["answer"]]


def test_every_question_has_long_passages_and_an_answer_of_eight_sentences():
    assert len(QUESTIONS) >= 60 and len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert 3 <= len(question["passages"]) <= 5
        assert all(100 <= len(passage.split()) <= 250 for passage in question["passages"])
        assert len(question["answer"]) == 8
        assert all(0 < place <= len(question["passages"]) for s in question["answer"] for place in s["place"])


def test_labels_are_even_and_go_with_their_kinds():
    labels = np.array([sentence["label"] for sentence in SENTENCES])
    assert labels.mean() == 0.5
    for sentence in SENTENCES:
        assert sentence["kind"] in (SUPPORTED if sentence["label"] else UNSUPPORTED) | {"absence", "table"}
    for half in ("open", "closed"):
        assert len(long_contexts.load_questions(half)) == len(QUESTIONS) / 2


def test_known_words_and_lengths_do_not_give_the_labels_away():
    labels = np.array([sentence["label"] for sentence in SENTENCES])
    lengths = np.array([len(sentence["text"].split()) for sentence in SENTENCES])
    for values, most in ((long_contexts.known_words(QUESTIONS), 0.03), (lengths, 1.5)):
        assert abs(values[labels == 1].mean() - values[labels == 0].mean()) < most


def test_a_balanced_share_counts_both_labels_alike():
    good = np.array([True, True, True, False])
    assert long_contexts.balanced(good, np.array([0.9, 0.5, 0.2, 0.6])) == pytest.approx(1 / 3)


def test_each_sentence_of_each_answer_is_scored():
    question = long_contexts.load_questions("open")[:1]
    verifier = Verifier(BundledAligner.load())
    assert long_contexts.scores_of(verifier, question).shape == (8,)


def test_the_command_prints_both_figures(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(long_contexts, "RESAMPLES", 20)
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(question) + "\n" for question in long_contexts.load_questions("open")[:4]))
    monkeypatch.setattr(long_contexts, "DATA", few)
    long_contexts.main(["--half", "open", "--aligner", "bundled"])
    shown = capsys.readouterr().out
    assert "generic-bundled" in shown and "known words" in shown and "balanced at 0.5" in shown


class TestOtherAnswers:
    SETS = efforts.answers(efforts.HERE / "other_answers.jsonl")

    def test_half_of_the_sentences_of_each_kind_are_not_supported(self):
        assert {kind: len(asked) for kind, asked in self.SETS.items()} == {
            "new user": 14, "meeting": 14, "news": 14, "notice": 16,
        }  # fmt: skip
        for asked in self.SETS.values():
            labels = [label for one in asked for label in one.labels]
            assert np.mean(labels) == 0.5 and all(len(one.labels) == 8 for one in asked)

    def test_each_sentence_has_a_score_and_the_odds_of_the_aligner(self):
        scores, odds, milliseconds = efforts.figures(Verifier(BundledAligner.load()), self.SETS["notice"][:2])
        assert scores.shape == odds.shape == (16,) and milliseconds > 0
        assert ((scores >= 0) & (scores <= 1)).all() and (odds != 0).all()

    def test_pairs_are_two_claims_each(self):
        supported, other, *_ = efforts.pairs(efforts.HERE / "reasoning.jsonl", "open")
        assert (supported.labels, other.labels) == ([1], [0]) and supported.passages == other.passages
