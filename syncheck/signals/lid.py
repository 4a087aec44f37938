"""Local intrinsic dimension of an activation among activations of faithful sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor

from syncheck.errors import CheckpointError, InputError

__all__ = ["ReferenceBank"]

_NEAR = 1e-3
_FLOOR = 1e-8


class ReferenceBank:
    """Activations of faithful sentences, by layer.

    Parameters
    ----------
    references
        Layer -> (T, H) float array. Layers are decoder blocks counted from 0.
    device
        Where the bank is kept; the model's device keeps the transfer out of the loop.

    Notes
    -----
    LID-MLE over all T references with distances d_1 <= ... <= d_T (paper, appendix A.1; Levina and Bickel):
    ``LID = (T - 1) / sum_j ln(d_T / d_j)``. The printed formula has 1/(T-1) outside the inverse; this is the
    form its published code computes up to the choice of the farthest point. A zero distance is floored at
    1e-8 of d_T. Fewer than two references, d_T = 0 or a zero sum gives NaN.
    """

    def __init__(self, references: Mapping[int, NDArray[np.floating]], *, device: str = "cpu") -> None:
        for layer, array in references.items():
            if array.ndim != 2 or not np.isfinite(array).all():
                raise InputError(
                    f"references of layer {layer} must be a finite (T, H) array; found shape {array.shape}"
                )
        self.references = {k: torch.tensor(np.asarray(v, np.float32), device=device) for k, v in references.items()}
        self._squares = {k: v.square().sum(-1) for k, v in self.references.items()}

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers with references, ascending."""
        return tuple(sorted(self.references))

    def lid(self, activations: Mapping[int, NDArray[np.float32]]) -> dict[int, float]:
        """LID of one sentence at each layer that has both an activation and references."""
        return {
            layer: float(self.lid_of(layer, activations[layer][None])[0])
            for layer in self.layers
            if layer in activations
        }

    def lid_of(
        self, layer: int, queries: NDArray[np.float32], *, excluded: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the LID of N activations at one layer.

        Parameters
        ----------
        layer
            A layer of the bank.
        queries
            (N, H) float32.
        excluded
            (N, T) bool: references that do not count for a query.

        Returns
        -------
        ndarray of shape (N,), float64
            LID >= 0; NaN where undefined.
        """
        bank = self.references[layer]
        states = torch.from_numpy(np.ascontiguousarray(queries)).to(bank.device, torch.float32)  # (N, H)
        if states.shape[-1] != bank.shape[-1]:
            raise InputError(
                f"layer {layer} has references of width {bank.shape[-1]}, but the model's activations have "
                f"{states.shape[-1]}; use the references of this model"
            )
        squares = self._squared_distances(layer, states)  # (N, T)
        counted = torch.ones_like(squares, dtype=torch.bool)
        if excluded is not None:
            counted &= ~torch.from_numpy(excluded).to(bank.device)
        count = counted.sum(1)  # (N,)
        if not squares.shape[1]:
            return np.full(len(states), np.nan)
        farthest = squares.where(counted, 0).amax(1, keepdim=True)  # (N, 1)
        ratios = farthest / squares.maximum(farthest * _FLOOR**2)
        total = 0.5 * ratios.log().where(counted, 0).sum(1)  # sum_j ln(d_T / d_j)
        defined = (count >= 2) & (farthest[:, 0] > 0) & (total > 0)
        lid: NDArray[np.float64] = torch.where(defined, (count - 1) / total, torch.nan).cpu().numpy()
        return lid

    def _squared_distances(self, layer: int, queries: Tensor) -> Tensor:
        """One matrix product for all, then exact differences for the few pairs where it cancels."""
        bank, bank_squares = self.references[layer], self._squares[layer]
        norms = queries.square().sum(-1, keepdim=True) + bank_squares  # (N, T)
        squares = norms - 2 * queries @ bank.T
        rows, columns = (squares < _NEAR * norms).nonzero(as_tuple=True)
        squares[rows, columns] = (queries[rows] - bank[columns]).square().sum(-1)
        return squares.double()

    def save(self, path: Path) -> None:
        """Write ``layer_<k>`` arrays as safetensors, in half precision where that loses nothing."""
        arrays = {f"layer_{k}": v.cpu().numpy() for k, v in self.references.items()}
        halves = {name: array.astype(np.float16) for name, array in arrays.items()}
        save_file(halves if all((halves[n] == a).all() for n, a in arrays.items()) else arrays, path)

    @classmethod
    def load(cls, path: Path, *, device: str = "cpu") -> ReferenceBank:
        """Read ``layer_<k>`` arrays of shape (T, H) from ``.safetensors`` or ``.npz``.

        Raises
        ------
        CheckpointError
            If the file is missing, damaged or holds other names.
        """
        try:
            if path.suffix == ".npz":
                # Opened here, since numpy leaves a file open that turns out to be no archive.
                with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                    arrays = dict(archive)
            else:
                arrays = load_file(path)
        except (OSError, EOFError, TypeError, ValueError, SafetensorError, BadZipFile) as error:
            raise CheckpointError(f"{path} is not a readable file of LID references: {error}") from error
        return cls({_layer_of(name, path): array for name, array in arrays.items()}, device=device)


def _layer_of(name: str, path: Path) -> int:
    prefix, _, number = name.rpartition("_")
    if prefix != "layer" or not number.isdigit():
        raise CheckpointError(f"{path} holds an array {name!r}; expected names layer_<k> of shape (T, H)")
    return int(number)
