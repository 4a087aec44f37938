"""The bundled aligner: small, fast on a CPU, and modest (see its model card).

A small BERT reads evidence and claim together. Token types tell it which tokens of one occur in the other, alone or
after the same neighbour. Matrix products are exact, of integers, and each pair attends only to itself, without padding:
its logit is the same, to the last bit, alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from syncheck.aligners.folder import damaged, read_folder
from syncheck.aligners.protocol import OfNetwork, batches, check_asked
from syncheck.aligners.reader.eight_bits import Int8Linear
from syncheck.aligners.reader.layers import ReaderLayer, layer_norm
from syncheck.base.errors import CheckpointError
from syncheck.base.files import read_object
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.text.words import novel_pairs

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from tokenizers import Tokenizer

FORMAT = "syncheck.cross-encoder.v1"
CALIBRATION = ("scale", "coverage", "novel_pairs", "shift")
INT8, STEP = ".int8", ".step"  # suffixes of the names of a matrix's integers and of its row scales

EVIDENCE, EVIDENCE_IN_CLAIM, CLAIM, CLAIM_IN_EVIDENCE, CLAIM_AFTER_SAME = range(5)
"""Token types; special tokens count as evidence that does not match."""
TOKEN_TYPES = 5
PAD, UNKNOWN, CLS, SEP = 0, 100, 101, 102  # of BERT's vocabulary

MAX_CHUNKS = 4
MAX_EVIDENCE_TOKENS = 144
MAX_CLAIM_TOKENS = 96
"""Largest sizes, in tokens, of the pairs that the network was trained on."""
OVERLAP_TOKENS = 16
BATCH_TOKENS, CPU_BATCH_TOKENS = 4096, 768  # scored at once; more would not fit a processor's cache


class BundledAligner(OfNetwork):
    """Scores a claim against the few sentences of the context that share the most words with it.

    P(supported) = sigmoid(scale * logit + coverage * c + novel_pairs * q + shift), where c is the share of the claim's
    content words in the whole context, since the network sees only the chosen chunks, and q is
    :func:`~syncheck.text.words.novel_pairs`. ``name`` is ``"bundled"``, or the folder it was loaded from.

    Up to four chunks of the context are chosen for each claim and packed into windows of 144 tokens; a longer chunk
    fills several. A claim of more than 96 tokens is cut into overlapping parts. The score of a part is the highest over
    the windows; that of the claim is the lowest over its parts, each of which needs support.
    """

    languages = frozenset({"en"})

    def __init__(
        self,
        model: Int8CrossEncoder,
        tokenizer: Tokenizer,
        *,
        scale: float = 1.0,
        coverage: float = 0.0,
        novel_pairs: float = 0.0,
        shift: float = 0.0,
        device: str | torch.device = "cpu",
        name: str = "bundled",
    ) -> None:
        self.name = name
        self._model, self._tokenizer, self._device = model, tokenizer, torch.device(device)
        self._scale, self._coverage, self._novel_pairs, self._shift = scale, coverage, novel_pairs, shift
        self._known: WeakKeyDictionary[EvidenceIndex, dict[int, list[int]]] = WeakKeyDictionary()  # ids of its chunks

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> BundledAligner:
        """Load a folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``; None takes the bundled one.

        An incomplete or damaged folder raises CheckpointError.
        """
        folder = files("syncheck") / "assets" / "aligner" if path is None else path
        packed = read_packed(folder)
        model = Int8CrossEncoder(packed.sizes, packed.arrays).to(device)
        name = "bundled" if path is None else str(path)
        return cls(model, packed.tokenizer, device=device, name=name, **packed.calibration)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0.

        The evidence is the chunk that shares most with the claim in the deciding window, with the claim's score.
        """
        check_asked(passages, claims)
        return self.align_indexed(EvidenceIndex(passages), claims)

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against indexed passages; see :meth:`align`."""
        if not index.chunks:
            return [Support(0.0, None) for _ in claims]
        offsets = [  # what shared wording adds to the scaled logit
            self._coverage * index.coverage(c) + self._novel_pairs * novel_pairs(c, index.lexicon) + self._shift
            for c in claims
        ]
        windows = [(number, *window) for number, claim in enumerate(claims) for window in self._windows(index, claim)]
        pairs = [pair for _, _, _, pair in windows]
        room = CPU_BATCH_TOKENS if self._device.type == "cpu" else BATCH_TOKENS
        cuts = batches([len(pair) for pair in pairs], room)  # no score depends on the rest of its batch
        logits = [logit for cut in cuts for logit in self._model(pairs[cut]).tolist()]
        best: list[dict[int, tuple[float, int]]] = [{} for _ in claims]  # logit and chunk of each part
        for (number, part, chunk, _), logit in zip(windows, logits, strict=True):
            if part not in best[number] or logit > best[number][part][0]:
                best[number][part] = (logit, chunk)
        return [self._support(index, *min(parts.values()), offset) for parts, offset in zip(best, offsets, strict=True)]

    def _support(self, index: EvidenceIndex, logit: float, chunk: int, offset: float) -> Support:
        score = torch.sigmoid(self._scale * torch.tensor(logit) + torch.tensor(offset)).item()
        evidence = Evidence(index.chunks[chunk].passage, index.quoted(chunk), score)
        return Support(score, evidence, log_odds=logit)

    def _windows(self, index: EvidenceIndex, claim: str) -> Iterator[tuple[int, int, EncodedPair]]:
        """Yield the inputs of the network: the number of a part of the claim, the window's best chunk, and both."""
        known = self._known.setdefault(index, {})  # claims share their evidence
        ranked = index.best(claim, MAX_CHUNKS)
        known |= {chunk: self._ids(index.chunks[chunk].read) for chunk in ranked if chunk not in known}
        packed = list(self._pack({chunk: known[chunk] for chunk in ranked}))
        for part, ids in enumerate(_parts(self._ids(claim) or [UNKNOWN], MAX_CLAIM_TOKENS)):
            for first, evidence in packed:
                yield part, first, encode_pair(evidence, ids)

    def _pack(self, ranked: dict[int, list[int]]) -> Iterator[tuple[int, list[int]]]:
        """Fill windows with chunks, the best first; yield the best chunk of each window and its ids in text order."""
        waiting = dict(ranked)
        while waiting:
            first, ids = next(iter(waiting.items()))
            if len(ids) > MAX_EVIDENCE_TOKENS:
                del waiting[first]
                yield from ((first, part) for part in _parts(ids, MAX_EVIDENCE_TOKENS))
                continue
            room = MAX_EVIDENCE_TOKENS
            taken = []
            for chunk, chunk_ids in waiting.items():
                if len(chunk_ids) <= room:
                    taken.append(chunk)
                    room -= len(chunk_ids)
            yield first, [token for chunk in sorted(taken) for token in waiting[chunk]]
            waiting = {chunk: ids for chunk, ids in waiting.items() if chunk not in taken}

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _parts(ids: list[int], size: int) -> Iterator[list[int]]:
    """Cut ids into parts of at most ``size``; neighbours share :data:`OVERLAP_TOKENS`."""
    step = size - OVERLAP_TOKENS
    for start in range(0, max(1, len(ids) - OVERLAP_TOKENS), step):
        yield ids[start : start + size]


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Evidence and claim as token ids and token types, each of length T."""

    ids: list[int]
    types: list[int]

    def __len__(self) -> int:
        return len(self.ids)


POSITIONS, NORM_EPS = 512, 1e-12  # BERT's number of positions, and what its layer norms add to the variance


@dataclass(frozen=True, slots=True)
class EncoderSizes:
    """Sizes of the encoder, as BERT's config names them, each at least 1."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int

    def __post_init__(self) -> None:
        sizes = asdict(self)
        if wrong := {name: size for name, size in sizes.items() if type(size) is not int or size < 1}:
            raise ValueError(f"encoder: expected whole numbers from 1; found {wrong}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{self.num_attention_heads} attention heads do not divide a hidden size of {self.hidden_size}"
            )


