"""The prompts that decoders are compared on: those of a file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from syncheck.base.errors import InputError
from syncheck.base.records import Record, read_records


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its passages. ``task`` is the column of the table in which it counts."""

    id: str
    question: str
    passages: tuple[str, ...]
    task: str

    @property
    def fingerprint(self) -> str:
        """Digest that distinguishes prompts with the same id and different texts."""
        text = json.dumps([self.question, *self.passages])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def questions_of(path: Path, count: int) -> list[Question]:
    """Read the first ``count`` questions of a JSON Lines file.

    Each line has ``question`` and ``context``, a string or a list of strings; ``id`` and ``task`` are optional.

    Raises
    ------
    InputError
        If the file is missing or empty.
    RecordError
        At the first record that cannot be used, also one whose context is blank or whose id has come before.
    """
    found: dict[str, Question] = {}
    for record in read_records(path):
        if len(found) == count:
            break
        name = record.optional("id", str) or f"{path.stem}:{record.line}"
        if name in found:
            raise record.error(f"expected a unique id; {name!r} has come before", "id")
        task = record.optional("task", str) or path.stem
        found[name] = Question(name, record.get("question", str), _passages(record), task)
    if not found:
        raise InputError(f"{path} holds no record; give one question a line")
    return list(found.values())


def _passages(record: Record) -> tuple[str, ...]:
    passages = record.texts("context")
    if not any(passage.strip() for passage in passages):
        raise record.error("expected at least one passage with text; faithfulness is to a context", "context")
    return passages
