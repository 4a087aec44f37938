"""What else than texts says something of each word of a response: columns that are put beside those of the schema.

W is the number of words, F that of columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError, MismatchError
from syncheck.spans.features import SpanSchema, span_feature_names, word_features
from syncheck.spans.items import SpanItem
from syncheck.spans.words import Word, words_of

__all__ = ["WordSource", "matched_sources", "regression_features", "regression_names", "source_records"]


Floats = NDArray[np.float64]


class WordSource(Protocol):
    """Measures the words of a response, by whatever means: a model, a tagger, a service that is asked."""

    @property
    def name(self) -> str:
        """For tables, file names and messages; no two sources of one regression have the same."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the F columns, in order; a name never changes its meaning."""
        ...

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What tells this source from another of its name, as JSON can hold it; saved with the regression."""
        ...

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> Floats:
        """Return the values of the response's words, (W, F) float64, finite or NaN: not measured."""
        ...


def regression_names(schema: SpanSchema, sources: Sequence[WordSource] = ()) -> tuple[str, ...]:
    """Return the names of the columns of :func:`regression_features`, in order.

    Raises
    ------
    InputError
        If two sources have one name, or two columns do.
    """
    for what, names in (
        ("word sources", [source.name for source in sources]),
        ("columns", [*span_feature_names(schema), *(name for source in sources for name in source.columns)]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"expected {what} of different names; found {', '.join(twice)} twice. Rename one of them")
    return span_feature_names(schema) + tuple(name for source in sources for name in source.columns)


def regression_features(item: SpanItem, schema: SpanSchema, sources: Sequence[WordSource] = ()) -> Floats:
    """Measure the words of a response from texts and, after these, by each source.

    Returns
    -------
    ndarray of shape (W, F), float64
        In the order of :func:`regression_names`; NaN is not measured. A response without words is shown to no source.

    Raises
    ------
    MissingExtraError
        As :func:`~syncheck.spans.word_features`.
    InputError
        If a source gives another shape than it says, or an infinite value.
    """
    words = words_of(item.response)
    values = [word_features(item, words, schema)]
    for source in sources:
        shape = (len(words), len(source.columns))
        found = np.asarray(source(item, words), dtype=np.float64) if words else np.zeros(shape)
        if found.shape != shape or np.isinf(found).any():
            raise InputError(
                f"word source {source.name!r}: expected finite values or NaN of shape {shape}, a row for each word of "
                f"item {item.id!r} and a column for each of its names; found shape {found.shape}"
                + (" with infinite values" if np.isinf(found).any() else "")
            )
        values.append(found)
    return np.concatenate(values, axis=1)


def source_records(sources: Sequence[WordSource]) -> list[dict[str, Any]]:
    """Return what is saved of sources, as JSON gives it back: ``name``, ``columns`` and ``fingerprint`` of each."""
    records = [{"name": s.name, "columns": s.columns, "fingerprint": dict(s.fingerprint)} for s in sources]
    return list(json.loads(json.dumps(records)))


def matched_sources(
    sources: Sequence[WordSource], saved: Sequence[Mapping[str, Any]], *, owner: str
) -> tuple[WordSource, ...]:
    """Return sources in the order of those that a regression was fitted with.

    Parameters
    ----------
    sources
        In any order.
    saved
        What :func:`source_records` gave of those of the fit.
    owner
        Who was fitted with them, for messages.

    Raises
    ------
    InputError
        If one is missing, or was not there when the regression was fitted.
    MismatchError
        If one is another than the one of its name.
    """
    given = {source.name: source for source in sources}
    wanted = [str(record["name"]) for record in saved]
    if sorted(source.name for source in sources) != sorted(wanted):
        raise InputError(
            f"{owner} was fitted with {_listed(wanted)}; found {_listed([source.name for source in sources])}. Pass "
            "as sources= those it was fitted with (syncheck spans: --model, --classifier, --tagger, --llm)"
        )
    for record in saved:
        (found,) = source_records([given[record["name"]]])
        keys = dict.fromkeys([*record["fingerprint"], *found["fingerprint"]])
        different = [key for key in keys if record["fingerprint"].get(key) != found["fingerprint"].get(key)]
        different += ["columns"] if record["columns"] != found["columns"] else []
        if different:
            raise MismatchError(
                f"{owner} was fitted with another word source {found['name']!r}, which differs in "
                f"{', '.join(different)}; pass that one, or fit anew"
            )
    return tuple(given[name] for name in wanted)


def _listed(names: Sequence[str]) -> str:
    return "the word sources " + ", ".join(map(repr, sorted(names))) if names else "no word source"
