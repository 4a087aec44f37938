"""The signals of a response's tokens under REFIND's prompts, by the replay that the monitor uses."""

from __future__ import annotations

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck.config import MonitorConfig
from syncheck.monitor import Monitor
from syncheck.prompts import prompt_from_texts
from syncheck.spans import SpanItem
from syncheck.types import TokenSignals

__all__ = ["TokenReplay", "refind_prompt"]

_WITH = """You are an assistant for answering questions.
Refer to the references below and answer the following question.

### References
{references}

### Question
{question}

### Answer
"""
"""REFIND, Figure 4."""

_WITHOUT = """You are an assistant for answering questions.
Answer the following question.

### Question
{question}

### Answer
"""
"""The same without what speaks of references; the paper needs none, its denominator comes from the data."""


def refind_prompt(question: str, passages: tuple[str, ...]) -> str:
    """Return REFIND's prompt (appendix A.1) for a question over passages; without passages, one without references."""
    template = _WITH if passages else _WITHOUT
    return template.format(question=question, references="\n".join(passages))


class TokenReplay:
    """Measures given responses with a causal language model, whatever model wrote them.

    Parameters
    ----------
    model
        Any that :class:`~syncheck.Monitor` takes.
    tokenizer
        Its tokenizer.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._monitor = Monitor(model, tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))

    def __call__(self, item: SpanItem) -> TokenSignals:
        """Return the signals of the response's tokens in this model's vocabulary.

        Without passages ``log_prob_without_context`` and ``kl`` are NaN.

        Raises
        ------
        PromptError
            If passages, question and response do not fit the model's window; nothing is ever cut off.
        """
        prompt = prompt_from_texts(
            self._monitor.tokenizer,
            question=item.question,
            context=item.passages,
            with_context=refind_prompt(item.question, item.passages),
            without_context=refind_prompt(item.question, ()),
        )
        return self._monitor.score(prompt, item.response).tokens
