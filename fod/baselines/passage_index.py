"""A retriever for those who have none: passages by TF-IDF."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from fod.baselines.flare import FLAREQuery
from fod.ranges import check_count
from syncheck import InputError

__all__ = ["PassageIndex"]


class PassageIndex:
    """Finds the passages that share most words with a query; a retriever for :class:`fod.FLAREGenerator`.

    Parameters
    ----------
    passages
        What to search.
    count
        Most passages that are returned.

    Raises
    ------
    InputError
        If there is no passage with a word in it, or ``count`` is below 1.
    """

    def __init__(self, passages: Sequence[str], *, count: int = 3) -> None:
        check_count(count, "count")
        self._passages = list(passages)
        self._count = count
        self._vectorizer = TfidfVectorizer(sublinear_tf=True)
        try:
            self._matrix = self._vectorizer.fit_transform(self._passages)
        except ValueError as error:  # an empty vocabulary
            raise InputError(f"expected passages with words in them; found {len(self._passages)}: {error}") from error

    def __call__(self, query: FLAREQuery) -> list[str]:
        """Return the passages nearest to the question and the query, best first; none that shares no word."""
        wanted = self._vectorizer.transform([f"{query.question} {query.text}"])
        similarity = np.asarray((self._matrix @ wanted.T).todense())[:, 0]
        best = np.argsort(-similarity, kind="stable")[: self._count]
        return [self._passages[i] for i in best if similarity[i] > 0]
