"""Judged propositions in a file that grows record by record: a large judge takes hours for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from syncheck.errors import CheckpointError, InputError

__all__ = ["JudgedProposition", "KeptPropositions"]


JudgedProposition = tuple[str, bool]
"""A statement, and whether the passages support it."""

_START = b'{"record": "'


class KeptPropositions:
    """The propositions of records by what they were made from, kept in JSON Lines as they come.

    A line that a kill left half written at the end of the file is dropped; what is whole stays.

    Parameters
    ----------
    path
        None keeps them for as long as this object.

    Raises
    ------
    CheckpointError
        If another line is none of these.
    InputError
        If the folder does not exist.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._found: dict[str, list[JudgedProposition]] = {}
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise InputError(f"{self._path}: labels cannot be kept there, the folder does not exist; make it first")
        if self._path.exists():
            self._read(self._path)

    def __contains__(self, key: str) -> bool:
        """Whether the propositions of a record are known."""
        return key in self._found

    def __getitem__(self, key: str) -> list[JudgedProposition]:
        """Return the propositions of a record that is known."""
        return self._found[key]

    def add(self, key: str, name: str, propositions: list[JudgedProposition]) -> None:
        """Keep the propositions of a record; ``name`` is for who reads the file."""
        self._found[key] = propositions
        if self._path is None:
            return
        judged = [{"text": text, "label": int(faithful)} for text, faithful in propositions]
        line = json.dumps({"record": key, "id": name, "propositions": judged}, ensure_ascii=False)
        with self._path.open("ab") as file:
            file.write(f"{line}\n".encode(errors="surrogatepass"))  # as json.loads reads it

    def _read(self, path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                self._found[_string(entry["record"])] = [_judged(given) for given in entry["propositions"]]
            except (KeyError, TypeError, ValueError) as error:
                if not line.endswith(b"\n") and line[: len(_START)] == _START[: len(line)]:
                    with path.open("r+b") as file:
                        file.truncate(sum(map(len, lines[:-1])))
                    return
                raise CheckpointError(
                    f"{path}:{number} is damaged ({type(error).__name__}: {error}); expected judged propositions. "
                    "Delete this line, and its record is labelled again"
                ) from error
        if lines and not lines[-1].endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")


def _judged(given: dict[str, Any]) -> JudgedProposition:
    if given["label"] not in (0, 1):
        raise ValueError(f"a label is {given['label']!r}, not 0 or 1")
    return _string(given["text"]), bool(given["label"])


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value
