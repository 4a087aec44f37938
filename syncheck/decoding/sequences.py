"""The ids of all rows as one padded matrix, as logits processors and stopping criteria want them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Sequences"]

_SPARE_COLUMNS = 64


class Sequences:
    """(B, n) ids that grow by a column without being copied; shorter rows are padded on the left.

    A row's padding repeats its own first token, so that a processor which counts tokens sees no new one.

    Parameters
    ----------
    rows
        The ids of each row; none is empty.
    device
        Where the matrix lies.
    """

    def __init__(self, rows: Sequence[Sequence[int]], device: torch.device) -> None:
        self._width = max(map(len, rows))
        self._pads = [self._width - len(row) for row in rows]
        filled = [[*[row[0]] * pad, *row] for row, pad in zip(rows, self._pads, strict=True)]
        self._buffer = self._widened(torch.tensor(filled, device=device))

    def append(self, token_ids: Tensor) -> None:
        """Add a column of (B,) ids."""
        if self._width == self._buffer.shape[1]:
            self._buffer = self._widened(self._buffer)
        self._buffer[:, self._width] = token_ids
        self._width += 1

    def padded(self) -> Tensor:
        """(B, n) ids of all rows; a view."""
        return self._buffer[:, : self._width]

    def mask(self) -> Tensor:
        """(B, n) int64: 0 where a row is padded."""
        return self._mask(self._width)

    def mask_and_positions(self, columns: int) -> tuple[Tensor | None, Tensor]:
        """Return what a forward over this many columns needs: the mask, None if nothing is padded, and positions."""
        mask = self._mask(columns)
        return mask if any(self._pads) else None, (mask.cumsum(-1) - 1).clamp_min(0)

    def _mask(self, columns: int) -> Tensor:
        pads = torch.tensor(self._pads, device=self._buffer.device)
        return (torch.arange(columns, device=pads.device) >= pads[:, None]).long()

    def of_row(self, row: int) -> Tensor:
        """(1, n) ids of one row without its padding; a view."""
        return self._buffer[row : row + 1, self._pads[row] : self._width]

    @staticmethod
    def _widened(ids: Tensor) -> Tensor:
        spare = ids.new_zeros(ids.shape[0], ids.shape[1] // 2 + _SPARE_COLUMNS)
        return torch.cat([ids, spare], dim=1)
