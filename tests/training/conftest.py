"""Scripts that the tests of this folder run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def paper_table_1():
    """``benchmarks/paper_table_1.py``, imported from its folder as Python does when it runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import paper_table_1

        yield paper_table_1
