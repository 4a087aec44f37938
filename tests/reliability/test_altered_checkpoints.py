"""No alteration of a saved file crashes, hangs or raises an error of another library."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reliability"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_altered_files_are_refused_or_used(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    found = importlib.import_module("checkpoints").run(12, 0)
    assert found.total() == 12 * (3 * 5 + 2)
    assert {outcome for _, _, outcome in found} == {"refused", "loaded"}
