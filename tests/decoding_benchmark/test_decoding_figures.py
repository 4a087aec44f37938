"""Means over prompts, what is left out of them, and paired differences."""

import math

import numpy as np
import pytest
from decoding import decoder_figures, difference
from judged import judged

from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import BootstrapSamples, bootstrap_interval

GREEDY = [
    judged("a", [(2, 1), (4, 2)], decoder="greedy", tokens=10, sampled=10, seconds=2.0),
    judged("b", [(1, 1)], decoder="greedy", tokens=4, sampled=4, seconds=1.0),
    judged("c", [(2, 0)], decoder="greedy", tokens=4, sampled=4, seconds=3.0),
]
SEARCH = [
    judged("a", [(2, 2)], decoder="search", tokens=5, sampled=30, seconds=4.0, backtracked=True),
    judged("b", [(1, 1)], decoder="search", tokens=4, sampled=4, seconds=1.0),
    judged("c", [], decoder="search", tokens=0, sampled=12, seconds=1.0, backtracked=True),
]
BOTH = {"greedy": GREEDY, "search": SEARCH}


def test_means_are_over_prompts_and_leave_empty_answers_out_of_faithfulness():
    figures = decoder_figures(BOTH, longest=3)
    greedy, search = figures["greedy"], figures["search"]
    assert greedy.faithfulness.value == pytest.approx((0.5 + 1 + 0) / 3)
    assert search.faithfulness.value == 1.0 and search.informativeness.value == 1.0
    assert (search.prompts, search.empty, greedy.empty) == (3, 1, 0)
    assert greedy.informativeness.value == pytest.approx(7 / 3)
    assert [e.value for e in greedy.faithfulness_at] == pytest.approx([0.5, 0.5, 0.5])
    assert search.backtracked.value == pytest.approx(2 / 3)
    assert (search.tokens.value, search.sampled_tokens.value, search.seconds.value) == pytest.approx((3, 46 / 3, 2))
    assert greedy.sentences.value == pytest.approx(4 / 3)


def test_supported_propositions_and_near_repeats_are_counted():
    figures = decoder_figures(BOTH)
    assert (figures["greedy"].supported.value, figures["search"].supported.value) == (1.0, 1.0)
    assert (figures["greedy"].repeats, figures["search"].repeats) == (1, 0)  # the sentences of an answer are alike
    assert difference("search", "greedy", BOTH).supported.value == 0


def test_faithfulness_at_l_is_that_of_the_first_sentences():
    figures = decoder_figures({"d": [judged("a", [(1, 1), (2, 1), (4, 1)]), judged("b", [(2, 1)])]}, longest=4)
    assert [e.value for e in figures["d"].faithfulness_at] == pytest.approx([0.75, 0.5, 0.375, 0.375])


def test_intervals_are_those_of_resampled_prompts():
    counts = BootstrapSamples.of(np.arange(3), draws=50, seed=4).counts.astype(int)
    shares = np.array([0.5, 1.0, 0.0])
    means = np.array([np.repeat(shares, drawn).mean() for drawn in counts])
    found = decoder_figures(BOTH, resamples=50, seed=4)["greedy"].faithfulness
    assert (found.low, found.high) == pytest.approx(bootstrap_interval(means))
    gains = np.array(
        [np.repeat([1.0, 1.0], d[:2]).mean() - m if d[:2].any() else np.nan for d, m in zip(counts, means, strict=True)]
    )
    gain = difference("search", "greedy", BOTH, resamples=50, seed=4).faithfulness
    assert (gain.low, gain.high) == pytest.approx(bootstrap_interval(gains))


def test_differences_are_absolute_relative_and_where_both_answer():
    found = difference("search", "greedy", BOTH)
    assert found.faithfulness.value == pytest.approx(0.5)
    assert found.faithfulness_relative.value == pytest.approx(1.0)
    assert found.faithfulness_where_both.value == pytest.approx((0.5 + 0) / 2)
    assert found.unfaithful_share.value == 0.0
    assert found.informativeness.value == pytest.approx(-4 / 3)
    assert found.informativeness_relative.value == pytest.approx(-4 / 7)
    assert found.sentences_kept.value == pytest.approx(2 / 4)


def test_a_decoder_differs_from_itself_by_nothing_in_every_resample():
    found = difference("greedy", "greedy", BOTH)
    for estimate, expected in (
        (found.faithfulness, 0.0),
        (found.faithfulness_relative, 0.0),
        (found.unfaithful_share, 1.0),
        (found.sentences_kept, 1.0),
    ):
        assert (estimate.value, estimate.low, estimate.high) == (expected,) * 3


def test_all_empty_has_no_faithfulness_and_no_information():
    found = decoder_figures({"d": [judged("a"), judged("b")]})["d"]
    assert math.isnan(found.faithfulness.value) and math.isnan(found.faithfulness.low)
    assert (found.informativeness.value, found.informativeness.high, found.empty) == (0.0, 0.0, 2)


def test_errors():
    for given in ({}, {"d": []}):
        with pytest.raises(InputError, match="answer"):
            decoder_figures(given)
    with pytest.raises(InputError, match="greedy"):
        decoder_figures({"greedy": GREEDY, "search": SEARCH[::-1]})
    with pytest.raises(InputError, match="beam"):
        difference("beam", "greedy", BOTH)


def test_intervals_of_shares_take_the_baseline_of_the_same_resample():
    counts = BootstrapSamples.of(np.arange(3), draws=50, seed=4).counts
    found = difference("search", "greedy", BOTH, resamples=50, seed=4)
    more = counts @ [2, 1, 0] / (counts @ [4, 1, 2]) - 1
    assert (found.informativeness_relative.low, found.informativeness_relative.high) == pytest.approx(
        bootstrap_interval(more)
    )
    before = counts @ [0.5, 1.0, 0.0] / 3
    gains = np.array([(1 - b) / b if b else np.nan for b in before])  # without "a" and "b" the search says nothing
    relative = found.faithfulness_relative
    assert (relative.low, relative.high) == pytest.approx(bootstrap_interval(gains))
