"""Judged answers in a file that is written as they come, so that an interrupted run continues where it stopped."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from decoding.answers import EvaluatedAnswer
from syncheck.base.errors import CheckpointError, MismatchError

__all__ = ["AnswerLog"]


class AnswerLog:
    """Answers by prompt and by what produced them, kept in JSON Lines.

    The first line holds the settings, every other one the answers of one decoding to one prompt; lines are written
    whole and at once, and one that a kill has cut short is dropped when the file is opened again.

    Parameters
    ----------
    path
        The file; made if it does not exist.
    settings
        All that the answers depend on, as values that JSON can hold.
    any_of
        Names of settings that may differ.

    Raises
    ------
    MismatchError
        If the file was written with other settings.
    CheckpointError
        If the file is not one of judged answers.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any], *, any_of: Collection[str] = ()) -> None:
        self._path = Path(path)
        self._answers: dict[tuple[str, str], tuple[str, list[EvaluatedAnswer]]] = {}
        lines = self._whole_lines() if self._path.exists() else []
        wanted = json.loads(json.dumps(settings))
        if not lines:
            self._path.write_text(_line({"settings": wanted}), encoding="utf-8")
        else:
            self._read(lines, wanted, any_of)

    def has(self, key: str, prompt: str, fingerprint: str) -> bool:
        """Return True if the log has this decoding of a prompt.

        Raises
        ------
        MismatchError
            If it is, and the prompt has another text.
        """
        if (key, prompt) not in self._answers:
            return False
        if self._answers[key, prompt][0] != fingerprint:
            raise MismatchError(
                f"{self._path} has answers to prompt {prompt!r} with another question or context; write to another file"
            )
        return True

    def add(self, key: str, prompt: str, fingerprint: str, answers: Sequence[EvaluatedAnswer]) -> None:
        """Write the answers of one decoding of a prompt."""
        record = {"key": key, "prompt": prompt, "fingerprint": fingerprint, "answers": [a.to_dict() for a in answers]}
        with self._path.open("a", encoding="utf-8") as output:
            output.write(_line(record))
        self._answers[key, prompt] = (fingerprint, list(answers))

    def answers(self, key: str, prompts: Sequence[str]) -> dict[str, list[EvaluatedAnswer]]:
        """Return the answers of a decoding to each of the prompts, in their order, by decoder.

        Raises
        ------
        KeyError
            If a prompt has none yet.
        """
        found: dict[str, list[EvaluatedAnswer]] = {}
        for prompt in prompts:
            for each in self._answers[key, prompt][1]:
                found.setdefault(each.answer.decoder, []).append(each)
        return found

    def _whole_lines(self) -> list[str]:
        """Return the complete lines, and cut the file after them."""
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            return whole.decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise self._foreign(error) from error

    def _read(self, lines: Sequence[str], wanted: Mapping[str, Any], any_of: Collection[str]) -> None:
        try:
            found = json.loads(lines[0])["settings"]
            for record in map(json.loads, lines[1:]):
                answers = [EvaluatedAnswer.from_dict(values) for values in record["answers"]]
                self._answers[record["key"], record["prompt"]] = (record["fingerprint"], answers)
        except (KeyError, TypeError, ValueError) as error:
            raise self._foreign(error) from error
        named = {*found, *wanted} - {*any_of}
        different = sorted(name for name in named if found.get(name) != wanted.get(name))
        if different:
            pairs = ", ".join(f"{name} {found.get(name)!r} there and {wanted.get(name)!r} here" for name in different)
            raise MismatchError(f"{self._path} was written with other settings: {pairs}; write to another file")

    def _foreign(self, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self._path} is not a file of judged answers ({type(error).__name__}: {error}); write to another file"
        )


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
