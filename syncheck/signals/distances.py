"""Squared distances from activations to reference activations, as exact as float32 allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["ReferenceStack"]

_NEAR = 1e-2
_PAIR_BYTES = 2**25


class ReferenceStack:
    """References of layers that have as many, of the same width.

    Parameters
    ----------
    references
        Layer -> (T, H) float32 array.
    device
        Where they are kept.

    Attributes
    ----------
    layers : tuple of int
    activations : Tensor of shape (L, T, H), float32
    """

    def __init__(self, references: Mapping[int, NDArray[np.float32]], device: torch.device) -> None:
        self.layers = tuple(references)
        self.activations = torch.from_numpy(np.stack(list(references.values()))).to(device)
        means, lengths, squares = zip(*map(_moments, self.activations), strict=True)
        self._means = torch.stack(means)[:, None]  # (L, 1, H)
        self._lengths = torch.stack(lengths)[:, None]  # (L, 1, T)
        self._centred_squares = torch.stack(squares)[:, None]  # (L, 1, T)

    def squared_distances(self, layers: Sequence[int], queries: Tensor) -> Tensor:
        """Measure N queries against all T references at each layer.

        Parameters
        ----------
        layers
            All layers of the stack, in its order, or one of them.
        queries
            (L, N, H) float32, on the stack's device.

        Returns
        -------
        Tensor of shape (L, N, T), float32
            Relative error at most 2e-5, and 1e-6 as a rule, whatever offset all activations have in common. It is
            exactly 0 for a query that equals a reference.

        Notes
        -----
        On a CPU one matrix product serves all layers, and the few pairs where it cancels are measured again by
        differences. Elsewhere, and where products of float32 matrices may be rounded
        (``torch.set_float32_matmul_precision``), all pairs are measured by differences: to find the few would make the
        host wait for the device, and the memory read, which is what takes time there, is the same.
        """
        which = slice(None)
        if len(layers) < len(self.layers):
            first = self.layers.index(layers[0])
            which = slice(first, first + 1)
        with torch.autocast(queries.device.type, enabled=False):
            if queries.device.type == "cpu" and torch.get_float32_matmul_precision() == "highest":
                return self._by_products(which, queries)
            references = self.activations[which]
            return torch.cdist(queries, references, compute_mode="donot_use_mm_for_euclid_dist").square()

    def _by_products(self, which: slice, queries: Tensor) -> Tensor:
        # |q - x|^2 = |q - m|^2 + |x - m|^2 + 2 (q - m) m - 2 (q - m) x, with m the mean of the references: what all
        # activations have in common is taken off the query alone, so that the bank need not be kept twice.
        references, means = self.activations[which], self._means[which]
        centred = queries - means
        squares = centred.square().sum(-1, keepdim=True)  # (L, N, 1)
        offsets = squares + 2 * (centred * means).sum(-1, keepdim=True)
        # One and the same product; BLAS wants the many rows first unless the others are very few.
        products = centred @ references.mT if centred.shape[1] < 3 else (references @ centred.mT).mT
        distances = torch.sub(offsets + self._centred_squares[which], products, alpha=2)  # (L, N, T)
        near = (distances < _NEAR * squares.sqrt() * self._lengths[which]).nonzero()
        at_once = max(1, _PAIR_BYTES // (4 * max(1, queries.shape[2])))
        for start in range(0, len(near), at_once):
            layer, query, reference = near[start : start + at_once].unbind(1)
            difference = queries[layer, query] - references[layer, reference]
            distances[layer, query, reference] = difference.square().sum(-1)
        return distances


def _moments(references: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean m (H,); (T,) each of |x| + |m| and |x - m|^2."""
    mean = references.mean(0)
    return mean, references.norm(dim=-1) + mean.norm(), (references - mean).square().sum(-1)
