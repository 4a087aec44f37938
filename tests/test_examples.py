"""The examples run and print what they say."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_quickstart(capsys):
    runpy.run_path(str(EXAMPLES / "quickstart.py"))
    shown = capsys.readouterr().out
    for part in ("without a language model", "scored while it is written", "lowest score", "taken back on the way"):
        assert part in shown
