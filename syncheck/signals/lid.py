"""Local intrinsic dimension of an activation among reference activations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast, get_args
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor

from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import require_regular
from syncheck.base.printable import counted, summary

_NEAR = 1e-2
_PAIR_BYTES = 2**25


class ReferenceStack:
    """References of L layers with equal numbers and widths: ``activations`` is (L, T, H) float32."""

    def __init__(self, references: Mapping[int, NDArray[np.float32]], device: torch.device) -> None:
        self.layers = tuple(references)
        self.activations = torch.from_numpy(np.stack(list(references.values()))).to(device)
        means, lengths, squares = zip(*map(_moments, self.activations), strict=True)
        self._means = torch.stack(means)[:, None]  # (L, 1, H)
        self._lengths = torch.stack(lengths)[:, None]  # (L, 1, T)
        self._centred_squares = torch.stack(squares)[:, None]  # (L, 1, T)

    def squared_distances(self, layers: Sequence[int], queries: Tensor) -> Tensor:
        """Compute the squared distances (L, N, T) of N queries (L, N, H), float32 on the stack's device.

        ``layers`` are all layers of the stack, in its order, or one of them. The distance is exactly 0 for a query that
        equals a reference; otherwise its relative error is at most 2e-5, and usually 1e-6. On a CPU, one matrix product
        serves all layers, and the few pairs that suffer from cancellation are measured again by differences. On other
        devices, where finding them would make the host wait, and where products of float32 matrices may be rounded
        (``torch.set_float32_matmul_precision``), all are measured so.
        """
        first = self.layers.index(layers[0])
        which = slice(first, first + len(layers))
        with torch.autocast(queries.device.type, enabled=False):
            if queries.device.type == "cpu" and torch.get_float32_matmul_precision() == "highest":
                return self._by_products(which, queries)
            references = self.activations[which]
            return torch.cdist(queries, references, compute_mode="donot_use_mm_for_euclid_dist").square()

    def _by_products(self, which: slice, queries: Tensor) -> Tensor:
        # |q - x|^2 = |q - m|^2 + |x - m|^2 + 2 (q - m) m - 2 (q - m) x, with m the mean of the references: what all
        # activations have in common is subtracted from the query alone, so that the references need not be kept twice.
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
    """Compute the mean m (H,) of the references x, and |x| + |m| and |x - m|^2, (T,) each."""
    mean = references.mean(0)
    return mean, references.norm(dim=-1) + mean.norm(), (references - mean).square().sum(-1)


LidVariant = Literal["mle", "official"]

_FLOOR = 1e-8
_ROUNDING = 1e-5
_QUERIES_AT_ONCE = 256
_LAYERS_SHOWN = 6
_LAYER = re.compile("0|[1-9][0-9]{0,5}")


class LidReferences:
    """Activations of faithful sentences, by layer, among which LID is measured.

    Parameters
    ----------
    references
        For each layer, a decoder block counted from 0, a float array (T, H), kept as a tensor in float32. An array that
        is not two-dimensional and finite in float32 raises InputError.
    variant
        ``"mle"`` is the estimate of Levina and Bickel over all T references; ``"official"`` that of the paper's code,
        with which its published aggregators were trained. Any other raises InputError.
    device
        Where the references are kept. On the model's device, no activations are transferred in the loop.

    Notes
    -----
    With distances d_1 <= ... <= d_T from a query to the references (paper, appendix A.1; Levina and Bickel, 2004),
    ``mle`` is ``LID = (T - 1) / sum_{j<=T} ln(d_T / d_j)``; the formula as printed misplaces the inverse. ``official``
    leaves out the farthest reference: ``LID = k / sum_{j<=k} ln(d_k / d_j)`` with k = T - 1. A zero distance is floored
    at 1e-8 of the largest. LID is NaN where it is undefined: with fewer than two references (three for ``official``),
    if all distances are 0 or equal up to rounding (an LID above 1e5), or if an activation is not finite or its square
    exceeds float32.
    """

    def __init__(
        self,
        references: Mapping[int, NDArray[np.floating]],
        *,
        variant: LidVariant = "mle",
        device: str | torch.device = "cpu",
    ) -> None:
        check_choice(variant, "variant", LidVariant)
        self.variant: LidVariant = variant
        self._device = torch.empty(0, device=device).device  # cuda:0 of cuda
        arrays = {layer: _checked(layer, references[layer]) for layer in sorted(references)}
        self._stacks = [
            ReferenceStack({k: array for k, array in arrays.items() if array.shape == shape}, self._device)
            for shape in dict.fromkeys(array.shape for array in arrays.values())
        ]
        self.references = {k: stack.activations[i] for stack in self._stacks for i, k in enumerate(stack.layers)}

    def __repr__(self) -> str:
        layers = ", ".join(map(str, self.layers[:_LAYERS_SHOWN])) + (", …" if len(self.layers) > _LAYERS_SHOWN else "")
        most = max(map(len, self.references.values()), default=0)
        return summary(self, f"{self.variant}, layers {layers}, up to {counted(most, 'reference')}")

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers with references, in ascending order."""
        return tuple(sorted(self.references))

    def to(self, device: str | torch.device) -> LidReferences:
        """Copy these references to a device; the same object if they are there already."""
        if torch.empty(0, device=device).device == self._device:
            return self
        arrays = {layer: x.cpu().numpy() for layer, x in self.references.items()}
        return LidReferences(arrays, variant=self.variant, device=device)

    @torch.no_grad()
    def lid_of_states(self, states: Mapping[int, Tensor]) -> Tensor:
        """Compute the LID of N sentences at L layers, in their order: (N, L) float32, on the references' device.

        ``states`` has the activations (N, H) of each layer, of any floating dtype, on any device; on the references',
        nothing is synchronised. LID is NaN where it is undefined or the layer has no references. Empty ``states``, or
        shapes that do not agree, raise InputError.
        """
        count = _count(states)
        columns = {layer: torch.full((count,), torch.nan, device=self._device) for layer in states}
        for stack in self._stacks:
            wanted = [layer for layer in stack.layers if layer in states]
            # The stack as it is or one of its layers: several of them would have to be copied.
            for layers in [wanted] if len(wanted) == len(stack.layers) else [[layer] for layer in wanted]:
                queries = torch.stack([self._query(layer, states[layer]) for layer in layers])  # (L, N, H)
                squares = stack.squared_distances(layers, queries)  # (L, N, T)
                columns.update(zip(layers, _estimates(squares, None, self.variant), strict=True))
        return torch.stack(list(columns.values()), dim=1)

    @torch.no_grad()
    def lid_of(
        self, layer: int, queries: NDArray[np.float32], *, excluded: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Compute the LID of N activations (N, H) at one layer: (N,) float64, NaN where it is undefined.

        ``excluded``, (N, T) bool, leaves references out for a query, for example itself; None excludes none. A layer
        without references, or shapes that do not agree, raise InputError.
        """
        if layer not in self.references:
            raise InputError(f"layer must be one of {self.layers}, which have references; found {layer}")
        (stack,) = (stack for stack in self._stacks if layer in stack.layers)
        parts = [torch.empty(0, device=self._device)]
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            rows = slice(start, start + _QUERIES_AT_ONCE)
            states = self._query(layer, torch.from_numpy(np.ascontiguousarray(queries[rows])))
            squares = stack.squared_distances([layer], states[None])[0]  # (N, T)
            left_out = None if excluded is None else torch.from_numpy(excluded[rows]).to(self._device)
            parts.append(_estimates(squares, left_out, self.variant))
        lid: NDArray[np.float64] = torch.cat(parts).cpu().double().numpy()
        return lid

    def save(self, path: Path) -> None:
        """Write the arrays ``layer_<k>`` and the variant as safetensors, in half precision if that loses nothing."""
        arrays = {f"layer_{k}": v.cpu().numpy() for k, v in self.references.items()}
        with np.errstate(over="ignore"):
            halves = {name: array.astype(np.float16) for name, array in arrays.items()}
        lossless = all((halves[name] == array).all() for name, array in arrays.items())
        # Not by safetensors' own save_file, which leaves the file readable to its owner alone, whatever the umask says.
        path.write_bytes(save(halves if lossless else arrays, metadata={"variant": self.variant}))

    @classmethod
    def load(cls, path: Path, *, device: str | torch.device = "cpu") -> LidReferences:
        """Read arrays ``layer_<k>`` of shape (T, H) from ``.safetensors`` or ``.npz``; the variant defaults to ``mle``.

        A file that is missing or damaged, or has other names or an unknown variant, raises CheckpointError.
        """
        metadata: dict[str, str] = {}
        require_regular(path)
        try:
            if path.suffix == ".npz":
                # Opened here, since numpy leaves a file open that turns out not to be an archive.
                with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                    arrays = dict(archive)
            else:
                with safe_open(path, framework="numpy") as archive:
                    metadata = archive.metadata() or {}
                    arrays = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
        except (OSError, EOFError, TypeError, ValueError, SafetensorError, BadZipFile) as error:
            raise CheckpointError(f"{path} is not a readable file of LID references: {error}") from error
        variant = metadata.get("variant", "mle")
        if variant not in get_args(LidVariant):
            raise CheckpointError(f"{path} has the variant {variant!r}; this version knows {get_args(LidVariant)}")
        references = {_layer_of(name, path): array for name, array in arrays.items()}
        return cls(references, variant=cast(LidVariant, variant), device=device)

    def _query(self, layer: int, states: Tensor) -> Tensor:
        # Upcast before anything is squared: squares overflow float16.
        width = self.references[layer].shape[1]
        if states.shape[-1] != width:
            raise InputError(
                f"layer {layer} has references of width {width}, but the model's activations have "
                f"{states.shape[-1]}; use the references of this model"
            )
        return states.to(self._device, torch.float32)


def _estimates(squares: Tensor, excluded: Tensor | None, variant: LidVariant) -> Tensor:
    """Estimate the LID (...) from squared distances (..., T), without the excluded ones."""
    if not squares.shape[-1]:
        return squares.new_full(squares.shape[:-1], torch.nan)
    count = squares.shape[-1] if excluded is None else (~excluded).sum(-1)
    if excluded is not None:
        squares = squares.masked_fill(excluded, 0)
    if variant == "official":
        farthest = squares.argmax(-1, keepdim=True)
        none = torch.zeros_like(squares, dtype=torch.bool)
        excluded = (none if excluded is None else excluded).scatter(-1, farthest, value=True)
        squares = squares.masked_fill(excluded, 0)
    shares = squares / squares.amax(-1, keepdim=True)
    logs = shares.clamp_min(_FLOOR**2).log()
    total = -0.5 * (logs if excluded is None else logs.masked_fill(excluded, 0)).sum(-1)
    return torch.where(total > _ROUNDING * count, (count - 1) / total, torch.nan)


def _count(states: Mapping[int, Tensor]) -> int:
    shapes = {layer: tuple(x.shape) for layer, x in states.items()}
    counts = {shape[0] for shape in shapes.values() if len(shape) == 2}
    if len(counts) != 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InputError(f"states must hold (N, H) activations of the same N sentences at each layer; found {shapes}")
    return counts.pop()


def _checked(layer: int, array: NDArray[np.floating]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        single = np.asarray(array, np.float32)
    if single.ndim != 2 or not np.isfinite(single).all():
        raise InputError(
            f"references of layer {layer} must be a finite (T, H) array in float32's range; found shape {single.shape}"
            + ("" if np.isfinite(single).all() else " with values that are not finite")
        )
    return single


def _layer_of(name: str, path: Path) -> int:
    prefix, _, number = name.rpartition("_")
    if prefix != "layer" or not _LAYER.fullmatch(number):
        raise CheckpointError(f"{path} holds an array {name!r}; expected names layer_<k> of shape (T, H)")
    return int(number)
