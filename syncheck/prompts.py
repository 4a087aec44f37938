"""Prompts: a question and its passages written as a pair, with and without the passages, which are cut out of chats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncheck.base.chats import write_chat
from syncheck.base.checks import check_choice, check_sequence, check_text, given_passages
from syncheck.base.errors import InputError, PromptError, WrongTypeError
from syncheck.config import Template
from syncheck.results.types import RagPrompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_QUESTION = re.compile(r"^[ \t]*(?:question|query):[ \t]*(?=\S)", re.IGNORECASE | re.MULTILINE)
"""Label of the question in a message."""
_COUNT_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}
UNANSWERABLE = "Unable to answer based on given passages."


def plain_prompt(question: str, passages: Sequence[str]) -> str:
    """Write the prompt for a model without a chat template; without passages, it has the question alone."""
    numbered = "\n".join(f"Passage {i}: {passage}" for i, passage in _numbered(passages))
    return (f"{numbered}\n\n" if numbered else "") + f"Question: {question}\nAnswer:\n"


def chat_prompt(question: str, passages: Sequence[str]) -> tuple[str, str]:
    """Write the system line and the user turn for a chat model; without passages, their counterparts.

    The question comes last, so that questions about the same passages share the beginning of their prompts.
    """
    numbered = [f"Passage {i}:\n{passage}\n\n" for i, passage in _numbered(passages)]
    if not numbered:
        return "You answer questions in two to four sentences.", f"Answer the question: {question}"
    these = "this passage" if len(numbered) == 1 else "these passages"
    return (
        "You answer questions using only the given text, in two to four sentences.",
        f"{''.join(numbered)}Using only {these}, answer the question: {question}",
    )


def ragtruth_qa_prompt(question: str, passages: Sequence[str]) -> str:
    """Write RAGTruth's QA prompt; without passages, its question-only counterpart."""
    numbered = [f"passage {i}:{passage}\n\n" for i, passage in _numbered(passages)]
    if not numbered:
        return f"Briefly answer the following question:\n{question}\noutput:"
    count = _COUNT_WORDS.get(len(numbered), str(len(numbered)))
    noun = "passage" if len(numbered) == 1 else "passages"
    return (
        f"Briefly answer the following question:\n{question}\n"
        f"Bear in mind that your response should be strictly based on the following {count} {noun}:\n"
        f"{''.join(numbered)}In case the passages do not contain the necessary information to answer the question, "
        f'please reply with: "{UNANSWERABLE}"\noutput:'
    )


def _numbered(passages: Sequence[str]) -> list[tuple[int, str]]:
    """List the passages with their numbers, from 1, without blank ones, whose numbers no other gets."""
    return [(i, passage) for i, passage in enumerate(passages, 1) if passage.strip()]


