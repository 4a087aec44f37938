"""Judges of propositions: AutoAIS checkpoints and aligners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from syncheck.aligners import Aligner, load_aligner
from syncheck.base.errors import InputError
from syncheck.labelling.propositioners import EncoderDecoder
from syncheck.reading.evidence import split_to_fit

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
        return [found.score >= self._threshold for found in self.aligner.align(passages, propositions)]


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
