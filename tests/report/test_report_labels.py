"""Colours of scores, words of features, shades of characters."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncheck.base.errors import InputError
from syncheck.features.schemas import SCHEMAS, feature_schema
from syncheck.report.labels import ShadeView, contrast_lines, feature_label, feature_value, shades_of, tint, why
from syncheck.results import SoftSpan, SpanLabels, labels_of
from syncheck.results.types import Contrast, Evidence, SentenceScore

HINDI = "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e"


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@given(st.floats(0, 1))
def test_text_stays_readable_on_every_tint(score):
    # WCAG 2.2, 1.4.6: contrast of 7 between the page's ink and the background
    made = tint(score)
    assert (luminance(made.light) + 0.05) / (luminance("#1b1f24") + 0.05) >= 7
    assert (luminance("#e8eaed") + 0.05) / (luminance(made.dark) + 0.05) >= 5


def test_the_ends_and_the_middle_of_the_scale():
    assert (tint(0.0).light, tint(0.5).light, tint(1.0).light) == ("#f4a26b", "#f6efdf", "#9cc9ee")


def test_verdicts_divide_the_colours_whatever_the_monitor_s_thresholds_are():
    assert tint(0.0, "unsupported") == tint(0.0, "contradicted") == tint(0.0) and tint(1.0, "supported") == tint(1.0)
    assert tint(0.5, "doubtful") == tint(0.5)
    blue = {verdict: int(tint(0.75, verdict).light[5:], 16) for verdict in ("unsupported", "doubtful", "supported")}
    red = {verdict: int(tint(0.75, verdict).light[1:3], 16) for verdict in ("unsupported", "doubtful", "supported")}
    assert blue["unsupported"] < red["unsupported"] and blue["supported"] > red["supported"]


def test_values_carry_their_unit():
    assert feature_value("mean_entropy", 1.23456) == "1.23 nats"
    assert feature_value("min_log_prob", -9.158) == "−9.16 nats"
    assert feature_value("large_kl_pos", 3.0) == "3 tokens"
    assert feature_value("large_kl_pos", 1.0) == "1 token"
    assert feature_value("lid_layer_16", None) == "not measured"
    assert feature_value("min_prob", 0.5) == "0.5"
    assert feature_value("of_someone_else", 0.5) == "0.5"


@pytest.mark.parametrize("version", SCHEMAS)
def test_every_released_feature_has_words(version):
    for name in feature_schema(version, (15,)).names:
        label = feature_label(name)
        assert label.meaning
        assert label.unit
        assert label.direction


@pytest.mark.parametrize(
    ("verdict", "support", "words"),
    [
        ("supported", 0.9, "Passage 2 supports it:"),
        ("doubtful", 0.3, "No passage supports it; nearest is passage 2:"),
        ("unsupported", 0.3, "No passage supports it; nearest is passage 2:"),
        ("unsupported", 0.8, "count against it"),
        ("supported", 0.2, "speak for it"),
        ("contradicted", 0.1, "The aligner takes it for contradicted; nearest is passage 2:"),
        ("contradicted", None, "The aligner takes it for contradicted."),
        ("unsupported", None, "No passage was found"),
        ("supported", None, ""),
        (None, 0.9, ""),
    ],
)
def test_why_says_what_the_evidence_says(verdict, support, words):
    evidence = None if support is None else Evidence(1, "So.", support)
    found = why(SentenceScore("It is.", 0, 6, 0, 2, 0.5, "scored", {}, evidence=evidence, verdict=verdict))
    assert words in found
    assert bool(words) == bool(found)


@pytest.mark.parametrize(
    ("contrast", "words"),
    [
        (Contrast("antonym", "closed", "Open", 1), "No passage supports it, and passage 2 says otherwise:"),
        (Contrast("negation", "not", "", 1), "No passage supports it, and passage 2 says otherwise:"),
        (Contrast("antonym", "closed", "Open", 0), "No passage supports it; nearest is passage 2:"),
        (Contrast("number", "4", "5", 1), "No passage supports it; nearest is passage 2:"),
        (Contrast("reading", "closed", "", 1), "No passage supports it; nearest is passage 2:"),
    ],
    ids=[
        "in the quote",
        "only in the sentence",
        "in another passage",
        "elsewhere in the passage",
        "a word that decides",
    ],
)
def test_evidence_says_otherwise_only_if_it_has_the_words_of_a_contrast(contrast, words):
    sentence = SentenceScore("It is closed.", 0, 13, 0, 2, 0.1, "scored", {}, verdict="contradicted")
    assert why(replace(sentence, evidence=Evidence(1, "It is open.", 0.2), contrasts=(contrast,))) == words


def test_a_word_that_decides_alone_is_not_said_to_be_missing_from_the_passage():
    sentence = SentenceScore("Dogs pay.", 0, 9, 0, 2, 0.1, "scored", {}, verdict="contradicted")
    found = replace(
        sentence, contrasts=(Contrast("reading", "Dogs", "", 0), Contrast("reading", "pay", "travel free", 0))
    )
    assert contrast_lines(found) == ("the aligner decides by “Dogs”", "passage 1 says “travel free”, not “pay”")


def test_lid_is_named_after_its_block():
    assert "block 16's output" in feature_label("lid_layer_16").meaning


def test_soft_labels_are_shades_and_hard_labels_are_marked():
    labels = SpanLabels((SoftSpan(3, 7, 0.625), SoftSpan(8, 9, 0.004)), ((5, 8),))
    assert shades_of("in 1999 ok", labels) == (
        ShadeView("in ", 0.0, False),
        ShadeView("19", 0.62, False),
        ShadeView("99", 0.62, True),
        ShadeView(" ", 0.0, True),
        ShadeView("ok", 0.0, False),
    )


def test_a_part_of_a_letter_shades_all_of_it():
    # The labels begin within the second and end within the third of three clusters.
    labels = SpanLabels((SoftSpan(3, 4, 0.5), SoftSpan(4, 5, 0.75)), ((3, 4),))
    assert shades_of(HINDI[:6], labels) == (
        ShadeView("\u0928\u092e", 0.0, False),
        ShadeView("\u0938\u094d\u0924\u0947", 0.75, True),
    )
    family = "\U0001f468\u200d\U0001f469"
    assert shades_of(f"a{family}b", SpanLabels((SoftSpan(3, 4, 1.0),), ())) == (
        ShadeView("a", 0.0, False),
        ShadeView(family, 1.0, False),
        ShadeView("b", 0.0, False),
    )


def test_a_part_of_a_response_is_shaded_by_the_offsets_of_the_whole():
    labels = SpanLabels((SoftSpan(0, 4, 0.5),), ((2, 6),))
    assert shades_of("abcdefgh", labels, start=3, stop=7) == (
        ShadeView("d", 0.5, True),
        ShadeView("ef", 0.0, True),
        ShadeView("g", 0.0, False),
    )


def test_a_span_outside_the_response_is_refused():
    with pytest.raises(InputError, match="characters"):
        shades_of("abcd", SpanLabels((SoftSpan(2, 5, 0.5),), ()))


@given(st.text(max_size=30), st.integers(0, 2**32 - 1))
def test_shades_hold_the_whole_text(text, seed):
    random = np.random.default_rng(seed)
    labels = labels_of(random.random(len(text)), random.random(len(text)) < 0.5)
    assert "".join(shade.text for shade in shades_of(text, labels)) == text
