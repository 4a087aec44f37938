import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import demo_cases, report

from syncheck.report import render_text, wants_colour
from syncheck.report.terminal import render_sentences
from syncheck.results import Answer, Case, Report
from syncheck.results.types import Contrast, Evidence, RagPrompt, SentenceScore, TokenSignals

ANSI = re.compile(r"\x1b\[[0-9;]*m")
EMPTY = np.zeros(0, dtype=np.float32)
NO_TOKENS = TokenSignals("", np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64), EMPTY, EMPTY, EMPTY, EMPTY)
PROMPT = RagPrompt("Why?", ("Because it is.", "So."), "with", "without", (1, 2), (1,))


def test_text_of_one_answer_by_hand():
    good = SentenceScore("It is so.", 0, 9, 0, 3, 0.93, "scored", {"min_prob": 0.5}, verdict="supported")
    bad = SentenceScore(
        "It is not.",
        10,
        20,
        3,
        6,
        0.2,
        "scored",
        {"min_prob": 0.0625, "large_kl_pos": 2.0, "mean_entropy": None, "align_score": 0.1},
        attribution={"min_prob": -0.25, "large_kl_pos": -0.0625, "mean_entropy": -0.001, "align_score": 0.5},
        evidence=Evidence(1, "So.", 0.125),
        latency_ms=2.5,
        verdict="contradicted",
        contrasts=(Contrast("negation", "not", "", 1),),
    )
    mark = SentenceScore("!", 21, 22, 6, 7, None, "not_checkable", {}, reason="no letter or digit")
    dropped = SentenceScore("Never.", 10, 16, 3, 5, 0.11, "scored", {})
    made = Report(PROMPT, "It is so. It is not. !", (good, bad, mark), NO_TOKENS, "eos", 1.25)
    text = render_text([Case("Why?", PROMPT.passages, (Answer("FOD", made, (dropped,)),))])
    assert text.splitlines() == [
        "Q: Why?",
        "",
        "── FOD faithfulness 0.57 · 3 sentences · 1 without a score · 1 dropped · 1.2 s ·",
        "   stop: eos",
        "  1  0.93  supported     It is so.",
        "  x  0.11  dropped       Never.",
        "  2  0.20  contradicted  It is not.",
        "                         → passage 2 does not say “not”",
        "                           nearest: “So.” (passage 2, support 0.12)",
        "  3    –   no score      !",
        "                         → nothing to check: no letter or digit",
        "",
        "     lowest: sentence 2, contradicted",
        "     -0.25  min_prob             0.0625      probability of the least likely",
        "                                             token",
        "     -0.06  large_kl_pos         2 tokens    tokens with a KL above 3 nats",
        "     scored 2.5 ms after it was complete",
        "",
    ]


def test_printing_a_report_shows_it():
    made = report("q", ("p",), [("Yes.", 0.5, 0, "p")])
    assert str(made) == render_text([Case.of(made)])


def test_without_a_question_the_answer_stands_alone():
    made = report("q", ("p",), [("Yes.", 0.5, 0, "p")])
    unasked = render_text([Case("", ("p",), (Answer("answer", made), Answer("other", made)))])
    assert unasked == render_text([Case("Why?", ("p",), (Answer("answer", made), Answer("other", made)))])[8:].lstrip()
    assert unasked.startswith("── answer") and "Q:" not in unasked


def test_an_empty_answer_and_no_cases_are_drawn():
    assert render_text([]) == ""
    text = render_text([Case.of(Report(PROMPT, "", (), NO_TOKENS))])
    assert "no score · 0 sentences\n" in text and "(empty answer)" in text
    assert "(no answer: abstained)" in str(Report(PROMPT, "", (), NO_TOKENS, "abstained"))


