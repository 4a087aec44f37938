"""Upstream server: requests to it, and its answers, which are limited, and whose failures are put in our own words."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from syncheck.base.checks import stripped_key
from syncheck.base.errors import InputError
from syncheck.base.printable import one_line
from syncheck.serving.allowed import invalid
from syncheck.serving.chat import ServiceError, read_json
from syncheck.serving.limits import Deadline

MOST_BODY = 16 * 2**20  # bytes of a body, and of a line of a stream
MOST_STREAM = 16 * MOST_BODY
MOST_REFUSAL = 2**16  # bytes that are read of a refusal
_CONNECT_SECONDS = 10.0
_SHORTEST_SECRET = 8  # characters of a key that is looked for in answers; a shorter one is a placeholder, such as "-"
# What Retry-After may be: seconds or a date.
_WHEN = re.compile(r"\d{1,9}|[A-Za-z]{3}, \d{2} [A-Za-z]{3} \d{4} \d{2}:\d{2}:\d{2} GMT", re.ASCII)
_invalid = partial(ServiceError, 502, "upstream_invalid")


class Upstream:
    """An OpenAI-compatible server, to whose address paths such as ``/chat/completions`` are added.

    Without an ``api_key``, the client's ``Authorization`` is passed on. ``timeout`` is the longest wait for a byte, in
    seconds; ``transport`` None connects over the network. If the address is not one of HTTP, or the key is not one line
    of printable ASCII, InputError is raised.
    """

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            url = httpx.URL(address)
            is_http = url.scheme in ("http", "https") and bool(url.host) and " " not in url.host
            is_http = is_http and not url.query and 0 < (url.port or 1) < 1 << 16
        except httpx.InvalidURL:
            is_http = False
        if not is_http:
            raise InputError("the upstream must be an address such as http://HOST:PORT/v1, without a query")
        self.address = address.rstrip("/")
        self._api_key = None if api_key is None else stripped_key(api_key, "the key for the upstream")
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            headers={"Accept-Encoding": "identity"},  # compressed data can expand a thousandfold
            transport=transport,
        )
        self.close = self._client.aclose

    @asynccontextmanager
    async def asked(self, path: str, authorization: str | None, body: object = None) -> AsyncIterator[Answer]:
        """Send a request, by POST if it has a body, and keep its answer open; a failure is a ServiceError."""
        key = f"Bearer {self._api_key}" if self._api_key is not None else authorization
        headers = {} if key is None else {"Authorization": key}
        method, content = "GET", None
        if body is not None:
            method = "POST"
            headers["Content-Type"] = "application/json"
            try:
                content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
            except ValueError as error:  # half a character, which JSON can hold and UTF-8 cannot
                raise ServiceError(400, "invalid_request", f"the request cannot be passed on: {error}") from error
        request = self._client.build_request(method, self.address + path, content=content, headers=headers)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.TimeoutException as error:
            raise _late(error) from error
        except httpx.HTTPError as error:
            why = _what_happened(error, _secrets_of(key))
            raise ServiceError(502, "upstream_unreachable", f"the upstream cannot be reached: {why}") from error
        async with aclosing(response):
            answer = Answer(response, _secrets_of(key))
            await answer.require_success()
            yield answer

    async def streamed(
        self, path: str, body: Mapping[str, Any], authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Ask for a stream, and yield its chunks; nothing is awaited after the deadline."""
        async with AsyncExitStack() as opened:
            async with deadline.waiting():
                answer = await opened.enter_async_context(self.asked(path, authorization, body))
            async with aclosing(answer.chunks(deadline)) as chunks:
                async for chunk in chunks:
                    yield chunk


@dataclass(eq=False)
class Answer:
    """The answer of the upstream server to a request; a failure is a :class:`ServiceError`."""

    _response: httpx.Response
    _secrets: Sequence[bytes]

    async def object(self) -> dict[str, Any]:
        """Read the body, which must be a JSON object and no error."""
        data = await self._read(MOST_BODY)
        if len(data) > MOST_BODY:
            raise _invalid(f"the upstream's answer has over {MOST_BODY} bytes")
        return self._checked(data)

    async def chunks(self, deadline: Deadline) -> AsyncGenerator[dict[str, Any]]:
        """Yield the JSON objects of a stream of events up to ``[DONE]``; none is awaited after the deadline."""
        if "text/event-stream" not in self._response.headers.get("content-type", ""):
            raise _invalid("the upstream did not answer with an event stream")
        async for data in _data_of(self._pieces(deadline)):
            if data == b"[DONE]":
                return
            yield self._checked(data)

    async def require_success(self) -> None:
        """Raise ServiceError for a refusal, a redirect, and compressed data, which can expand a thousandfold."""
        response = self._response
        if (packed := response.headers.get("content-encoding", "identity")) != "identity":
            packed = f"packed as {one_line(packed, 40)}, although it was asked not to pack it"
            raise _invalid(f"the upstream's answer is {packed}")
        if response.is_error:
            data = _without(self._secrets, (await self._read(MOST_REFUSAL))[:MOST_REFUSAL])
            said = _said(_parsed(data))
            if said is None:
                # A 404 without an error in OpenAI's format is a wrong address: for an unknown model, servers send
                # such an error.
                where = "; --upstream must be the address before /chat/completions, such as http://localhost:8000/v1"
                said = one_line(data.decode(errors="replace")) + (where if response.status_code == 404 else "")
            when = response.headers.get("retry-after", "")
            kept = {"Retry-After": when} if _WHEN.fullmatch(when) else {}
            raise ServiceError(response.status_code, "upstream_refused", f"the upstream refused: {said}", headers=kept)
        if not response.is_success:
            why = f"the upstream answered with the status {response.status_code}, and redirects are not followed; "
            raise _invalid(why + "--upstream must be the address that answers")

    async def _read(self, most: int) -> bytes:
        """Read the body, or a little more than ``most`` bytes of it."""
        data = bytearray()
        try:
            async for piece in self._response.aiter_bytes():
                data += piece
                if len(data) > most:
                    break
        except httpx.TimeoutException as error:
            raise _late(error) from error
        except httpx.HTTPError as error:
            raise incomplete(_what_happened(error, self._secrets)) from error
        return bytes(data)

    async def _pieces(self, deadline: Deadline) -> AsyncIterator[bytes]:
        pieces, count = self._response.aiter_bytes(), 0
        try:
            while True:
                async with deadline.waiting():
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                count += len(piece)
                if count > MOST_STREAM:
                    raise _invalid(f"the upstream's stream has over {MOST_STREAM} bytes")
                yield piece
        except httpx.HTTPError as error:
            raise incomplete(_what_happened(error, self._secrets)) from error

    def _checked(self, data: bytes) -> dict[str, Any]:
        """Parse an object that is no error, and remove the key from it."""
        data = _without(self._secrets, data)
        values = _parsed(data)
        if not isinstance(values, dict):
            # not quoted: they may be text of the model
            raise _invalid(f"the upstream sent {len(data)} bytes that are no JSON object")
        if values.get("error"):
            told = _said(values) or "it does not say which"
            raise ServiceError(502, "upstream_error", f"the upstream's answer ended with an error: {told}")
        return values


