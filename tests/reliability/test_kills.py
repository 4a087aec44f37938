"""One kill of each command that goes on after kills; the figures are made by more of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))

from kills import trial  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", ["score", "store", "features"])
def test_killed_and_run_again(command):
    _, outputs, broken = trial(command, 1, seed=2, records=8)
    assert broken == []
    assert outputs
