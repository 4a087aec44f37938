"""Propositions: propositioners split an answer into them, and judges label each by the passages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch

from syncheck.aligners import Aligner, LocalTextGenerator, TextGenerator, load_aligner
from syncheck.base.errors import CheckpointError, InputError, TextGeneratorError
from syncheck.base.pretrained import load_pretrained, load_tokenizer
from syncheck.reading.evidence import split_to_fit
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
        propositions = _strings(answer[answer.find("[") : answer.rfind("]") + 1])
        if propositions is None:
            raise TextGeneratorError(
                f"expected {self.name!r} to write a JSON list of strings for {text[:SHOWN_CHARACTERS]!r}; found "
                f"{answer[:SHOWN_CHARACTERS]!r}. Use a larger checkpoint, or one trained to write propositions"
            )
        return propositions


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
        propositions = _strings(written)
        if propositions is not None:
            return propositions
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


PropositionJudge = Callable[[Sequence[str], Sequence[str]], Sequence[bool]]
"""Function of passages and propositions that returns, for each proposition, True if the passages support it."""

AUTOAIS = "autoais:"
AUTOAIS_PROMPT = "premise: {premise} hypothesis: {hypothesis}"  # Honovich et al. 2022
AUTOAIS_WINDOW = 2048
"""Largest length, in tokens, of a premise with its hypothesis; T5's relative positions have no limit."""
ANSWER_TOKENS = 10
BATCH = 8
SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a proposition counts as faithful."""


class AutoAis(EncoderDecoder):
    """Judge that is an encoder-decoder which answers "1" if a premise entails a hypothesis (Honovich et al., 2022).

    The joined passages are one premise if it fits the ``window``, in tokens, together with the hypothesis. Otherwise
    they are cut, if possible between passages, and a proposition is supported if one of the premises entails it.
    """

    kind = "an AutoAIS checkpoint"

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, window: int = AUTOAIS_WINDOW
    ) -> None:
        super().__init__(model, tokenizer)
        self._window = window

    def __call__(self, passages: Sequence[str], propositions: Sequence[str]) -> list[bool]:
        """Judge for each proposition whether the passages support it; without passages, none is supported.

        An answer other than "0" or "1", or a proposition that does not fit the window, raises InputError.
        """
        pairs = [(i, premise) for i, text in enumerate(propositions) for premise in self._premises(passages, text)]
        prompts = [AUTOAIS_PROMPT.format(premise=premise, hypothesis=propositions[i]) for i, premise in pairs]
        supported = [False] * len(propositions)
        for start in range(0, len(prompts), BATCH):
            answers = self.answers(prompts[start : start + BATCH], ANSWER_TOKENS)
            for (i, _), answer in zip(pairs[start : start + BATCH], answers, strict=True):
                if answer.strip() not in ("0", "1"):
                    raise InputError(
                        f"expected the judge to answer '1' or '0'; found {answer!r} for {propositions[i]!r}. Use an "
                        "AutoAIS checkpoint such as google/t5_xxl_true_nli_mixture, or give the labels in the record"
                    )
                supported[i] = supported[i] or answer.strip() == "1"
        return supported

    def _premises(self, passages: Sequence[str], proposition: str) -> Iterator[str]:
        def fits(premise: str) -> bool:
            prompt = AUTOAIS_PROMPT.format(premise=premise, hypothesis=proposition)
            return len(self._tokenizer(prompt, verbose=False)["input_ids"]) <= self._window

        if not fits(""):
            raise InputError(
                f"a proposition leaves no room for a premise in {self._window} tokens: {proposition!r}; raise window"
            )
        pending = ""
        for part in (part for passage in passages if passage.strip() for part in split_to_fit(passage, fits)):
            joined = f"{pending}\n{part}" if pending else part
            if fits(joined):
                pending = joined
            else:
                yield pending
                pending = part
        if pending:
            yield pending


class SupportJudge:
    """Judge by an aligner: a proposition is faithful if its support reaches a threshold.

    The threshold is in (0, 1]; another raises InputError. The aligner must not be the one whose support is a feature of
    the sentences that are labelled; see :func:`syncheck.aligners.is_same_aligner`.
    """

    def __init__(self, aligner: Aligner, *, threshold: float = SUPPORT_THRESHOLD) -> None:
        if not 0 < threshold <= 1:
            raise InputError(f"threshold must be in (0, 1]; found {threshold}")
        self.aligner = aligner
        self._threshold = threshold

    def __call__(self, passages: Sequence[str], propositions: Sequence[str]) -> list[bool]:
        """Judge for each proposition whether the passages support it."""
        return [support.score >= self._threshold for support in self.aligner.align(passages, propositions)]


def load_judge(name: str | Path, *, device: str | torch.device = "cpu") -> PropositionJudge:
    """Load a judge of propositions by name.

    ``"autoais:"`` and the folder or name of a checkpoint give an :class:`AutoAis`, such as the paper's
    ``autoais:google/t5_xxl_true_nli_mixture``; other names are those of :func:`syncheck.load_aligner`.
    """
    if str(name).startswith(AUTOAIS):
        return AutoAis.load(str(name).removeprefix(AUTOAIS), device=device)
    aligner = load_aligner(name, device=device)
    if aligner is None:
        raise InputError("expected a judge; found 'none'. Name a checkpoint, or leave the judge out")
    return SupportJudge(aligner)