async def _data_of(source: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the data of server-sent events.

    Lines of data that are JSON together are one event; others are one each, for servers that leave out the blank line.
    """
    data: list[bytes] = []
    held = 0
    async for line in _lines(source):
        name, _, value = line.partition(b":")
        if name.strip().removeprefix(codecs.BOM_UTF8) == b"data" and value.strip():
            data.append(value.strip())
            held += len(line)
            if held > MOST_BODY:
                raise _invalid(f"an event of the upstream's stream has over {MOST_BODY} bytes")
        elif not line.strip():
            joined = b"\n".join(data)
            for event in data if len(data) < 2 or _parsed(joined) is None else [joined]:
                yield event
            data, held = [], 0


async def _lines(source: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield complete lines, which end in a line feed, a carriage return or both, and at the end an empty one."""
    rest: list[bytes] = []
    held, is_returned = 0, False
    async for piece in source:
        text = piece[1:] if is_returned and piece.startswith(b"\n") else piece
        is_returned = piece.endswith(b"\r") if piece else is_returned
        *ended, last = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for part in ended:
            yield b"".join([*rest, part])
            rest, held = [], 0
        rest.append(last)
        held += len(last)
        if held > MOST_BODY:
            raise _invalid(f"a line of the upstream's stream has over {MOST_BODY} bytes")
    yield b""


def _secrets_of(key: str | None) -> list[bytes]:
    """List the forms in which an answer that quotes the request may have its key, the longest first."""
    secrets = {key, key.partition(" ")[2]} if key is not None else set()
    return [
        form.encode()
        for secret in sorted(secrets, key=len, reverse=True)
        if len(secret) >= _SHORTEST_SECRET
        for form in {secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/")}
    ]


def _without(secrets: Sequence[bytes], data: bytes) -> bytes:
    for secret in secrets:
        data = data.replace(secret, b"[key]")
    return data


def _parsed(data: bytes) -> Any:
    try:
        return read_json(data)
    except ValueError:
        return None


def _said(values: object) -> str | None:
    """Read the words of an error in OpenAI's format, if an object has one."""
    error = values.get("error") if isinstance(values, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return one_line(said) if isinstance(said, str) else None


def choices_of(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the choices of an answer or a chunk."""
    choices = values.get("choices")
    if not isinstance(choices, list | None) or not all(isinstance(choice, dict) for choice in choices or ()):
        raise invalid("its choices are no list of objects")
    return choices or []


def index_of(choice: Mapping[str, Any], wanted: int) -> int:
    """Read the index of a choice, which must be below the number that was asked for."""
    index = choice.get("index", 0)
    if type(index) is not int:
        raise invalid(f"the index of a choice is no whole number; found {type(index).__name__}")
    if not 0 <= index < wanted:
        raise invalid(f"it has a choice with the index {index}, and n is {wanted}")
    return index


def incomplete(why: str) -> ServiceError:
    """Make the error of an answer that broke off."""
    return ServiceError(502, "upstream_incomplete", f"the upstream's answer broke off: {why}")


def _late(error: httpx.TimeoutException) -> ServiceError:
    return ServiceError(504, "upstream_timeout", f"the upstream did not answer in time: {_what_happened(error)}")


def _what_happened(error: httpx.HTTPError, secrets: Sequence[bytes] = ()) -> str:
    """Say in words why a connection to the upstream server failed; no header is quoted."""
    if isinstance(error, httpx.TimeoutException):
        limits = error.request.extensions["timeout"]
        if isinstance(error, httpx.ConnectTimeout):
            return f"no connection within {limits['connect']:g} seconds"
        return f"no data for {limits['read']:g} seconds (--upstream-timeout {limits['read']:g})"
    if isinstance(error, httpx.ProtocolError):
        return "the connection was lost, or what was sent is not HTTP"
    return one_line(_without(secrets, str(error).encode()).decode()) or "the connection was lost"
