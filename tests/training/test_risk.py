"""The risk-controlled threshold: exact bounds, where the search starts and stops, and that its promise holds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from syncheck.errors import InputError, InsufficientDataError
from syncheck.training import choose_risk_controlled_threshold, one_of_each_group, unfaithful_bound

RISK, CONFIDENCE = 0.05, 0.9


def independent_threshold(scores, y, **options):
    return choose_risk_controlled_threshold(scores, y, groups=None, **options)


def risk_above(threshold):
    """Share of unfaithful sentences above a threshold when P(unfaithful) = 0.2 (1 - score), scores even on [0, 1]."""
    return 0.1 * (1 - threshold)


def draw(rng, count):
    scores = rng.random(count)
    return scores, (rng.random(count) >= 0.2 * (1 - scores)).astype(int)


def too_lax(scores, y):
    """The threshold that a plain look at the data suggests: the lowest with an observed share within the risk."""
    order = np.argsort(-scores)
    shares = np.cumsum(y[order] == 0) / np.arange(1, len(y) + 1)
    return scores[order][np.flatnonzero(shares <= RISK)[-1]]


def broken_promises(choose, draws=600, count=600):
    rng = np.random.default_rng(7)
    return sum(risk_above(choose(*draw(rng, count))) > RISK for _ in range(draws)) / draws


def test_the_promise_holds():
    """Three standard deviations of 600 draws above 10 % are 13.7 %."""

    def choose(scores, y):
        try:
            return independent_threshold(scores, y, risk=RISK, confidence=CONFIDENCE).threshold
        except InsufficientDataError:
            return 1.0  # nothing is released, so nothing is broken

    assert broken_promises(choose) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 600)


def test_a_rule_that_is_too_lax_breaks_it():
    assert broken_promises(too_lax) > 0.3


def test_the_promise_is_not_bought_by_releasing_nothing():
    """Half of the sentences could be released; with 20,000 to choose on nearly all of them are."""
    scores, y = draw(np.random.default_rng(0), 20_000)
    chosen = independent_threshold(scores, y)
    assert 0.4 < chosen.released / chosen.sentences < 0.55
    assert chosen.bound <= RISK
    assert (chosen.sentences, chosen.risk, chosen.confidence) == (20_000, RISK, CONFIDENCE)


@pytest.mark.parametrize(("unfaithful", "released"), [(0, 45), (2, 105), (7, 100), (99, 100)])
def test_the_bound_is_where_so_few_become_improbable(unfaithful, released):
    bound = unfaithful_bound(unfaithful, released, confidence=0.9)
    assert binom.cdf(unfaithful, released, bound) == pytest.approx(0.1, abs=1e-9)


def test_bounds_in_closed_form():
    assert unfaithful_bound(0, 45, confidence=0.9) == pytest.approx(1 - 0.1 ** (1 / 45), abs=1e-12)
    assert unfaithful_bound(3, 3, confidence=0.9) == 1.0
    assert unfaithful_bound(0, 0, confidence=0.9) == 1.0


def test_what_was_tested_is_what_is_released():
    scores, y = draw(np.random.default_rng(3), 3000)
    chosen = independent_threshold(scores, y)
    kept = scores >= chosen.threshold
    assert (kept.sum(), (y[kept] == 0).sum()) == (chosen.released, chosen.unfaithful)
    assert chosen.bound == unfaithful_bound(chosen.unfaithful, chosen.released, confidence=0.9)
    # the threshold lies just above the first score that is not released
    assert chosen.threshold == np.nextafter(scores[~kept].max(), 1)


def test_all_are_released_when_all_may_be():
    chosen = independent_threshold(np.linspace(0, 1, 200), np.ones(200))
    assert (chosen.threshold, chosen.released, chosen.unfaithful) == (0.0, 200, 0)


def test_a_bound_equal_to_the_risk_keeps_the_promise():
    y = np.ones(500)
    y[:10] = 0
    risk = unfaithful_bound(10, 500, confidence=CONFIDENCE)
    chosen = independent_threshold(np.full(500, 0.5), y, risk=risk)
    assert (chosen.released, chosen.unfaithful, chosen.bound) == (500, 10, risk)


def test_two_unfaithful_sentences_at_the_top_stop_nothing_three_do():
    scores = np.linspace(1, 0, 1000)
    y = np.ones(1000)
    y[:2] = 0
    assert independent_threshold(scores, y).released == 1000
    y[2] = 0
    with pytest.raises(InsufficientDataError, match="of the 105 sentences with the highest scores, out of 1000, 3 are"):
        independent_threshold(scores, y)


def test_the_search_ends_at_the_first_failure():
    """Unfaithful sentences come at ranks 200 to 219; by rank 1000 their share would be small again."""
    scores = np.linspace(1, 0, 1000)
    y = np.ones(1000)
    y[200:220] = 0
    chosen = independent_threshold(scores, y)
    # candidates release 105, 115, ...; 205 with 5 unfaithful pass, 215 with 15 do not
    assert (chosen.released, chosen.unfaithful) == (205, 5)


def test_labels_do_not_move_the_candidates():
    """Where all labels say faithful all is released; the candidates before that are seen by failing right after."""
    scores = np.random.default_rng(2).random(1000)
    falling = np.argsort(-scores)
    seen = []
    for rank in (150, 151, 152, 160):
        y = np.ones(1000)
        y[falling[rank : rank + 40]] = 0
        seen.append(independent_threshold(scores, y).released)
    assert all((released - 105) % 10 == 0 for released in seen)


def test_sentences_of_equal_score_go_together():
    scores = np.repeat([1.0, 0.5, 0.0], [300, 300, 300])
    y = np.repeat([1, 1, 0], [300, 300, 300])
    chosen = independent_threshold(scores, y)
    assert chosen.released == 600
    assert 0.0 < chosen.threshold <= 0.5


def test_only_the_order_of_the_scores_counts():
    scores, y = draw(np.random.default_rng(4), 2000)
    straight, bent = independent_threshold(scores, y), independent_threshold(scores**3, y)
    assert (straight.released, straight.unfaithful) == (bent.released, bent.unfaithful)
    np.testing.assert_array_equal(scores >= straight.threshold, scores**3 >= bent.threshold)


@pytest.mark.parametrize(("count", "more"), [(0, 45), (44, 1), (10, 35)])
def test_too_few_sentences_are_refused_with_how_many_are_missing(count, more):
    """With none unfaithful 45 are needed: 0.95 ** 45 is the first power below 0.1."""
    with pytest.raises(InsufficientDataError) as caught:
        independent_threshold(np.linspace(0, 1, count), np.ones(count))
    assert caught.value.more_needed == more
    assert str(more) in str(caught.value)


def test_how_many_are_missing_is_enough():
    y = np.ones(100)
    y[[10, 40, 70]] = 0
    scores = np.linspace(1, 0, 100)
    with pytest.raises(InsufficientDataError) as caught:
        independent_threshold(scores, y)
    count = 100 + caught.value.more_needed
    assert unfaithful_bound(int(0.03 * count), count, confidence=CONFIDENCE) <= RISK


def test_a_rate_above_the_risk_is_not_helped_by_more():
    with pytest.raises(InsufficientDataError, match="allow a higher risk") as caught:
        independent_threshold(np.linspace(1, 0, 500), np.arange(500) % 2)
    assert caught.value.more_needed is None


@pytest.mark.parametrize(
    ("scores", "y", "options", "message"),
    [
        ([0.1, 0.9], [1], {}, r"both be \(N,\)"),
        ([0.1, 1.9], [1, 1], {}, "outside"),
        ([0.1, np.nan], [1, 1], {}, "NaN"),
        ([0.1, 0.9], [1, 3], {}, r"found \[1, 3\]"),
        ([0.1, 0.9], [1, 1], {"risk": 0.0}, "risk must be between 0 and 1"),
        ([0.1, 0.9], [1, 1], {"confidence": 1.0}, "confidence must be between 0 and 1"),
    ],
)
def test_unusable_values_are_refused(scores, y, options, message):
    with pytest.raises(InputError, match=message):
        independent_threshold(scores, y, **options)


def test_one_sentence_of_each_group():
    groups = np.array(list("bbbbaaaac"))
    found = {tuple(one_of_each_group(groups, seed=seed)) for seed in range(200)}
    assert found == {(b, a, 8) for b in range(4) for a in range(4, 8)}


@pytest.mark.parametrize(("groups", "one"), [(None, False), (np.repeat(np.arange(300), 2), True)])
def test_the_threshold_says_what_it_was_chosen_on(groups, one):
    chosen = choose_risk_controlled_threshold(np.linspace(0, 1, 600), np.ones(600), groups=groups)
    assert (chosen.one_per_question, chosen.sentences) == (one, 300 if one else 600)


def test_one_sentence_of_each_question_is_drawn_by_the_seed():
    scores, y = draw(np.random.default_rng(6), 2000)
    groups = np.repeat(np.arange(1000), 2)
    for seed in (0, 1):
        one = one_of_each_group(groups, seed=seed)
        expected = replace(independent_threshold(scores[one], y[one]), one_per_question=True)
        assert choose_risk_controlled_threshold(scores, y, groups=groups, seed=seed) == expected


def test_too_few_questions_are_refused_with_how_many_are_missing():
    """Ten sentences each say nothing more: with none unfaithful 45 questions are needed."""
    with pytest.raises(InsufficientDataError, match="about 5 more held-out questions are needed") as caught:
        choose_risk_controlled_threshold(np.linspace(0, 1, 400), np.ones(400), groups=np.repeat(np.arange(40), 10))
    assert caught.value.more_needed == 5


def test_groups_must_be_one_for_each_sentence():
    with pytest.raises(InputError, match=r"groups must be \(3,\), one for each sentence; found \(2,\)"):
        choose_risk_controlled_threshold([0.1, 0.2, 0.3], [1, 1, 1], groups=["a", "b"])


@pytest.mark.slow
def test_the_promise_holds_for_dependent_sentences_by_question_alone():
    """Sentences of a question share their fate: ten copies are no ten times the evidence."""
    rng = np.random.default_rng(11)
    every = by_question = 0
    for number in range(300):
        scores, y = draw(rng, 400)
        groups = np.repeat(np.arange(400), 10)
        copies, labels = np.repeat(scores, 10), np.repeat(y, 10)
        every += _broken(copies, labels, groups=None)
        by_question += _broken(copies, labels, groups=groups, seed=number)
    assert every / 300 > 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)
    assert by_question / 300 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def _broken(scores, y, **options):
    try:
        return risk_above(choose_risk_controlled_threshold(scores, y, **options).threshold) > RISK
    except InsufficientDataError:
        return False
