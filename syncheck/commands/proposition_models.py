"""The models that ``--propositioner`` and ``--judge`` name: they label biographies."""

from __future__ import annotations

import argparse

from syncheck.errors import CheckpointError, InputError
from syncheck.training import Propositioner, PropositionJudge, load_judge

__all__ = ["proposition_models"]


def proposition_models(args: argparse.Namespace) -> tuple[Propositioner | None, PropositionJudge | None]:
    """Load what cuts a biography into propositions and what judges them; None where nothing was said.

    Raises
    ------
    CheckpointError
        If a checkpoint cannot be loaded.
    InputError
        If the judge is the aligner that is measured: the labels would then be one of the features.
    """
    return _propositioner(args), _judge(args)


def _propositioner(args: argparse.Namespace) -> Propositioner | None:
    if args.propositioner is None:
        return None
    from fod.evaluation import load_propositioner

    try:
        return load_propositioner(args.propositioner, device=args.device)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"cannot load a propositioner from {args.propositioner!r}: {error}") from error


def _judge(args: argparse.Namespace) -> PropositionJudge | None:
    if args.judge is None:
        return None
    if args.judge == (args.aligner or "bundled"):
        raise InputError(
            f"--judge {args.judge!r} is the aligner that is measured too, so that a feature would be its own label; "
            "pass another judge, or another --aligner"
        )
    return load_judge(args.judge, device=args.device)
