"""Labels that a propositioner and a judge made, kept in a file: a large judge takes hours for them."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from syncheck.alignment import Aligner, identity_of, weights_of
from syncheck.commands.proposition_models import proposition_models
from syncheck.training import LabelledResponse, load_records
from syncheck.training.biographies import asks_models, is_biography
from syncheck.training.records import read_records

__all__ = ["kept_labels"]


def kept_labels(
    args: argparse.Namespace, data: Path, output: Path, *, measured: Callable[[], Aligner | None]
) -> list[LabelledResponse]:
    """Return the labelled responses of a file, of which those are labelled that were not in an earlier run.

    Parameters
    ----------
    args
        Options that name the propositioner and the judge; the two are loaded only where there is something to label.
    data
        The file of biographies.
    output
        What was labelled is kept beside it, each record as it is made. The name of that file tells the options, the
        version, what the data are called and the aligner that is measured, which must not be the judge; its lines tell
        the passages and the output they were made from.
    measured
        Returns that aligner; called only for a judge.

    Raises
    ------
    CheckpointError
        If what was kept is damaged.
    RecordError
        At the first record that cannot be used or labelled; what was labelled before it is kept.
    """
    aligner = None if args.judge is None else measured()
    made_by = [args.propositioner, args.judge, args.prompts, identity_of(aligner), weights_of(aligner)]
    made = hashlib.sha256(json.dumps([*made_by, data.stem, version("syncheck")]).encode())
    kept = output.with_name(f"{output.name}.labelled-{made.hexdigest()[:12]}.jsonl")
    first = next(read_records(data), None)
    if first is not None and is_biography(first) and not asks_models(data, kept):
        return load_records(data, prompts=args.prompts, kept=kept)
    propositioner, judge = proposition_models(args, measured=measured)
    return load_records(data, prompts=args.prompts, propositioner=propositioner, judge=judge, kept=kept)
