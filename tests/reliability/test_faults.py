"""A small run of benchmarks/reliability/faults.py."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reliability"


@pytest.mark.slow
def test_no_fault_leaves_a_sentence_scored_that_was_measured_under_it(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    import faults

    outcomes, wrong = faults.run(20, seed=0)
    assert wrong == []
    assert {way for way, _, _ in outcomes} == set(faults.WAYS)
    assert any(outcome == "sentences failed" for _, _, outcome in outcomes)
    assert any("passed unchanged" in outcome for _, _, outcome in outcomes)