def test_each_sentence_has_its_verdict_and_what_speaks_against_it():
    made = SentenceScore("It is so.", 0, 9, 0, 3, 0.1, "scored", {}, verdict="contradicted")
    safe = Contrast("antonym", "unsafe", "safe", 0)
    drawn = render_sentences(
        [
            replace(made, contrasts=(safe, replace(safe, kind="negation"))),
            replace(made, score=0.9, verdict="supported", evidence=Evidence(0, "So.", 0.9)),
            replace(made, score=0.3, verdict="unsupported", remarks=("no_passage_touches",)),
            replace(made, score=0.6, verdict="doubtful", remarks=("says_not_stated",), truncated=True),
            replace(made, evidence=Evidence(0, "So.", 0.1)),
            replace(made, score=None, verdict=None, status="no_aggregator"),
        ],
        title="q1\x1b[2J",
    )
    assert drawn.splitlines() == [
        "q1\\u001b[2J",
        "  1  0.10  contradicted  It is so.",
        "                         → passage 1 says “safe”, not “unsafe”",
        "  2  0.90  supported     It is so.",
        "  3  0.30  unsupported   It is so.",
        "                         → no passage holds any of its words",
        "  4  0.60  doubtful      It is so.",
        "                         → it says that something is not stated",
        "                         → cut at the limit of tokens",
        "  5  0.10  contradicted  It is so.",
        "                         → the aligner takes it for contradicted",
        "                           nearest: “So.” (passage 1, support 0.10)",
        "  6    –   signals only  It is so.",
    ]


def test_what_a_decoder_gives_instead_of_an_answer_is_said():
    made = SentenceScore("It is so.", 0, 9, 0, 3, 0.9, "scored", {}, verdict="supported")
    drawn = render_sentences([], title="q1", stop="abstained", message="I do not know.")
    assert drawn == "q1\n     (no answer: abstained; given instead: “I do not know.”)\n"
    assert "(given instead: “I do not" in render_sentences(
        [made], title="q1", stop="abstained", message=" I do not know."
    )
    assert render_sentences([], title="q1", stop="end_of_text").endswith("(empty answer)\n")


def test_names_of_any_length_fit():
    long = "x" * 300
    made = SentenceScore("So.", 0, 3, 0, 1, 0.1, "scored", {long: 1.0}, attribution={long: -1.0}, verdict="unsupported")
    drawn = render_text([Case.of(Report(PROMPT, "So.", (made,), NO_TOKENS), label=long)])
    assert max(map(len, drawn[: drawn.index("lowest")].splitlines())) <= 80 and long in drawn


def test_colour_adds_nothing_but_escapes():
    plain = render_text(demo_cases())
    coloured = render_text(demo_cases(), colour=True)
    assert "\x1b" not in plain
    assert coloured != plain
    assert ANSI.sub("", coloured) == plain


def test_a_sentence_cut_at_the_limit_is_marked():
    cut = SentenceScore("Long", 0, 4, 0, 256, 0.5, "scored", {}, truncated=True)
    assert "→ cut at the limit of tokens" in render_text([Case.of(Report(PROMPT, "Long", (cut,), NO_TOKENS))])


@given(st.integers(60, 140), st.lists(st.sampled_from(["word", "longer", "words"]), min_size=1, max_size=60))
def test_answers_wrap_at_the_width_and_keep_every_word(width, words):
    text = " ".join(words) + "."
    drawn = render_text([Case.of(report("q", ("p",), [(text, 0.9, 0, None)]))], width=width)
    answer = drawn[drawn.index("  1  0.90") : drawn.index("     lowest")]
    assert max(map(len, answer.splitlines())) <= width
    assert " ".join(answer.split()[3:]) == text  # after number, score and verdict


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "no_color", "expected"),
    [(_Terminal(), None, True), (_Terminal(), "1", False), (_Terminal(), "", True), (io.StringIO(), None, False)],
)
def test_colour_is_for_terminals_whose_user_wants_it(monkeypatch, stream, no_color, expected):
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert wants_colour(stream) is expected
