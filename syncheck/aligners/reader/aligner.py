"""The aligner that reads: a pretrained encoder reads the passages once, and then their closest part with each claim.

The network is :class:`~syncheck.aligners.reader.network.ReaderNetwork`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary, ref

import torch
from torch import Tensor

from syncheck.aligners.protocol import OfNetwork, batches, check_asked
from syncheck.aligners.reader.network import (
    CONTRADICTED,
    NOT_STATED,
    SECOND_SHAPE,
    SECOND_WEIGHTS,
    SUPPORTED,
    ReaderNetwork,
    ReadText,
    ReadWindow,
    read_reader,
    read_second,
)
from syncheck.base.errors import InputError
from syncheck.reading.evidence import EvidenceIndex, split_to_fit
from syncheck.results.types import EFFORTS, Effort, Evidence, Support
from syncheck.text.notation import written_out

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from tokenizers import Tokenizer

SEEN_TOKENS, JOINT_TOKENS, CLAIM_TOKENS = 128, 64, 100
"""Largest number of tokens of the passages that a claim sees in the lower layers, of those that are read with it in the
upper ones (unless the closest chunk alone has more), and of a claim."""
WHOLE_TOKENS = 256  # largest number of tokens of the passages that the second network reads with a claim as one text
DOUBT = 2.0  # log-odds, in absolute value, below which a balanced reader asks the second network
KEPT_WINDOWS = 32  # windows kept after they were read, over all contexts; one takes 4 to 7 MB
BATCH_TOKENS, CPU_BATCH_TOKENS = 4096, 1024  # largest numbers of tokens read at once, on a GPU and on the CPU

_LOADING = Lock()


class ReaderAligner(OfNetwork):
    """Aligner that reads: whether the passages support a claim, contradict it, or do not state it.

    ``network`` is the encoder with its head, in evaluation mode, ``tokenizer`` its tokenizer, ``name`` what a saved
    monitor asks for, and ``second`` loads, at first use, the network that reads passages and claim as one text; without
    it there is only one effort.

    Attributes
    ----------
    effort : {"fast", "balanced", "thorough"}
        How much is read. ``fast`` asks the first network alone; ``balanced`` also asks the second about claims whose
        log-odds are nearer to 0 than ``DOUBT``, and ``thorough`` about all. Verdicts of both are averaged. See
        :meth:`at`.
    languages : frozenset of str
        English alone.
    reads_answers : bool
        True: it gets an answer in short with its question.

    Notes
    -----
    The lower layers of the first network read the passages once for all claims, in windows. There a claim sees at most
    ``SEEN_TOKENS`` of them: the chunks closest to it, if there are more. In the upper layers the closest of these and
    the claim are one text, in which all words see each other. The second network reads the closest ``WHOLE_TOKENS``
    with the claim. A claim of more than ``CLAIM_TOKENS`` is cut into parts, and its score is the lowest over these.
    """

    languages = frozenset({"en"})
    reads_answers = True
    _shared: WeakValueDictionary[torch.device, ReaderAligner] = WeakValueDictionary()
    """The packaged reader on each device, as long as it is in use."""

    def __init__(
        self,
        network: ReaderNetwork,
        tokenizer: Tokenizer,
        *,
        name: str = "reader",
        second: SecondNetwork | None = None,
    ) -> None:
        self.name = name
        self.effort: Effort = "fast" if second is None else "balanced"
        self._model, self._tokenizer, self._second = network, tokenizer, second
        self._texts = _NetworkOnTexts(network, tokenizer, seen=SEEN_TOKENS, joint=JOINT_TOKENS)

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> ReaderAligner:
        """Load the packaged reader, once per process and device, or one from a folder.

        A folder has ``reader.json``, ``adapter.safetensors`` and ``tokenizer.json``, and for efforts beyond ``fast``
        ``second.json`` and ``second.safetensors``. Another format, or an encoder that is not on this machine, raises
        CheckpointError.
        """
        device = torch.device(device)
        if path is not None:
            return cls._read(path, device, str(path))
        with _LOADING:
            shared = cls._shared.get(device)
            if shared is None:
                folder = files("syncheck") / "assets" / "reader"
                shared = cls._shared[device] = cls._read(folder, device, "reader", is_kept=True)
        return shared

    @classmethod
    def _read(cls, folder: Traversable, device: torch.device, name: str, *, is_kept: bool = False) -> ReaderAligner:
        network, tokenizer = read_reader(folder, is_kept=is_kept)
        has_second = folder.joinpath(SECOND_SHAPE).is_file()
        second = SecondNetwork(folder, device, is_kept=is_kept) if has_second else None
        return cls(network.to(device), tokenizer, name=name, second=second)

    def at(self, effort: Effort) -> Self:
        """Make a reader of another effort, which shares the networks of this one; InputError if it has none such."""
        if effort not in EFFORTS:
            raise InputError(f"expected an effort of {', '.join(map(repr, EFFORTS))}; found {effort!r}")
        if effort != "fast" and self._second is None:
            raise InputError(
                f"the reader {self.name!r} has no second network, so its only effort is 'fast'; found {effort!r}"
            )
        if effort == self.effort:
            return self
        other = copy(self)
        other.effort = effort
        return other

    def weights_sha256(self) -> str | None:
        """Compute a digest that identifies the weights, or take the one that is stored with them."""
        own = self._model.sha256 or super().weights_sha256()
        if own is None or self._second is None:
            return own
        return sha256(f"{own} {self._second.sha256}".encode()).hexdigest()

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0.

        The evidence is the chunk of the context that shares most with the claim, with the claim's score.
        """
        check_asked(passages, claims)
        return self.align_indexed(EvidenceIndex(passages), claims)

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against passages that are indexed; see :meth:`align`."""
        if not index.chunks or not claims:
            return [Support(0.0, None) for _ in claims]
        parts = [split_to_fit(" ".join(claim.split()), self._is_short) for claim in claims]
        asked = [part for of_claim in parts for part in of_claim]
        judged = iter(zip(asked, self._verdicts(index, asked), strict=True))
        return [_support(index, [next(judged) for _ in of_claim]) for of_claim in parts]

    def _verdicts(self, index: EvidenceIndex, claims: Sequence[str]) -> Tensor:
        """Compute the log-probabilities (claims, 3), float32 on the CPU."""
        verdicts = self._texts.verdicts(index, claims)
        if self.effort == "fast" or self._second is None:
            return verdicts
        others = verdicts[:, [CONTRADICTED, NOT_STATED]].logsumexp(1)
        is_open = (verdicts[:, SUPPORTED] - others).abs() < (DOUBT if self.effort == "balanced" else torch.inf)
        rows = is_open.nonzero()[:, 0].tolist()
        if rows:
            texts = self._second.on_texts(self._model, self._tokenizer)
            second = texts.verdicts(index, [claims[row] for row in rows])
            verdicts[rows] = ((verdicts[rows] + second) / 2).log_softmax(dim=-1)
        return verdicts

    def _is_short(self, claim: str) -> bool:
        return len(token_ids(self._tokenizer, claim)) <= CLAIM_TOKENS


_MARKS = frozenset(".!?\u2026:;,\u3002\uff01\uff1f")
_CLOSERS = ")]}*_`|\"'\u2019\u201d\xbb"


def token_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode a text as the networks read it, without special tokens; a heading or an item gets a full stop."""
    written = written_out(text).rstrip()
    words = written.rstrip(_CLOSERS)
    is_open = bool(words) and words[-1] not in _MARKS
    return list(tokenizer.encode(f"{written}." if is_open else written, add_special_tokens=False).ids)


