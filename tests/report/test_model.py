import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import report, tried

from syncheck.base.errors import MissingExtraError
from syncheck.results import Answer, Case, Report
from syncheck.results.types import Citation, Contrast, Evidence, RagPrompt, SentenceScore, TokenSignals

PROMPT = RagPrompt("Why?", ("Because.",), "with", "without", (1, 2), (1,))
NAN = float("nan")


def tokens(*values):
    return TokenSignals(
        text="Yes. ?",
        token_ids=np.array([7, 8, 9]),
        char_spans=np.array([[0, 3], [3, 4], [4, 6]]),
        log_prob=np.array([-0.5, -1.0, -2.0], dtype=np.float32),
        log_prob_without_context=np.array([NAN, -1.5, NAN], dtype=np.float32),
        entropy=np.array([0.25, 0.5, 0.75], dtype=np.float32),
        kl=np.array([NAN, 4.0, NAN], dtype=np.float32),
    )


def small(*scores):
    sentences = tuple(
        SentenceScore(f"s{i}", i, i + 1, i, i + 1, s, "scored" if s is not None else "failed", {})
        for i, s in enumerate(scores)
    )
    return Report(PROMPT, "Yes. ?", sentences, tokens())


def test_to_dict_holds_exactly_the_documented_keys_and_values():
    sentence = SentenceScore(
        "Yes.",
        0,
        4,
        0,
        2,
        0.5,
        "scored",
        {"min_prob": np.float32(0.25), "align_score": None},
        attribution={"min_prob": -0.125},
        evidence=Evidence(0, "Because.", 0.75),
        latency_ms=1.5,
        contrasts=(Contrast("negation", "", "not", 0),),
        citations=(Citation("[2]", 2, 4, None, "fabricated", 0),),
    )
    unchecked = SentenceScore("?", 5, 6, 2, 3, None, "not_checkable", {}, reason="no letter or digit")
    made = Report(PROMPT, "Yes. ?", (sentence, unchecked), tokens(), "eos", 2.0).to_dict()
    assert made == {
        "question": "Why?",
        "passages": ["Because."],
        "response": "Yes. ?",
        "faithfulness": 0.5,
        "answer_score": None,
        "citation_precision": 0.0,
        "citation_recall": 0.0,
        "stop": "eos",
        "spans": None,
        "monitor": None,
        "hidden": [],
        "after_end": "",
        "seconds": 2.0,
        "sentences": [
            {
                "text": "Yes.",
                "start": 0,
                "end": 4,
                "token_start": 0,
                "token_end": 2,
                "score": 0.5,
                "status": "scored",
                "features": {"min_prob": 0.25, "align_score": None},
                "reason": None,
                "attribution": {"min_prob": -0.125},
                "evidence": {"passage": 0, "text": "Because.", "score": 0.75},
                "latency_ms": 1.5,
                "truncated": False,
                "verdict": None,
                "remarks": [],
                "contrasts": [{"kind": "negation", "sentence": "", "evidence": "not", "passage": 0}],
                "citations": [
                    {"marker": "[2]", "start": 2, "end": 4, "passage": None, "status": "fabricated", "better": 0}
                ],
                "relevance": None,
            },
            {
                "text": "?",
                "start": 5,
                "end": 6,
                "token_start": 2,
                "token_end": 3,
                "score": None,
                "status": "not_checkable",
                "features": {},
                "reason": "no letter or digit",
                "attribution": {},
                "evidence": None,
                "latency_ms": None,
                "truncated": False,
                "verdict": None,
                "remarks": [],
                "contrasts": [],
                "citations": [],
                "relevance": None,
            },
        ],
        "tokens": [
            {
                "id": 7,
                "text": "Yes",
                "start": 0,
                "end": 3,
                "log_prob": -0.5,
                "log_prob_without_context": None,
                "entropy": 0.25,
                "kl": None,
            },
            {
                "id": 8,
                "text": ".",
                "start": 3,
                "end": 4,
                "log_prob": -1.0,
                "log_prob_without_context": -1.5,
                "entropy": 0.5,
                "kl": 4.0,
            },
            {
                "id": 9,
                "text": " ?",
                "start": 4,
                "end": 6,
                "log_prob": -2.0,
                "log_prob_without_context": None,
                "entropy": 0.75,
                "kl": None,
            },
        ],
    }


