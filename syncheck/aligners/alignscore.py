"""AlignScore: a port of its published inference, and its files, read without running code.

Zha, Yang, Li and Hu: "AlignScore: Evaluating Factual Consistency with a Unified Alignment Function", ACL 2023.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal

import torch
from huggingface_hub import hf_hub_download
from torch import Tensor, nn

from syncheck.aligners.protocol import OfNetwork, check_asked, scored_by_length
from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.base.files import DAMAGED, require_regular
from syncheck.base.pretrained import MAX_FILE_BYTES, load_pretrained, load_tokenizer
from syncheck.base.printable import one_line
from syncheck.reading.evidence import Chunk, split_to_fit
from syncheck.results.types import Evidence, Support
from syncheck.text.sentences.rules import Punkt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, RobertaConfig

Mode = Literal["nli_sp", "nli", "bin_sp", "bin"]
Overflow = Literal["cut", "split"]

CHUNK_WORDS = 350  # approximate length of a chunk (published inference)
WINDOW = 512  # RoBERTa's window in tokens; shorter when the tokenizer says so
SPECIAL_TOKENS = 4
MAX_CLAIM_TOKENS = 192  # length of a sentence in tokens up to which ``overflow="split"`` does not cut it
ROOM_STEP = 32
PASSAGE_JOINT = "\n"

_logger = logging.getLogger(__name__)


class AlignScoreAligner(OfNetwork):
    """Scores claims with an AlignScore checkpoint: the network in evaluation mode, and the tokenizer of its backbone.

    The ``mode`` ``nli`` reads P(entailed) of the three-way head, ``bin`` P(aligned) of the two-way head. With ``_sp``,
    the context is cut into chunks of about 350 words and the claim into sentences; the score is the highest over the
    chunks, averaged over the sentences. Without it, context and claim are one pair.

    Of a pair of more than 512 tokens, the ``overflow`` ``split`` scores every part of the chunk and takes the highest;
    a sentence of more than 192 tokens that does not fit with the longest chunk is cut too, and its parts are averaged.
    ``cut`` drops the end of the chunk, as the published code does, and logs a warning: the published aggregators were
    trained on such scores. A monitor stores both, and ``name`` and ``backbone``: the checkpoint, and what was passed to
    load it.

    Sentences come from NLTK's untrained Punkt, passages are joined by line breaks. The evidence is the chunk with the
    highest score, averaged over the claim's sentences; its passage is the one in which it starts.
    """

    languages = frozenset({"en"})

    def __init__(
        self,
        model: AlignScoreModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        mode: Mode = "nli_sp",
        overflow: Overflow = "split",
        device: str | torch.device = "cpu",
        name: str = "alignscore",
        backbone: str | None = None,
    ) -> None:
        check_choice(mode, "mode", Mode)
        check_choice(overflow, "overflow", Overflow)
        self.name = name
        self.options: dict[str, str | int] = {"mode": mode, "overflow": overflow}
        if backbone is not None:
            self.options["backbone"] = backbone
        self._model, self._tokenizer, self._device = model.to(device), tokenizer, torch.device(device)
        self._reads_three, self._cuts, self._overflow = mode.startswith("nli"), mode.endswith("_sp"), overflow
        self._window = min(WINDOW, tokenizer.model_max_length)
        self._punkt = Punkt()

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        backbone: Path | str | None = None,
        mode: Mode = "nli_sp",
        overflow: Overflow = "split",
        device: str | torch.device = "cpu",
    ) -> AlignScoreAligner:
        """Load a published ``.ckpt``; see :func:`load_alignscore`."""
        model, tokenizer = load_alignscore(path, backbone=backbone)
        given = None if backbone is None else str(backbone)
        return cls(model, tokenizer, mode=mode, overflow=overflow, device=device, name=str(path), backbone=given)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0."""
        check_asked(passages, claims)
        chunks = list(self._chunks(passages))
        groups = [self._punkt.texts(claim) if self._cuts else [claim] for claim in claims]
        if not chunks or not claims:
            return [Support(0.0, None) for _ in claims]
        asked = self._split(chunks, groups) if self._overflow == "split" else [(chunks, group) for group in groups]
        scores = self._score([(c.text, s) for held, sentences in asked for c in held for s in sentences])
        own = torch.split(scores, [len(held) * len(sentences) for held, sentences in asked])
        return [_support(held, part.view(len(held), -1)) for (held, _), part in zip(asked, own, strict=True)]

    def _chunks(self, passages: Sequence[str]) -> Iterator[Chunk]:
        text = PASSAGE_JOINT.join(passages)
        spans = list(self._punkt.spans(text))
        if not spans:
            return
        stops = list(accumulate(len(passage) + len(PASSAGE_JOINT) for passage in passages))
        if not self._cuts:
            yield Chunk(bisect_right(stops, spans[0][0]), text)
            return
        count = max(len(spans) // (len(text.split()) // CHUNK_WORDS + 1), 1)
        for first in range(0, len(spans), count):
            group = spans[first : first + count]
            yield Chunk(bisect_right(stops, group[0][0]), " ".join(text[a:b] for a, b in group))

    def _split(self, chunks: Sequence[Chunk], groups: Sequence[list[str]]) -> list[tuple[list[Chunk], list[str]]]:
        """Cut the sentences of each claim, and the chunks paired with them, if their pairs exceed the window.

        The room left for a chunk is rounded to steps, so that claims of similar length share its parts.
        """
        room = self._window - SPECIAL_TOKENS
        most = min(MAX_CLAIM_TOKENS, room // 2)
        widths = [len(self._ids(chunk.text)) for chunk in chunks]

        @cache
        def parts(chunk: Chunk, tokens: int) -> list[Chunk]:
            return [Chunk(chunk.passage, part) for part in self._fitting(chunk.text, tokens)]

        asked = []
        for group in groups:
            sentences = [part for s in group for part in self._fitting(s, max(most, room - max(widths)))]
            longest = max(len(self._ids(s)) for s in sentences)
            left = room - min(-(-longest // ROOM_STEP) * ROOM_STEP, most)
            whole = [width + longest <= room for width in widths]
            held = [p for c, fits in zip(chunks, whole, strict=True) for p in ([c] if fits else parts(c, left))]
            asked.append((held, sentences))
        return asked

    def _fitting(self, text: str, tokens: int) -> list[str]:
        return split_to_fit(text, lambda part: len(self._ids(part)) <= tokens)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _score(self, texts: Sequence[tuple[str, str]]) -> torch.Tensor:
        """Compute P(supported) of each pair (chunk, sentence), (pairs,) float32."""
        ids = {text: self._ids(text) for text in dict.fromkeys(chain.from_iterable(texts))}
        pairs = [self._pair(ids[chunk], ids[sentence]) for chunk, sentence in texts]
        lost = sum(len(ids[text]) for pair in texts for text in pair) - sum(len(p) - SPECIAL_TOKENS for p in pairs)
        if lost > 0:
            _logger.warning(
                "%d tokens beyond AlignScore's window of %d were cut from the context, as its published code does; "
                "overflow='split' scores them too",
                lost,
                self._window,
            )
        return torch.tensor(scored_by_length(pairs, self._forward, length=len))

    def _pair(self, chunk: list[int], sentence: list[int]) -> list[int]:
        """Join ids as RoBERTa does; beyond the window, cut the chunk and, if it must be, the sentence."""
        room = self._window - SPECIAL_TOKENS
        if len(sentence) >= room:
            sentence = sentence[: room - min(len(chunk), room // 2)]
        bos, eos = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        return [bos, *chunk[: room - len(sentence)], eos, eos, *sentence, eos]

    def _forward(self, rows: list[list[int]]) -> list[float]:
        """Compute P(supported) of pairs of ids."""
        padded = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            aligned, entailed = self._model(padded["input_ids"], padded["attention_mask"])
        return list((entailed if self._reads_three else aligned).float().tolist())


def _support(chunks: Sequence[Chunk], scores: torch.Tensor) -> Support:
    """Combine the scores (chunks, sentences) of one claim into its support."""
    by_chunk = scores.mean(1)
    best = int(by_chunk.argmax())
    evidence = Evidence(chunks[best].passage, chunks[best].text, by_chunk[best].item())
    return Support(scores.amax(0).mean().item(), evidence)


_UNUSED = ("mlm_head.", "base_model.embeddings.position_ids")
"""Parts of a published checkpoint that inference does not need."""
_AS_DICT: list[Any] = [
    (dict, "pytorch_lightning.utilities.parsing.AttributeDict"),
    (dict, "lightning_fabric.utilities.data.AttributeDict"),
]
"""Lightning's name for the dictionary of hyper-parameters, read as a plain one."""


class AlignScoreModel(nn.Module):
    """RoBERTa with AlignScore's three heads on the pooled output (Zha et al. 2023, section 3.1)."""

    def __init__(self, config: RobertaConfig) -> None:
        from transformers import RobertaModel

        super().__init__()
        self.base_model = RobertaModel(config)
        self.bin_layer, self.tri_layer, self.reg_layer = (nn.Linear(config.hidden_size, n) for n in (2, 3, 1))

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compute P(aligned) of the two-way head and P(entailed) of the three-way head, both (B,) float32."""
        pooled = self.base_model(input_ids=ids, attention_mask=mask).pooler_output  # (B, H)
        return self.bin_layer(pooled).softmax(-1)[:, 1], self.tri_layer(pooled).softmax(-1)[:, 0]


def load_alignscore(
    path: Path | str, *, backbone: Path | str | None = None
) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    """Load a published checkpoint, without running code in it.

    ``path`` is a ``.ckpt`` file, or ``owner/repository/file.ckpt`` on the Hugging Face Hub. ``backbone`` is a folder,
    or the name of a model to download, with the config and tokenizer of its RoBERTa. None takes the model that the
    checkpoint names: the folder of that name next to the file, or else the model of that name in the cache. What is
    missing, damaged or holds more than arrays and plain values raises CheckpointError; keys or shapes of another
    network, MismatchError.
    """
    path = _file(path)
    checkpoint = _read_lightning(path)
    state: dict[str, Tensor] = checkpoint["state_dict"]
    if backbone is not None:
        return _build(state, backbone)
    parameters = checkpoint.get("hyper_parameters")
    named = parameters.get("model") if isinstance(parameters, dict) else None  # such as roberta-base
    if not isinstance(named, str) or not named:
        raise CheckpointError(
            f"{path.name!r} holds weights but does not name the model it was trained from; pass backbone= "
            "(--aligner-backbone), a folder with the config and tokenizer of the RoBERTa, or its name"
        )
    beside = path.parent / Path(named).name
    try:
        return _build(state, beside if beside.is_dir() else named, local_files_only=True)
    except MismatchError:
        raise
    except CheckpointError as error:
        raise CheckpointError(
            f"{path.name!r} was trained from {named!r}, whose config and tokenizer it needs, and {error}. Put them in "
            f"{str(beside)!r}, or pass their folder, or a name to download, as backbone= (--aligner-backbone)"
        ) from error


def _file(path: Path | str) -> Path:
    """Find a local file, or one on the Hub or in its cache if there is no such folder here."""
    local = Path(path)
    owner, repository, name = (*str(path).split("/", 2), "", "")[:3]
    if not name or owner in ("", ".", "..", "~") or local.parent.is_dir():
        return local
    try:
        return Path(hf_hub_download(f"{owner}/{repository}", name))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"cannot load {str(path)!r}: there is no such file here, and the file {name!r} cannot be fetched from the "
            f"repository '{owner}/{repository}' of the Hugging Face hub: {error}. Pass the path of a .ckpt file, or "
            "owner/repository/file.ckpt of one that can be downloaded or is in the cache"
        ) from error


def _read_lightning(path: Path) -> dict[str, Any]:
    if path.exists():
        require_regular(path, most=MAX_FILE_BYTES)
    try:
        with torch.serialization.safe_globals(_AS_DICT):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise CheckpointError(
            f"{path.name!r} holds more than arrays and plain values, and loading it could run code: {error}"
        ) from error
    except (OSError, *DAMAGED) as error:
        raise CheckpointError(
            f"cannot read {str(path)!r} ({type(error).__name__}: {error}); pass the .ckpt file that the authors of "
            "AlignScore published, complete"
        ) from error
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("state_dict"), dict):
        raise CheckpointError(
            f"expected a Lightning checkpoint with 'state_dict' in {path.name!r}; "
            "pass the .ckpt file that the authors of AlignScore published"
        )
    return checkpoint


def _build(
    state: dict[str, Tensor], backbone: Path | str, *, local_files_only: bool = False
) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    from transformers import AutoConfig, RobertaConfig

    config = load_pretrained(AutoConfig, backbone, what="AlignScore's backbone", local_files_only=local_files_only)
    if not isinstance(config, RobertaConfig):
        raise MismatchError(
            f"AlignScore's backbone is a RoBERTa, {str(backbone)!r} is a {config.model_type!r}; "
            "pass the config and tokenizer of roberta-base or roberta-large"
        )
    model = AlignScoreModel(config)
    try:
        model.load_state_dict({name: array for name, array in state.items() if not name.startswith(_UNUSED)})
    except RuntimeError as error:  # names what is missing, unknown or of another shape
        raise MismatchError(
            f"the checkpoint and the config of its backbone do not fit: {one_line(str(error))}; download it again, or "
            "pass the backbone that it was trained from"
        ) from error
    return model.eval(), load_tokenizer(backbone, local_files_only=local_files_only)