class SecondNetwork:
    """The network of a folder that is asked about doubtful claims, loaded once, at first use."""

    def __init__(self, folder: Traversable, device: torch.device, *, is_kept: bool) -> None:
        self._folder, self._device, self._is_kept = folder, device, is_kept
        self._texts: _NetworkOnTexts | None = None
        self._loading = Lock()

    @cached_property
    def sha256(self) -> str:
        """Digest of the file that holds what was trained."""
        return sha256(self._folder.joinpath(SECOND_WEIGHTS).read_bytes()).hexdigest()

    def on_texts(self, first: ReaderNetwork, tokenizer: Tokenizer) -> _NetworkOnTexts:
        """Load the network, which takes its embeddings from the first one, and the texts that it reads."""
        with self._loading:
            if self._texts is None:
                network = read_second(self._folder, first, is_kept=self._is_kept).to(self._device)
                self._texts = _NetworkOnTexts(network, tokenizer, seen=WHOLE_TOKENS, joint=WHOLE_TOKENS)
            return self._texts


class _NetworkOnTexts:
    """A network and what it reads: contexts in windows, some of which are kept, and claims with parts of them."""

    def __init__(self, network: ReaderNetwork, tokenizer: Tokenizer, *, seen: int, joint: int) -> None:
        self._network, self._tokenizer, self._seen, self._joint = network, tokenizer, seen, joint
        self._known: WeakKeyDictionary[EvidenceIndex, PassageWindows] = WeakKeyDictionary()
        self._last: OrderedDict[tuple[int, int], ReferenceType[PassageWindows]] = OrderedDict()

    def verdicts(self, index: EvidenceIndex, claims: Sequence[str]) -> Tensor:
        """Compute the log-probabilities (claims, 3), float32 on the CPU."""
        if index not in self._known:
            self._known[index] = PassageWindows([self._ids(chunk.read) for chunk in index.chunks])
        windows = self._known[index]
        asked = [
            (*chosen_parts(windows, index, claim, seen=self._seen, joint=self._joint), self._ids(claim))
            for claim in claims
        ]
        sizes = [sum(part.end - part.begin for part in joint) + len(ids) + 2 for _, joint, ids in asked]
        is_on_cpu = self._network.verdict.weight.device.type == "cpu"
        room = CPU_BATCH_TOKENS if is_on_cpu else BATCH_TOKENS
        judged = []
        for batch in batches(sizes, room):
            read = self._read(windows, {part.window for seen, _, _ in asked[batch] for part in seen}, room)
            texts = [ReadText(_located(read, seen), _located(read, joint), ids) for seen, joint, ids in asked[batch]]
            judged.append(self._network.judge(texts))
        return torch.cat(judged).log_softmax(dim=-1)

    def _read(self, windows: PassageWindows, numbers: Collection[int], room: int) -> dict[int, ReadWindow]:
        """Look up windows by number; those that are not kept are read, at most ``room`` tokens at once."""
        kept = {number: windows.read.get(number) for number in numbers}  # get, since other threads may forget some
        read = {number: window for number, window in kept.items() if window is not None}
        missing = sorted(number for number, window in kept.items() if window is None)
        for batch in batches([len(windows.ids[number]) + 1 for number in missing], room):
            new = self._network.read([windows.ids[number] for number in missing[batch]])
            read |= zip(missing[batch], new, strict=True)
        windows.read |= read
        self._keep(windows, read)
        return read

    def _keep(self, windows: PassageWindows, numbers: Collection[int]) -> None:
        """Note windows of a context as the most recently used; forget the least recently used of all contexts."""
        for number in numbers:
            self._last.pop((id(windows), number), None)  # other threads may forget it meanwhile
            self._last[id(windows), number] = ref(windows)
        while len(self._last) > KEPT_WINDOWS:
            (_, number), of = self._last.popitem(last=False)
            forgetting = of()
            if forgetting is not None:
                forgetting.read.pop(number, None)

    def _ids(self, text: str) -> list[int]:
        return token_ids(self._tokenizer, text)


