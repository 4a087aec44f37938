"""Continuations in a batch: each has a row of the cache, and shorter ones are padded on the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from syncheck.signals.cache import RewindableCache

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

__all__ = ["PaddedRows"]


class PaddedRows:
    """Where the tokens of B continuations stand in a cache of B rows.

    Parameters
    ----------
    cache
        The cache, still empty.
    lengths
        Tokens of each row's prompt.
    """

    def __init__(self, cache: Cache, lengths: Sequence[int]) -> None:
        self.cache = cache
        self.width = 0
        width = max(lengths)
        self._starts = [width - length for length in lengths]  # columns of padding before each row
        self._order = list(range(len(lengths)))  # row in each place of the cache
        self._fed = len(lengths)  # places that go on

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._starts)

    @property
    def fed(self) -> list[int]:
        """The rows that go on, in the order of their places."""
        return self._order[: self._fed]

    @property
    def lengths(self) -> list[int]:
        """Tokens of each row that goes on."""
        return [self.width - self._starts[row] for row in self.fed]

    def place(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) behind the rows that are fed.

        Returns
        -------
        token_ids : Tensor of shape (B, n)
        mask : Tensor of shape (B, columns with the new ones) or None
            None where nothing is padded.
        positions : Tensor of shape (1 or B, n)
        """
        before, self.width = self.width, self.width + token_ids.shape[1]
        columns = torch.arange(self.width, device=token_ids.device)
        mask, positions = None, columns[None, before:]
        starts = [self._starts[row] for row in self.fed]
        if any(starts):
            pads = torch.tensor(starts, device=token_ids.device)[:, None]  # (B, 1)
            mask = (columns >= pads).long()
            positions = (positions - pads).clamp_min(0)
        return token_ids, mask, positions

    def rewind(self, tokens: int) -> None:
        """Take the last tokens of every row back; all of them go on."""
        if isinstance(self.cache, RewindableCache):
            self.cache.rewind(tokens)
        self.width -= tokens

    def narrow(self, rows: Sequence[int]) -> None:
        """Go on with these rows only; nothing is copied but those that change places.

        Where the state cannot be rewound all go on.
        """
        if not isinstance(self.cache, RewindableCache) or set(rows) == set(self.fed):
            return
        going_on = set(rows)
        left = [place for place in range(len(rows)) if self._order[place] not in going_on]
        come = [place for place in range(len(rows), self._fed) if self._order[place] in going_on]
        swaps = list(zip(left, come, strict=True))
        for one, other in swaps:
            self._order[one], self._order[other] = self._order[other], self._order[one]
        self._fed = len(rows)
        self.cache.narrow(self._fed, swaps)

    def select(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        """Continue with copies of some rows, each without its last columns."""
        starts = [self._starts[row] for row in rows]
        lengths = [self.width - start - drop for start, drop in zip(starts, dropped, strict=True)]
        if isinstance(self.cache, RewindableCache):
            self.cache.gather([self._order.index(row) for row in rows], starts, lengths)
            self.width = max(lengths)
        else:
            self.cache.reorder_cache(torch.tensor(list(rows)))
        self._starts = [self.width - length for length in lengths]
        self._order = list(range(len(lengths)))
        self._fed = len(lengths)
