"""The ledger: where each rule was right, and so beside which verdicts of an aligner that reads it may speak.

``benchmarks/contrast_ledger.py --write`` counts its lines on one half of the labelled claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from syncheck.contrasts.words import asset_lines

BANDS = (-1.0, 1.0)
"""Log-odds of support at which one band of the reader's verdicts ends and the next begins."""
SURE = 0.9
"""Share of true hits, over the ledger and in the highest band, from which a rule speaks whatever others think."""
RIGHT = 0.8
"""Share of true hits in a band from which a rule speaks there."""
LIKELY = 0.6
"""The same over all bands, where no aligner reads."""


class Hits(NamedTuple):
    """True and false hits of a rule."""

    true: int
    false: int

    @property
    def share(self) -> float:
        """Share of true hits, after adding one true and one false hit."""
        return (self.true + 1) / (self.true + self.false + 2)


@lru_cache(maxsize=1)
def packaged_ledger() -> Mapping[str, tuple[Hits, ...]]:
    """Read the hits of each rule by band, from the lowest."""
    return {
        rule: tuple(Hits(*map(int, band.split("/"))) for band in line.split())
        for rule, line in asset_lines("ledger.txt")
    }


def band_of(log_odds: float) -> int:
    """Find the number of the band of a reader's log-odds, from the lowest."""
    return sum(log_odds > edge for edge in BANDS)


@lru_cache(maxsize=256)
def speaks(rule: str, band: int | None) -> bool:
    """Tell whether a rule was right beside the verdicts of a band; None is for aligners that do not read."""
    hits = packaged_ledger()[rule]
    everywhere = Hits(sum(one.true for one in hits), sum(one.false for one in hits))
    if min(everywhere.share, hits[-1].share) >= SURE:
        return True
    return everywhere.share >= LIKELY if band is None else hits[band].share >= RIGHT