def _located(windows: Mapping[int, ReadWindow], parts: Sequence[Part]) -> list[tuple[ReadWindow, int, int]]:
    return [(windows[part.window], part.begin, part.end) for part in parts]


def _support(index: EvidenceIndex, parts: Sequence[tuple[str, Tensor]]) -> Support:
    """Choose the lowest support over the parts of a claim, each with its three log-probabilities."""
    claim, lowest = min(parts, key=lambda part: float(part[1][SUPPORTED]))
    score = float(lowest[SUPPORTED].exp())
    others = lowest[[CONTRADICTED, NOT_STATED]].logsumexp(0)
    contradicted = max(float(verdict[CONTRADICTED].exp()) for _, verdict in parts)
    (best,) = index.best(claim, 1)
    evidence = Evidence(index.chunks[best].passage, index.quoted(best), score)
    return Support(score, evidence, float(lowest[SUPPORTED] - others), min(contradicted, 1 - score))


logger = logging.getLogger(__name__)
WINDOW_TOKENS = 255  # largest number of tokens of a window
RANKED_CHUNKS, CENTRES = 10, 3
"""Number of chunks that are ranked by the words they share with a claim, and number of the best whose neighbours come
next."""


class Part(NamedTuple):
    """Tokens of a window, from ``begin`` up to ``end``; the token at 0 is a BEGIN."""

    window: int
    begin: int
    end: int


