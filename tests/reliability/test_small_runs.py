"""Small runs of what looks for faults; the figures of docs/reliability.md are made by more of the same."""

import sys

import checkpoints
import conditions
import cuts
import faults
import gateway
import pytest
import stores
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


def test_hostile_clients_and_lying_upstreams():
    outcomes, wrong = gateway.run(200, seed=1)
    assert wrong == []
    who = ("lying upstream", "client of the gateway", "client of serve")
    assert {way for way, _ in outcomes} == {f"{each}, {failing}" for each in who for failing in ("closed", "open")}
    assert {outcome for _, outcome in outcomes} == {"answered", "refused", "ended with an error"}


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


def test_altered_stores_are_answered_again_or_refused():
    outcomes, broken = stores.trials(28, seed=1)
    assert broken == []
    assert {"answered again", "refused"} <= set(outcomes) <= {"answered again", "refused", "nothing lost"}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_full_disk_is_said_and_the_run_goes_on_with_room():
    made, broken = conditions.full(1, seed=1)
    assert broken == []
    assert set(made) == {"score", "store", "report"}


@pytest.mark.parametrize("condition", conditions.CONDITIONS)
def test_commands_write_the_same_under(condition):
    assert conditions.unusual([condition]) == {condition: []}


def test_watched_in_random_pieces():
    outcomes, wrong = cuts.run(150, seed=1)
    assert wrong == []
    assert outcomes["special tokens"] > 500
