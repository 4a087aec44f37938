"""Aligners for contexts of any length that score pairs (premise, claim): classifiers and MiniCheck."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    BatchEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from syncheck.aligners.protocol import OfNetwork, check_asked, scored_by_length
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.pretrained import load_pretrained, load_tokenizer
from syncheck.reading.evidence import Chunk, EvidenceIndex, split_passages, split_to_fit
from syncheck.results.types import Evidence, Support

SUPPORTED_LABELS = ("entailment", "entailed", "supported", "supports", "support", "consistent", "factual", "aligned")
UNLIMITED = 10**6  # tokenizers without a limit state a larger number of tokens
MINICHECK_SUPPORTED = 1  # class of MiniCheck's encoders that means "supported" (published inference); may be unnamed
MINICHECK_FAMILIES = ("t5", "mt5", "umt5", "longt5")  # with relative positions; may have been trained as MiniCheck's
JOINED = "{premise}{end}{claim}"
"""A pair with the tokenizer's end-of-sequence token in its middle, as MiniCheck was trained."""
MINICHECK_WINDOW = 2048  # published inference; T5's relative positions have no limit
UNSTATED_WINDOW = 512  # window of a classifier whose network (such as XLNet) and tokenizer state no limit


@dataclass(frozen=True, slots=True)
class PairScorer(OfNetwork):
    """Scorer of pairs (premise, claim) that fit its ``window``, in tokens, by a network in evaluation mode."""

    _model: PreTrainedModel
    _tokenizer: PreTrainedTokenizerBase
    window: int
    _read: Callable[[BatchEncoding], Tensor]  # computes P(supported) of encoded pairs
    _form: str | None = None  # wording of a pair as one text; None encodes it as the tokenizer encodes pairs

    def encode(self, pairs: Sequence[tuple[str, str]]) -> BatchEncoding:
        """Tokenize each pair to ids, of any length, special tokens included."""
        if self._form is None:
            premises, claims = zip(*pairs, strict=True)
            return self._tokenizer(list(premises), list(claims), verbose=False)
        end = self._tokenizer.eos_token
        texts = [self._form.format(premise=premise, end=end, claim=claim) for premise, claim in pairs]
        return self._tokenizer(texts, verbose=False)

    def length(self, premise: str, claim: str) -> int:
        """Count the tokens of the pair, special tokens included."""
        return len(self.encode([(premise, claim)])["input_ids"][0])

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Compute P(claim supported by premise) of each (premise, claim), in one batch."""
        with torch.inference_mode():
            return list(self._read(self.encode(pairs)).tolist())


def load_scorer(
    path: Path | str, *, entailment: int | None = None, minicheck: bool = False, device: str | torch.device = "cpu"
) -> PairScorer:
    """Load a checkpoint: a T5 that writes text as MiniCheck does, anything else as a sequence classifier.

    ``entailment`` is the index of the class that means "supported"; None finds it by its name in the config. InputError
    if it cannot be found, or does not apply. With ``minicheck``, a classifier is one of MiniCheck's encoders (Tang et
    al., 2024), with two classes, trained on document and claim as one text. Other checkpoints raise CheckpointError.
    """
    if _writes_text(path):
        if entailment is not None:
            raise InputError(f"{str(path)!r} generates text and has no classes; leave out entailment={entailment}")
        return _encoder_decoder(path, device)
    model, tokenizer = _classifier(path).to(device), load_tokenizer(path)
    classes = sorted(model.config.id2label)
    if minicheck and (model.config.num_labels != 2 or tokenizer.eos_token is None):
        raise CheckpointError(
            f"expected a MiniCheck checkpoint, with two classes and an end-of-sequence token; found "
            f"{model.config.num_labels} classes and {tokenizer.eos_token!r} in {str(path)!r}. Load other classifiers "
            "by their folder or name alone"
        )
    if entailment is not None and entailment not in classes:
        raise InputError(f"expected entailment to be one of the classes {classes} of {str(path)!r}; found {entailment}")
    if entailment is None:
        entailment = MINICHECK_SUPPORTED if minicheck else _entailment_label(model.config.id2label)

    def read(encoded: BatchEncoding) -> Tensor:
        logits = model(**_padded(encoded, model, tokenizer)).logits.float()  # (B, classes)
        return logits[:, 0].sigmoid() if logits.shape[1] == 1 else logits.softmax(-1)[:, entailment]  # type: ignore[no-any-return]

    return PairScorer(model, tokenizer, _window(model, tokenizer), read, JOINED if minicheck else None)


def _padded(encoded: BatchEncoding, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> BatchEncoding:
    # Padded apart: padding=True would be a setting of the tokenizer, which other threads share.
    return tokenizer.pad(encoded, return_tensors="pt").to(model.device)


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
    """Load MiniCheck's encoder-decoder (Tang et al., 2024), whose first output token is "1" (supported) or "0"."""
    model = load_pretrained(AutoModelForSeq2SeqLM, path, what="an encoder-decoder", dtype=torch.float32)
    model, tokenizer = model.eval().to(device), load_tokenizer(path)
    answers = [tokenizer(digit, add_special_tokens=False)["input_ids"][0] for digit in "01"]
    if len(set(answers)) < 2:
        raise CheckpointError(
            f"expected '0' and '1' to be two tokens; found the id {answers[0]} for both. Pass the tokenizer "
            "that the checkpoint was trained with"
        )

    def read(encoded: BatchEncoding) -> Tensor:
        inputs = _padded(encoded, model, tokenizer)
        start = torch.full((len(inputs["input_ids"]), 1), model.config.decoder_start_token_id, device=model.device)
        output = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], decoder_input_ids=start)
        return output.logits[:, 0, answers].float().softmax(-1)[:, 1]  # type: ignore[no-any-return]  # (B,)

    return PairScorer(model, tokenizer, MINICHECK_WINDOW, read, f"predict: {JOINED}")  # published inference


