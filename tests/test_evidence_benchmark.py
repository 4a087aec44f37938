"""The benchmark of evidence: what its file holds, and how its figures are computed."""

import json

import evidence
import numpy as np
import pytest
from long_contexts import load_questions

from syncheck import Verifier
from syncheck.aligners import BundledAligner
from syncheck.results.types import Evidence

OPEN = load_questions("open")


def test_words_that_decide_are_named_for_sentences_of_the_open_half_alone():
    records = [json.loads(line) for line in evidence.DATA.read_text(encoding="utf-8").splitlines()]
    assert {record["id"] for record in records} == {question["id"] for question in OPEN}
    assert len(records) == len({(record["id"], record["sentence"]) for record in records}) >= 80
    assert all(words.start < words.end for named in evidence.load_deciding(OPEN) for words in named)


def test_what_supports_a_sentence_is_where_its_writer_took_it_from():
    sentences = [sentence for question in OPEN for sentence in question["answer"]]
    for sentence, named in zip(sentences, evidence.load_deciding(OPEN), strict=True):
        if sentence["label"]:
            assert {words.passage + 1 for words in named} <= set(sentence["place"])


def test_parts_have_every_other_question():
    first, second = (evidence.of_part(OPEN, part) for part in ("first", "second"))
    assert len(first) == len(second) == len(OPEN) / 2
    assert not {question["id"] for question in first} & {question["id"] for question in second}


@pytest.mark.parametrize(
    ("passage", "text", "right"),
    [(0, "It is red.", (True, True)), (0, "A cat sat.", (True, False)), (1, "It is red.", (False, False))],
)
def test_evidence_is_right_by_its_passage_and_by_its_words(passage, text, right):
    passages = ["A cat sat. It is red.", "It is red."]
    assert evidence.is_right(Evidence(passage, text, 0.5), passages, [evidence.Words(0, 17, 20)]) == right


def test_a_sentence_that_nothing_decides_is_not_measured():
    question = next(question for question in OPEN if question["id"] == "q012")
    rows = evidence.measured(Verifier(BundledAligner.load()), [question])
    assert np.isnan(rows[4]).all() and not np.isnan(rows[:4]).any()


def test_the_command_prints_shares_with_intervals(monkeypatch, capsys):
    monkeypatch.setattr(evidence, "load_questions", lambda half: OPEN[:4])
    evidence.main(["--part", "second", "--aligner", "bundled"])
    shown = capsys.readouterr().out
    assert "with deciding words" in shown and "unsupported" in shown
