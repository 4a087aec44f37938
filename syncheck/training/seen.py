"""What a monitor was trained on, told by content: whatever file, line or name a record comes under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from syncheck.errors import InputError
from syncheck.labelling.responses import LabelledResponse
from syncheck.monitor import Monitor

__all__ = ["grouped_by_question", "question_digests", "refuse_seen", "seen_records"]

DIGITS = 16
"""Hexadecimal ones: of a million questions, two are alike with a probability of 3e-8."""


def question_digests(records: Iterable[LabelledResponse]) -> set[str]:
    """Return what tells the questions of these records from others, as a monitor's ``trained_on`` has it.

    Two for each question: a digest of it with its passages, and one of it with its group. Another answer has the same,
    a record of the same id has not; white space makes no difference.
    """
    return {digest for record in records for digest in _digests(record)}


def grouped_by_question(records: Sequence[LabelledResponse]) -> tuple[LabelledResponse, ...]:
    """Return the records with one group for all that ask the same over the same passages, whatever theirs were.

    Records of one group stay together, and so do the groups that share a question: files that name their groups each in
    its own way can then be divided as one. A group has the name that its first record had.
    """
    above: dict[str, str] = {}
    asked: dict[str, str] = {}

    def first(group: str) -> str:
        while above.setdefault(group, group) != group:
            group = above[group]
        return group

    for record in records:
        group = asked.setdefault(_digests(record)[0], record.group)
        above[first(record.group)] = first(group)
    return tuple(replace(record, group=first(record.group)) for record in records)


def seen_records(monitor: Monitor, records: Sequence[LabelledResponse]) -> list[LabelledResponse]:
    """Return those of the records whose question a monitor was trained, or calibrated, on.

    A question is known if it was asked over the same passages, or within the same group. Monitors of before kept the
    ids of their records, and of these a record is known by its id.
    """
    known = monitor.trained_on
    return [record for record in records if record.id in known or not known.isdisjoint(_digests(record))]


def refuse_seen(
    monitor: Monitor,
    records: Sequence[LabelledResponse],
    *,
    reason: str = "and a calibration needs held-out ones; pass other data",
) -> None:
    """Refuse records that are not held out; see :func:`seen_records`. ``reason`` ends the message.

    Raises
    ------
    InputError
        If the monitor was trained, or calibrated, on the question of one of them.
    """
    seen = seen_records(monitor, records)
    if seen:
        names = ", ".join(record.id for record in seen[:3])
        raise InputError(
            f"the monitor was trained or calibrated on the questions of {len(seen)} of these {len(records)} records "
            f"({names}{', ...' if len(seen) > 3 else ''}), {reason}"
        )


def _digests(record: LabelledResponse) -> tuple[str, str]:
    return _digest("passages", record.question, *record.passages), _digest("group", record.question, record.group)


def _digest(kind: str, *texts: str) -> str:
    plain = json.dumps([kind, *(" ".join(text.split()) for text in texts)])
    return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()[:DIGITS]}"
