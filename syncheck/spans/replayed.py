"""The signals of a response's tokens under REFIND's prompts, by the replay that the monitor uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from syncheck.checkpoint import fingerprint
from syncheck.config import MonitorConfig
from syncheck.errors import InputError, PromptError
from syncheck.monitor import Monitor
from syncheck.prompts import prompt_from_texts
from syncheck.signals import window_of
from syncheck.spans.items import SpanItem
from syncheck.types import TokenSignals

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["TokenReplay", "TooLong", "refind_prompt"]


TooLong = Literal["refuse", "leave_out"]
"""What to do where the retrieved texts do not fit the model's window; a text is never cut."""

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
    too_long
        ``refuse``: an item that does not fit the window is an error. ``leave_out``: the texts that fit are read, in
        order, and :meth:`left_out` names the others.

    Raises
    ------
    InputError
        If ``too_long`` is unknown.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, too_long: TooLong = "refuse"
    ) -> None:
        if too_long not in get_args(TooLong):
            raise InputError(f"too_long must be one of {get_args(TooLong)}; found {too_long!r}")
        self._monitor = Monitor(model, tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        self._too_long = too_long

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells the model and its tokenizer from another pair."""
        return fingerprint(self._monitor.model, self._monitor.tokenizer)

    def __call__(self, item: SpanItem) -> TokenSignals:
        """Return the signals of the response's tokens in this model's vocabulary.

        Without passages ``log_prob_without_context`` and ``kl`` are NaN.

        Raises
        ------
        PromptError
            If passages, question and response do not fit the model's window; under ``leave_out``, if question and
            response do not, or no text does beside them.
        """
        left_out = self.left_out(item)
        passages = tuple(text for i, text in enumerate(item.passages) if i not in left_out)
        if left_out and not passages:
            raise PromptError(
                f"none of the {len(left_out)} retrieved texts fits the model's window of "
                f"{window_of(self._monitor.model)} tokens beside question and response, which take "
                f"{self._tokens(item, ())} without a text; pass shorter texts, or a model with a longer window"
            )
        prompt = prompt_from_texts(
            self._monitor.tokenizer,
            question=item.question,
            context=passages,
            with_context=refind_prompt(item.question, passages),
            without_context=refind_prompt(item.question, ()),
        )
        return self._monitor.score(prompt, item.response).tokens

    def left_out(self, item: SpanItem) -> tuple[int, ...]:
        """Return the places of the item's passages that are not read, from 0; always none under ``refuse``.

        A text is left out if it does not fit beside question, response and the texts before it that do.
        """
        window = window_of(self._monitor.model)
        if self._too_long == "refuse" or window is None or self._tokens(item, item.passages) <= window:
            return ()
        kept: tuple[str, ...] = ()
        left_out = []
        for i, text in enumerate(item.passages):
            if self._tokens(item, (*kept, text)) <= window:
                kept += (text,)
            else:
                left_out.append(i)
        return tuple(left_out)

    def fits(self, item: SpanItem) -> bool:
        """Whether the item can be measured: with all its texts, or under ``leave_out`` with one of them."""
        left_out = self.left_out(item)
        passages = tuple(text for i, text in enumerate(item.passages) if i not in left_out)
        window = window_of(self._monitor.model)
        return bool(passages or not left_out) and (window is None or self._tokens(item, passages) <= window)

    def _tokens(self, item: SpanItem, passages: tuple[str, ...]) -> int:
        tokenizer = self._monitor.tokenizer
        prompt = tokenizer(refind_prompt(item.question, passages), verbose=False)["input_ids"]
        return len(prompt) + len(tokenizer(item.response, add_special_tokens=False, verbose=False)["input_ids"])
