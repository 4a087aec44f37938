"""A question and its passages as the pair of prompts, with and without the passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from transformers import PreTrainedTokenizerBase

from syncheck.chats import write_chat
from syncheck.config import Template
from syncheck.errors import InputError, PromptError, WrongTypeError
from syncheck.given import check_text, check_texts
from syncheck.templates import biography_prompt, plain_prompt, ragtruth_qa_prompt
from syncheck.types import RagPrompt

__all__ = ["build_prompt", "passages_of", "plain_prompt", "prompt_from_texts", "ragtruth_qa_prompt"]

_WRITERS: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    "biography": biography_prompt,
    "plain": plain_prompt,
    "chat": ragtruth_qa_prompt,
    "ragtruth-qa": ragtruth_qa_prompt,
}


def passages_of(context: str | Sequence[str]) -> tuple[str, ...]:
    """Bring a context to a tuple of passages; one string is one passage, an empty one none.

    Raises
    ------
    InputError
        If a passage holds half of a character.
    WrongTypeError
        If ``context`` is neither a string nor a sequence of strings.
    """
    if isinstance(context, str):
        context = (context,)
    if not isinstance(context, Sequence) or not all(isinstance(p, str) for p in context):
        raise WrongTypeError(
            f"context must be a string or a list of strings; found {type(context).__name__} "
            "(pass context='' for a context that is known to be empty)"
        )
    check_texts(context, "context")
    return tuple(passage for passage in context if passage.strip())


def build_prompt(
    tokenizer: PreTrainedTokenizerBase,
    *,
    question: str,
    context: str | Sequence[str],
    template: Template = "auto",
    system: str | None = None,
) -> RagPrompt:
    """Build the pair of prompts of a question.

    Parameters
    ----------
    tokenizer
        The monitored model's tokenizer.
    question
        What the user asks.
    context
        The retrieved passages. Empty is allowed: the sentences then get the status ``no_context``.
    template
        ``chat``: RAGTruth's QA prompt as one user turn of the tokenizer's chat template. ``plain``: numbered
        passages, ``Question:``, ``Answer:``. ``ragtruth-qa``: RAGTruth's QA prompt as it stands. ``biography``: the
        paper's prompt for biographies. ``auto``: ``chat`` when the tokenizer has a chat template, ``plain`` otherwise.
    system
        A system prompt: its own turn in a chat template, a paragraph before the prompt otherwise. Both prompts have it.

    Raises
    ------
    InputError
        If the template is unknown, ``chat`` is asked for without a chat template, the chat template takes no system
        prompt, or a text holds half of a character (a lone surrogate).
    WrongTypeError
        If question or context have another type.
    """
    check_text(question, "question")
    if not question.strip():
        raise PromptError("question must not be empty; pass the user's question or instruction")
    if template not in get_args(Template):
        raise InputError(f"template must be one of {get_args(Template)}; found {template!r}")
    if system is not None:
        check_text(system, "system")
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    chosen = ("chat" if has_chat else "plain") if template == "auto" else template
    if chosen == "chat" and not has_chat:
        raise InputError("the tokenizer has no chat template; use template='plain' or 'ragtruth-qa'")
    passages = passages_of(context)
    texts = [_WRITERS[chosen](question, given) for given in (passages, ())]
    if chosen == "chat":
        texts = [_as_chat(tokenizer, text, system) for text in texts]
    elif system:
        texts = [f"{system}\n\n{text}" for text in texts]
    return _encoded(tokenizer, question, passages, *texts, special_tokens=chosen != "chat")


def prompt_from_texts(
    tokenizer: PreTrainedTokenizerBase,
    *,
    question: str,
    context: str | Sequence[str],
    with_context: str,
    without_context: str,
    user_turns: bool = False,
) -> RagPrompt:
    """Build the pair from prompts the caller wrote, tokenised as they are with their own special tokens.

    Parameters
    ----------
    tokenizer
        The monitored model's tokenizer.
    question, context
        What they ask, and the passages that sentences are held against.
    with_context, without_context
        The prompts.
    user_turns
        Whether the prompts are what a user says: each becomes one turn of the tokenizer's chat template, if it has one.

    Raises
    ------
    InputError
        If a text holds half of a character (a lone surrogate).
    PromptError
        If the two are equal although there is a context.
    WrongTypeError
        If one of them is no string.
    """
    for name, text in (("question", question), ("with_context", with_context), ("without_context", without_context)):
        check_text(text, name)
    passages = passages_of(context)
    texts = [with_context, without_context]
    chat = user_turns and bool(getattr(tokenizer, "chat_template", None))
    if chat:
        texts = [_as_chat(tokenizer, text, None) for text in texts]
    return _encoded(tokenizer, question, passages, *texts, special_tokens=not chat)


def _as_chat(tokenizer: PreTrainedTokenizerBase, text: str, system: str | None) -> str:
    user = {"role": "user", "content": text}
    turns = [{"role": "system", "content": system}, user] if system else [user]
    written = write_chat(tokenizer, turns)
    if system and system not in written:
        raise InputError("the tokenizer's chat template leaves the system prompt out; write prompts of your own")
    return written


def _encoded(
    tokenizer: PreTrainedTokenizerBase,
    question: str,
    passages: tuple[str, ...],
    with_context: str,
    without_context: str,
    *,
    special_tokens: bool,
) -> RagPrompt:
    # A chat template writes its special tokens into the text; adding them again would double the first. Whether the
    # prompts fit the model's window is checked where they meet it, so the tokenizer need not warn.
    with_ids, without_ids = (
        tuple(tokenizer(text, add_special_tokens=special_tokens, verbose=False)["input_ids"])
        for text in (with_context, without_context)
    )
    return RagPrompt(question, passages, with_context, without_context, with_ids, without_ids)
