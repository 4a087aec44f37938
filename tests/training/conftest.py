"""Scripts that the tests of this folder run."""

import importlib
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def paper_table_1():
    """``benchmarks/paper_table_1.py``, imported from its folder as Python does when it runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import paper_table_1

        yield paper_table_1


@pytest.fixture
def benchmark(monkeypatch):
    """Import a script of ``benchmarks/`` by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module
