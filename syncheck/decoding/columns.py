"""What is held of the tokens whose sentences are not measured yet; one column is one token of every row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncheck.decoding.measuring import TokenRun

__all__ = ["Columns"]


class Columns:
    """Logits, ids and states of the tokens decoded since the last measured sentence, all on the model's device.

    Parameters
    ----------
    layers
        How many decoder blocks are tapped.
    next_logits
        (B, V) logits of the first column with the context; None when they are still to come.
    contrast
        (B, V) logits of the first column without the context; None when there is no second branch.

    Attributes
    ----------
    ids : list of Tensor of shape (B,)
    logits : list of Tensor of shape (B, V)
        ``logits[j]`` predicted ``ids[j]``; one more than have been fed.
    contrast : list of Tensor of shape (B, V)
        The same without the context; one more than that branch has read.
    """

    def __init__(self, layers: int, next_logits: Tensor | None, contrast: Tensor | None) -> None:
        self.ids: list[Tensor] = []
        self.logits = [] if next_logits is None else [next_logits]
        self.contrast = [] if contrast is None else [contrast]
        self._states: list[list[Tensor]] = [[] for _ in range(layers)]  # per layer (B, H) for each column that was fed
        self._fed = 0

    @property
    def fed(self) -> int:
        """Columns that the branch with the context has read."""
        return self._fed

    @property
    def contrasted(self) -> int:
        """Columns that the branch without the context has read."""
        return max(len(self.contrast) - 1, 0)

    def was_fed(self, logits: Tensor, states: Sequence[Tensor], *, rows: Sequence[int] | None = None) -> None:
        """Add what followed the next columns: (B, n, V) logits and (B, n, H) states by layer.

        ``rows`` are those that these belong to, None for all; the others get nothing that may be used.
        """
        if rows is not None:
            logits, *states = (_spread(values, rows, len(self.ids[0])) for values in (logits, *states))
        self.logits += logits.unbind(1)
        for kept, new in zip(self._states, states, strict=True):
            kept += new.unbind(1)
        self._fed += logits.shape[1]

    def was_contrasted(self, logits: Tensor) -> None:
        """Add (B, n, V) logits that followed the next columns without the context."""
        self.contrast += logits.unbind(1)

    def unread(self, stop: int) -> Tensor:
        """(B, n) ids of the columns before ``stop`` that the branch without the context has not read."""
        return torch.stack(self.ids[self.contrasted : stop], dim=1)

    def run(self, row: int, start: int, stop: int, *, first: int, with_contrast: bool) -> TokenRun:
        """Return columns ``start`` to ``stop`` of one row, at least one: its response's tokens from ``first`` on."""

        def stacked(columns: list[Tensor]) -> Tensor:
            return torch.stack([column[row] for column in columns[start:stop]])

        return TokenRun(
            ids=stacked(self.ids),
            logits=stacked(self.logits),
            contrast=stacked(self.contrast) if with_contrast else None,
            states=[stacked(layer) for layer in self._states],
            start=first,
        )

    def drop(self, count: int) -> None:
        """Forget the first columns."""
        del self.ids[:count], self.logits[:count], self.contrast[:count]
        for layer in self._states:
            del layer[:count]
        self._fed -= count


def _spread(values: Tensor, rows: Sequence[int], count: int) -> Tensor:
    """Put (b, n, W) values of some rows where they belong among ``count``; zeros elsewhere."""
    spread = values.new_zeros((count, *values.shape[1:]))
    spread[list(rows)] = values
    return spread
