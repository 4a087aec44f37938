"""What each signal is worth beside the others: all of them, and all but one (the paper's Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncheck.errors import InputError
from syncheck.training.systems import ALL_FEATURES, System

__all__ = ["ablation_systems"]


def ablation_systems(names: Sequence[str], signals: Mapping[str, Sequence[str]]) -> tuple[System, ...]:
    """Return the system of all columns and, for each signal, that of all the other columns.

    Parameters
    ----------
    names
        Names of the columns, in order.
    signals
        Columns by signal, such as :func:`~syncheck.feature_groups.feature_groups` returns.

    Returns
    -------
    tuple of System
        ``"all features"``, then ``"without <signal>"`` in the order of ``signals``; for
        :func:`~syncheck.training.systems.out_of_fold_scores`, which trains each anew.

    Raises
    ------
    InputError
        If there are fewer than two signals, so that dropping one would leave nothing.
    """
    if len(signals) < 2:
        raise InputError(
            f"an ablation needs columns of at least two signals; found {', '.join(signals) or 'none'}. Measure with a "
            "schema that has more"
        )
    left = {signal: tuple(name for name in names if name not in columns) for signal, columns in signals.items()}
    return (
        System(ALL_FEATURES, tuple(names)),
        *(System(f"without {signal}", columns) for signal, columns in left.items()),
    )