@dataclass(frozen=True, slots=True)
class PackedAligner:
    """Contents of the folder of an aligner: matrices (N, K) as ``<name>.int8``, with ``<name>.step``, (N, 1)."""

    sizes: EncoderSizes
    arrays: Mapping[str, Tensor]
    tokenizer: Tokenizer
    calibration: Mapping[str, float]


class Int8CrossEncoder(nn.Module):
    """BERT over pairs (evidence, claim), then mean and maximum over the claim's tokens, then one logit."""

    def __init__(self, sizes: EncoderSizes, arrays: Mapping[str, Tensor]) -> None:
        super().__init__()
        left, width = _Arrays(arrays), sizes.hidden_size
        self.words, self.positions, self.types = (
            left.embedding(f"bert.embeddings.{kind}_embeddings.weight", rows, width)
            for kind, rows in (("word", sizes.vocab_size), ("position", POSITIONS), ("token_type", TOKEN_TYPES))
        )
        self.embedded = left.norm("bert.embeddings", width)
        self.layers = nn.ModuleList(
            left.layer(f"bert.encoder.layer.{i}.", sizes) for i in range(sizes.num_hidden_layers)
        )
        self.head = left.linear((1, 2 * width), "head")
        left.check_taken()

    @torch.inference_mode()
    def forward(self, pairs: Sequence[EncodedPair]) -> Tensor:
        """Compute the logits of "supported" for B pairs, before calibration, (B,) float32."""
        with torch.autocast(self.words.weight.device.type, enabled=False):  # a caller's choice for its own model
            return self._logits(pairs)

    def _logits(self, pairs: Sequence[EncodedPair]) -> Tensor:
        device, lengths = self.words.weight.device, [len(pair) for pair in pairs]
        ids = torch.tensor([token for pair in pairs for token in pair.ids], device=device)
        types = torch.tensor([kind for pair in pairs for kind in pair.types], device=device)
        positions = torch.cat([torch.arange(length, device=device) for length in lengths])
        hidden = self.embedded(self.words(ids) + self.types(types) + self.positions(positions))  # (sum of T, H)
        *before, last = self.layers
        for layer in before:
            hidden = layer(hidden, lengths)
        claims = [next(place for place, kind in enumerate(pair.types) if kind >= CLAIM) for pair in pairs]
        hidden = last(hidden, lengths, first=claims)  # the head reads no other tokens
        by_pair = torch.split(hidden, [length - claim for length, claim in zip(lengths, claims, strict=True)])
        pooled = [torch.cat([own[:-1].mean(0), own[:-1].amax(0)]) for own in by_pair]  # without the last separator
        logits: Tensor = self.head(torch.stack(pooled))[:, 0]
        return logits


