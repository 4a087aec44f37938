"""What an object shows of itself in a prompt or a log: one short line, with what a reader looks for first."""

import numpy as np
import pytest

from syncheck import (
    Aggregator,
    EndEvent,
    LidReferences,
    Report,
    SentenceEvent,
    SentenceScore,
    TokenEvent,
    feature_schema,
)
from syncheck.aggregators import PlattCalibration
from syncheck.base.printable import quoted, summary
from syncheck.results import Answer, Case, TraceNode
from syncheck.results.types import RagPrompt, SentenceFeatures, SentenceSignals, SentenceSpan, TokenSignals

LONG = "The maximum dose is 4 g.\nMore is harmful. " * 500
PROMPT = RagPrompt(LONG, (LONG, LONG), LONG, LONG, tuple(range(9000)), (1,))
SCHEMA = feature_schema("paper-no-lid.v1", ())
FEATURES = dict.fromkeys(SCHEMA.names, 0.5)
SENTENCE = SentenceScore(LONG, 0, 25, 0, 9, 0.938, "scored", FEATURES, attribution=FEATURES)
UNSCORED = SentenceScore("…", 25, 26, 9, 10, None, "not_checkable", {})
COLUMNS = [np.zeros(9000, np.float32)] * 4
TOKENS = TokenSignals(LONG, np.arange(9000), np.zeros((9000, 2), np.int64), *COLUMNS)
SIGNALS = SentenceSignals(LONG, SentenceSpan(0, 0, 25, 0, 9000), np.arange(9000), *COLUMNS)
REPORT = Report(PROMPT, LONG, (SENTENCE, UNSCORED), TOKENS)
VALUES = np.array([np.nan, *np.zeros(len(SCHEMA.names) - 1)])
REFERENCES = LidReferences({layer: np.eye(5) for layer in range(1, 99)})
AGGREGATOR = Aggregator.from_signal("min_prob", schema=SCHEMA)
DOSE = '"The maximum dose is 4 g. More is harmful. The maxi…"'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (PROMPT, f"<RagPrompt {DOSE} 2 passages, 9000 tokens>"),
        (TOKENS, f"<TokenSignals 9000 tokens {DOSE}>"),
        (SIGNALS, f"<SentenceSignals 9000 tokens {DOSE}>"),
        (SentenceFeatures(SCHEMA, VALUES), "<SentenceFeatures paper-no-lid.v1, 6 of 7 measured>"),
        (SENTENCE, f"<SentenceScore 0.94 scored {DOSE}>"),
        (UNSCORED, '<SentenceScore not_checkable "…">'),
        (TokenEvent(7, " dose"), '<TokenEvent 7 " dose">'),
        (SentenceEvent(SENTENCE, (1, 2)), f"<SentenceEvent 0.94 scored {DOSE}>"),
        (EndEvent(REPORT), f"<EndEvent <Report 2 sentences, lowest 0.94, {DOSE}>>"),
        (REPORT, f"<Report 2 sentences, lowest 0.94, {DOSE}>"),
        (Answer(LONG, REPORT), f"<Answer {DOSE} 2 sentences {DOSE}>"),
        (Case(LONG, (LONG,), (Answer("greedy", REPORT),)), f"<Case {DOSE} 1 answer>"),
        (TraceNode(LONG, 0.5, "pruned", LONG), f"<TraceNode 0.50 pruned {DOSE} 0 continuations>"),
        (REFERENCES, "<LidReferences mle, layers 1, 2, 3, 4, 5, 6, …, up to 5 references>"),
        (AGGREGATOR, "<Aggregator signal, paper-no-lid.v1, 7 features>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_is_shown_on_one_short_line(value, shown):
    assert repr(value) == shown
    assert len(shown) <= 150


def test_an_aggregator_says_that_it_is_calibrated():
    calibrated = Aggregator(SCHEMA, "signal", AGGREGATOR.medians, AGGREGATOR.model, PlattCalibration(1.0, 0.0))
    assert repr(calibrated) == "<Aggregator signal, paper-no-lid.v1, 7 features, calibrated>"


def test_a_monitor_and_its_session_name_their_parts(monitor, prompt):
    name = type(monitor.model).__name__
    assert repr(monitor) == f"<Monitor {name}, syncheck.v3, lr aggregator, WordAligner>"
    with monitor.session(prompt) as session:
        (answer,) = session.answers
        assert repr(answer) == '<ScoredAnswer 0 sentences to "Who is Angus Scott?">'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        (" a\n b\t c ", '" a b c "'),
        ('say "no"', r'"say \"no\""'),
        ("x" * 50, f'"{"x" * 50}"'),
        ("x" * 51, f'"{"x" * 50}…"'),
        (" " * 10_000, '" …"'),
    ],
)
def test_a_quoted_text_keeps_to_one_line(text, shown):
    assert quoted(text) == shown


def test_a_summary_leaves_out_what_is_not_there():
    assert summary(..., None, "", 0, 0.0) == "<ellipsis 0 0.00>"
