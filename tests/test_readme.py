"""The README is short, links lead somewhere, and the tables of the documentation agree with the code."""

import dataclasses
import re
from typing import get_args

import pytest
from boundaries import ROOT

from syncheck import SegmenterConfig
from syncheck.cli import main
from syncheck.features.schemas import FEATURES, LID
from syncheck.results.types import Status

README = (ROOT / "README.md").read_text(encoding="utf-8")
SIGNALS = (ROOT / "docs" / "signals.md").read_text(encoding="utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
WORDS = {1: "more faithful", -1: "less faithful", 0: "either way"}
NAMES = {LID: "lid_layer_15"}


def row_of(name):
    (row,) = re.findall(rf"^\| `{re.escape(NAMES.get(name, name))}`.*\|$", SIGNALS, flags=re.M)
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_readme_is_short():
    assert len(README.encode()) <= 6500


def test_what_was_tried_is_told_in_short():
    assert len(PAGES["docs/research.md"].read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_each_signal_is_listed_with_its_unit_and_direction(feature):
    _, _, unit, direction, *cost = row_of(feature.name)
    assert unit == feature.unit.replace(">=", "≥").replace("<=", "≤").replace("-", "−")
    assert direction == WORDS[feature.direction]
    assert not cost or cost in ([feature.cost.replace("none", "nothing").replace("context", "passages")], ["the same"])


@pytest.mark.parametrize("name", ["name_overlap", "source_mention", "negation", "list_item"])
def test_what_is_looked_for_is_said_as_the_code_says_it(name):
    (feature,) = (feature for feature in FEATURES if feature.name == name)
    assert row_of(name)[1] == feature.meaning.replace("context holds", "passages hold")


@pytest.mark.parametrize("status", get_args(Status))
def test_each_status_is_listed(status):
    assert len(row_of(status)) == 2


def test_options_of_sentences_are_those_of_python_and_of_the_command_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # one line for an option
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = re.findall(r"^  (--[\w-]+)", capsys.readouterr().out, flags=re.M)
    shown = shown[shown.index("--abbreviations") :]
    rows = dict(re.findall(r"^\| `(\w+)=.*?\| (.*?) \|.*\|$", SIGNALS, flags=re.M))
    assert set(rows) == {field.name for field in dataclasses.fields(SegmenterConfig)}
    assert rows.pop("max_tokens") == rows.pop("max_characters") == "in Python only"
    assert [re.findall(r"--[\w-]+", cell) for cell in rows.values()] == [[option] for option in shown[: len(rows)]]


@pytest.mark.parametrize(("name", "path"), PAGES.items())
def test_links_lead_to_pages_and_headings_that_exist(name, path):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)", path.read_text(encoding="utf-8")):
        page = (path.parent / target) if target else path
        assert page.exists(), f"{name}: {target}"
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M) if anchor else []
        assert not anchor or anchor[1:] in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