class _Int8Embedding(nn.Module):
    weight: Tensor
    step: Tensor

    def __init__(self, weight: Tensor, step: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("step", step)

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.index_select(0, ids) * self.step.index_select(0, ids)


class _Arrays:
    """Makes parts of a network of stored arrays, each of which must have the shape that the sizes ask for."""

    def __init__(self, arrays: Mapping[str, Tensor]) -> None:
        self._left = dict(arrays)

    def _take(self, name: str, *shape: int) -> Tensor:
        array = self._left.pop(name, None)
        if array is None or array.shape != shape:
            raise _unfit(name, shape, array)
        return array

    def check_taken(self) -> None:
        if self._left:
            name = min(self._left)
            raise _unfit(name, None, self._left[name])

    def embedding(self, name: str, rows: int, width: int) -> _Int8Embedding:
        return _Int8Embedding(self._take(name + INT8, rows, width), self._take(name + STEP, rows, 1))

    def norm(self, name: str, width: int) -> nn.LayerNorm:
        return layer_norm(*(self._take(f"{name}.LayerNorm.{part}", width) for part in ("weight", "bias")), eps=NORM_EPS)

    def linear(self, shape: tuple[int, int], *names: str) -> Int8Linear:
        """Build one linear map, or join several of the same input into one."""
        kinds = {f"weight{INT8}": shape, f"weight{STEP}": (shape[0], 1), "bias": shape[:1]}
        return Int8Linear(*(torch.cat([self._take(f"{n}.{kind}", *of) for n in names]) for kind, of in kinds.items()))

    def layer(self, prefix: str, sizes: EncoderSizes) -> ReaderLayer:
        width, between = sizes.hidden_size, sizes.intermediate_size
        attention, output = f"{prefix}attention.", f"{prefix}output"
        inner = self.linear((between, width), f"{prefix}intermediate.dense")
        return ReaderLayer(
            range(sizes.num_attention_heads),
            self.linear((width, width), *(f"{attention}self.{name}" for name in ("query", "key", "value"))),
            self.linear((width, width), f"{attention}output.dense"),
            nn.Sequential(inner, nn.GELU(), self.linear((width, between), f"{output}.dense")),
            (self.norm(f"{attention}output", width), self.norm(output, width)),
        )


def _unfit(name: str, expected: tuple[int, ...] | None, array: Tensor | None) -> CheckpointError:
    shape = None if array is None else tuple(array.shape)
    return CheckpointError(
        f"the aligner's weights do not fit its config.json: expected {name!r} of shape {expected}, found {shape} "
        "(None: no such array); copy the folder again"
    )


def encode_pair(evidence: Sequence[int], claim: Sequence[int]) -> EncodedPair:
    """Join token ids of evidence and claim, both without special tokens, and add the token types."""
    in_evidence, in_claim, neighbours = set(evidence), set(claim), set(pairwise(evidence))
    types = [EVIDENCE, *(EVIDENCE_IN_CLAIM if t in in_claim else EVIDENCE for t in evidence), EVIDENCE]
    for pair in pairwise((-1, *claim)):
        alone = CLAIM_IN_EVIDENCE if pair[1] in in_evidence else CLAIM
        types.append(CLAIM_AFTER_SAME if pair in neighbours else alone)
    return EncodedPair([CLS, *evidence, SEP, *claim, SEP], [*types, EVIDENCE])


def read_packed(folder: Traversable) -> PackedAligner:
    """Read a folder; raise CheckpointError if it is incomplete, damaged or of another format."""
    config, arrays, tokenizer = read_folder(folder, "config.json", "model.safetensors", FORMAT)
    try:
        sizes = EncoderSizes(**config["encoder"])
        calibration = {name: float(value) for name, value in config["calibration"].items()}
        if unknown := calibration.keys() - set(CALIBRATION):
            raise ValueError(f"calibration: expected {', '.join(CALIBRATION)}, found {', '.join(sorted(unknown))}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(folder, FORMAT, error) from error
    return PackedAligner(sizes, arrays, tokenizer, calibration)


def is_packed(folder: Path) -> bool:
    """Tell whether a folder is of this format."""
    try:
        return read_object(folder / "config.json").get("format") == FORMAT
    except CheckpointError:
        return False
