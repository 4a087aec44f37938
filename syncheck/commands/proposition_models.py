"""The models that ``--propositioner`` and ``--judge`` name: they label biographies."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from syncheck.alignment import Aligner, is_same_aligner
from syncheck.errors import InputError
from syncheck.training import Propositioner, PropositionJudge, SupportJudge, load_judge, load_propositioner

__all__ = ["proposition_models"]


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
