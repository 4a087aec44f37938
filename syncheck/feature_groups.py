"""Which features come of one signal, so that a signal can be dropped or permuted as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncheck.errors import InputError
from syncheck.schemas import LID

__all__ = ["FEATURE_GROUPS", "feature_groups"]

FEATURE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "likelihood": ("min_prob", "mean_prob", "mean_log_prob", "min_log_prob"),
    "entropy": ("max_entropy", "mean_entropy"),
    "LID": (LID,),
    "context influence": (
        *("mean_contrastive_kl", "large_kl_pos", "max_contrastive_kl"),
        *("mean_log_prob_gain", "min_log_prob_gain"),
    ),
    "aligner": ("align_score",),
    "lexical": (
        *("content_overlap", "bigram_overlap", "number_overlap", "name_overlap"),
        *("stem_overlap", "pair_overlap", "copied_run", "novel_words"),
    ),
    "question and length": ("question_overlap", "log_tokens"),
    "earlier sentences": (
        *("sentence_index", "earlier_support_mean", "earlier_support_min"),
        *("previous_support", "previous_pair_overlap", "previous_copied_run"),
        *("inherited_support", "inherited_pair_overlap", "inherited_copied_run"),
    ),
    "phrasing": ("source_mention", "negation", "list_item"),
}
"""Features by signal, each in one group, as in ``syncheck.schemas.FEATURES``. The first five are the paper's (Table
4), whose "uncertainty" is entropy and LID; KL and the gain in log-probability both compare with no context."""


def feature_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Divide columns by the signal that they come from.

    Parameters
    ----------
    names
        Names of columns, as a schema has them.

    Returns
    -------
    dict of str to tuple of str
        Groups in the order of :data:`FEATURE_GROUPS`, columns in that of ``names``; groups without any are left out.

    Raises
    ------
    InputError
        If a column is in no group.
    """
    unknown = [name for name in names if not any(_belongs(name, group) for group in FEATURE_GROUPS.values())]
    if unknown:
        raise InputError(
            f"expected features of the groups {', '.join(FEATURE_GROUPS)}; found {', '.join(map(repr, unknown))} in "
            "none of them; add them to FEATURE_GROUPS in syncheck/feature_groups.py"
        )
    found = {group: tuple(n for n in names if _belongs(n, members)) for group, members in FEATURE_GROUPS.items()}
    return {group: columns for group, columns in found.items() if columns}


def _belongs(name: str, members: Sequence[str]) -> bool:
    return name in members or (LID in members and name.startswith(LID.format(k="")))
