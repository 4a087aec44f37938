"""Checks that there is enough to train on, made before answers are generated or measured where that is possible."""

from __future__ import annotations

from collections.abc import Sequence

from syncheck.base.errors import InputError
from syncheck.labelling.responses import LabelledResponse
from syncheck.training.sets import LabelledSet

HELD_OUT_FOLDS = 5
"""Number of folds on whose held-out scores a monitor's thresholds are chosen: training needs at least as many
questions, faithful sentences and unfaithful sentences."""

MORE_LABELS = "Label responses to more questions"
"""Remedy for responses that people labelled."""
_WHY = f"because the thresholds are chosen by cross-validation with {HELD_OUT_FOLDS} folds"


def check_questions(records: Sequence[LabelledResponse], *, remedy: str) -> None:
    """Refuse, with an InputError that ends in ``remedy``, records with a context of fewer questions than folds."""
    groups = [record.group for record in records if record.has_context]
    if (found := len(set(groups))) < HELD_OUT_FOLDS:
        one = "Records of one group are one question; without groups, so are those with the same question and a passage"
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} questions with a context, {_WHY}; found {found} in "
            f"{len(records)} records. {remedy}{f'. {one} in common' if found < len(groups) else ''}"
        )


def check_labels(faithful: int, unfaithful: int, *, remedy: str) -> None:
    """Refuse, with an InputError that ends in ``remedy``, fewer sentences of either label than folds."""
    if min(faithful, unfaithful) < HELD_OUT_FOLDS:
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} faithful and {HELD_OUT_FOLDS} unfaithful sentences, {_WHY}; "
            f"found {faithful} and {unfaithful}. {remedy}"
        )


def check_enough(chosen: LabelledSet, *, remedy: str) -> None:
    """Check the measured sentences that are trained on, in both ways."""
    check_labels(int((chosen.y == 1).sum()), int((chosen.y == 0).sum()), remedy=remedy)
    check_questions(chosen.records, remedy=remedy)
