"""A log of answers goes on after a kill and refuses what does not belong to it."""

import json

import pytest
from decoding import AnswerLog
from judged import judged

from syncheck.base.errors import CheckpointError, MismatchError

SETTINGS = {"seed": 0, "pair": (1, 2)}
ODD = "line\u2028and\u0085break"


def filled(path):
    log = AnswerLog(path, SETTINGS)
    for name in ("a", "b"):
        log.add("x", name, f"print-{name}", [judged(name, [(1, 1)], task=ODD), judged(name, decoder="e")])
    return log


def test_what_was_added_is_there_again(tmp_path):
    path = tmp_path / "log.jsonl"
    log = filled(path)
    again = AnswerLog(path, SETTINGS)
    for found in (log, again):
        assert found.has("x", "a", "print-a") and not found.has("y", "a", "print-a")
        answers = found.answers("x", ["b", "a"])
        assert answers == {
            "d": [judged("b", [(1, 1)], task=ODD), judged("a", [(1, 1)], task=ODD)],
            "e": [judged("b", decoder="e"), judged("a", decoder="e")],
        }
    with pytest.raises(KeyError):
        again.answers("x", ["c"])


def test_a_line_that_was_cut_short_is_dropped_wherever_it_was_cut(tmp_path):
    path = tmp_path / "log.jsonl"
    filled(path)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for cut in range(1, len(lines[-1]), 97):
        path.write_bytes(data[:-cut])
        log = AnswerLog(path, SETTINGS)
        assert log.has("x", "a", "print-a") and not log.has("x", "b", "print-b")
        assert path.read_bytes() == b"".join(lines[:-1])
    path.write_bytes(lines[0][:5])  # killed while the settings were written
    AnswerLog(path, SETTINGS)
    assert path.read_bytes() == lines[0]


def test_other_settings_and_other_prompts_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    log = filled(path)
    with pytest.raises(MismatchError, match="seed"):
        AnswerLog(path, SETTINGS | {"seed": 1})
    with pytest.raises(MismatchError, match="beams"):
        AnswerLog(path, SETTINGS | {"beams": 2})
    with pytest.raises(MismatchError, match="pair"):
        AnswerLog(path, {"seed": 0})
    with pytest.raises(MismatchError, match="question"):
        log.has("x", "a", "another")


@pytest.mark.parametrize("content", [b"words\n", b"{}\n", b"[1]\n", b"\xff\n"])
def test_another_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="answers"):
        AnswerLog(path, SETTINGS)
    assert path.read_bytes() == content


def test_a_record_without_its_fields_is_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"settings": {"seed": 0, "pair": [1, 2]}}) + "\n" + '{"key": "x"}\n')
    with pytest.raises(CheckpointError, match="KeyError"):
        AnswerLog(path, SETTINGS)