_WRITERS: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    "plain": plain_prompt,
    "ragtruth-chat": ragtruth_qa_prompt,
    "ragtruth-qa": ragtruth_qa_prompt,
}
_CHATS = ("chat", "ragtruth-chat")
"""Templates that are written by the tokenizer's chat template."""


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
    context
        The retrieved passages. Blank ones are not in the prompt, and the others keep their numbers. If all are, the
        sentences get the status ``no_context``.
    template
        ``chat``: a system line, then numbered passages and the question in one user turn of the tokenizer's chat
        template. ``plain``: numbered passages, ``Question:``, ``Answer:``. ``ragtruth-qa``: RAGTruth's QA prompt as it
        is; ``ragtruth-chat``: as one user turn. ``auto``: ``chat`` if the tokenizer has a chat template, ``plain``
        otherwise.
    system
        A system prompt for both prompts: its own turn in a chat template, in place of the line of ``chat``, otherwise a
        paragraph before the prompt. The line of ``chat`` opens the user turn where a chat template takes no system
        prompt.

    Raises
    ------
    InputError
        If the template is unknown, a chat is requested without a chat template, the chat template fails or takes no
        system prompt although there is one, or a text has a lone surrogate.
    PromptError
        If the question is blank.
    WrongTypeError
        If the question, the context or the system prompt has the wrong type.
    """
    check_text(question, "question")
    if not question.strip():
        raise PromptError("question must not be empty; pass the user's question or instruction")
    check_choice(template, "template", Template)
    if system is not None:
        check_text(system, "system")
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    chosen = ("chat" if has_chat else "plain") if template == "auto" else template
    if chosen in _CHATS and not has_chat:
        raise InputError("the tokenizer has no chat template; use template='plain' or 'ragtruth-qa'")
    passages = given_passages(context, "context")
    if chosen == "chat":
        pairs = [chat_prompt(question, given) for given in (passages, ())]
        texts = [_as_chat(tokenizer, text, system) for _, text in pairs] if system else _led(tokenizer, pairs)
    else:
        texts = [_WRITERS[chosen](question, given) for given in (passages, ())]
        if chosen in _CHATS:
            texts = [_as_chat(tokenizer, text, system) for text in texts]
        elif system:
            texts = [f"{system}\n\n{text}" for text in texts]
    prompt = _encoded(tokenizer, question, passages, *texts, special_tokens=chosen not in _CHATS)
    return replace(prompt, system=system)


def prompt_from_texts(
    tokenizer: PreTrainedTokenizerBase,
    *,
    question: str,
    context: str | Sequence[str],
    with_context: str,
    without_context: str,
    user_turns: bool = False,
) -> RagPrompt:
    """Build the pair from your own prompts, tokenised as they are with the tokenizer's special tokens.

    Parameters
    ----------
    tokenizer
        The monitored model's tokenizer.
    question, context
        The question, and the passages that sentences are checked against.
    user_turns
        True makes each prompt one user turn of the tokenizer's chat template, if there is one.

    Raises
    ------
    InputError
        If a text has a lone surrogate, or the chat template fails.
    PromptError
        If a prompt is empty, or the two are equal although there is a context.
    WrongTypeError
        If an argument has the wrong type.
    """
    for name, text in (("question", question), ("with_context", with_context), ("without_context", without_context)):
        check_text(text, name)
    passages = given_passages(context, "context")
    texts = [with_context, without_context]
    chat = user_turns and bool(getattr(tokenizer, "chat_template", None))
    if chat:
        texts = [_as_chat(tokenizer, text, None) for text in texts]
    return _encoded(tokenizer, question, passages, *texts, special_tokens=not chat)


def prompt_from_messages(
    tokenizer: PreTrainedTokenizerBase,
    *,
    messages: Sequence[Mapping[str, str]],
    context: str | Sequence[str],
    without: Sequence[Mapping[str, str]] | None = None,
    question: str | None = None,
) -> RagPrompt:
    """Build the pair from a chat of your own, with system prompt, history, and the passages where you put them.

    Parameters
    ----------
    tokenizer
        The monitored model's tokenizer, with a chat template.
    messages
        The chat with the passages, as ``apply_chat_template`` takes it: each message has a ``role`` and a ``content``.
    context
        The passages that sentences are checked against.
    without
        The chat without the passages. None removes them from ``messages`` where they occur word for word, with lines
        and bullets that contained nothing else, and leaves out a message if nothing of it remains; headings such as
        ``Passage 1:`` stay. A sentence that quotes a passage, such as the question, stays whole if the passage is also
        found outside of it.
    question
        The question that is answered; None takes the last user message without the passages, from ``Question:`` on if
        it has such a label.

    Raises
    ------
    InputError
        If there is no chat template, or it refuses the messages, or a text has a lone surrogate.
    PromptError
        If there are no messages, a passage is not found in them or only inside a sentence that says nothing without
        it, nothing but passages is, there is no question, or the two prompts are equal although there is a context.
    WrongTypeError
        If the messages are not a list of mappings with a role and a text.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise InputError("the tokenizer has no chat template; write both prompts with syncheck.prompt_from_texts")
    passages = given_passages(context, "context")
    given, left = _both_chats(messages, passages, without)
    question = _asked_in(left) if question is None else question
    check_text(question, "question")
    if not question.strip():
        raise PromptError("without the passages, no user message is left to provide the question; pass question=...")
    texts = [write_chat(tokenizer, given)]
    try:
        texts.append(write_chat(tokenizer, left))
    except InputError as error:
        raise InputError(f"without the passages, {error}; or pass the chat without them as without=[...]") from error
    return _encoded(tokenizer, question, passages, *texts, special_tokens=False)


