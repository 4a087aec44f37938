"""Small runs of what looks for faults; the figures of docs/reliability.md are made by more of the same."""

import sys

import checkpoints
import cuts
import faults
import pytest
from kills import trial
from records import COMMANDS, fuzz

pytestmark = pytest.mark.slow


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_altered_files_are_refused_or_used():
    """None crashes, hangs or raises an error of another library."""
    found = checkpoints.run(12, 0)
    assert found.total() == 12 * (3 * 5 + 2)
    assert {outcome for _, _, outcome in found} == {"refused", "loaded"}


def test_no_fault_leaves_a_sentence_scored_that_was_measured_under_it():
    outcomes, wrong = faults.run(20, seed=0)
    assert wrong == []
    assert {way for way, _, _ in outcomes} == set(faults.WAYS)
    assert any(outcome == "sentences failed" for _, _, outcome in outcomes)
    assert any("passed unchanged" in outcome for _, _, outcome in outcomes)


@pytest.mark.parametrize("command", ["score", "store", "features"])
def test_killed_and_run_again(command):
    _, outputs, broken = trial(command, 1, seed=2, records=8)
    assert broken == []
    assert outputs


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_records(command):
    outcomes, broken, _ = fuzz(command, 24 if command in ("score", "generate", "spans") else 6, seed=1)
    assert broken == []
    assert outcomes["refused"]


def test_watched_in_random_pieces():
    outcomes, wrong = cuts.run(150, seed=1)
    assert wrong == []
    assert outcomes["special tokens"] > 500
