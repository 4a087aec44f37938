"""A support checker of its own, for judging decoders: trained by ``train_judge.py`` on data that nothing else saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from syncheck.alignment import BundledAligner

__all__ = ["Judge"]


@dataclass(frozen=True, slots=True)
class Judge:
    """Says how likely passages support claims; shares the bundled aligner's code, none of its weights or data."""

    aligner: BundledAligner

    @classmethod
    def load(cls, path: Path | str) -> Judge:
        """Load what ``train_judge.py`` wrote."""
        return cls(BundledAligner.load(Path(path)))

    def supported(self, passages: Sequence[str], claims: Sequence[str]) -> list[float]:
        """Return P(supported) of each claim, in [0, 1]; an empty list for no claims."""
        return [support.score for support in self.aligner.align(passages, claims)]
