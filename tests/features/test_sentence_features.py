import json
import re
from dataclasses import replace
from math import exp, inf, isnan, log, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.base.errors import InputError
from syncheck.features.schemas import FEATURES, SCHEMAS, SentenceText, feature_schema, needs_signals
from syncheck.features.sentence import sentence_features
from syncheck.reading.claim import EarlierSentences
from syncheck.results.types import FeatureSchema, SentenceSignals, SentenceSpan, Support
from syncheck.text.words import ContextLexicon

GOLDEN = Path(__file__).parents[1] / "golden" / "signals"
ALL = feature_schema("syncheck.v3", (4, 2))
PREVIOUS = ("previous_support", "previous_pair_overlap", "previous_copied_run")
INHERITED = ("inherited_support", "inherited_pair_overlap", "inherited_copied_run")
LEXICON = ContextLexicon.from_passages(["Paris has 2 rivers."])


def signals(log_prob, *, without=None, entropy=None, kl=None, text="Paris has 3 towers."):
    count = len(log_prob)

    def column(values, default):
        return np.asarray([default] * count if values is None else values, dtype=np.float32)

    return SentenceSignals(
        text=text,
        span=SentenceSpan(0, 0, len(text), 0, count),
        token_ids=np.arange(count),
        log_prob=column(log_prob, nan),
        log_prob_without_context=column(without, nan),
        entropy=column(entropy, 1.0),
        kl=column(kl, nan),
    )


def features(
    sentence,
    schema=ALL,
    *,
    lid=None,
    support=None,
    lexicon=LEXICON,
    question=frozenset({"towers"}),
    earlier=(),
    last="",
):
    before = EarlierSentences(earlier, last)
    text = SentenceText(sentence.text, len(sentence.token_ids), question, lexicon, support, before)
    return sentence_features(schema, replace(sentence, lid=lid or {}), text)


def measured(found):
    return {name: value for name, value in found.to_dict().items() if value is not None}


def not_measured(found):
    return {name for name, value in found.to_dict().items() if value is None}


def test_values_by_hand():
    sentence = signals([-0.5, -2.0, -1.5], without=[-1.5, -1.0, -4.5], entropy=[0.25, 1.0, 0.5], kl=[3.0, 3.5, 0.25])
    found = features(
        sentence,
        lid={2: 7.5, 4: 0.0},
        support=Support(0.875, None),
        earlier=(0.5, nan, 0.25),
        last="It has 2 old rivers.",
    )
    assert found.values.dtype == np.float64
    assert not_measured(found) == {"name_overlap", *INHERITED}
    assert measured(found) == pytest.approx(
        {
            "min_prob": exp(-2),
            "mean_prob": (exp(-0.5) + exp(-2) + exp(-1.5)) / 3,
            "max_entropy": 1.0,
            "mean_entropy": 1.75 / 3,
            "lid_layer_4": 0.0,
            "lid_layer_2": 7.5,
            "mean_contrastive_kl": 2.25,
            "large_kl_pos": 1,  # exactly 3 is not above 3
            "align_score": 0.875,
            "content_overlap": 1 / 3,  # paris, 3, towers
            "bigram_overlap": 1 / 3,
            "number_overlap": 0.0,
            "log_tokens": log(3),
            "mean_log_prob": -4 / 3,
            "min_log_prob": -2.0,
            "mean_log_prob_gain": 1.0,
            "min_log_prob_gain": -1.0,
            "max_contrastive_kl": 3.5,
            "question_overlap": 1 / 3,
            "stem_overlap": 1 / 3,
            "pair_overlap": 0.0,
            "copied_run": 2 / 4,  # paris has
            "novel_words": log(3),  # 3, towers
            "sentence_index": log(4),
            "earlier_support_mean": 0.375,
            "earlier_support_min": 0.25,
            "source_mention": 0.0,
            "negation": 0.0,
            "list_item": 0.0,
            "previous_support": 0.25,
            "previous_pair_overlap": 0.0,  # 2 old, old rivers
            "previous_copied_run": 2 / 5,  # has 2
        },
        rel=1e-15,
    )


