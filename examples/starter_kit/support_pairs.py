"""Pairs of a context and a claim with human labels: 1 where the context supports the claim, else 0."""

from __future__ import annotations

import json
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from syncheck.labelling import UnfaithfulSpan, label_sentences, load_ragtruth
from syncheck.spans import load_span_items
from syncheck.text.sentences import Punkt
from syncheck.text.words import has_letter

__all__ = ["Part", "SupportPair", "load_pairs", "mushroom_pairs", "part_of", "ragtruth_pairs"]

Part = Literal["train", "calibrate", "test"]

CALIBRATE_PERCENT = 8
TEST_PERCENT = 15


@dataclass(frozen=True, slots=True)
class SupportPair:
    """One labelled pair. ``label`` is 1 where the passages support the claim, else 0."""

    passages: tuple[str, ...]
    claim: str
    label: int
    source: str
    group: str


def part_of(context: str) -> Part:
    """Assign a context to a part by a checksum of its opening letters.

    Sources that share an article (some do) therefore agree on its part.
    """
    key = re.sub(r"\W", "", context.lower())[:80]
    bucket = zlib.crc32(key.encode()) % 100
    if bucket < TEST_PERCENT:
        return "test"
    return "calibrate" if bucket < TEST_PERCENT + CALIBRATE_PERCENT else "train"


def claims_of(response: str, spans: Sequence[UnfaithfulSpan]) -> Iterator[tuple[str, int]]:
    """Yield the sentences with a letter of a response, cut by NLTK's untrained Punkt, with 0 where a span overlaps."""
    bounds = [(start, end) for start, end in Punkt().spans(response) if has_letter(response[start:end])]
    for (start, end), label in zip(bounds, label_sentences(bounds, spans).tolist(), strict=True):
        yield response[start:end], label


def ragtruth_pairs(folder: Path) -> list[SupportPair]:
    """Return the sentences with a letter of RAGTruth's answers as claims, unsupported where a span overlaps."""
    return [
        SupportPair(r.passages, claim, label, "ragtruth", r.group)
        for r in load_ragtruth(folder)
        for claim, label in claims_of(r.response, r.spans or ())
    ]


def mushroom_pairs(file: Path) -> list[SupportPair]:
    """Return the sentences with a letter of Mu-SHROOM's answers with passages, unsupported where a hard label is."""
    return [
        SupportPair(item.passages, claim, label, "mushroom", item.source)
        for item in load_span_items(file)
        if item.passages and item.labels is not None
        for claim, label in claims_of(item.response, [UnfaithfulSpan(*span) for span in item.labels.hard])
    ]


def load_pairs(folder: Path, source: str) -> list[SupportPair]:
    """Read ``<source>.jsonl.xz``, lines with ``group``, ``context``, ``claim`` and ``label``."""
    with lzma.open(folder / f"{source}.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [SupportPair((r["context"],), r["claim"], int(r["label"]), source, r["group"]) for r in records]
