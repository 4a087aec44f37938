"""Columns beside those of texts, by hand: the signals of a language model."""

import json

import numpy as np
import pytest
from span_doubles import ITEMS, ToldSignals, item, one, signals_of

from syncheck.base.errors import InputError, MismatchError, PromptError
from syncheck.spans import (
    SIGNAL_COLUMNS,
    SpanRegressor,
    TokenReplay,
    load_span_regressor,
    reads_signals,
    regression_features,
    regression_names,
    signal_features,
    span_feature_names,
    word_features,
    words_of,
)


def test_a_response_without_words_is_not_measured():
    def fails(given):
        raise AssertionError

    found = regression_features(one(" ... "), "spans.v1", fails)
    assert found.shape == (0, len(span_feature_names("spans.v1")) + 12)


TEXT = "un 😀 1999."


def signals(spans, **values):
    return signals_of(TEXT, spans, **values)


# un, half an emoji twice, " 19", "99."
MEASURED = signals(
    [[0, 2], [3, 4], [3, 4], [4, 7], [7, 10]],
    log_prob=[-1, -2, -4, -3, -0.5],
    without=[-2, -1, -4, -1, -1],
    entropy=[0.5, 1, 3, 2, 1],
    kl=[0, 1, 2, 4, 0],
)


def columns(values):
    return dict(zip(SIGNAL_COLUMNS, values, strict=True))


def test_a_word_has_the_signals_of_the_tokens_it_shares_characters_with():
    un, emoji, number = (columns(row) for row in signal_features(words_of(TEXT), MEASURED))
    assert (un["lm_log_prob_mean"], un["lm_entropy_max"], un["lm_csr_max"]) == pytest.approx((-1, 0.5, 0.5))
    assert (emoji["lm_log_prob_mean"], emoji["lm_log_prob_min"]) == (-3, -4)
    assert (emoji["lm_entropy_mean"], emoji["lm_kl_max"], emoji["lm_csr_mean"]) == pytest.approx((2, 2, 1.5))
    assert (number["lm_log_prob_without_mean"], number["lm_kl_mean"], number["lm_csr_max"]) == pytest.approx((-1, 2, 3))


def test_the_response_has_the_means_of_all_its_tokens():
    for row in signal_features(words_of(TEXT), MEASURED):
        assert columns(row)["lm_log_prob_response"] == pytest.approx(-2.1)
        assert columns(row)["lm_kl_response"] == pytest.approx(1.4)
        assert columns(row)["lm_csr_response"] == pytest.approx((0.5 + 2 + 1 + 3 + 0.5) / 5)


def test_without_passages_what_compares_is_not_measured():
    nan = [np.nan]
    alone = signals([[0, 2]], log_prob=[-1], without=nan, entropy=[2], kl=nan)
    un, _, number = (columns(row) for row in signal_features(words_of(TEXT), alone))
    assert (un["lm_log_prob_mean"], un["lm_entropy_mean"]) == (-1, 2)
    assert np.isnan([un["lm_kl_mean"], un["lm_csr_max"], un["lm_log_prob_without_mean"]]).all()
    assert np.isnan([number["lm_log_prob_mean"], number["lm_entropy_max"]]).all()


def test_a_token_that_is_certain_without_passages_has_the_highest_ratio():
    certain = signals([[0, 2], [3, 4]], log_prob=[-3, 0], without=[0, 0], entropy=[0, 0], kl=[0, 0])
    un, emoji, _ = (columns(row) for row in signal_features(words_of(TEXT), certain))
    assert (un["lm_csr_max"], emoji["lm_csr_max"]) == (100, 0)


def test_what_does_not_fit_the_window_is_not_measured():
    def too_long(given):
        raise PromptError("no room")

    given = item(3)
    found = regression_features(given, "spans.v1", too_long)
    texts = word_features(given, words_of(given.response))
    assert np.array_equal(found[:, : texts.shape[1]], texts, equal_nan=True)
    assert np.isnan(found[:, texts.shape[1] :]).all()
    assert found.shape[1] == len(regression_names("spans.v1", signals=True))
    assert regression_names("spans.v1") == span_feature_names("spans.v1")


def test_a_saved_one_asks_for_its_language_model(tmp_path):
    fitted = SpanRegressor.fit(ITEMS, measure=ToldSignals())
    assert fitted.name == "mikani-xgb-signals"
    fitted.save(tmp_path)
    assert reads_signals(tmp_path)
    assert not reads_signals("bundled")
    assert not reads_signals(tmp_path / "none")
    wrong = item(101, right=False)
    assert load_span_regressor(tmp_path, measure=ToldSignals()).detect(wrong) == fitted.detect(wrong)
    with pytest.raises(InputError, match="signals"):
        load_span_regressor(tmp_path)
    with pytest.raises(MismatchError, match="architecture"):
        load_span_regressor(tmp_path, measure=ToldSignals("other"))
    with pytest.raises(InputError, match="signals"):
        load_span_regressor(measure=ToldSignals())


def test_a_replay_says_which_model_it_runs(llama, tmp_path):
    replay = TokenReplay(llama.model, llama.tokenizer)
    SpanRegressor.fit(ITEMS[:6], measure=replay).save(tmp_path)
    saved = json.loads((tmp_path / "spans.json").read_text())
    (record,) = saved["sources"]
    assert record == {"name": "signals", "columns": list(SIGNAL_COLUMNS), "fingerprint": replay.fingerprint}
    assert saved["features"][-len(SIGNAL_COLUMNS) :] == list(SIGNAL_COLUMNS)
    assert load_span_regressor(tmp_path, measure=replay).detect(ITEMS[0]).soft