def test_a_sentence_without_a_letter_inherits_from_the_one_before():
    before = {"earlier": (0.5, 0.25), "last": "Paris has rivers, old ones."}
    number = features(signals([-1.0], text="2."), support=Support(0.75, None), **before).to_dict()
    assert [number[name] for name in INHERITED] == [0.25, 1 / 3, 2 / 5]  # paris rivers of three; paris has
    assert [number[name] for name in PREVIOUS] == [0.25, 1 / 3, 2 / 5]
    assert number["align_score"] == 0.75
    said = features(signals([-1.0], text="2 rivers."), **before).to_dict()
    assert [said[name] for name in INHERITED] == [None, None, None]
    assert [said[name] for name in PREVIOUS] == [0.25, 1 / 3, 2 / 5]
    first = features(signals([-1.0], text="2.")).to_dict()
    assert [first[name] for name in (*PREVIOUS, *INHERITED)] == [None] * 6
    without_context = features(signals([-1.0], text="2."), lexicon=None, earlier=(nan,), last="Paris.").to_dict()
    assert [without_context[name] for name in (*PREVIOUS, *INHERITED)] == [None] * 6


def test_sentences_without_a_letter_are_no_earlier_ones():
    none = EarlierSentences()
    assert none.followed_by("12.", 0.5) == none
    some = none.followed_by("One.", 0.5).followed_by("***", None).followed_by("Zwei.", None).followed_by("3", 0.1)
    assert (some.supports[0], some.last) == (0.5, "Zwei.")
    assert len(some.supports) == 2 and isnan(some.supports[1])


def test_what_was_not_measured_is_nan():
    found = features(signals([-1.0, -2.0]), lid={2: 5.0}, lexicon=None, question=frozenset())
    assert not_measured(found) == {
        "lid_layer_4",
        "mean_contrastive_kl",
        "large_kl_pos",
        "align_score",
        "content_overlap",
        "bigram_overlap",
        "number_overlap",
        "name_overlap",
        "mean_log_prob_gain",
        "min_log_prob_gain",
        "max_contrastive_kl",
        "question_overlap",
        "stem_overlap",
        "pair_overlap",
        "copied_run",
        "novel_words",
        "earlier_support_mean",
        "earlier_support_min",
        *PREVIOUS,
        *INHERITED,
    }


def test_earlier_sentences_that_were_not_aligned_count_but_have_no_support():
    found = features(signals([-1.0]), earlier=(nan, nan)).to_dict()
    assert found["sentence_index"] == pytest.approx(log(3))
    assert found["earlier_support_mean"] is found["earlier_support_min"] is None


def test_no_large_kl_is_a_measured_zero():
    assert features(signals([-1.0], kl=[0.0])).to_dict()["large_kl_pos"] == 0


def test_a_sentence_without_tokens_has_no_features():
    assert np.isnan(features(signals([]), lid={2: 1.0, 4: 1.0}, support=Support(1.0, None)).values).all()


def test_an_impossible_token_leaves_values_finite():
    sentence = signals([-inf, -1.0], without=[-inf, -inf], kl=[inf, 1.0])
    found = features(sentence, lid={2: 1.0, 4: 1.0}, support=Support(0.0, None))
    assert not_measured(found) == {"name_overlap", "earlier_support_mean", "earlier_support_min", *PREVIOUS, *INHERITED}
    found = measured(found)
    assert np.isfinite(list(found.values())).all()
    assert found["min_log_prob"] == -100
    assert found["mean_log_prob_gain"] == (0 + 99) / 2
    assert (found["mean_contrastive_kl"], found["large_kl_pos"]) == (50.5, 1)


def test_sums_are_made_in_float64():
    count = 4097
    found = features(signals([-1.0] * count, entropy=[0.1] * count)).to_dict()
    assert found["mean_entropy"] == pytest.approx(np.float64(np.float32(0.1)), rel=1e-13)
    assert found["mean_prob"] == pytest.approx(exp(-1), rel=1e-13)