class PassageWindows:
    """The chunks of a context, by their token ids, in windows of whole chunks.

    Of a chunk longer than a window only the beginning is read, with a warning.
    """

    def __init__(self, chunks: Sequence[Sequence[int]]) -> None:
        self.ids: list[list[int]] = [[]]
        self.read: dict[int, ReadWindow] = {}
        self._places: list[Part] = []
        if cut := sum(len(chunk) > WINDOW_TOKENS for chunk in chunks):
            logger.warning("passages have chunks that are too long: %d; %d tokens of each are read", cut, WINDOW_TOKENS)
        for chunk in chunks:
            kept = chunk[:WINDOW_TOKENS]
            if len(self.ids[-1]) + len(kept) > WINDOW_TOKENS:
                self.ids.append([])
            begin = 1 + len(self.ids[-1])
            self.ids[-1] += kept
            self._places.append(Part(len(self.ids) - 1, begin, begin + len(kept)))
        self.lengths = [place.end - place.begin for place in self._places]

    def parts(self, chunks: Sequence[int], room: int) -> list[Part]:
        """Locate chunks, after the BEGIN of the first one's window; at most ``room`` tokens of a chunk."""
        places = [self._places[chunk] for chunk in chunks]
        begin = Part(places[0].window, 0, 1)
        return [begin, *(place._replace(end=min(place.end, place.begin + room)) for place in places)]


def chosen_parts(
    windows: PassageWindows, index: EvidenceIndex, claim: str, *, seen: int, joint: int
) -> tuple[list[Part], list[Part]]:
    """Choose the tokens that a claim sees, and those of them that are read with it (:func:`closest_of`)."""
    chunks = closest_chunks(index, claim, windows.lengths, seen)
    closest = closest_of(chunks, index, claim, windows.lengths, joint)
    begin, *parts = windows.parts(chunks, seen)
    return [begin, *parts], [begin, *(part for chunk, part in zip(chunks, parts, strict=True) if chunk in closest)]


def closest_chunks(index: EvidenceIndex, claim: str, lengths: Sequence[int], room: int) -> list[int]:
    """Choose the chunks that a claim sees, by index, in the order of the context.

    If not all fit ``room``, those that do, taken in this order: the best by the words they share with the claim, the
    neighbours of the first of these, and the rest from the beginning; if none fits, the best one alone.
    """
    if sum(lengths) <= room:
        return list(range(len(lengths)))
    ranked = _by_closeness(index, claim, len(lengths))
    return sorted(_fitting(ranked, lengths, room)) or ranked[:1]


def closest_of(chunks: Sequence[int], index: EvidenceIndex, claim: str, lengths: Sequence[int], room: int) -> list[int]:
    """Choose the chunks that are read with a claim: the best, whatever its length, and others that fit."""
    if sum(lengths[chunk] for chunk in chunks) <= room:
        return list(chunks)
    best, *others = (chunk for chunk in _by_closeness(index, claim, len(lengths)) if chunk in chunks)
    return sorted([best, *_fitting(others, lengths, room - lengths[best])])


def _fitting(ranked: Sequence[int], lengths: Sequence[int], room: int) -> Iterator[int]:
    for chunk in ranked:
        if lengths[chunk] <= room:
            yield chunk
            room -= lengths[chunk]


def _by_closeness(index: EvidenceIndex, claim: str, count: int) -> list[int]:
    best = index.best(claim, RANKED_CHUNKS)
    beside = [near for chunk in best[:CENTRES] for near in (chunk - 1, chunk + 1) if 0 <= near < count]
    return list(dict.fromkeys((*best, *beside, *range(count))))
