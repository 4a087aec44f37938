"""The same prompt with other passages: the way a prompt was built, found again from the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from syncheck import Monitor, RagPrompt
from syncheck.errors import InputError, WrongTypeError

__all__ = ["PromptBuilder", "builder_of", "rebuilt"]

PromptBuilder = Callable[[str, Sequence[str]], RagPrompt]
"""Makes a prompt of a question and passages."""

_MARK = "syncheck-system-prompt"
"""Stands where a system prompt would, to see what a template writes around it."""


def builder_of(monitor: Monitor, prompt: RagPrompt) -> PromptBuilder:
    """Return what makes this prompt of its question and passages, a system prompt included.

    Parameters
    ----------
    monitor
        Whose template is tried.
    prompt
        From ``monitor.prompt``.

    Raises
    ------
    InputError
        If ``monitor.prompt`` does not give this very prompt, with or without a system prompt: it has texts of its own
        or is of another template.
    """
    for system in (None, _system_of(monitor, prompt)):
        try:
            is_same = _built(monitor, system, prompt.question, prompt.passages) == prompt
        except InputError:  # the chat template refuses what only looks like a system prompt
            is_same = False
        if is_same:
            return partial(_built, monitor, system)
    raise InputError(
        "expected a prompt of monitor.prompt(question=..., context=..., system=...), which can be built again with the "
        "passages that are retrieved; found one with texts of its own or of another template. Pass "
        "build_prompt=callable, which takes a question and passages and returns a prompt"
    )


def rebuilt(build: PromptBuilder, question: str, passages: Sequence[str]) -> RagPrompt:
    """Build a prompt with passages that were retrieved.

    Raises
    ------
    WrongTypeError
        If the callable returns something else.
    InputError
        If its prompt has no passages.
    """
    prompt = build(question, passages)
    if not isinstance(prompt, RagPrompt):
        raise WrongTypeError(f"build_prompt must return a RagPrompt; found {type(prompt).__name__}")
    if not prompt.has_context:
        raise InputError("build_prompt returned a prompt without passages; put those that it is given into it")
    return prompt


def _built(monitor: Monitor, system: str | None, question: str, passages: Sequence[str]) -> RagPrompt:
    return monitor.prompt(question=question, context=passages, system=system)


def _system_of(monitor: Monitor, prompt: RagPrompt) -> str | None:
    """Return what stands where a system prompt would, None where the template has no such place."""
    try:
        marked = _built(monitor, _MARK, prompt.question, prompt.passages).with_context
    except InputError:  # the chat template takes no system prompt
        return None
    before, _, after = marked.partition(_MARK)
    text = prompt.with_context
    if len(text) <= len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
        return None
    return text[len(before) : len(text) - len(after)]
