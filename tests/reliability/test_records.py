"""A few hostile records through each command; the figures are made by more of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))

from records import COMMANDS, fuzz  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_records(command):
    outcomes, broken, _ = fuzz(command, 24 if command in ("score", "generate", "spans") else 6, seed=1)
    assert broken == []
    assert outcomes["refused"]
