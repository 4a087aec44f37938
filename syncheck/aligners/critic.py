"""CriticTok: the support of a sentence by the [IsSup] tokens of a Self-RAG checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from syncheck.aligners.classifier import ClassifierAligner
from syncheck.aligners.protocol import OfNetwork
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.pretrained import load_model
from syncheck.results.types import Support

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SUPPORT_TOKENS = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
PROMPT = (
    "### Instruction:\n{instruction}\n\n### Response:\n[Retrieval]<paragraph>{premise}</paragraph>[Relevant]{claim}"
)
"""Prefix of the paper's appendix C in Self-RAG's format (Asai et al., 2024)."""

INSTRUCTION_SHARE = 0.25
"""Largest share of the window that the instruction may take; passages and claim share the rest."""


class CriticAligner(OfNetwork):
    """Scores claims by the critique tokens of a Self-RAG checkpoint (CriticTok of the paper, section 4.1).

    Parameters
    ----------
    model, tokenizer
        A causal language model that was trained with Self-RAG's tokens, in evaluation mode, and its tokenizer.
    name
        Stored with a monitor: ``"critic:"`` and the checkpoint, so that :func:`load_aligner` finds it.
    instruction
        The question that the response answers; a monitor passes its own, see :meth:`about`.

    Raises
    ------
    InputError
        If the instruction takes more than a quarter of the window.

    Notes
    -----
    The score is P([Fully supported]), directly after the claim, divided by the sum of the three tokens' probabilities.
    The paper divides by the sum of the other two, which gives the odds of the same share: these rank sentences alike,
    but are not a probability. A context that does not fit is scored in parts; see :class:`ClassifierAligner`.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str = "critic", instruction: str = ""
    ) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        scorer = _CriticScorer(model, tokenizer, instruction)
        taken, most = scorer.length("", ""), int(scorer.window * INSTRUCTION_SHARE)
        if taken > most:
            raise InputError(
                f"the instruction takes {taken} tokens of a window of {scorer.window}; expected at most {most}, so "
                "that passages and claim fit. Shorten the question"
            )
        self._pairs = ClassifierAligner(scorer, name=name)

    @classmethod
    def load(cls, path: Path | str, *, device: str | torch.device = "cpu") -> CriticAligner:
        """Load a Self-RAG checkpoint by folder or name: float32 on a CPU, its own type elsewhere."""
        return cls(*load_model(path, device), name=f"critic:{path}")

    def about(self, question: str) -> CriticAligner:
        """Bind the question that the claims answer."""
        return CriticAligner(self._model, self._tokenizer, name=self.name, instruction=question)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0."""
        return self._pairs.align(passages, claims)


class _CriticScorer:
    """Reads the critique of one pair that fits the window."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, instruction: str) -> None:
        vocabulary = tokenizer.get_vocab()
        if missing := [token for token in SUPPORT_TOKENS if token not in vocabulary]:
            raise CheckpointError(
                f"expected a Self-RAG checkpoint, whose vocabulary has {', '.join(SUPPORT_TOKENS)}; "
                f"found none of {', '.join(missing)}"
            )
        self._model = model
        self._tokenizer = tokenizer
        self._instruction = instruction
        self._support = [vocabulary[token] for token in SUPPORT_TOKENS]
        positions: int = model.config.get_text_config().max_position_embeddings
        self.window = min(positions, int(tokenizer.model_max_length))

    def length(self, premise: str, claim: str) -> int:
        """Count the tokens of the prompt."""
        return len(self._ids(premise, claim))

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Compute the share of [Fully supported] for each pair, with a forward pass each, so that no row is padded."""
        return [self._share(*pair) for pair in pairs]

    def _share(self, premise: str, claim: str) -> float:
        ids = torch.tensor([self._ids(premise, claim)], device=self._model.device)
        with torch.inference_mode():
            logits = self._model(input_ids=ids, logits_to_keep=1).logits[0, -1].float()  # (V,)
        return float(logits[self._support].softmax(-1)[0])

    def _ids(self, premise: str, claim: str) -> list[int]:
        text = PROMPT.format(instruction=self._instruction, premise=premise, claim=claim)
        ids: list[int] = self._tokenizer(text, verbose=False)["input_ids"]
        return ids
