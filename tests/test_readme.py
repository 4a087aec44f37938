"""The README's tables say what the code says."""

import ast
import dataclasses
import importlib
import re
from typing import get_args

import pytest
from boundaries import ROOT

from syncheck import SegmenterConfig
from syncheck.cli import main
from syncheck.schemas import FEATURES, LID
from syncheck.types import Status

README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = {1: "for faithful", -1: "against", 0: "either way"}
NAMES = {LID: "lid_layer_15"}


def row_of(name):
    (row,) = re.findall(rf"^\| `{re.escape(NAMES.get(name, name))}`.*\|$", README, flags=re.M)
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_each_signal_stands_there_with_its_unit_and_direction(feature):
    _, _, unit, direction, *cost = row_of(feature.name)
    assert unit == feature.unit.replace(">=", "≥").replace("-", "−")
    assert direction == WORDS[feature.direction]
    assert not cost or cost in ([feature.cost.replace("none", "nothing").replace("context", "passages")], ["the same"])


@pytest.mark.parametrize("name", ["name_overlap", "source_mention", "negation", "list_item"])
def test_what_is_looked_for_is_said_as_the_code_says_it(name):
    (feature,) = (feature for feature in FEATURES if feature.name == name)
    assert row_of(name)[1] == feature.meaning.replace("context holds", "passages hold")


@pytest.mark.parametrize("status", get_args(Status))
def test_each_status_stands_there(status):
    assert len(row_of(status)) == 2


def test_options_of_sentences_stand_there_as_they_are_in_python_and_on_the_command_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # one line for an option
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = re.findall(r"^  (--[\w-]+)", capsys.readouterr().out.partition("\nsentences:\n")[2], flags=re.M)
    rows = dict(re.findall(r"^\| `(\w+)=.*?\| (.*?) \|.*\|$", README, flags=re.M))
    assert set(rows) == {field.name for field in dataclasses.fields(SegmenterConfig)}
    assert rows.pop("max_tokens") == "in Python only"
    assert [re.findall(r"--[\w-]+", cell) for cell in rows.values()] == [[option] for option in shown[: len(rows)]]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, flags=re.S))
def test_code_parses_and_imports_names_that_exist(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
