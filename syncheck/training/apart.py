"""What tells two measurements apart, for the messages that refuse one."""

from __future__ import annotations

from dataclasses import fields

from syncheck.base.printable import shortened
from syncheck.results.types import FeatureSchema
from syncheck.text.sentences.config import SegmenterConfig

_MOST_SHOWN = 60


def segmenters_apart(expected: SegmenterConfig, found: SegmenterConfig) -> tuple[str, str] | None:
    """List the fields in which two segmentations differ, with the values of each; None if there are none."""
    values = [(f.name, getattr(expected, f.name), getattr(found, f.name)) for f in fields(SegmenterConfig)]
    if not (differing := [row for row in values if row[1] != row[2]]):
        return None
    first, second = (
        " and ".join(f"{row[0]}={shortened(repr(row[column]), _MOST_SHOWN)}" for row in differing) for column in (1, 2)
    )
    return first, second


def schemas_apart(expected: FeatureSchema, found: FeatureSchema) -> tuple[str, str] | None:
    """Name the versions of two schemas or, within one version, the features that only one has; None if equal."""
    if expected == found:
        return None
    if expected.version != found.version:
        return repr(expected.version), repr(found.version)
    first, second = (
        f"{one.version!r} with {', '.join(n for n in one.names if n not in other.names) or 'no more'}"
        for one, other in ((expected, found), (found, expected))
    )
    return first, second
