"""The guides name files that are there, and the changes of docs/contributing.md pass their tests in a copy."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from boundaries import ROOT

GUIDE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
PARTS = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_changes_of_the_guide_pass_their_tests(tmp_path):
    shutil.copytree(ROOT / "syncheck", tmp_path / "syncheck", ignore=shutil.ignore_patterns("__pycache__"))
    for path, diff in re.findall(r"```diff\n(?:\+{3} (\S+)\n)?(.*?)```", GUIDE, flags=re.S):
        file = tmp_path / (path or "syncheck/features/schemas.py")
        before, after = (
            "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in kinds) for kinds in (" -", " +")
        )
        source = file.read_text(encoding="utf-8") if before else ""
        assert source.count(before) == 1 and bool(before) == file.exists()
        file.write_text(source.replace(before, after), encoding="utf-8")
    tests = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    for number, test in enumerate(tests):
        (tmp_path / f"test_change_{number}.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    run = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(tests)} passed" in run.stdout


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:syncheck|fod|tests|docs)/[\w/.-]+)`", GUIDE + PARTS))))
def test_the_files_to_open_are_there(path):
    assert (ROOT / path).exists()


def test_the_drawn_way_passes_through_the_files_of_the_told_one():
    ways = re.findall(r"```mermaid\n(.*?)```\n(.*?)^## ", PARTS, flags=re.S | re.M)
    assert len(ways) == 2  # from a text, and from a prompt
    for drawn, told in ways:
        files = {f"syncheck/{name}" for name in re.findall(r"[\w/]+\.py", drawn)}
        assert files <= set(re.findall(r"`([\w/]+\.py)`", told))
