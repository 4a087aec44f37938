"""Pair scorers: Hugging Face checkpoints that score whether a premise supports a claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    BatchEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from syncheck.aligners.protocol import OfNetwork
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.pretrained import load_pretrained, load_tokenizer

SUPPORTED_LABELS = ("entailment", "entailed", "supported", "supports", "support", "consistent", "factual", "aligned")
MINICHECK_PROMPT = "predict: {premise}{eos}{claim}"  # Tang et al. 2024, published inference
UNLIMITED = 10**6
"""Largest number of tokens that counts as a limit; tokenizers without a limit state a larger number."""
MINICHECK_SUPPORTED = 1
"""Class of MiniCheck's encoders that means "supported" (published inference); their configs may not name it."""
MINICHECK_FAMILIES = ("t5", "mt5", "umt5", "longt5")
"""Encoder-decoders with relative positions, which may have been trained as MiniCheck's."""
MINICHECK_WINDOW = 2048  # published inference; T5's relative positions have no limit
UNSTATED_WINDOW = 512
"""Window, in tokens, of a classifier without a limit in its network (such as XLNet) or its tokenizer."""


class PairScorer(Protocol):
    """Protocol of a scorer of pairs that fit its ``window``, in tokens."""

    window: int

    def length(self, premise: str, claim: str) -> int:
        """Count the tokens of the pair, special tokens included."""
        ...

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Compute P(claim supported by premise) of each (premise, claim), in one batch."""
        ...


def load_scorer(path: Path | str, *, entailment: int | None = None, device: str | torch.device = "cpu") -> PairScorer:
    """Load a checkpoint: a T5 that writes text as MiniCheck does, anything else as a sequence classifier.

    ``entailment`` is the index of the class that means "supported"; None finds it by its name in the config. InputError
    if it cannot be found, or does not apply.
    """
    if _writes_text(path):
        if entailment is not None:
            raise InputError(f"{str(path)!r} generates text and has no classes; leave out entailment={entailment}")
        return _encoder_decoder(path, device)
    model = _classifier(path)
    classes = sorted(model.config.id2label)
    if entailment is None:
        entailment = _entailment_label(model.config.id2label)
    elif entailment not in classes:
        raise InputError(f"expected entailment to be one of the classes {classes} of {str(path)!r}; found {entailment}")
    return SequenceClassificationScorer(model.to(device), load_tokenizer(path), entailment=entailment)


def load_minicheck(path: Path | str, *, device: str | torch.device = "cpu") -> PairScorer:
    """Load a MiniCheck checkpoint (Tang et al., 2024): the encoder-decoder or one of the encoders.

    The encoders, RoBERTa and DeBERTa, are two-class classifiers that were trained on document and claim as one text,
    joined by the tokenizer's end-of-sequence token. Another checkpoint raises CheckpointError.
    """
    if _writes_text(path):
        return _encoder_decoder(path, device)
    model, tokenizer = _classifier(path), load_tokenizer(path)
    if model.config.num_labels != 2 or tokenizer.eos_token is None:
        raise CheckpointError(
            f"expected a MiniCheck checkpoint, with two classes and an end-of-sequence token; found "
            f"{model.config.num_labels} classes and {tokenizer.eos_token!r} in {str(path)!r}. Load other classifiers "
            "by their folder or name alone"
        )
    return SequenceClassificationScorer(model.to(device), tokenizer, entailment=MINICHECK_SUPPORTED, joined=True)


def _writes_text(path: Path | str) -> bool:
    """Tell whether a checkpoint writes text, as MiniCheck's T5 does, instead of having classes."""
    try:
        config: PretrainedConfig = load_pretrained(AutoConfig, path, what="a config")
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}. An AlignScore checkpoint has no config and is named with its file, such as '{path}/FILE.ckpt'"
        ) from error
    classifies = any(name.endswith("ForSequenceClassification") for name in config.architectures or ())
    if classifies or not config.is_encoder_decoder:
        return False
    if config.model_type not in MINICHECK_FAMILIES:
        raise CheckpointError(
            f"{str(path)!r} is a {config.model_type!r} that generates text (architectures: {config.architectures}); "
            "expected a T5 that was trained as MiniCheck, or a classifier, such as an NLI model, whose config names an "
            "architecture that ends in 'ForSequenceClassification'"
        )
    return True


def _encoder_decoder(path: Path | str, device: str | torch.device) -> PairScorer:
    model = load_pretrained(AutoModelForSeq2SeqLM, path, what="an encoder-decoder", dtype=torch.float32)
    return MiniCheckScorer(model.eval().to(device), load_tokenizer(path))


