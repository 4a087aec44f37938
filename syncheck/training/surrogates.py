"""Whose signals tell most about whose answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from syncheck.config import AggregatorKind
from syncheck.errors import InputError
from syncheck.evaluation.crossval import cross_validate
from syncheck.evaluation.transfer import AurocMatrix, Cell, cell
from syncheck.stats import BootstrapSamples
from syncheck.training.sets import LabelledSet

__all__ = ["EVERY_GENERATOR", "surrogate_matrix"]


EVERY_GENERATOR = "all"
"""The column of the sentences of all generators."""


def surrogate_matrix(
    measured: Mapping[str, LabelledSet],
    *,
    trained_on: str | None = None,
    aggregator: AggregatorKind = "mlp",
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    same_folds: bool = True,
    draws: int = 1000,
) -> AurocMatrix:
    """Compare models as surrogates: the same labelled responses, measured with each of them.

    Parameters
    ----------
    measured
        By name of the surrogate: what it measured. A response that one of them could not measure counts for none.
    trained_on
        Generator whose sentences the aggregators are trained on, as the paper trains on those of the surrogate itself;
        None trains on all. Folds are over groups either way, so no question is on both sides.
    aggregator, folds, repeats, seed, same_folds
        As in :func:`~syncheck.evaluation.crossval.cross_validate`; the defaults are the paper's three runs, which
        differ by their seeds.
    draws
        Resamples of the groups for the intervals.

    Returns
    -------
    AurocMatrix
        Rows: surrogates, as given; columns: generators, sorted, and all together.

    Raises
    ------
    InputError
        If two surrogates measured different responses under one id, they have none in common, or no sentence is by
        ``trained_on``.
    """
    _check_same(measured)
    common = set.intersection(*(found.ids for found in measured.values())) if measured else set()
    if not common:
        raise InputError(f"expected files of the same responses; found no id that all have of {_listed(measured)}")
    cells: dict[tuple[str, str], Cell] = {}
    columns: set[str] = set()
    for name, everything in measured.items():
        found = everything.of(common)
        y, groups, generators = found.y, found.groups, found.generators
        train_on = None if trained_on is None else generators == trained_on
        if train_on is not None and not train_on.any():
            raise InputError(f"no sentence is by {trained_on!r}; the generators are {_listed(generators)}")
        scores = cross_validate(
            found.features,
            y,
            groups,
            aggregator=aggregator,
            folds=folds,
            repeats=repeats,
            seed=seed,
            same_folds=same_folds,
            train_on=train_on,
            names=everything.measured.schema.names,
        )
        resamples = BootstrapSamples.of(groups, draws=draws, seed=seed)
        columns |= set(generators.tolist())
        for column in set(generators.tolist()):
            cells[name, column] = cell(scores, y, resamples, generators == column)
        cells[name, EVERY_GENERATOR] = cell(scores, y, resamples, np.ones(len(y), np.bool_))
    return AurocMatrix("surrogate \\ generator", tuple(measured), (*sorted(columns), EVERY_GENERATOR), cells)


def _check_same(measured: Mapping[str, LabelledSet]) -> None:
    seen: dict[str, tuple[str, object]] = {}
    for name, found in measured.items():
        for record in found.measured.records:
            first, other = seen.setdefault(record.id, (name, record))
            if other != record:
                raise InputError(
                    f"expected the same labelled responses in {first!r} and {name!r}; found another response, prompt "
                    f"or label under the id {record.id!r}. Measure one file with both models"
                )


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted({str(name) for name in names}))
