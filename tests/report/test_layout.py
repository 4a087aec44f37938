"""What stands on the page for one made-up response, value by value."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from syncheck.report.html import case_view
from syncheck.results import Answer, Case, Report
from syncheck.results.types import Evidence, RagPrompt, SentenceScore, TokenSignals

NAN = float("nan")
PROMPT = RagPrompt("Why?", ("No. Because it is.", "So."), "with", "without", (1, 2), (1,))
TOKENS = TokenSignals(
    text="Hm\nYes.",
    token_ids=np.array([5, 6, 7, 8]),
    char_spans=np.array([[0, 3], [3, 6], [6, 6], [6, 7]]),
    log_prob=np.array([log(0.5), log(0.25), -2.0, 0.0], dtype=np.float32),
    log_prob_without_context=np.full(4, -9, dtype=np.float32),
    entropy=np.ones(4, dtype=np.float32),
    kl=np.array([1.5, 3.5, NAN, 12.0], dtype=np.float32),
)
FIRST = SentenceScore(
    "Hm", 0, 2, 0, 1, 0.75, "scored", {"min_prob": 0.5}, attribution={"min_prob": 0.02}, verdict="supported"
)
SECOND = SentenceScore(
    "Yes.",
    3,
    7,
    1,
    4,
    0.25,
    "scored",
    {"min_prob": 0.5, "align_score": 0.125, "mean_entropy": None},
    attribution={"min_prob": 0.1, "align_score": -0.2},
    evidence=Evidence(0, " Because it is. ", 0.125),
    latency_ms=2.25,
    verdict="unsupported",
)
TRIED = SentenceScore("Never.", 3, 9, 0, 0, 0.1, "scored", {}, verdict="unsupported")


@pytest.fixture
def answer():
    made = Report(PROMPT, TOKENS.text, (FIRST, SECOND), TOKENS)
    case = Case("Why?", PROMPT.passages, (Answer("FOD", made, (TRIED,)),))
    return case_view(case, 1, prefix="x-")


def test_tokens_are_shaded_by_kl_and_underlined_by_probability(answer):
    first, second = answer["answers"][0]["sentences"]
    fields = ["text", "visible", "log_prob", "kl", "shade", "probability", "large_kl"]
    assert {tuple(token) for token in first["tokens"] + second["tokens"]} == {tuple(fields)}
    assert [tuple(token.values()) for token in first["tokens"]] == [("Hm⏎", True, "−0.7", "1.5", 0.25, 50.0, False)]
    assert [tuple(token.values()) for token in second["tokens"]] == [
        ("Yes", True, "−1.4", "3.5", 0.583, 25.0, True),
        ("id 7", False, "−2.0", "–", 0.0, 13.5, False),
        (".", True, "0.0", "12.0", 1.0, 100.0, True),
    ]


def test_signals_are_sorted_from_what_pulls_down_to_what_lifts(answer):
    fields = ("name", "value", "change", "pulls_down", "width")
    assert [tuple(s[field] for field in fields) for s in answer["answers"][0]["sentences"][1]["signals"]] == [
        ("align_score", "0.125", "−0.20", True, 40.0),
        ("mean_entropy", "not measured", "", False, 0.0),
        ("min_prob", "0.5", "+0.10", False, 20.0),
    ]


def test_five_signals_stand_before_the_others(answer):
    values = {f"signal_{i}": 1.0 for i in range(8)}
    changes = {"signal_3": -0.5, "signal_6": 0.4, "signal_0": 0.3, "signal_1": -0.2, "signal_7": 0.1, "signal_2": 0.01}
    weighed = replace(SECOND, features=values, attribution=changes)
    case = Case.of(Report(PROMPT, TOKENS.text, (weighed, replace(weighed, attribution={})), TOKENS))
    first, second = case_view(case, 1, prefix="")["answers"][0]["sentences"]
    assert [s["name"] for s in first["signals"]] == ["signal_3", "signal_1", "signal_7", "signal_0", "signal_6"]
    assert [s["name"] for s in first["more_signals"]] == ["signal_4", "signal_5", "signal_2"]
    assert (len(second["signals"]), second["more_signals"]) == (8, [])  # no weights are known


def test_bars_have_one_scale_for_the_whole_answer(answer):
    """Here the least one: 0.5 nats fill a bar."""
    (signal,) = answer["answers"][0]["sentences"][0]["signals"]
    assert signal == {
        "name": "min_prob",
        "meaning": "probability of the least likely token",
        "value": "0.5",
        "change": "+0.02",
        "pulls_down": False,
        "width": 4.0,
    }


def test_only_the_lowest_sentence_unfolds(answer):
    assert [(s["is_lowest"], s["unfolded"]) for s in answer["answers"][0]["sentences"]] == [
        (False, False),
        (True, True),
    ]


def test_an_answer_without_doubtful_sentences_stays_folded():
    made = Report(PROMPT, TOKENS.text, (FIRST,), TOKENS)
    (sentence,) = case_view(Case.of(made), 1, prefix="")["answers"][0]["sentences"]
    assert (sentence["is_lowest"], sentence["unfolded"]) == (True, False)


def test_a_passage_is_cut_at_evidence_and_points_to_its_sentence(answer):
    ref = ("FOD 2", "x-q1a1s2")
    assert answer["passages"][0] == [
        {"text": "No. ", "refs": [], "ends": []},
        {"text": "Because it is.", "refs": [ref], "ends": [ref]},
    ]
    assert answer["passages"][1] == [{"text": "So.", "refs": [], "ends": []}]


def test_dropped_sentences_stand_before_the_one_that_took_their_place(answer):
    first, second = answer["answers"][0]["sentences"]
    assert first["dropped"] == ()
    assert second["dropped"] == (TRIED,)


def test_facts_of_the_answer(answer):
    assert answer["answers"][0]["facts"] == ("2 sentences", "4 tokens", "1 dropped")
