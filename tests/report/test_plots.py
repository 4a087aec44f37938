"""Plots are files of the format that was asked for, and show what was passed."""

import math
import sys

import pytest

pytest.importorskip("matplotlib")

from syncheck import InputError, MissingExtraError
from syncheck.report.plots import IntervalPanel, check_plot, plot_intervals, plot_matrix

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
    plot_intervals([PANEL, empty], path, label="AUROC", title="Detection")
    for text in ("overlap", "all features", "strict set, all", "nothing", "AUROC", "Detection"):
        assert f">{text}<" in texts_of(path)


def test_matrix(tmp_path):
    path = tmp_path / "x.svg"
    plot_matrix(
        [[0.5, 0.75], [math.nan, 1.0]],
        ["QA", "Summary"],
        ["m", "n"],
        path,
        label="AUROC",
        row_label="trained on",
        column_label="tested on",
        title="strict set",
    )
    for text in ("0.500", "0.750", "1.000", "QA", "Summary", "m", "trained on", "tested on", "strict set"):
        assert f">{text}<" in texts_of(path)
    assert "nan" not in texts_of(path)


def test_png(tmp_path):
    plot_intervals([PANEL], tmp_path / "x.png", label="AUROC")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_plotted(tmp_path):
    with pytest.raises(InputError, match="at least one panel"):
        plot_intervals([], tmp_path / "x.png", label="AUROC")
    with pytest.raises(InputError, match="found none that was measured"):
        plot_matrix([[math.nan]], ["a"], ["b"], tmp_path / "x.png", label="AUROC")
    with pytest.raises(InputError, match="end in one of .*png.*; found 'x.table'"):
        check_plot(tmp_path / "x.table")
    with pytest.raises(InputError, match="the folder does not exist"):
        check_plot(tmp_path / "no" / "x.png")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'syncheck\[plots\]'"):
        check_plot(tmp_path / "x.png")