def question_of(
    messages: Sequence[Mapping[str, str]],
    context: str | Sequence[str],
    without: Sequence[Mapping[str, str]] | None = None,
) -> str:
    """Find the question of a chat, the user's last message without the passages; errors are those of a prompt of it."""
    question = _asked_in(_both_chats(messages, given_passages(context, "context"), without)[1])
    if not question.strip():
        raise PromptError("without the passages, no user message is left to provide the question; pass a question")
    return question


def _both_chats(
    messages: Sequence[Mapping[str, str]], passages: Sequence[str], without: Sequence[Mapping[str, str]] | None
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    given = _checked_messages(messages, "messages")
    return given, _without_passages(given, passages) if without is None else _checked_messages(without, "without")


def _asked_in(chat: Sequence[Mapping[str, str]]) -> str:
    """Find the question of a chat without passages: what follows its label in the last user message, else all of it."""
    content = next((turn["content"] for turn in reversed(chat) if turn["role"] == "user"), "")
    questions = [*_QUESTION.finditer(content)]
    return content[questions[-1].end() if questions else 0 :].removesuffix("Answer:").strip()


def _checked_messages(messages: Sequence[Mapping[str, str]], name: str) -> list[dict[str, str]]:
    check_sequence(messages, name, of="messages")
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise WrongTypeError(f"{name} must be mappings with a role and a content; found {message!r:.80}")
        content = message.get("content")
        if not isinstance(content, str):
            raise WrongTypeError(
                f"the content of a message in {name} must be a string; found {type(content).__name__}. Join the texts "
                "of a list of parts, and pass '' for none"
            )
        check_text(content, f"the content of a message in {name}")
    if not messages:
        raise PromptError(f"{name} must not be empty; pass the chat up to the user's question")
    return [dict(message) for message in messages]


def _without_passages(messages: Sequence[dict[str, str]], passages: Sequence[str]) -> list[dict[str, str]]:
    """Remove the passages from the messages, and messages that contained nothing else."""
    contents = without_passages([message["content"] for message in messages], passages)
    left = [
        message | {"content": content}
        for message, content in zip(messages, contents, strict=True)
        if content.strip() or not message["content"].strip()
    ]
    if not left:
        raise PromptError("the messages contain only passages; add the question, or pass without=[...]")
    return left


def _as_chat(tokenizer: PreTrainedTokenizerBase, text: str, system: str | None) -> str:
    user = {"role": "user", "content": text}
    turns = [{"role": "system", "content": system}, user] if system else [user]
    written = write_chat(tokenizer, turns)
    if system and system not in written:
        raise InputError("the tokenizer's chat template leaves the system prompt out; write your own prompts")
    return written


def _led(tokenizer: PreTrainedTokenizerBase, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Write pairs of a system line and a user turn as chats, with the line in the turn if the template refuses it."""
    try:
        return [_as_chat(tokenizer, text, line) for line, text in pairs]
    except InputError:
        return [_as_chat(tokenizer, f"{line}\n\n{text}", None) for line, text in pairs]


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


_GONE = "\ud800"
"""Stands for a passage that was found. No text that was checked has it, and it is no part of a word."""
_MARKS = "\"'“”‘’„«»"
_BLANK = r"[^\S\n]"
_BULLET = r"(?:[-*+•‣▪–—]|\(?\d{1,3}[.)]|\[\d{1,3}\])"
_HELD_PASSAGES = re.compile(
    rf"^{_BLANK}*+{_BULLET}?+[{_MARKS} \t]*+(?:{_GONE}[{_MARKS} \t]*+)++(?:\n|\Z)", re.MULTILINE
)
"""A line that contained only passages, with a bullet or without."""
_BEFORE = re.compile(rf"[^\W\d_],?{_BLANK}+[{_MARKS}]?\Z")
_AFTER = re.compile(rf"[{_MARKS}]?(?:['’]\w+|,)?{_BLANK}+[{_MARKS}]?([^\W\d_])")
_QUESTION_MARK = re.compile(rf"[{_MARKS}]?{_BLANK}*[?？]")
_LONGEST_BEFORE = 50
"""Number of characters before a passage that are looked at."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage in a text.

    ``is_inside`` says whether it is a part of a longer sentence, and ``is_needed`` whether that says nothing without
    it: the passage is one word, or ends a question.
    """

    passage: str
    start: int
    stop: int
    is_inside: bool
    is_needed: bool


def without_passages(texts: Sequence[str], passages: Sequence[str]) -> list[str]:
    """Remove the passages from texts, with lines and bullets that contained nothing else.

    Where a passage is a part of a longer sentence, it stays if it is also found elsewhere: the sentence quotes it. One
    that is not found, or only inside a sentence that says nothing without it, raises PromptError.
    """
    numbered = _numbered(passages)
    for number, passage in numbered:
        if not any(_pattern(passage).search(text) for text in texts):
            raise PromptError(
                f"passage {number}, {passage[:60]!r}..., is not in the messages word for word; pass the "
                "passages exactly as they appear there, or pass without=[...], the messages without them"
            )
    by_text = [_places(text, [passage for _, passage in numbered]) for text in texts]
    apart = {place.passage for places in by_text for place in places if not place.is_inside}
    for text, places in zip(texts, by_text, strict=True):
        for place in places:
            if place.is_needed and place.passage not in apart:
                around = text[max(0, place.start - _LONGEST_BEFORE) : place.stop + _LONGEST_BEFORE]
                raise PromptError(
                    f"passage {passages.index(place.passage) + 1}, {place.passage[:60]!r}, is found only inside a "
                    f"sentence that says nothing without it: {around!r}; pass without=[...], the messages as they are "
                    "without the passages"
                )
    return [
        _cut(text, [place for place in places if not (place.is_inside and place.passage in apart)])
        for text, places in zip(texts, by_text, strict=True)
    ]


def _pattern(passage: str) -> re.Pattern[str]:
    """Build a pattern of a passage, word for word; one without white space is not found inside a longer word."""
    before, after = (r"(?<!\w)", r"(?!\w)") if re.fullmatch(r"\w(\S*\w)?", passage, re.ASCII) else ("", "")
    return re.compile(before + re.escape(passage) + after, re.ASCII)


def _places(text: str, passages: Sequence[str]) -> list[_Place]:
    """Find where passages are, in order; of two that overlap, the longer one."""
    spans: list[tuple[int, int, str]] = []
    for passage in sorted(dict.fromkeys(passages), key=len, reverse=True):
        spans += [(*match.span(), passage) for match in _pattern(passage).finditer(text)]
        text = _pattern(passage).sub(lambda match: _GONE * len(match[0]), text)
    return [_place(text, *span) for span in sorted(spans)]


def _place(text: str, start: int, stop: int, passage: str) -> _Place:
    """Describe a place in a text in which ``_GONE`` stands for the characters of all passages."""
    before = _BEFORE.search(text[max(0, start - _LONGEST_BEFORE) : start])
    after = _AFTER.match(text, stop) if passage[-1].isalnum() else None
    is_asked = _QUESTION_MARK.match(text, stop) is not None
    is_inside = is_asked or before is not None or (after is not None and after[1].islower())
    is_needed = is_asked or (is_inside and len(passage.split()) == 1)
    return _Place(passage, start, stop, is_inside, is_needed)


def _cut(text: str, places: Sequence[_Place]) -> str:
    """Cut the passages at these places, which are in order, from a text, and what is left empty by that."""
    pieces, end = [], 0
    for place in places:
        pieces += [text[end : place.start], _GONE]
        end = place.start + len(place.passage.rstrip())  # a line break at its end ends a line
    return _HELD_PASSAGES.sub("", "".join([*pieces, text[end:]])).replace(_GONE, "")
