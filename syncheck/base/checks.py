"""Checks of arguments: texts, passages with their names, sequences, counts, shares, arrays, labels."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.base.errors import InputError, WrongTypeError

_NAMES = {1: "faithful (label 1)", 0: "unfaithful (label 0)"}


def check_both_labels(y: ArrayLike, what: str) -> None:
    """Refuse labels other than 1 and 0, or of one kind alone, with an InputError that begins with ``what``."""
    if set(np.unique(np.asarray(y)).tolist()) != set(_NAMES):
        raise InputError(f"{what} of both labels, 1 (faithful) and 0 (unfaithful), but found {labels_found(y)}")


def labels_found(y: ArrayLike) -> str:
    """Describe the labels found, for a message."""
    values, counts = np.unique(np.asarray(y), return_counts=True)
    counts_by_label = dict(zip(values.tolist(), counts.tolist(), strict=True))
    if not counts_by_label:
        return "no sentences at all"
    if not counts_by_label.keys() <= _NAMES.keys():
        return f"{sorted(counts_by_label)}"
    if len(counts_by_label) == 1:
        ((label, count),) = counts_by_label.items()
        return f"that all {count} sentences are {_NAMES[label]}"
    return " and ".join(f"{counts_by_label[label]} {name}" for label, name in _NAMES.items())


_HALF = re.compile(r"[\ud800-\udfff]")


def check_text(text: object, name: str) -> None:
    """Refuse anything but a string (WrongTypeError), and a string with a lone surrogate (InputError)."""
    if not isinstance(text, str):
        raise WrongTypeError(f"{name} must be a string; found {type(text).__name__}")
    half = _HALF.search(text)
    if half is not None:
        raise InputError(
            f"{name} must be valid Unicode text; found the lone surrogate {half[0]!r} at character {half.start()}. "
            "Read the text with its own encoding, or with errors='replace'"
        )


def check_texts(texts: object, name: str) -> None:
    """Refuse anything but a sequence of strings (WrongTypeError), and a lone surrogate in one (InputError)."""
    check_sequence(texts, name, of="strings")
    for index, text in enumerate(texts):  # type: ignore[var-annotated,arg-type]
        check_text(text, f"{name}[{index}]")


def check_sequence(values: object, name: str, *, of: str) -> None:
    """Refuse, with a WrongTypeError, anything but a list ``of`` something, such as a string or a generator."""
    is_array = isinstance(values, np.ndarray) and values.ndim == 1
    if isinstance(values, str | bytes) or not (isinstance(values, Sequence) or is_array):
        raise WrongTypeError(f"{name} must be a list of {of}; found {type(values).__name__}")


def real_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert values to an array of real numbers, with the dtype they have.

    Values that form no array raise InputError; complex numbers, strings and other objects raise WrongTypeError.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers; found values that form no array: {error}") from error
    if array.dtype.kind not in "fiub":
        kinds = ", ".join(sorted({type(value).__name__ for value in array.ravel()[:1000].tolist()}))
        raise WrongTypeError(
            f"{name} must be real numbers; found an array of type {array.dtype} that holds {kinds or 'nothing'}. "
            "Convert it first; use NaN for what was not measured"
        )
    return array


def scores_with_labels(scores: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Check and convert P(faithful), (N,) float64 in [0, 1], and labels, (N,) int64, 1 for faithful; or InputError."""
    values, labels = real_numbers(scores, "scores").astype(np.float64), real_numbers(y, "labels")
    if values.ndim != 1 or values.shape != labels.shape:
        raise InputError(f"scores and labels must both be (N,), but they are {values.shape} and {labels.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError("a score is outside [0, 1] or NaN; pass P(faithful) of sentences that have a score")
    if not np.isin(labels, (0, 1)).all():
        raise InputError(f"labels must be 1 (faithful) or 0 (unfaithful); found {labels_found(labels)}")
    return values, labels.astype(np.int64)


def stripped_key(key: object, name: str) -> str:
    """Strip an API key of the white space around it, such as the line break that ends a file.

    Anything but a string raises WrongTypeError, and what no header can carry InputError; neither contains the key.
    """
    if not isinstance(key, str):
        raise WrongTypeError(f"{name} must be a string; found {type(key).__name__}")
    stripped = key.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise InputError(f"{name} must be one line of printable ASCII")
    return stripped


def check_choice(value: object, name: str, choices: Any) -> None:  # noqa: ANN401 - a Literal is no type to mypy
    """Refuse, with an InputError, anything but one of the values of a ``Literal``."""
    if value not in get_args(choices):
        raise InputError(f"{name} must be one of {', '.join(map(repr, get_args(choices)))}; found {value!r}")


def check_share(value: object, name: str) -> None:
    """Refuse anything but a number (WrongTypeError) in [0, 1] (InputError)."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number in [0, 1]; found {value!r}")
    try:
        share = float(value)
    except OverflowError:  # of a whole number
        share = math.inf
    if not 0.0 <= share <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; found {share}")


def check_count(value: object, name: str, *, least: int = 1) -> None:
    """Refuse anything but a whole number (WrongTypeError) of at least ``least`` (InputError)."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
    if value < least:
        raise InputError(f"{name} must be at least {least}; found {value}")


class PassageNames(NamedTuple):
    """Names that an answer may cite a passage by; None for those that it lacks."""

    id: str | None = None
    title: str | None = None
    url: str | None = None


class Passage(str):
    """A passage with the names that an answer may cite it by, in ``names``; accepted wherever its text is.

    The text is checked as part of what the title names ("Pro plan"), up to 20 words, if that is not its first line.
    """

    __slots__ = ("names",)
    names: PassageNames

    def __new__(cls, text: str, *, id: str | None = None, title: str | None = None, url: str | None = None) -> Passage:
        """Make a passage."""
        made = super().__new__(cls, text)
        made.names = PassageNames(id, title, url)
        return made


GivenPassages = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""A passage or several: strings, or mappings with ``text`` and perhaps ``id``, ``title`` and ``url``."""


def names_of(passage: str) -> PassageNames:
    """Look up the names of a passage, of which a plain string has none."""
    return passage.names if isinstance(passage, Passage) else PassageNames()


def cited_names(passages: Sequence[str]) -> frozenset[str]:
    """Collect all names of passages."""
    return frozenset(name for passage in passages for name in names_of(passage) if name)


def given_passages(given: object, name: str) -> tuple[str, ...]:
    """Take a passage or a list of passages, see :data:`GivenPassages`, as a tuple of texts, with their names.

    Anything else raises WrongTypeError, and a lone surrogate InputError; ``name`` is that of the argument.
    """
    entries = [given] if isinstance(given, str | Mapping) else given
    check_sequence(entries, name, of="strings, or one string")
    return tuple(_passage(entry, f"{name}[{n}]") for n, entry in enumerate(entries))  # type: ignore[arg-type,var-annotated]


def _passage(entry: object, name: str) -> str:
    if not isinstance(entry, Mapping):
        check_text(entry, name)
        return entry  # type: ignore[return-value]
    if "text" not in entry:
        raise WrongTypeError(f"{name} must be a string, or a mapping with its 'text'; found one with {sorted(entry)}")
    names = {key: entry[key] for key in ("id", "title", "url") if entry.get(key) is not None}
    for key, value in {"text": entry["text"], **names}.items():
        check_text(value, f"{name}[{key!r}]")
    return Passage(entry["text"], **names)


def passage_records(passages: Sequence[str]) -> list[str | dict[str, str]]:
    """Write passages as :func:`given_passages` takes them: texts, or mappings with the names that a passage has."""
    return [
        {"text": str(passage), **{key: name for key, name in names._asdict().items() if name is not None}}
        if any(names := names_of(passage))
        else passage
        for passage in passages
    ]
