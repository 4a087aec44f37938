"""Plots of an evaluation show every decoder and every size."""

import math
import sys

import pytest
from judged import judged

pytest.importorskip("matplotlib")

from decoding import decoder_figures, plot_curves, plot_sweep, plot_tradeoff

from syncheck.base.errors import InputError, MissingExtraError


@pytest.fixture(autouse=True)
def _letters_as_text():
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


@pytest.fixture(scope="module")
def figures():
    answers = {
        "greedy": [judged("a", [(2, 1), (4, 2)]), judged("b", [(1, 1)])],
        "search": [judged("a", [(2, 2)]), judged("b", [(2, 1)])],
        "silent": [judged("a"), judged("b")],
    }
    return decoder_figures(answers, resamples=20)


def test_tradeoff(tmp_path, figures):
    path = tmp_path / "x.svg"
    plot_tradeoff(figures, path)
    shown = path.read_text(encoding="utf-8")
    for text in ("greedy", "search", "informativeness (propositions an answer)", "faithfulness@L"):
        assert f">{text}<" in shown
    assert ">silent<" not in shown and math.isnan(figures["silent"].faithfulness.value)


@pytest.mark.slow
def test_sweep(tmp_path, figures):
    path = tmp_path / "x.svg"
    plot_sweep({1: figures["greedy"], 2: figures["silent"]}, {6: figures["search"]}, path)
    shown = path.read_text(encoding="utf-8")
    for text in ("beam size K", "sample size S", "faithfulness", "informativeness", "6"):
        assert f">{text}<" in shown


def test_curves_name_their_labelled_points(tmp_path, figures):
    path = tmp_path / "x.svg"
    point, nothing = figures["greedy"], figures["silent"]
    greedy = [("0.7", point.sentences, point.faithfulness), ("", nothing.sentences, nothing.faithfulness)]
    plot_curves({"greedy": greedy, "silent": []}, path)
    shown = path.read_text(encoding="utf-8")
    for text in ("greedy", "0.7", "sentences kept, of greedy decoding's"):
        assert f">{text}<" in shown
    with pytest.raises(InputError, match="none"):
        plot_curves({"greedy": []}, path)


def test_errors(tmp_path, figures, monkeypatch):
    with pytest.raises(InputError, match="faithfulness"):
        plot_tradeoff({"silent": figures["silent"]}, tmp_path / "x.svg")
    with pytest.raises(InputError, match="none"):
        plot_sweep({}, {1: figures["greedy"]}, tmp_path / "x.svg")
    for name in ("x.words", "no folder/x.svg"):
        with pytest.raises(InputError, match="plot"):
            plot_tradeoff(figures, tmp_path / name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"syncheck\[plots\]"):
        plot_tradeoff(figures, tmp_path / "x.svg")