def _classifier(path: Path | str) -> PreTrainedModel:
    """Load a classifier that has all its weights: transformers would initialise a missing head at random."""
    model: PreTrainedModel
    model, found = load_pretrained(
        AutoModelForSequenceClassification,
        path,
        what="a sequence classifier",
        dtype=torch.float32,
        output_loading_info=True,
    )
    if missing := sorted(found["missing_keys"]):
        raise CheckpointError(
            f"{str(path)!r} lacks {len(missing)} weights of a classifier, such as {missing[0]!r}; pass a checkpoint "
            "that was trained to judge pairs, such as an NLI model"
        )
    return model.eval()


class SequenceClassificationScorer(OfNetwork):
    """Classifier of pairs (premise, claim), such as an NLI model.

    Parameters
    ----------
    model, tokenizer
        The model in evaluation mode, and its tokenizer. With one output, the score is its sigmoid, otherwise the
        softmax at ``entailment``.
    entailment
        Index of the class that means "supported".
    joined
        True encodes a pair as one text with the end-of-sequence token in its middle, as MiniCheck's encoders were
        trained: ``<s>premise</s>claim</s>``. False encodes it as the tokenizer encodes pairs, for example as RoBERTa's
        ``<s>premise</s></s>claim</s>``.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, entailment: int, joined: bool = False
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._entailment = entailment
        self._joined = joined
        self.window = _window(model, tokenizer)

    def length(self, premise: str, claim: str) -> int:
        """Count the tokens of the pair, special tokens included."""
        return len(self.encode([(premise, claim)])["input_ids"][0])

    def encode(self, pairs: Sequence[tuple[str, str]]) -> BatchEncoding:
        """Tokenize each pair to ids, of any length, special tokens included."""
        if self._joined:
            texts = [f"{premise}{self._tokenizer.eos_token}{claim}" for premise, claim in pairs]
            return self._tokenizer(texts, verbose=False)
        premises, claims = zip(*pairs, strict=True)
        return self._tokenizer(list(premises), list(claims), verbose=False)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Compute P(supported) of each pair."""
        inputs = self._tokenizer.pad(self.encode(pairs), return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits.float()  # (B, classes)
        supported = logits[:, 0].sigmoid() if logits.shape[1] == 1 else logits.softmax(-1)[:, self._entailment]
        values: list[float] = supported.tolist()
        return values


class MiniCheckScorer(OfNetwork):
    """MiniCheck's encoder-decoder (Tang et al., 2024), whose first output token is "1" (supported) or "0"."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._answers = [tokenizer(digit, add_special_tokens=False)["input_ids"][0] for digit in "01"]
        if len(set(self._answers)) < 2:
            raise CheckpointError(
                f"expected '0' and '1' to be two tokens; found the id {self._answers[0]} for both. Pass the tokenizer "
                "that the checkpoint was trained with"
            )
        self.window = MINICHECK_WINDOW

    def length(self, premise: str, claim: str) -> int:
        """Count the tokens of the prompt."""
        return len(self._tokenizer(self._prompt(premise, claim), verbose=False)["input_ids"])

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Compute P(supported) of each pair."""
        prompts = [self._prompt(premise, claim) for premise, claim in pairs]
        # Padded apart: padding=True would be a setting of the tokenizer, which other threads share.
        inputs = self._tokenizer.pad(self._tokenizer(prompts, verbose=False), return_tensors="pt")
        inputs = inputs.to(self._model.device)
        start = torch.full((len(pairs), 1), self._model.config.decoder_start_token_id, device=self._model.device)
        with torch.inference_mode():
            output = self._model(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], decoder_input_ids=start
            )
        logits = output.logits[:, 0, self._answers].float()  # (B, 2): "0", "1"
        values: list[float] = logits.softmax(-1)[:, 1].tolist()
        return values

    def _prompt(self, premise: str, claim: str) -> str:
        return MINICHECK_PROMPT.format(premise=premise, claim=claim, eos=self._tokenizer.eos_token)


def _window(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Find the longest input, in tokens, that both tokenizer and position embeddings allow.

    Relative positions have no limit (XLNet states -1, T5 nothing); the tokenizer's limit then counts, or
    ``UNSTATED_WINDOW``. BART's table has two more rows, which its offset takes.
    """
    config = model.config
    positions: int = getattr(config, "max_position_embeddings", None) or 0
    if config.model_type in {"roberta", "xlm-roberta", "camembert"}:
        positions -= config.pad_token_id + 1  # their positions start after the padding id
    limits = [limit for limit in (positions, tokenizer.model_max_length) if 0 < limit <= UNLIMITED]
    return min(limits, default=UNSTATED_WINDOW)


def _entailment_label(labels: dict[int, str]) -> int:
    found = [index for index, name in labels.items() if name.lower().replace("_", " ") in SUPPORTED_LABELS]
    if len(labels) == 1:
        return 0
    if len(found) != 1:
        raise CheckpointError(
            f"expected one class named like {', '.join(SUPPORTED_LABELS)}, found the classes "
            f"{sorted(labels.values())}; pass entailment= (--aligner-entailment), the index of the class that means "
            "supported, or 'minicheck:' before the name of a MiniCheck checkpoint"
        )
    return int(found[0])
