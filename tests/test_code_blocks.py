"""The code of README and documentation runs, page by page and from top to bottom, in an empty folder.

A block that needs what a test has not begins with a comment ``# needs ...``; it is parsed, its imports are looked up,
and the options of its commands are held against the parsers, as those of all others. A ``text`` block right after
Python is what that prints.
"""

import argparse
import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
import yaml
from boundaries import ROOT

from syncheck.cli import main, parser

PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/*.md"))}
PAGES["README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
SLOW = frozenset(
    {
        "README.md",
        *(f"docs/{name}.md" for name in ("decoding", "integrations", "own-decoder", "own-loop", "prompts", "scale")),
        *(f"docs/{name}.md" for name in ("quickstart", "rag-stack", "signals", "spans", "text-streams")),
    }
)
"""Pages that take longer than three seconds."""
WITH_THE_KIT = ("README.md", "docs/prompts.md")
"""Pages that show what the kit's model writes, or need its chat template."""
(COMMANDS,) = (action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@dataclass(frozen=True)
class Block:
    """A fenced block; ``printed`` is the text block right after it."""

    page: str
    line: int
    language: str
    code: str
    printed: str | None

    @property
    def id(self):
        return f"{self.page}:{self.line}"

    @property
    def runs(self):
        return not re.match(r"(\$ )?# needs \w", self.code)

    @property
    def commands(self):
        """Commands of a shell block, each with its continuation lines and here-document, without prompts and output."""
        found, lines = [], iter(self.code.splitlines())
        for line in lines:
            if self.language == "console" and not line.startswith("$ "):
                continue  # output
            command = line.removeprefix("$ ")
            while command.endswith("\\") or command.count("'") % 2:
                command += "\n" + next(lines)
            if "<<'EOF'" in command:
                command += "\n" + "\n".join(iter(lines.__next__, "EOF")) + "\nEOF\n"
            found.append(command)
        return [command for command in found if command.strip() and not command.startswith("#")]


def blocks_of(page):
    fence = r"^```(\w+)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?"
    for found in re.finditer(fence, PAGES[page], flags=re.M | re.S):
        yield Block(page, PAGES[page].count("\n", 0, found.start(2)), *found.groups())


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [pytest.param(block, id=block.id) for block in BLOCKS if block.language == "python"]
SHELL = [
    pytest.param(command, id=f"{block.id}-{i}")
    for block in BLOCKS
    if block.language in ("bash", "console")
    for i, command in enumerate(block.commands)
] + [
    pytest.param(command, id=f"{page}-{command}")
    for page, text in PAGES.items()
    for command in sorted(set(re.findall(r"`(syncheck [a-z][\w-]+[^`\n]*)`", text)))
]


def programs(command):
    """Split a line of shell into the words of each program that it calls, without redirections."""
    words = shlex.shlex(command.partition("<<")[0].replace("\\\n", " "), posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    words.commenters = "#"
    called = [[]]
    for word in words:
        if set(word) <= set("|&;"):
            called.append([])
        elif set(word) <= set("<>"):
            words.get_token()
        else:
            called[-1].append(word)
    return [found for found in called if found]


def check_syncheck(words):
    name, *given = words
    command = COMMANDS[name]
    known = command._option_string_actions
    assert {word for word in given if word.startswith("--")} <= set(known), name
    if given and not any("..." in word or "…" in word for word in given):
        for action, value in zip(map(known.get, given), given[1:], strict=False):
            assert action is None or not action.choices or value.isupper() or value in action.choices, value


def check_script(words):
    """Every option stands in the script, in a module beside it or among those of the commands."""
    path, *given = words
    written = {
        word
        for file in (ROOT / path, *(ROOT / path).parent.glob("*.py"), *ROOT.glob("syncheck/cli/*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in node.value.replace("/--", " --").split()
    }
    assert {word for word in given if word.startswith("--")} <= written


@pytest.mark.parametrize("command", SHELL)
def test_commands_have_the_options_they_are_called_with(command):
    for program, *words in programs(command):
        if program == "syncheck":
            check_syncheck(words)
        elif program == "python" and words[0].endswith(".py") and (ROOT / words[0]).parent != ROOT:
            check_script(words)
        elif program == "make":
            assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", PYTHON)
def test_python_parses_and_imports_names_that_exist(block):
    for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def test_extras_exist():
    assert {extra for text in PAGES.values() for extra in re.findall(r"syncheck\[([\w-]+)", text)} <= set(EXTRAS)


def run_python(block, names):
    before = set(names)
    with redirect_stdout(StringIO()) as printed:
        exec(compile("\n" * block.line + block.code, ROOT / block.page, "exec"), names)
    if block.printed is not None:
        assert printed.getvalue() == block.printed
    for name in set(names) - before:
        if name.startswith("test_"):
            names[name]()


def run_shell(block):
    for command in block.commands:
        ((program, *words), *others) = programs(command)
        if program == "syncheck" and not others and not re.search("[<>]", command):
            with redirect_stdout(StringIO()):
                assert main(words) in (0, 1), command
        elif program != "make" and not re.match("python (benchmarks|examples)/", command):  # other tests run these
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            run = subprocess.run(["bash", "-ec", command], env=os.environ | {"PATH": path}, capture_output=True)
            assert run.returncode == 0, f"{command}: {run.stderr.decode()}; does the block need a '# needs ...'?"


@pytest.mark.parametrize("page", [pytest.param(p, marks=[pytest.mark.slow] * (p in SLOW)) for p in PAGES])
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, request, with_the_reader):
    if page in WITH_THE_KIT:
        request.getfixturevalue("with_the_kit")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page}
    for block in filter(lambda block: block.runs, blocks_of(page)):
        if block.language == "python":
            run_python(block, names)
        elif block.language in ("bash", "console"):
            run_shell(block)
        elif block.language == "yaml":
            assert yaml.safe_load(block.code)
        elif block.language == "json":
            for line in re.split(r"\n(?=\S)", block.code.strip()):
                json.loads(line)
