"""Propositioners: split an answer into propositions, by rules or with a checkpoint that writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch

from syncheck.aligners import LocalTextGenerator, TextGenerator
from syncheck.base.errors import CheckpointError, InputError, TextGeneratorError
from syncheck.base.pretrained import load_pretrained, load_tokenizer
from syncheck.text.sentences import Punkt

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Propositioner = Callable[[str], Sequence[str]]
"""Function that splits a response into statements that can be checked one by one."""

RULES = "rules"
"""Name of the rule-based splitter wherever a propositioner is named."""

INSTRUCTION = (
    "Break the text below into independent facts. Each fact is one short sentence that can be understood without the "
    "others: replace pronouns by what they stand for. Leave nothing out and add nothing. Answer with a JSON list of "
    "strings and nothing else.\n\nText: {text}"
)
"""Prompt for an instruct model, after Min et al. (2023) and Chen et al. (2023)."""
PROPOSITION_PROMPT = "Title: {title}. Section: {section}. Content: {content}"  # Chen et al. 2023, published inference
MAX_PROPOSITION_TOKENS = 512  # Chen et al. 2023, published inference
SHOWN_CHARACTERS = 200
LEAST_WORDS = 4
"""Number of words that each side of a conjunction needs to count as a separate statement."""

_JOINT = re.compile(r"\s*;\s+|,\s+(?:and|but|while|whereas)\s+")
_WORD = re.compile(r"\w+")


class RuleBasedPropositioner:
    """Propositioner without a model, which splits a text at sentences, semicolons and conjunctions.

    It is a stand-in for a trained propositioner: it does not replace pronouns with names or add missing subjects, so
    its propositions are not decontextualised like those of the paper (Chen et al., 2023). Say so when you publish
    figures that rest on it; its ``name`` is ``"rules"``.

    Sentences are those of NLTK's untrained Punkt. A sentence is cut at every semicolon, and at a comma before "and",
    "but", "while" or "whereas" if there are at least four words on either side.
    """

    name = RULES

    def __call__(self, text: str) -> tuple[str, ...]:
        """Split into propositions, in order; a text without letters and digits has none."""
        return tuple(piece for sentence in Punkt().texts(text) for piece in _pieces(sentence))


class InstructPropositioner:
    """Propositioner that prompts an instruct model for the propositions of a text as a JSON list.

    The model is a text generator, such as a :class:`syncheck.aligners.LocalTextGenerator`.
    """

    def __init__(self, evaluator: TextGenerator) -> None:
        self.name = evaluator.name
        self._evaluator = evaluator

    def __call__(self, text: str) -> tuple[str, ...]:
        """Split into propositions, in order; a blank text has none and is not sent to the model.

        An answer without a JSON list of strings raises TextGeneratorError.
        """
        if not text.strip():
            return ()
        answer = self._evaluator(INSTRUCTION.format(text=text))
        found = _strings(answer[answer.find("[") : answer.rfind("]") + 1])
        if found is None:
            raise TextGeneratorError(
                f"expected {self.name!r} to write a JSON list of strings for {text[:SHOWN_CHARACTERS]!r}; found "
                f"{answer[:SHOWN_CHARACTERS]!r}. Use a larger checkpoint, or one trained to write propositions"
            )
        return found


class EncoderDecoder:
    """Base for encoder-decoders in evaluation mode that answer prompts greedily."""

    kind: ClassVar[str]
    """Name of such a checkpoint in errors."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, path: str | Path, *, device: str | torch.device = "cpu", **options: int) -> Self:
        """Load a checkpoint by folder or name; ``options`` are those of the class."""
        from transformers import AutoModelForSeq2SeqLM

        model = load_pretrained(AutoModelForSeq2SeqLM, path, what=cls.kind)
        return cls(model.eval().to(device), load_tokenizer(path), **options)

    def answers(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """Generate the answer to each prompt."""
        inputs = self._tokenizer(list(prompts), padding=True, return_tensors="pt", verbose=False).to(self._model.device)
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=max_new_tokens,
                do_sample=False,
                num_beams=1,
            )
        texts: list[str] = self._tokenizer.batch_decode(output, skip_special_tokens=True)
        return texts


class SequencePropositioner(EncoderDecoder):
    """Propositioner that is an encoder-decoder which writes propositions as a JSON list (Chen et al., 2023).

    If the list cannot be parsed, usually because it does not end within ``max_new_tokens``, the text is cut in two
    between sentences and each half is split separately, so that nothing is lost.
    """

    kind = "a propositioner"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_new_tokens: int = MAX_PROPOSITION_TOKENS,
    ) -> None:
        super().__init__(model, tokenizer)
        self._max_new_tokens = max_new_tokens

    def __call__(self, text: str) -> tuple[str, ...]:
        """Split into propositions, in order; a blank text has none."""
        if not text.strip():
            return ()
        prompt = PROPOSITION_PROMPT.format(title="", section="", content=text)
        (written,) = self.answers([prompt], self._max_new_tokens)
        found = _strings(written)
        if found is not None:
            return found
        starts = [start for start, _ in Punkt().spans(text)]
        if len(starts) < 2:
            raise InputError(
                f"expected the propositioner to write a JSON list of strings for {text!r}; found {written!r}. Use a "
                "checkpoint trained for it, raise max_new_tokens, or give the propositions in the record"
            )
        cut = starts[len(starts) // 2]
        return self(text[:cut].rstrip()) + self(text[cut:])


def load_propositioner(name: str | Path, *, device: str | torch.device = "cpu") -> Propositioner:
    """Load a propositioner: ``"rules"`` names :class:`RuleBasedPropositioner`, other names are those of checkpoints.

    A checkpoint may be a folder. An encoder-decoder writes propositions as Chen et al. (2023) trained theirs to, such
    as the paper's ``chentong00/propositionizer-wiki-flan-t5-large``; any other model gets a prompt in words.
    """
    if str(name) == RULES:
        return RuleBasedPropositioner()
    try:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"cannot load a propositioner from {str(name)!r}: {error}. Pass {RULES!r}, a folder with config.json, the "
            "weights and the tokenizer's files, or the name of a model that can be downloaded or is in the cache"
        ) from error
    if config.is_encoder_decoder:
        return SequencePropositioner.load(name, device=device)
    return InstructPropositioner(LocalTextGenerator.load(name, device=device))


def _pieces(sentence: str) -> Iterator[str]:
    start = 0
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        is_strong = ";" in joint.group()
        if is_strong or min(len(_WORD.findall(left)), len(_WORD.findall(right))) >= LEAST_WORDS:
            if _WORD.search(left):
                yield left.strip()
            start = joint.end()
    if _WORD.search(sentence[start:]):
        yield sentence[start:].strip()


def _strings(text: str) -> tuple[str, ...] | None:
    """Parse a JSON list of strings, without blank ones; None if it is not such a list."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(value for value in values if value.strip())
