"""The settings of repair are those that the script chooses from the labelled candidates."""

import json

import kit_decoding
import pytest

from fod import RepairConfig
from syncheck import load_kit


@pytest.mark.slow
def test_the_script_chooses_the_settings_that_are_stored_and_used(tmp_path, monkeypatch, with_the_kit):
    stored = json.loads(kit_decoding.CHOSEN.read_text())
    monkeypatch.setattr(kit_decoding, "CHOSEN", tmp_path / "chosen.json")
    kit_decoding.choose(kit_decoding.FOLDER / "candidates.jsonl", None)
    assert json.loads((tmp_path / "chosen.json").read_text()) == stored
    chosen, config = stored["chosen"], load_kit("generation").config
    assert (chosen["alpha"], chosen["repair_from"]) == (RepairConfig().alpha, RepairConfig().repair_from)
    assert (chosen["backtrack_threshold"], chosen["prune_threshold"]) == (
        config.backtrack_threshold,
        config.prune_threshold,
    )


def test_branches_are_counted_only_where_they_are_tried():
    greedy = {"text": "a", "score": 0.2, "log_prob": -4.0, "tokens": 4, "fault": None}
    step = [greedy, {"text": "b", "score": 0.9, "log_prob": -1.0, "tokens": 3, "fault": None}]
    settings = [(0.6, 0.36, 7), (0.6, 0.38, 4), (0.1, 0.36, 4)]  # exp(-1) is 0.368
    for threshold, least, count in settings:
        config = RepairConfig(backtrack_threshold=threshold, prune_threshold=0.75, repair_from=least)
        assert kit_decoding.tokens(step, config) == count
