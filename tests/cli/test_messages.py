"""Messages of the command line name options that exist, and those that were given; ``python -m syncheck`` runs it."""

import re
import subprocess
import sys
from pathlib import Path

from command_runs import write

from syncheck import __version__, cli
from syncheck.cli import main, parser


def test_the_package_runs_as_the_command_does():
    ran = subprocess.run([sys.executable, "-m", "syncheck", "--version"], check=True, capture_output=True, text=True)
    assert ran.stdout == f"syncheck {__version__}\n"
    ran = subprocess.run([sys.executable, "-m", "syncheck", "report", "none.jsonl"], capture_output=True, text=True)
    assert ran.returncode == 2 and "none.jsonl" in ran.stderr


def test_every_option_that_a_message_names_exists():
    """Named in the text of any module of the commands and of what they call."""
    (commands,) = (action for action in parser()._actions if action.choices)
    known = {name for one in commands.choices.values() for action in one._actions for name in action.option_strings}
    of_others = {
        "--version",
        "--force-reinstall",
        "--no-deps",
        "--quiet",
        "--form",
    }  # of syncheck itself, pip, examples
    for room in ("cli", "training", "labelling", "corpus", "evaluation", "spans"):
        for file in Path(cli.__file__).parents[1].joinpath(room).glob("*.py"):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", file.read_text(encoding="utf-8")))
            assert named <= known | of_others | ({"--svr"} if file.name == "mikani.py" else set()), file


def test_an_option_for_a_monitor_of_another_kind_is_named_alone(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", {"question": "q", "context": ["c"], "response": "r"})
    assert main(["label", source, "--monitor", str(tmp_path), "--aligner", "none"]) == 2
    said = capsys.readouterr().err
    assert "so --aligner cannot be used with it" in said and "--schema" not in said
