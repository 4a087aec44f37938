"""Plots are files of the format that was asked for, and show what was passed."""

import math
import sys

import pytest

pytest.importorskip("matplotlib")

from syncheck.base.errors import InputError, MissingExtraError
from syncheck.evaluation import ReliabilityBin
from syncheck.report.plots import (
    IntervalPanel,
    check_plot,
    plot_intervals,
    save_reliability_diagram,
    wrapped,
)

PANEL = IntervalPanel("strict set, all", ("overlap", "all features"), (0.7, 0.8), (0.6, math.nan), (0.75, math.nan))


def texts_of(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _letters_as_text(monkeypatch):
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def test_intervals(tmp_path):
    path = tmp_path / "x.svg"
    empty = IntervalPanel("one", ("nothing",), (math.nan,), (math.nan,), (math.nan,))
    plot_intervals([PANEL, empty], path, label="AUROC")
    for text in ("overlap", "all features", "strict set, all", "nothing", "AUROC"):
        assert f">{text}<" in texts_of(path)


def test_a_value_that_was_not_measured_is_said_to_be_missing(tmp_path):
    path = tmp_path / "x.svg"
    empty = IntervalPanel("one", ("nothing",), (math.nan,), (math.nan,), (math.nan,))
    plot_intervals([empty, PANEL], path, label="AUROC")
    assert texts_of(path).count(">not measured<") == 1


def test_lines_are_short_and_a_dollar_begins_no_formula():
    assert wrapped("a system of ours", 8) == "a system\nof ours"
    assert wrapped("/a/path/without/end", 7) == "/a/path\n/withou\nt/end"
    assert wrapped("$x_1$", 9) == r"\$x_1\$"
    assert wrapped("", 9) == ""


# Warnings are errors: matplotlib gives one where a text leaves no room for the axes.
LONG = "a system with a name that somebody made as long as this, of gpt-4-turbo-2024-04-09 and $x_1$"


def test_long_names_leave_room_for_what_is_drawn(tmp_path):
    values = (0.7,)
    plot_intervals([IntervalPanel(LONG, (LONG,), values, values, values)], tmp_path / "a.svg", label=LONG)
    bins = [ReliabilityBin(low=0.9, high=1.0, sentences=2, mean_score=1.0, faithful=1.0)]
    save_reliability_diagram(tmp_path / "b.svg", {LONG: bins})
    for name, texts in (("a", 3), ("b", 1)):
        drawn = texts_of(tmp_path / f"{name}.svg")
        assert ">a system with a name that somebody" in drawn
        assert drawn.count("$x_1$") == texts


def test_png(tmp_path):
    plot_intervals([PANEL], tmp_path / "x.png", label="AUROC")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_plotted(tmp_path):
    with pytest.raises(InputError, match="panel"):
        plot_intervals([], tmp_path / "x.png", label="AUROC")
    with pytest.raises(InputError, match="png"):
        check_plot(tmp_path / "x.table")
    with pytest.raises(InputError, match="folder"):
        check_plot(tmp_path / "no" / "x.png")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plots"):
        check_plot(tmp_path / "x.png")