def _classifier(path: Path | str) -> PreTrainedModel:
    """Load a classifier that has all its weights: transformers would initialise a missing head at random."""
    what, kind = "a sequence classifier", AutoModelForSequenceClassification
    loaded = load_pretrained(kind, path, what=what, dtype=torch.float32, output_loading_info=True)
    model: PreTrainedModel = loaded[0]
    if missing := sorted(loaded[1]["missing_keys"]):
        raise CheckpointError(
            f"{str(path)!r} lacks {len(missing)} weights of a classifier, such as {missing[0]!r}; pass a checkpoint "
            "that was trained to judge pairs, such as an NLI model"
        )
    return model.eval()


def _window(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Find the longest input, in tokens, that both tokenizer and position embeddings allow.

    Relative positions have no limit (XLNet states -1, T5 nothing). BART's table has two more rows, for its offset.
    """
    config = model.config
    positions: int = getattr(config, "max_position_embeddings", None) or 0
    if config.model_type in {"roberta", "xlm-roberta", "camembert"}:
        positions -= config.pad_token_id + 1  # their positions start after the padding id
    limits = [limit for limit in (positions, tokenizer.model_max_length) if 0 < limit <= UNLIMITED]
    return min(limits, default=UNSTATED_WINDOW)


def _entailment_label(labels: dict[int, str]) -> int:
    supported = [index for index, name in labels.items() if name.lower().replace("_", " ") in SUPPORTED_LABELS]
    if len(labels) == 1:
        return 0
    if len(supported) != 1:
        raise CheckpointError(
            f"expected one class named like {', '.join(SUPPORTED_LABELS)}, found the classes "
            f"{sorted(labels.values())}; pass entailment= (--aligner-entailment), the index of the class that means "
            "supported, or 'minicheck:' before the name of a MiniCheck checkpoint"
        )
    return int(supported[0])


CLAIM_SHARE = 0.5  # largest share of the window that a claim may take; a longer one is cut into parts
BUDGET_STEP = 32
_Premise = tuple[Chunk, ...]


def _read(premise: _Premise) -> str:
    """Join chunks as one text, with the title of a passage before the first of its own."""
    before = (None, *(chunk.passage for chunk in premise))
    return " ".join(
        chunk.text if chunk.passage == last else chunk.read for last, chunk in zip(before, premise, strict=False)
    )


class ClassifierAligner(OfNetwork):
    """Scores claims with an NLI, fact-checking or MiniCheck checkpoint; its ``scorer`` takes pairs that fit its window.

    The sentences of the context are packed, in order, into premises that fit the window together with the claim; all
    are scored. A claim that would take more than half of the window is cut into parts. The score of a part is the
    highest over the premises; that of the claim is the lowest over its parts, each of which needs support. The evidence
    is the sentence of the deciding premise that shares most with the deciding part.
    """

    def __init__(
        self, scorer: PairScorer, *, name: str = "classifier", options: Mapping[str, str | int] | None = None
    ) -> None:
        self.name, self.options = name, dict(options or {})
        self._model: PairScorer = scorer

    @classmethod
    def load(
        cls, path: Path | str, *, entailment: int | None = None, device: str | torch.device = "cpu"
    ) -> ClassifierAligner:
        """Load a checkpoint; see :func:`~syncheck.aligners.classifier.load_scorer`."""
        options = {} if entailment is None else {"entailment": entailment}
        return cls(load_scorer(path, entailment=entailment, device=device), name=str(path), options=options)

    @classmethod
    def load_minicheck(cls, path: Path | str, *, device: str | torch.device = "cpu") -> ClassifierAligner:
        """Load a MiniCheck checkpoint; see :func:`~syncheck.aligners.classifier.load_scorer`."""
        return cls(load_scorer(path, minicheck=True, device=device), name=f"minicheck:{path}")

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0."""
        check_asked(passages, claims)
        chunks = split_passages(passages)
        if not chunks:
            return [Support(0.0, None) for _ in claims]
        rows, most = [], int(self._model.window * CLAIM_SHARE)
        packed: dict[int, list[_Premise]] = {}
        for i, claim in enumerate(claims):
            for part in split_to_fit(claim, lambda part: self._model.length("", part) <= most):
                # In steps, so that claims of about one length share their premises.
                taken = -(-self._model.length("", part) // BUDGET_STEP) * BUDGET_STEP
                budget = self._model.window - min(taken, most)
                if budget not in packed:
                    packed[budget] = list(self._premises(chunks, budget))
                rows += [(i, part, premise) for premise in packed[budget]]
        pairs = [(_read(premise), part) for _, part, premise in rows]
        scores = scored_by_length(pairs, self._model.score, length=lambda pair: len(pair[0]) + len(pair[1]))
        best: list[dict[str, tuple[float, _Premise]]] = [{} for _ in claims]
        for (i, part, premise), score in zip(rows, scores, strict=True):
            if part not in best[i] or score > best[i][part][0]:
                best[i][part] = (score, premise)
        return [_support(passages, parts) for parts in best]

    def _premises(self, chunks: Sequence[Chunk], budget: int) -> Iterator[_Premise]:
        def fits(*premise: Chunk) -> bool:
            return self._model.length(_read(premise), "") <= budget

        def cut(chunk: Chunk) -> Iterator[_Premise]:
            parts = split_to_fit(chunk.text, lambda text: fits(replace(chunk, text=text)))
            return ((replace(chunk, text=text),) for text in parts)

        pending: _Premise = ()
        for chunk in chunks:
            if pending and fits(*pending, chunk):
                pending = (*pending, chunk)
                continue
            *whole, last = cut(chunk)
            yield from ([pending, *whole] if pending else whole)
            pending = last
        if pending:
            yield pending


def _support(passages: Sequence[str], parts: Mapping[str, tuple[float, _Premise]]) -> Support:
    """Take the lowest score over the parts of a claim, and the chunk that shares the most words with that part."""
    part, (score, premise) = min(parts.items(), key=lambda item: item[1][0])
    (best,) = EvidenceIndex((), chunks=premise).best(part, 1)
    chunk = premise[best]
    return Support(score, Evidence(chunk.passage, chunk.quoted_from(passages), score))
