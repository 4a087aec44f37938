"""The architecture's borders, read from the imports of every module; the checker itself is in ``boundaries``."""

from graphlib import TopologicalSorter

import pytest
from boundaries import APART, ROOMS, ROOT, import_graph, package_files, violations

import syncheck

PUBLIC = {"Monitor", "RagPrompt"}


@pytest.mark.parametrize("path", package_files())
def test_module_keeps_the_borders(path):
    found = violations(path, (ROOT / path).read_text(encoding="utf-8"), public=syncheck.__all__)
    assert not found, "\n".join(found)


def test_no_imports_run_in_a_circle():
    graph = import_graph()
    assert "syncheck.training.fit" in graph["syncheck.monitor"]
    assert "syncheck.results.report" in graph["syncheck.model_monitor"]  # named by its package's stub
    TopologicalSorter(graph).prepare()  # CycleError names the modules


def test_each_part_has_one_place():
    assert len(set(ROOMS)) == len(ROOMS)
    assert set(APART) <= set(ROOMS)


def test_a_new_part_needs_a_decision():
    (found,) = violations("syncheck/extras/more.py", "", public=PUBLIC)
    assert found.startswith("syncheck/extras/more.py:1: extras has no place")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("syncheck/features/sentence.py", "from syncheck.aligners.protocol import Aligner"),
        ("syncheck/features/sentence.py", "from syncheck import aligners"),
        ("syncheck/features/sentence.py", "from syncheck import Monitor"),
        ("syncheck/features/sentence.py", "import syncheck.signals"),
        ("syncheck/features/sentence.py", "import syncheck"),
        ("syncheck/text/words.py", "import syncheck.signals"),
        ("syncheck/signals/forward.py", "from syncheck.text.sentences import Segmenter"),
        ("syncheck/signals/forward.py", "def f():\n    from syncheck.monitor import Monitor"),
        ("syncheck/results/types.py", "from syncheck.prompts import plain_prompt"),
        ("syncheck/signals/forward.py", "from .lid import lid"),
        ("syncheck/decoding/session.py", "from syncheck.monitor import Monitor"),
        ("syncheck/results/report.py", "from syncheck.spans.mikani import SpanRegressor"),
        ("syncheck/labelling/responses.py", "def f():\n    from syncheck.training import fit_measured"),
        ("syncheck/model_monitor.py", "from syncheck.training import fit_measured"),
        ("syncheck/verifier.py", "def f():\n    from syncheck.model_monitor import ModelMonitor"),
        ("syncheck/results/report.py", "def f():\n    from syncheck.report.html import render_html"),
        ("syncheck/monitor_base.py", "def f():\n    from syncheck.training import fit_measured"),
        ("syncheck/replay.py", "from syncheck.monitor import Monitor"),
        ("syncheck/monitor.py", "from fod import FODGenerator"),
        ("syncheck/monitor.py", "def f():\n    import fod"),
        ("syncheck/cli/__init__.py", "from fod import FODGenerator"),
        ("syncheck/cli/demo.py", "from fod import FODGenerator"),
        ("syncheck/cli/__init__.py", "import importlib\nimportlib.import_module('fod')"),
        ("syncheck/monitor.py", "def f():\n    from syncheck.testing import ScriptedModel"),
        ("fod/search.py", "from syncheck.testing import ScriptedModel"),
        ("fod/search.py", "from syncheck.signals.forward import Taps"),
        ("fod/search.py", "from syncheck import session"),
        ("fod/search.py", "import syncheck"),
        ("fod/search.py", "def f():\n    from syncheck.session import Session"),
        ("syncheck/cli/__init__.py", "from benchmarks.speed import run"),
        ("fod/search.py", "import examples"),
        ("syncheck/monitor.py", "import pickle"),
        ("syncheck/monitor.py", "from pickle import loads"),
        ("syncheck/aggregators/aggregator.py", "from joblib import load"),
        ("syncheck/aggregators/published.py", "import dill"),
        ("syncheck/monitor.py", "import numpy as np\nnp.load('a', allow_pickle=True)"),
        ("syncheck/aligners/bundled.py", "import torch\nflag = False\ntorch.load('a', weights_only=flag)"),
        ("syncheck/report/html.py", "print('x')"),
        ("fod/search.py", "def f():\n    print('x')"),
    ],
)
def test_a_broken_border_is_found_on_its_line(path, line):
    source = f'"""Doc."""\n\n{line}\n'
    found = violations(path, source, public=PUBLIC)
    assert [f.partition(": ")[0] for f in found] == [f"{path}:{len(source.splitlines())}"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("syncheck/features/sentence.py", "from syncheck.results.types import Support"),
        ("syncheck/features/sentence.py", "from syncheck.base.errors import InputError"),
        ("syncheck/signals/forward.py", "from syncheck.signals.lid import lid"),
        ("syncheck/monitor.py", "from syncheck.signals import TokenRecorder"),
        ("syncheck/report/html.py", "from syncheck.report.labels import Tint"),
        ("syncheck/report/html.py", "from syncheck.results.spans import SpanItem"),
        ("syncheck/monitor.py", "from syncheck.training import fit_measured"),
        ("syncheck/cli/__init__.py", "def f():\n    from fod import FODGenerator"),
        ("syncheck/cli/demo.py", "def f():\n    from fod import FODGenerator"),
        ("syncheck/cli/__init__.py", "print('x')"),
        ("fod/search.py", "from fod.config import Thresholds"),
        ("fod/search.py", "from syncheck import Monitor, RagPrompt"),
        ("fod/search.py", "from syncheck.results.types import RagPrompt"),
        ("syncheck/aggregators/published.py", "import pickle"),
        ("syncheck/aligners/bundled.py", "from pickle import UnpicklingError"),
        ("syncheck/features/sentence.py", "from syncheck.text.words import Overlap"),
        ("syncheck/aligners/bundled.py", "import torch\ntorch.load('a', weights_only=True)"),
    ],
)
def test_what_the_borders_allow_is_not_reported(path, line):
    assert violations(path, line, public=PUBLIC) == []
