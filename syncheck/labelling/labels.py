"""Labels of sentences, 1 faithful and 0 unfaithful, from annotations of a response."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from syncheck.base.errors import InputError, RecordError
from syncheck.base.printable import shortened
from syncheck.base.records import SHOWN
from syncheck.labelling.responses import LabelledResponse, LabelledSentence, UnfaithfulSpan
from syncheck.text.sentences import Punkt, is_checkable
from syncheck.text.words import has_letter

Rule = Literal["overlap", "paper"]
"""``overlap``: a sentence is unfaithful if it shares a character with a span. ``paper``: only if one of the two
contains the other (the published benchmark)."""


def label_sentences(
    bounds: Sequence[tuple[int, int]],
    spans: Sequence[UnfaithfulSpan],
    *,
    rule: Rule = "overlap",
    implicit_true: bool = True,
) -> NDArray[np.int64]:
    """Label sentences, (N,) int64, by the spans that annotators marked: 1 faithful, 0 unfaithful.

    ``bounds`` are the characters of each sentence, half-open, without the white space around it; :data:`Rule` describes
    the rules. ``implicit_true`` counts spans that are true of the world although the context does not say so.
    """
    counted = [span for span in spans if implicit_true or not span.implicit_true]

    def is_marked(start: int, end: int, span: UnfaithfulSpan) -> bool:
        if rule == "overlap":
            return span.start < end and start < span.end
        return (start <= span.start and span.end <= end) or (span.start <= start and end <= span.end)

    return np.array([not any(is_marked(*one, span) for span in counted) for one in bounds], dtype=np.int64)


def labelled_sentences(
    response: str,
    spans: Sequence[UnfaithfulSpan],
    *,
    implicit_true: bool = True,
    with_letter: bool = True,
) -> tuple[LabelledSentence, ...]:
    """Cut a response with NLTK's untrained Punkt, as the paper does, and label each sentence.

    ``with_letter`` leaves out sentences without a letter, such as the number of a list item or a row of dashes;
    ``implicit_true`` is as in :func:`label_sentences`. The defaults give the strict benchmark set.
    """
    bounds = [
        (start, end) for start, end in Punkt().spans(response) if not with_letter or has_letter(response[start:end])
    ]
    labels = label_sentences(bounds, spans, implicit_true=implicit_true)
    return tuple(LabelledSentence(s, e, bool(label)) for (s, e), label in zip(bounds, labels, strict=True))


REMEDY = (
    "measure the responses again, which takes labelled sentences as they are, or accept that labels are carried over "
    "(carry_labels=True, --carry-labels): what overlaps an unfaithful sentence is then unfaithful"
)

Bounds = Sequence[tuple[int, int]]
"""Start and end of sentences in a response, in order."""


def own_sentences(record: LabelledResponse, bounds: Bounds) -> list[str] | None:
    """Cut a response into its labelled sentences if a monitor cuts it otherwise.

    ``bounds`` are those of the monitor's sentences. Joined, the returned sentences are the response: each has the white
    space around it, and what is between two sentences and makes no claim, such as a bullet, is one of its own. None if
    the monitor's sentences are those that are labelled, if the labels are spans, or with ``carry_labels``.

    Sentences that overlap, do not lie in the response or leave out letters or digits of it raise RecordError if the
    record was read from a file, else InputError.
    """
    if record.sentences is None or record.carry_labels:
        return None
    _check_places(record)
    if _cut_otherwise(record, bounds) is None:
        return None
    text = record.response
    places = sorted({0, len(text), *(place for s in record.sentences for place in (s.start, s.end))})
    sentences: list[str] = []
    for start, end in pairwise(places):
        if sentences and (text[start:end].isspace() or sentences[-1].isspace()):
            sentences[-1] += text[start:end]
        else:
            sentences.append(text[start:end])
    return sentences


def _check_places(record: LabelledResponse) -> None:
    """Refuse labelled sentences that overlap, do not lie in the response, or leave out a part of it."""
    before = 0
    for sentence in record.sentences or ():
        if not before <= sentence.start < sentence.end <= len(record.response):
            raise _error(
                record,
                f"expected labelled sentences one after the other in a response of {len(record.response)} characters, "
                f"found one at {sentence.start} to {sentence.end} after one that ends at {before}; give each sentence "
                "its own part of the response",
            )
        before = sentence.end
    starts = [0, *(sentence.end for sentence in record.sentences or ())]
    stops = [*(sentence.start for sentence in record.sentences or ()), len(record.response)]
    for start, stop in zip(starts, stops, strict=True):
        if is_checkable(record.response[start:stop]):
            raise _error(
                record,
                f"expected labels of all sentences, found none for characters {start} to {stop}; label the text there "
                "too, with null if it does not count, or mark unfaithful spans instead",
            )


def check_cut(record: LabelledResponse, bounds: Bounds) -> None:
    """Check that each labelled sentence of a response was measured as one sentence of its own.

    ``bounds`` are those of the measured sentences; sentences without a letter or digit do not count. A record with
    spans or with ``carry_labels`` may be cut in any way. Otherwise a difference raises RecordError if the record was
    read from a file, else InputError.
    """
    difference = None if record.carry_labels else _cut_otherwise(record, bounds)
    if difference is not None:
        raise _error(record, f"expected each labelled sentence to be measured as one, but {difference}; {REMEDY}")


def _error(record: LabelledResponse, fault: str) -> InputError:
    message = f"record {record.id!r}: {fault}"
    if record.source is None or record.line is None:
        return InputError(message)
    return RecordError(message, source=record.source, line=record.line, field="sentences")


def carried_line(measured: Iterable[tuple[LabelledResponse, Bounds]]) -> str | None:
    """Describe how many labels were carried over to other sentences; None if each labelled one was measured as one.

    ``measured`` has each response with the bounds of its measured sentences.
    """
    names, given, became = [], 0, 0
    for record, bounds in measured:
        if _cut_otherwise(record, bounds) is not None:
            names.append(record.id)
            given += len(_labelled(record))
            became += len(_checkable(record, bounds))
    if not names:
        return None
    return f"labels carried over: in {len(names)} responses, {names[0]} first, {given} sentences became {became}"


def _cut_otherwise(record: LabelledResponse, bounds: Bounds) -> str | None:
    """Describe the first difference between the labelled and the measured sentences; None if they are the same."""
    if record.sentences is None:
        return None
    given, measured = _labelled(record), _checkable(record, bounds)
    for one in measured:
        shared = _overlapping(one, given)
        if len(shared) > 1:
            return f"{len(shared)}, {_shown(record, shared[0])} first, would be one: {_shown(record, one)}"
    for one in given:
        parts = _overlapping(one, measured)
        if len(parts) > 1:
            return f"{_shown(record, one)} would be {len(parts)}, {_shown(record, parts[0])} first"
    return None


def _labelled(record: LabelledResponse) -> Bounds:
    return _checkable(record, [(sentence.start, sentence.end) for sentence in record.sentences or ()])


def _checkable(record: LabelledResponse, bounds: Bounds) -> Bounds:
    return [(start, end) for start, end in bounds if is_checkable(record.response[start:end])]


def _overlapping(one: tuple[int, int], others: Bounds) -> Bounds:
    return [(start, end) for start, end in others if one[0] < end and start < one[1]]


def _shown(record: LabelledResponse, one: tuple[int, int]) -> str:
    return repr(shortened(record.response[slice(*one)], SHOWN))