@given(
    rows=st.lists(st.tuples(*[st.floats(-50, 0, width=32)] * 2, *[st.floats(0, 12, width=32)] * 2), min_size=1),
    order=st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_the_order_of_tokens_does_not_matter_and_ranges_hold(rows, order):
    values = measured(features(signals([r[0] for r in rows], **columns(rows))))
    order.shuffle(rows)
    shuffled = measured(features(signals([r[0] for r in rows], **columns(rows))))
    assert shuffled == pytest.approx(values, rel=1e-9, abs=1e-12)
    assert 0 <= values["min_prob"] <= values["mean_prob"] + 1e-12 <= 1 + 1e-12
    assert values["mean_entropy"] <= values["max_entropy"] + 1e-9
    assert 0 <= values["large_kl_pos"] <= len(rows)
    assert values["min_log_prob"] <= values["mean_log_prob"] + 1e-9
    assert values["min_log_prob_gain"] <= values["mean_log_prob_gain"] + 1e-9


def columns(rows):
    return {"without": [r[1] for r in rows], "entropy": [r[2] for r in rows], "kl": [r[3] for r in rows]}


@pytest.mark.parametrize("name", [feature.name for feature in FEATURES])
def test_a_schema_needs_the_model_if_a_feature_is_lost_without_it(monkeypatch, name):
    monkeypatch.setattr("syncheck.features.schemas.SCHEMAS", {"text": SCHEMAS["syncheck.v5"], "one": (name,)})
    one = feature_schema("one", (4,))
    nothing = [nan, nan]
    without_model = features(signals(nothing, without=nothing, entropy=nothing, kl=nothing), one)
    with_model = features(signals([-1.0, -2.0], without=[-1.0, -2.0], kl=[0.0, 1.0]), one, lid={4: 5.0})
    assert needs_signals("one") == (not_measured(without_model) > not_measured(with_model))
    assert not needs_signals("text")


def test_columns_follow_the_schema_and_unknown_ones_are_refused():
    schema = FeatureSchema("other.v1", ("mean_prob", "lid_layer_9", "min_prob"), ("",) * 3, (1, -1, 1))
    values = features(signals([0.0, -1.0]), schema).values
    assert values[[0, 2]] == pytest.approx([(1 + exp(-1)) / 2, exp(-1)])
    assert isnan(values[1])
    with pytest.raises(InputError, match=r"colour"):
        features(signals([0.0]), FeatureSchema("other.v2", ("min_prob", "colour"), ("",) * 2, (1, 0)))


@pytest.mark.parametrize("model", ["llama", "mistral"])
def test_features_of_the_reference_tokens(model):
    schema = feature_schema("paper.v1", (2, 3, 4))
    for record in json.loads((GOLDEN / model / "expected.json").read_text()):
        stop = 0
        for sentence in record["sentences"]:
            start, stop = stop, stop + sentence["n_tokens"]
            expected = sentence["features"]
            given_signals = signals(
                record["log_prob"][start:stop],
                without=record["log_prob_without_context"][start:stop],
                entropy=record["entropy"][start:stop],
                kl=record["kl"][start:stop],
            )
            lid = {k: expected[f"lid_layer_{k}"] for k in (2, 3, 4)}
            found = features(given_signals, schema, lid=lid)
            assert not_measured(found) == {"align_score"}
            assert measured(found) == pytest.approx(expected, rel=1e-3)
            assert measured(found)["large_kl_pos"] == expected["large_kl_pos"]


@pytest.mark.parametrize(
    ("sentence", "source", "negation", "item"),
    [
        ("Based on the given passages, it rained.", 1, 0, 0),
        ("The text MENTIONS rain.", 1, 0, 0),
        ("It rained in the United States.", 0, 0, 0),
        ("It didn\u2019t rain.", 0, 1, 0),
        ("It can't rain; there is nothing else.", 0, 1, 0),
        ("Nothing is known; another note.", 0, 0, 0),
        ("1. Rain", 0, 0, 1),
        (" - Rain", 0, 0, 1),
        ("\u2022 The passage does not say.", 1, 1, 1),
        ("1.5 metres fell.", 0, 0, 0),
        ("2023 was wet.", 0, 0, 0),
        ("He never won, nor did anybody; nothing was found.", 0, 0, 0),
        ("However, it rained.", 0, 1, 0),
        ("No. 5 is blue.", 0, 1, 0),
        ("The state of Ohio stated it; the United States did.", 1, 0, 0),
        ("-5 \u00b0C was measured.", 0, 0, 1),
        ("**Note** the mill burned.", 0, 0, 1),
        ("(1) c", 0, 0, 0),
        ("a) x", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_phrasing_by_hand(sentence, source, negation, item):
    found = measured(features(signals([-1.0], text=sentence)))
    assert (found["source_mention"], found["negation"], found["list_item"]) == (source, negation, item)


@pytest.mark.parametrize("name", ["source_mention", "negation"])
def test_the_words_that_are_named_are_those_looked_for(name):
    """A list such as "passage(s), state(d)", in words that stand alone or in a sentence, in any case."""
    (meaning,) = (feature.meaning for feature in FEATURES if feature.name == name)
    (listed,) = re.findall(r"one of: (.*) \(English\)", meaning)
    for item in listed.split(", "):
        for word in {re.sub(r"\(.*\)", "", item), re.sub(r"[()]", "", item)}:
            text = f"It was{word}." if word.startswith("n'") else f"It was {word.upper()}."
            assert measured(features(signals([-1.0], text=text)))[name] == 1, word
