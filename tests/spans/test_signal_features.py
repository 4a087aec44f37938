"""What a language model's signals say of words: values by hand, and the regression that reads them."""

import json

import numpy as np
import pytest
from test_regressor import ITEMS, item

from syncheck.errors import InputError, MismatchError, PromptError
from syncheck.spans import (
    SIGNAL_COLUMNS,
    SignalSource,
    SpanRegressor,
    TokenReplay,
    held_out_labels,
    load_span_regressor,
    reads_signals,
    regression_features,
    regression_names,
    risk_of,
    signal_features,
    span_feature_names,
    word_features,
    words_of,
)
from syncheck.types import TokenSignals

TEXT = "un 😀 1999."


def signals(spans, *, log_prob, without, entropy, kl, text=TEXT):
    floats = [np.array(values, dtype=np.float32) for values in (log_prob, without, entropy, kl)]
    return TokenSignals(text, np.arange(len(spans)), np.array(spans), *floats)


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


class Told:
    """Knows which name is wrong, and says so by a low log-probability; its texts do not."""

    def __init__(self, name="told"):
        self.fingerprint = {"architecture": name, "vocab_size": 8}

    def __call__(self, one):
        spans = np.array([[w.start, w.end] for w in words_of(one.response)])
        wrong = [any(a == start for a, _ in one.labels.hard) for start, _ in spans]
        flat = np.zeros(len(spans))
        return signals(
            spans, log_prob=np.where(wrong, -9.0, -0.1), without=flat - 1, entropy=flat, kl=flat, text=one.response
        )


def blind(one):
    """The same item without the texts that give the wrong name away."""
    return type(one)(id=one.id, lang=one.lang, question=one.question, response=one.response, labels=one.labels)


def test_the_regression_learns_from_signals_what_texts_do_not_tell():
    items = [blind(one) for one in ITEMS]
    right, wrong = blind(item(101)), blind(item(101, right=False))
    name = slice(20, 24)

    def risks(measure):
        fitted = SpanRegressor.fit(items, sources=[SignalSource(measure)] if measure else [])
        return [risk_of(fitted.detect(one).soft, len(one.response))[name].mean() for one in (right, wrong)]

    low, high = risks(Told())
    assert low < 0.1 < 0.7 < high
    low, _ = risks(None)
    assert low > 0.4


def test_held_out_labels_read_signals_too():
    items = [blind(one) for one in ITEMS]
    found = held_out_labels(items, by="question", folds=2, sources=[SignalSource(Told())])
    assert all(found[i.id].hard == i.labels.hard for i in items if i.labels.hard)


def test_what_does_not_fit_the_window_is_not_measured():
    def too_long(one):
        raise PromptError("no room")

    one = item(3)
    found = regression_features(one, "spans.v1", [SignalSource(too_long)])
    texts = word_features(one, words_of(one.response))
    assert np.array_equal(found[:, : texts.shape[1]], texts, equal_nan=True)
    assert np.isnan(found[:, texts.shape[1] :]).all()
    assert found.shape[1] == len(regression_names("spans.v1", [SignalSource(too_long)]))
    assert regression_names("spans.v1") == span_feature_names("spans.v1")


def test_a_saved_one_asks_for_its_language_model(tmp_path):
    fitted = SpanRegressor.fit(ITEMS, sources=[SignalSource(Told())])
    assert fitted.name == "mikani-xgb-signals"
    fitted.save(tmp_path)
    assert reads_signals(tmp_path)
    assert not reads_signals("bundled")
    assert not reads_signals(tmp_path / "none")
    wrong = item(101, right=False)
    assert load_span_regressor(tmp_path, sources=[SignalSource(Told())]).detect(wrong) == fitted.detect(wrong)
    with pytest.raises(InputError, match="fitted with the word sources 'signals'; found no word source"):
        load_span_regressor(tmp_path)
    with pytest.raises(MismatchError, match="differs in architecture"):
        load_span_regressor(tmp_path, sources=[SignalSource(Told("other"))])
    with pytest.raises(InputError, match="fitted with no word source; found the word sources 'signals'"):
        load_span_regressor(sources=[SignalSource(Told())])


def test_a_replay_says_which_model_it_runs(llama, tmp_path):
    source = SignalSource(TokenReplay(llama.model, llama.tokenizer))
    SpanRegressor.fit(ITEMS[:6], sources=[source]).save(tmp_path)
    saved = json.loads((tmp_path / "spans.json").read_text())
    (record,) = saved["sources"]
    assert record == {"name": "signals", "columns": list(SIGNAL_COLUMNS), "fingerprint": source.fingerprint}
    assert saved["features"][-len(SIGNAL_COLUMNS) :] == list(SIGNAL_COLUMNS)
    assert load_span_regressor(tmp_path, sources=[source]).detect(ITEMS[0]).soft
