"""Propositions of a response, by a checkpoint, and their judgement by another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from nltk.tokenize.punkt import PunktSentenceTokenizer
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from syncheck.alignment import Aligner, load_aligner
from syncheck.alignment.evidence import split_to_fit
from syncheck.errors import InputError
from syncheck.pretrained import load_pretrained, load_tokenizer

__all__ = ["AutoAis", "PropositionJudge", "Propositioner", "SequencePropositioner", "SupportJudge", "load_judge"]


Propositioner = Callable[[str], Sequence[str]]
"""Cuts a response into statements that can be judged each by itself."""

PropositionJudge = Callable[[Sequence[str], Sequence[str]], Sequence[bool]]
"""Says of each proposition (second) whether the passages (first) support it."""

PROPOSITION_PROMPT = "Title: {title}. Section: {section}. Content: {content}"  # Chen et al. 2023, published inference
AUTOAIS_PROMPT = "premise: {premise} hypothesis: {hypothesis}"  # Honovich et al. 2022
MAX_PROPOSITION_TOKENS = 512  # Chen et al. 2023, published inference
AUTOAIS_WINDOW = 2048
"""Tokens of a premise with its hypothesis; T5's relative positions have no limit of their own."""
ANSWER_TOKENS = 10
BATCH = 8


class SequencePropositioner:
    """An encoder-decoder that writes the propositions of a text as a JSON list (Chen et al., 2023).

    Parameters
    ----------
    model
        In evaluation mode.
    tokenizer
        Its tokenizer.
    max_new_tokens
        Longest list for one text.

    Notes
    -----
    A text whose list does not parse, mostly because it does not end within ``max_new_tokens``, is cut in two at a
    sentence, and each half is asked for on its own; so nothing of the text is lost.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_new_tokens: int = MAX_PROPOSITION_TOKENS,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_new_tokens = max_new_tokens

    @classmethod
    def load(cls, path: str | Path, *, device: str | torch.device = "cpu") -> SequencePropositioner:
        """Load a checkpoint: a folder, or a name such as ``chentong00/propositionizer-wiki-flan-t5-large``.

        Raises
        ------
        CheckpointError
            If it cannot be loaded.
        """
        return cls(*_seq2seq(path, device, what="a propositioner"))

    def __call__(self, text: str) -> tuple[str, ...]:
        """Return the propositions in order; a blank text has none.

        Raises
        ------
        InputError
            If the list of a single sentence does not parse.
        """
        if not text.strip():
            return ()
        prompt = PROPOSITION_PROMPT.format(title="", section="", content=text)
        (written,) = _answers(self._model, self._tokenizer, [prompt], self._max_new_tokens)
        found = _strings(written)
        if found is not None:
            return found
        starts = [start for start, _ in PunktSentenceTokenizer().span_tokenize(text)]
        if len(starts) < 2:
            raise InputError(
                f"expected the propositioner to write a JSON list of strings for {text!r}; found {written!r}. Use a "
                "checkpoint trained for it, raise max_new_tokens, or give the propositions in the record"
            )
        cut = starts[len(starts) // 2]
        return self(text[:cut].rstrip()) + self(text[cut:])


class AutoAis:
    """An encoder-decoder that answers "1" where a premise entails a hypothesis, "0" elsewhere (Honovich et al., 2022).

    Parameters
    ----------
    model
        In evaluation mode.
    tokenizer
        Its tokenizer.
    window
        Longest premise with hypothesis, in tokens.

    Notes
    -----
    The passages, joined, are one premise where they fit the window. Longer ones are cut, at passages where possible;
    a proposition is then supported if one of the premises entails it.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, window: int = AUTOAIS_WINDOW
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._window = window

    @classmethod
    def load(cls, path: str | Path, *, window: int = AUTOAIS_WINDOW, device: str | torch.device = "cpu") -> AutoAis:
        """Load a checkpoint: a folder, or a name such as ``google/t5_xxl_true_nli_mixture``, the paper's.

        Raises
        ------
        CheckpointError
            If it cannot be loaded.
        """
        return cls(*_seq2seq(path, device, what="an AutoAIS checkpoint"), window=window)

    def __call__(self, passages: Sequence[str], propositions: Sequence[str]) -> list[bool]:
        """Return whether the passages support each proposition; without passages none is.

        Raises
        ------
        InputError
            If the model answers neither "1" nor "0", or a proposition leaves no room for a premise.
        """
        pairs = [(i, premise) for i, text in enumerate(propositions) for premise in self._premises(passages, text)]
        prompts = [AUTOAIS_PROMPT.format(premise=premise, hypothesis=propositions[i]) for i, premise in pairs]
        supported = [False] * len(propositions)
        for start in range(0, len(prompts), BATCH):
            answers = _answers(self._model, self._tokenizer, prompts[start : start + BATCH], ANSWER_TOKENS)
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


def _seq2seq(
    path: str | Path, device: str | torch.device, *, what: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    model = load_pretrained(AutoModelForSeq2SeqLM, path, what=what)
    return model.eval().to(device), load_tokenizer(path)


def _answers(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str], max_new_tokens: int
) -> list[str]:
    """Decode greedily what an encoder-decoder answers to each prompt, whole."""
    inputs = tokenizer(list(prompts), padding=True, return_tensors="pt", verbose=False).to(model.device)
    with torch.inference_mode():
        output = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=max_new_tokens,
            do_sample=False,
            num_beams=1,
        )
    texts: list[str] = tokenizer.batch_decode(output, skip_special_tokens=True)
    return texts


def _strings(text: str) -> tuple[str, ...] | None:
    """Parse a JSON list of strings; None if it is none. Blank strings are left out."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(value for value in values if value.strip())


AUTOAIS = "autoais:"
SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a proposition counts as faithful."""


class SupportJudge:
    """An aligner as a judge: a proposition is faithful if the passages support it well enough.

    Parameters
    ----------
    aligner
        Any of :func:`syncheck.load_aligner`; not the one whose support is a feature of the sentences it labels, see
        :func:`syncheck.is_same_aligner`.
    threshold
        Smallest P(supported), in (0, 1], of a faithful proposition.

    Raises
    ------
    InputError
        If the threshold is outside its range.
    """

    def __init__(self, aligner: Aligner, *, threshold: float = SUPPORT_THRESHOLD) -> None:
        if not 0 < threshold <= 1:
            raise InputError(f"threshold must be in (0, 1]; found {threshold}")
        self.aligner = aligner
        self._threshold = threshold

    def __call__(self, passages: Sequence[str], propositions: Sequence[str]) -> list[bool]:
        """Return whether the passages support each proposition."""
        return [found.score >= self._threshold for found in self.aligner.align(passages, propositions)]


def load_judge(name: str | Path, *, device: str | torch.device = "cpu") -> PropositionJudge:
    """Load a judge of propositions by name.

    Parameters
    ----------
    name
        ``"autoais:"`` and the folder or name of a checkpoint for :class:`AutoAis`, the paper's
        ``autoais:google/t5_xxl_true_nli_mixture`` say; otherwise what :func:`syncheck.load_aligner` takes.
    device
        Where to run it.

    Raises
    ------
    CheckpointError
        If the checkpoint cannot be loaded.
    InputError
        If the name is ``"none"``, which judges nothing.
    """
    if str(name).startswith(AUTOAIS):
        return AutoAis.load(str(name).removeprefix(AUTOAIS), device=device)
    aligner = load_aligner(name, device=device)
    if aligner is None:
        raise InputError(
            "expected a judge; found 'none', which judges nothing. Name a checkpoint, or leave the judge out"
        )
    return SupportJudge(aligner)