def test_json_is_strict_and_keeps_the_letters_of_the_response():
    made = report("Où ?", ("là",), [("C’est là.", 0.5, 0, "là")])
    text = made.to_json()
    assert "C’est là." in text
    assert "\n" not in text
    assert json.loads(text, parse_constant=pytest.fail) == made.to_dict()


def test_faithfulness_is_the_mean_of_scored_sentences_only():
    assert small(0.25, None, 0.75).faithfulness == 0.5
    assert small(None).faithfulness is None
    assert small().faithfulness is None


def test_lowest_is_the_first_of_equals():
    assert small(0.5, None, 0.25, 0.25).lowest.text == "s2"
    assert small(None).lowest is None


def test_frame_has_one_row_per_sentence_and_nan_for_what_is_missing():
    scored = SentenceScore("a", 0, 1, 0, 1, 0.5, "scored", {"min_prob": 0.25, "align_score": None})
    failed = SentenceScore("b", 1, 2, 1, 2, None, "failed", {}, reason="no tokens")
    frame = Report(PROMPT, "ab", (scored, failed), tokens()).to_df()
    assert list(frame["text"]) == ["a", "b"]
    assert list(frame["status"]) == ["scored", "failed"]
    assert frame["score"][0] == 0.5
    assert math.isnan(frame["score"][1])
    assert frame["min_prob"][0] == 0.25
    assert frame[["align_score", "min_prob"]].isna().to_numpy().tolist() == [[True, False], [True, True]]
    assert frame.dtypes[["score", "min_prob", "align_score"]].eq("float64").all()


def test_frame_of_an_empty_response_has_columns_and_no_rows():
    frame = small().to_df()
    assert len(frame) == 0
    assert {"text", "score", "status"} <= set(frame.columns)


def test_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="data"):
        small().to_df()


def test_an_answer_takes_the_time_of_its_report_unless_it_has_its_own():
    made = report("q", ("p",), [("Yes.", 0.5, 0, "p")], seconds=1.5)
    assert Answer("a", made).wall_seconds == 1.5
    assert Answer("a", made, seconds=9.0).wall_seconds == 9.0


def test_timeline_puts_dropped_sentences_before_the_one_kept_in_their_place():
    made = report("q", ("p",), [("First.", 0.9, 0, "p"), ("Second.", 0.9, 0, "p")])
    first, second = made.sentences
    early, late, after = tried("Other.", 0.1, 0), tried("Third.", 0.2, 7), tried("Last.", 0.3, 14)
    answer = Answer("fod", made, (after, late, early))
    assert answer.timeline == ((first, (early,)), (second, (late,)), (None, (after,)))


@given(st.lists(st.integers(0, 30)), st.integers(0, 4))
def test_timeline_loses_nothing_and_repeats_nothing(starts, count):
    kept = tuple(SentenceScore(f"k{i}", 7 * i, 7 * i + 6, 0, 0, 0.5, "scored", {}) for i in range(count))
    dropped = tuple(tried(f"d{i}", 0.1, start) for i, start in enumerate(starts))
    timeline = Answer("fod", Report(PROMPT, "", kept, tokens()), dropped).timeline
    assert tuple(s for s, _ in timeline if s is not None) == kept
    assert sorted(d.text for _, tried_here in timeline for d in tried_here) == sorted(d.text for d in dropped)


def test_the_case_of_a_report_is_its_question_passages_and_itself():
    made = report("q", ("p",), [("Yes.", 0.5, 0, "p")])
    assert Case.of(made, label="greedy") == Case("q", ("p",), (Answer("greedy", made),))
