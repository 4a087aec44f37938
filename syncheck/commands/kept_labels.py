"""Labels that a propositioner and a judge made, kept in a file: a large judge takes hours for them."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from syncheck.alignment import Aligner, identity_of, weights_of
from syncheck.errors import CheckpointError
from syncheck.training import LabelledResponse
from syncheck.training.responses import response_from_json, response_to_json
from syncheck.training.tables import UNFINISHED

__all__ = ["kept_labels"]


def kept_labels(
    args: argparse.Namespace,
    data: Path,
    output: Path,
    *,
    measured: Callable[[], Aligner | None],
    label: Callable[[], list[LabelledResponse]],
) -> list[LabelledResponse]:
    """Return what ``label`` made of the data in an earlier run, or makes now and keeps for later ones.

    Parameters
    ----------
    args
        Options that name the propositioner and the judge.
    data
        The file of biographies.
    output
        The labels are kept beside it, in JSON Lines that are there whole or not at all. Their name tells the data, the
        options, the version and the aligner that is measured, which must not be the judge.
    measured
        Returns that aligner; called only for a judge.
    label

    Raises
    ------
    CheckpointError
        If what was kept is damaged.
    """
    aligner = None if args.judge is None else measured()
    made_by = [args.propositioner, args.judge, args.prompts, identity_of(aligner), weights_of(aligner)]
    made = hashlib.sha256(json.dumps([*made_by, data.stem, version("syncheck")]).encode())
    made.update(data.read_bytes())
    kept = output.with_name(f"{output.name}.labelled-{made.hexdigest()[:12]}.jsonl")
    if kept.exists():
        return _read(kept)
    responses = label()
    _write(kept, responses)
    return responses


def _read(kept: Path) -> list[LabelledResponse]:
    try:
        with kept.open(encoding="utf-8") as lines:
            return [response_from_json(line) for line in lines]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{kept} is damaged ({type(error).__name__}: {error}); expected labelled responses. Delete it, and they "
            "are labelled again"
        ) from error


def _write(kept: Path, responses: Sequence[LabelledResponse]) -> None:
    unfinished = kept.with_name(f"{kept.name}{UNFINISHED}{os.getpid()}")
    try:
        unfinished.write_text("".join(f"{response_to_json(each)}\n" for each in responses), encoding="utf-8")
        unfinished.replace(kept)
    finally:
        unfinished.unlink(missing_ok=True)
