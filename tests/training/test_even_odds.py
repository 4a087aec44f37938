"""Where the starter kit's ``generic-reader`` has even odds: by answers and written claims together."""

from types import SimpleNamespace

import numpy as np
import pytest
import train_aggregators

from syncheck.kit import load_kit


def sample(offset):
    """Return log-odds that fit once the offset is taken off, and what is supported."""
    return np.array([1.0, 3.0, -1.0, -3.0]) + offset, np.array([True, True, False, False])


def test_log_odds_are_moved_to_where_they_fit_all_samples():
    assert train_aggregators.calibrating_shift([sample(0)]) == pytest.approx(0, abs=1e-6)
    assert train_aggregators.calibrating_shift([sample(-0.7)]) == pytest.approx(0.7, abs=1e-6)
    assert train_aggregators.calibrating_shift([sample(-1), sample(0)]) == pytest.approx(0.5, abs=1e-6)


def test_the_intercept_and_the_pruning_threshold_move_with_them(monkeypatch):
    kit = load_kit("generic-bundled")
    rows = np.tile(kit.aggregator.medians, (4, 1))
    good = np.array([1, 1, 0, 0])
    before = kit.aggregator.model.log_odds(rows)
    # at the same log-odds half are supported, so these ask for a shift of minus the log-odds; the claims for more
    written = np.full(4, before[0] - 2.0), good == 1
    monkeypatch.setattr(train_aggregators, "written_scores", lambda monitor: written)
    trained = SimpleNamespace(aggregator=kit.aggregator, config=kit.config)
    measured = SimpleNamespace(labels=lambda: good, features=lambda labels, used: rows)
    train_aggregators.with_written_claims(trained, measured, np.arange(4))
    shift = 1.0 - before[0]
    assert trained.aggregator.model.log_odds(rows) == pytest.approx(before + shift, abs=1e-4)
    odds = [threshold / (1 - threshold) for threshold in (kit.config.prune_threshold, trained.config.prune_threshold)]
    assert np.log(odds[1] / odds[0]) == pytest.approx(shift, abs=1e-4)
    assert trained.config.backtrack_threshold == kit.config.backtrack_threshold
