"""Chat requests: strict JSON, OpenAI's chat completions, question and passages in them, and errors in that format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from syncheck.base.checks import Passage, check_choice, check_share, check_text, stripped_key
from syncheck.base.errors import InputError, SyncheckError
from syncheck.base.printable import printable, shortened
from syncheck.results.protocol import Reveal
from syncheck.results.types import SentenceScore

_TAG = re.compile(r"<(/?)(context|document|passage|source)s?\b[^<>]{0,200}>", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^[ \t]*(?:passage|document|source)[ \t]*\[?\d+\]?[ \t]*:[ \t]*(.+?)"
    r"(?=\n[ \t]*(?:passage|document|source)[ \t]*\[?\d+\]?[ \t]*:|\n[ \t]*\n|\n[ \t]*(?:question|query)[ \t]*:|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_LABELS = re.compile(r"\A(?:question|query)\s*:|\banswer\s*:\s*\Z", re.IGNORECASE)
_FIELDS = ("context", "documents")
# Fields in which an object of ``context`` or ``documents`` may have its text; the first that exists counts.
_TEXTS = ("text", "content", "contents", "page_content", "snippet", "body")
_NAMES = ("id", "doc_id", "title", "url")
_OWN = ("context", "decoder", "syncheck")  # fields of a request that an upstream server does not get
_OPTIONS = frozenset({"passages_from", "reveal", "stop_after", "stop_below"})
PassagesFrom = Literal["messages", "tools"]
"""Where passages come from beside the fields of a request. ``messages``: from all messages, if it has no such field.
``tools``: from the results of tools, together with those in a field; what people write is no passage."""
_MOST_CHOICES = 128
EACH = 100  # characters that each passage counts in addition, for the extra work that it makes


class ServiceError(Exception):
    """Error that answers a request, in OpenAI's format: HTTP status, code for programs, headers of the answer."""

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return printable(" ".join(super().__str__().split()))

    def to_dict(self) -> dict[str, Any]:
        """Write the body of the answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "code": self.code, "param": None}}


unsupported = partial(ServiceError, 400, "unsupported")  # refusal of a request that asks for what this server lacks


def unverifiable(why: str, status: int = 502) -> ServiceError:
    """Make the error of an answer that cannot be checked, which clients are told not to ask for again."""
    return ServiceError(status, "verification_failed", why, headers={"X-Should-Retry": "false"})


@contextmanager
def refusing() -> Iterator[None]:
    """Turn an error about what a client sent into one that answers its request."""
    try:
        yield
    except SyncheckError as error:
        raise ServiceError(400, "invalid_request", str(error)) from error


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Limits and defaults of a server."""

    reveal: Reveal = "verified"
    """When text is sent, if a request does not say."""
    stop_below: float | None = None
    """Score in [0, 1] below which an answer ends, if a request does not say; None ends none."""
    passages_from: PassagesFrom = "messages"
    """Where passages come from beside the fields of a request, if it does not say."""
    stop_after: bool = False
    """True if that answer ends after the sentence that scored below, False if before it, if a request does not say."""
    max_running: int = 4
    """Number of answers at a time."""
    max_waiting: int = 32
    """Number of requests that may wait; further ones get the status 429."""
    max_body: int = 2 * 2**20
    """Largest size of a request, in bytes."""
    max_context: int = 400_000
    """Largest size of question and passages, in characters; each passage counts 100 more."""
    timeout: float = 300.0
    """Time limit for an answer in seconds, including the time in the queue."""
    api_key: str | None = None
    """Key that a request must have, one line of printable ASCII; None requires none."""
    only_loopback: bool = True
    """True if requests must address this machine by a loopback name, so that pages of other sites cannot send them."""

    def __post_init__(self) -> None:
        if self.api_key is not None:
            object.__setattr__(self, "api_key", stripped_key(self.api_key, "the API key"))


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for an answer; see :class:`ServerConfig` for what it may ask for."""

    body: Mapping[str, Any]  # the client's, without the fields for this server
    question: str
    passages: tuple[str, ...]  # empty if none were found
    passage_ids: tuple[str, ...] | None  # the client's names for them
    stream: bool
    reveal: Reveal
    stop_below: float | None
    decoder: str | None  # None takes the default
    stop_after: bool = False
    awaits_passages: bool = False  # has none yet, and the answer may call tools whose results will be passages
    authorization: str | None = field(default=None, repr=False)  # the client's key for the upstream server
    tell_withheld: Callable[[SentenceScore], object] = field(default=lambda sentence: None, repr=False, compare=False)
    """Is told the sentence before which ``stop_below`` ends the answer, which is in no event."""


@refusing()
def read_chat(values: object, config: ServerConfig) -> ChatRequest:
    """Read the body of a request; one that cannot be used raises ServiceError.

    The passages are those in the field ``context`` or ``documents``, or without either those in the messages, see
    :data:`PassagesFrom`; the question is the last message of the user that has text, without passages.
    """
    if not isinstance(values, dict):
        raise InputError(f"expected a JSON object; found {type(values).__name__}")
    messages = values.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise InputError("messages must be a list of objects with role and content, at least one")
    _require_known_forms(values)
    defaults = {name: getattr(config, name) for name in _OPTIONS}
    options: dict[str, Any] = defaults | _options(values)
    check_choice(options["reveal"], "syncheck.reveal", Reveal)
    check_choice(options["passages_from"], "syncheck.passages_from", PassagesFrom)
    if options["stop_below"] is not None:
        check_share(options["stop_below"], "syncheck.stop_below")
    if not isinstance(options["stop_after"], bool):
        raise InputError(f"syncheck.stop_after must be true or false; found {options['stop_after']!r}")
    by_tools = options.pop("passages_from") == "tools"
    passages, names, question = _passages(values, messages, by_tools, config.max_context)
    _require_size(question, passages, config.max_context)
    return ChatRequest(
        body={name: value for name, value in values.items() if name not in _OWN},
        question=question,
        passages=passages,
        passage_ids=names,
        stream=values.get("stream") or False,
        decoder=values.get("decoder"),
        awaits_passages=not passages and bool(values.get("tools")) and (by_tools or values.keys().isdisjoint(_FIELDS)),
        **options,
    )


@refusing()
def read_given(values: object, config: ServerConfig) -> tuple[str, tuple[str, ...], str]:
    """Read the body of a request to score a given answer: question, passages and response; as :func:`read_chat`."""
    if not isinstance(values, dict) or not values.keys() >= {"question", "context", "response"}:
        shown = sorted(values) if isinstance(values, dict) else type(values).__name__
        raise InputError(f"expected an object with question, context and response; found {shown}")
    for name in ("question", "response"):
        check_text(values[name], name)
    passages = _listed(values["context"], "context")[0]
    _require_size(values["question"], passages, config.max_context)
    return values["question"], passages, values["response"]


def _require_size(question: str, passages: Sequence[str], most: int) -> None:
    size = len(question) + sum(map(len, passages)) + EACH * len(passages)
    if size > most:
        told = f"question and passages have {size} characters, of which {most:g} are allowed (each passage counts "
        told += f"{EACH} more); send the passages that the answer rests on"
        raise ServiceError(413, "context_too_large", told)


def _require_known_forms(values: Mapping[str, Any]) -> None:
    """Refuse fields of OpenAI's format that are read here and have another type."""
    stream, decoder, count = (values.get(name) for name in ("stream", "decoder", "n"))
    if not isinstance(stream or False, bool):
        raise InputError(f"stream must be true or false; found {stream!r}")
    if not isinstance(decoder, str | None):
        raise InputError(f"decoder must be a string; found {decoder!r}")
    if not isinstance(values.get("stream_options"), dict | None):
        raise InputError(f"stream_options must be an object; found {type(values['stream_options']).__name__}")
    if count is not None and (type(count) is not int or not 1 <= count <= _MOST_CHOICES):
        raise InputError(f"n must be a whole number from 1 to {_MOST_CHOICES}; found {shortened(repr(count), 40)}")


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    options = values.get("syncheck") or {}
    if not isinstance(options, dict) or not options.keys() <= _OPTIONS:
        shown = sorted(options.keys() - _OPTIONS) if isinstance(options, dict) else type(options).__name__
        raise InputError(f"syncheck must be an object with fields in {sorted(_OPTIONS)}; found {shown}")
    if outside := sorted(_OPTIONS & values.keys()):
        moved = json.dumps({"syncheck": {name: values[name] for name in outside}})
        raise InputError(f"{', '.join(outside)} must be inside the field syncheck; send {moved[1:-1]}")
    return options


