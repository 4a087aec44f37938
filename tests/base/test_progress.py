"""Long work says how far it is: by a bar on a terminal, by a line a minute in a log."""

import pytest

from syncheck.base import printable
from syncheck.base.printable import progress


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(printable, "SECONDS", 1e-9)


def test_a_log_gets_lines(quick, capsys):
    for _ in progress(range(3), desc="records"):
        pass
    lines = capsys.readouterr().err.split("\n")
    assert lines[-1] == "" and len(lines) > 2 and "\r" not in "".join(lines)
    assert all(line.startswith("records") for line in lines[:-1]) and "3/3" in lines[-2]


def test_what_takes_less_than_a_minute_writes_nothing(capsys):
    assert list(progress(range(3))) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_it_can_be_left_out(quick, capsys):
    assert list(progress(range(3), shown=False)) == [0, 1, 2]
    assert capsys.readouterr().err == ""
