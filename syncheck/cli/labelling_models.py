"""The models that label biographies, and labels that are kept between runs."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from syncheck.alignment import Aligner, identity_of, is_same_aligner, weights_of
from syncheck.errors import InputError
from syncheck.labelling import (
    LabelledResponse,
    Propositioner,
    PropositionJudge,
    SupportJudge,
    load_judge,
    load_propositioner,
    load_records,
)
from syncheck.labelling.biographies import asks_models, is_biography
from syncheck.labelling.responses import read_records

__all__ = ["kept_labels", "proposition_models"]


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


def proposition_models(
    args: argparse.Namespace, *, measured: Callable[[], Aligner | None]
) -> tuple[Propositioner | None, PropositionJudge | None]:
    """Load what cuts a biography into propositions and what judges them; None where nothing was said.

    ``measured`` returns the aligner whose support is a feature of the sentences, and is called only for a judge.

    Raises
    ------
    CheckpointError
        If a checkpoint cannot be loaded.
    InputError
        If the judge is the aligner that is measured, by name or weights: the labels would then be one of the features.
    """
    return _propositioner(args), _judge(args, measured)


def _propositioner(args: argparse.Namespace) -> Propositioner | None:
    if args.propositioner is None:
        return None
    return load_propositioner(args.propositioner, device=args.device)


def _judge(args: argparse.Namespace, measured: Callable[[], Aligner | None]) -> PropositionJudge | None:
    if args.judge is None:
        return None
    judge = load_judge(args.judge, device=args.device)
    aligner = measured() if isinstance(judge, SupportJudge) else None
    if isinstance(judge, SupportJudge) and aligner is not None and is_same_aligner(judge.aligner, aligner):
        raise InputError(
            f"--judge {args.judge!r} is the aligner that is measured too, so that a feature would be its own label; "
            "pass another judge, or another --aligner"
        )
    return judge
