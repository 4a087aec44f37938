"""What a trained aggregator is compared with: the parts of its own features, on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.config import AggregatorKind
from syncheck.features import SCHEMAS

__all__ = ["System", "benchmark_systems"]


@dataclass(frozen=True, slots=True)
class System:
    """A way to score sentences from some of the columns.

    Attributes
    ----------
    name : str
        As the table shows it.
    columns : tuple of str
    trained : bool
        False takes the value of a single column as the score, higher being faithful.
    kind : {"lr", "xgb", "mlp"} or None
        The classifier, where it is not the one that is being evaluated.
    """

    name: str
    columns: tuple[str, ...]
    trained: bool = True
    kind: AggregatorKind | None = None


_LEXICAL = ("content_overlap", "bigram_overlap", "number_overlap", "log_tokens")


def benchmark_systems(names: Sequence[str]) -> tuple[System, ...]:
    """Return the systems worth comparing that the columns allow, the cheapest first.

    Content-word overlap as it is; the same with word pairs, numbers and length, an MLP; the aligner as it is;
    the paper's features, trained; and everything. A signal is worth its cost by what it adds to the first.

    Parameters
    ----------
    names
        Names of the columns, in order.
    """
    own = set(SCHEMAS["syncheck.v1"]) - set(SCHEMAS["paper.v1"])
    paper = tuple(name for name in names if name not in own)
    systems = (
        System("content-word overlap, untrained", ("content_overlap",), trained=False),
        System("overlap and length, MLP", _LEXICAL, kind="mlp"),
        System("aligner, untrained", ("align_score",), trained=False),
        System("the paper's features", paper),
        System("all features", tuple(names)),
    )
    present = [system for system in systems if system.columns and set(system.columns) <= set(names)]
    return tuple(s for i, s in enumerate(present) if s.columns not in [t.columns for t in present[:i]])