def _passages(
    values: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], by_tools: bool, most: int
) -> tuple[tuple[str, ...], tuple[str, ...] | None, str]:
    asked = (text_of(m) for m in reversed(messages) if m.get("role") == "user")
    last = next((text for text in asked if text.strip()), "")
    question, inside = _taken_out(last)
    question = question or last.strip()
    if not question:
        raise InputError("messages must include a user message with text, the question")
    tools = [text for m in messages if m.get("role") in ("tool", "function") and (text := text_of(m)).strip()]
    for name in _FIELDS:
        if name in values:  # null, too: what people write into messages is then no passage
            passages, names = _listed(values[name], name)
            _require_size("", passages, most)
            for passage in passages:
                rest = question.replace(passage, " ").strip()
                question = rest or question
            more = tools if by_tools else []
            names = names and (*names, *(str(len(passages) + place) for place in range(len(more))))
            return (*passages, *more), names, question
    if by_tools:
        return tuple(tools), None, question
    told = (text_of(m) for m in messages if m.get("role") in ("system", "developer"))
    before = [passage for text in told for passage in _taken_out(text)[1]]
    return tuple(text for text in [*tools, *before, *inside] if text.strip()), None, question


def _listed(given: object, field: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    if given is None:
        return (), None
    if not isinstance(given, str | dict | list):
        wanted = "null, a string, an object with text, or a list of these"
        raise InputError(f"{field} must be {wanted}; found {type(given).__name__}")
    entries = given if isinstance(given, list) else [given]
    texts, names = [], []
    for index, entry in enumerate(entries):
        name, text, place = str(index), entry, f"{field}[{index}]" if isinstance(given, list) else field
        if isinstance(entry, dict):
            data = entry["data"] if isinstance(entry.get("data"), dict) else entry
            text = next((data[key] for key in _TEXTS if key in data), None)
            every = ((key, owner.get(key)) for owner in (data, entry) for key in _NAMES)
            own = {key: str(value) for key, value in every if isinstance(value, str | int)}
            name = next((own[key] for key in _NAMES if key in own), name)
            if isinstance(text, str):
                text = Passage(text, id=own.get("id", own.get("doc_id")), title=own.get("title"), url=own.get("url"))
        if not isinstance(text, str):
            found = f"{type(entry).__name__}{f' with {sorted(entry)}' if isinstance(entry, dict) else ''}"
            wanted = f"a string, or an object with its text as one of {', '.join(_TEXTS)}"
            raise InputError(f"{place} must be {wanted}; found {found}")
        check_text(text, place)
        if text.strip():
            texts.append(text)
            names.append(name)
    return tuple(texts), tuple(names) if any(isinstance(entry, dict) for entry in entries) else None


def text_of(message: Mapping[str, Any]) -> str:
    """Read the text of a message, which may be divided into parts."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    if content is None:
        return ""
    check_text(content, "the content of a message")
    return str(content)


def _taken_out(text: str) -> tuple[str, list[str]]:
    """Split a text into what is left without the passages in it, and the passages."""
    passages: list[str] = []
    rest, end = [], 0
    opened: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        if not tag[1]:
            if not opened:
                rest.append(text[end : tag.start()])
                end = tag.start()
            opened.append(tag)
        elif opened:
            begun = opened.pop()
            if begun.end() >= end:  # no element inside of it
                passages.append(text[begun.end() : tag.start()].strip())
            end = tag.end()
    rest.append(text[end:])
    if not passages:
        passages, rest = [match[1].strip() for match in _NUMBERED.finditer(text)], [_NUMBERED.sub("", text)]
    return _LABELS.sub("", "".join(rest).strip()).strip(), passages


MOST_DEPTH = 64
"""Deepest nesting that is read; Python's reader and writer give up at depths that depend on their caller."""


def read_json(data: bytes) -> Any:  # noqa: ANN401 - whatever it holds
    """Read JSON in UTF-8; other data, numbers that are not finite, and over ``MOST_DEPTH`` levels raise ValueError."""
    try:
        values = json.loads(data.decode("utf-8-sig"), parse_constant=_finite, parse_float=_finite)
        is_deep = data.count(b"[") + data.count(b"{") > MOST_DEPTH and _is_deep(values, MOST_DEPTH)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH}")
    return values


def _is_deep(value: object, depth: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (depth == 0 or any(_is_deep(each, depth - 1) for each in inner))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shortened(text, 20)} is no finite number")
    return value
