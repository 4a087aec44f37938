"""The settings of repair are those that the script chooses from the labelled candidates."""

import json

import kit_decoding
import numpy as np
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
    for name in {"alpha", "repair_from", *kit_decoding.OPTIONS}:
        assert chosen[name] == getattr(RepairConfig(), name), name
    assert (chosen["backtrack_threshold"], chosen["prune_threshold"]) == (
        config.backtrack_threshold,
        config.prune_threshold,
    )


GREEDY = {"text": "a", "score": 0.2, "log_prob": -4.0, "tokens": 4, "fault": "", "is_cut": False, "rated": None}
BRANCH = {
    "text": "b",
    "score": 0.9,
    "log_prob": -1.0,
    "tokens": 3,
    "fault": "",
    "is_cut": False,
    "rated": 0.5,
    "row": 2,
}
READ = {"labels": ["U", "U"], "relevance": [1, 1], "keeps_subject": True, "judged": False, "opens": True}
STEP = [GREEDY | READ, BRANCH | READ | {"labels": ["F", "F"]}]


def place(values, value):
    return int(np.flatnonzero(np.isclose(values, value))[0])


@pytest.mark.parametrize(("first", "least", "tokens"), [(0.6, 0.35, 7), (0.6, 0.4, 4), (0.1, 0.35, 4)])
def test_branches_are_counted_only_where_they_are_tried(first, least, tokens):
    _, decoded = kit_decoding.outcomes([[STEP]], RepairConfig())
    r = place(kit_decoding.REPAIRED_FROM, least)  # exp(-1) is 0.368
    assert set(decoded[r, place(kit_decoding.GRID, first)]) == {tokens}


@pytest.mark.parametrize(
    ("changed", "options", "wanted"),
    [
        ({}, {}, [1, 0, 0.5]),
        ({"fault": "a name altered: Elvador"}, {}, [0, 0, 0]),
        ({"fault": "a name altered: Elvador"}, {"exact_names": False}, [1, 0, 0.5]),
        ({"fault": "a pronoun without its noun: It"}, {"clear_pronouns": False}, [1, 0, 0.5]),
        ({"fault": "a question, which claims nothing"}, {"clear_pronouns": False, "exact_names": False}, [0, 0, 0]),
        ({"is_cut": True}, {"cuts": 0}, [0, 0, 0]),
        ({"is_cut": True}, {"cuts": 1}, [1, 0, 0.5]),
        ({"opens": False}, {"branches": 2}, [1, 0, 0.5]),
        ({"opens": False}, {"branches": 1}, [0, 0, 0]),
        ({}, {"least_relevance": 0.6}, [0, 0, 0]),
        ({"score": 0.6}, {}, [0, 0, 0]),
    ],
)
def test_what_a_setting_releases(changed, options, wanted):
    sums, _ = kit_decoding.outcomes([[[STEP[0], STEP[1] | changed]]], RepairConfig(**options))
    first, second = place(kit_decoding.GRID, 0.6), place(kit_decoding.GRID, 0.7)
    assert sums[0, first, second].tolist() == wanted
    kept, _ = kit_decoding.outcomes([[[STEP[0] | {"score": 0.65}, STEP[1]]]], RepairConfig(**options))
    assert kept[0, first, second].tolist() == [0, 1, 0]


def test_an_answer_may_not_open_beside_the_question():
    beside = [STEP[0] | {"score": 0.9, "judged": True, "rated": 0.2}, STEP[1]]
    about = [STEP[0] | {"score": 0.9, "judged": True, "rated": 0.4, "labels": ["F", "F"]}, STEP[1]]
    for answer, wanted, tokens in (
        ([beside], [0, 0, 0], 4),  # hidden without a try
        ([beside, about], [1, 0, 0.5], 8),
        ([about, beside], [1, 1, 0.5], 8),  # once begun, it may go on
    ):
        sums, decoded = kit_decoding.outcomes([answer], RepairConfig(opening_relevance=0.3))
        assert (sums[0, 0, 0].tolist(), decoded[0, 0, 0]) == (wanted, tokens)
    assert kit_decoding.outcomes([[beside]], RepairConfig(opening_relevance=0.0))[0][0, 0, 0].tolist() == [0, 1, 0]
