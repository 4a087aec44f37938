"""Gateway: answers of an OpenAI-compatible server, checked on their way to the client."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any

import httpx

from syncheck.monitor import Monitor
from syncheck.results.protocol import VERSION, FoldedAnswer, ProtocolEvent, fold, to_dict
from syncheck.serving.chat import ChatRequest, ServiceError
from syncheck.serving.checked import NO_PASSAGES, CheckedText, Failing, Outcome, shown_text, whole_answer
from syncheck.serving.limits import Deadline
from syncheck.serving.turns import in_thread

_NO_TEXT = frozenset({"role", "content", "tool_calls", "function_call", "refusal"})
"""Parts of a message that need no check of their own; other parts are left out, or marked."""
_MOST_LINE = 16 * 2**20
_CONNECT_SECONDS = 10.0


class Gateway:
    """Source of answers that asks an upstream server and checks its answers.

    Parameters
    ----------
    monitor
        The monitor that scores the sentences; one that reads text alone runs no language model.
    upstream
        Address to which ``/chat/completions`` is added, for instance ``http://localhost:8000/v1``.
    failing
        Treatment of text that cannot be checked.
    api_key
        Key for the upstream server; None passes on the client's ``Authorization``.
    timeout
        Longest wait for a byte from the upstream server, in seconds.
    transport
        Transport of httpx; None connects over the network.
    """

    def __init__(
        self,
        monitor: Monitor,
        upstream: str,
        *,
        failing: Failing = "closed",
        api_key: str | None = None,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.monitor = monitor
        self.decoders: tuple[str, ...] = ()
        self._upstream = upstream.rstrip("/")
        self.failing = failing
        self._api_key = api_key
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            transport=transport,
        )

    async def close(self) -> None:
        """Close the connections to the upstream server."""
        await self._client.aclose()

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """Return the upstream server's list of models."""
        async with self._asked("GET", "/models", None, authorization) as response:
            return _object(await _read(response))

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Return a whole answer, in which each choice has its outcome as ``syncheck``."""
        self.require_usable(request)
        async with deadline.waiting():
            async with self._asked("POST", "/chat/completions", request.body, authorization) as response:
                answer = _object(await _read(response))
            _require_no_error(answer)
            if not isinstance(answer.get("choices"), list):
                raise ServiceError(502, "upstream_invalid", "the upstream's answer has no list 'choices'")
            answer["choices"] = [await self._checked_choice(request, choice) for choice in answer["choices"]]
        return answer

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``.

        The deadline ends the reading from the upstream server; what arrived before it is still checked.
        """
        self.require_usable(request)
        stream = _Stream(self, request)
        try:
            async with AsyncExitStack() as opened:
                asked = self._asked("POST", "/chat/completions", request.body, authorization)
                async with deadline.waiting():
                    response = await opened.enter_async_context(asked)
                if "text/event-stream" not in response.headers.get("content-type", ""):
                    raise ServiceError(502, "upstream_invalid", "the upstream did not answer with an event stream")
                try:
                    async for chunk in stream.chunks(_pieces(response, deadline)):
                        yield chunk
                except ServiceError as error:
                    async for chunk in stream.broken(str(error)):
                        yield chunk
                    raise
        finally:
            stream.leave()

    def check(self, request: ChatRequest) -> CheckedText:
        """Return a new check of the text of one choice."""
        return CheckedText(self.monitor, request, failing=self.failing)

    def without_unchecked(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return a message and the names of its unchecked parts, which are left out when failing closed."""
        unchecked = sorted(name for name, value in message.items() if name not in _NO_TEXT and value)
        kept = dict(message) if self.failing == "open" else {k: v for k, v in message.items() if k not in unchecked}
        return kept, unchecked

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder is not None:
            raise ServiceError(
                400,
                "unsupported",
                "the upstream writes the answer, so that no decoder can be chosen; leave decoder out",
            )
        if self.failing == "closed" and not request.passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)

    async def _checked_choice(self, request: ChatRequest, choice: dict[str, Any]) -> dict[str, Any]:
        message, unchecked = self.without_unchecked(choice.get("message") or {})
        text = message.get("content")
        if text is None:
            _, own = whole_answer((), Outcome("no_text", None, None, None).to_dict())
            return {**choice, "message": message, "syncheck": own | _named(unchecked)}
        if not isinstance(text, str):
            raise ServiceError(502, "upstream_invalid", "the upstream's answer has a content that is not a string")
        checked = self.check(request)
        try:
            await _whole(checked, text)
        finally:
            checked.leave()
        outcome = checked.outcome
        text, own = whole_answer(checked.events, outcome.to_dict())
        if outcome.status == "stopped":
            choice = {**choice, "finish_reason": "content_filter"}
            choice.pop("logprobs", None)
        return {**choice, "message": {**message, "content": text}, "syncheck": own | _named(unchecked)}

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None, authorization: str | None) -> _Asked:
        key = f"Bearer {self._api_key}" if self._api_key is not None else authorization
        headers = {} if key is None else {"Authorization": key}
        return _Asked(
            self._client, self._client.build_request(method, self._upstream + path, json=body, headers=headers)
        )


class _Asked:
    """An answer of the upstream server that began well; a later failure is raised as a :class:`ServiceError`."""

    def __init__(self, client: httpx.AsyncClient, request: httpx.Request) -> None:
        self._client = client
        self._request = request
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> httpx.Response:
        try:
            self._response = await self._client.send(self._request, stream=True)
        except httpx.TimeoutException as error:
            raise _late(error) from error
        except httpx.HTTPError as error:
            raise ServiceError(
                502, "upstream_unreachable", f"the upstream cannot be reached: {_what_happened(error)}"
            ) from error
        if self._response.is_error:
            try:
                raise _refused(self._response.status_code, await _read(self._response), self._response.headers)
            finally:
                await self._response.aclose()
        return self._response

    async def __aexit__(self, *raised: object) -> None:
        if self._response is not None:
            await self._response.aclose()


class _Stream:
    """The chunks of one answer of the upstream server, with text held back until it is checked."""

    def __init__(self, gateway: Gateway, request: ChatRequest) -> None:
        self._gateway = gateway
        self._request = request
        self._choices: dict[int, _Choice] = {}
        self._wanted = request.body.get("n") or 1
        self._last: dict[str, Any] = {}

    async def chunks(self, source: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a whole answer; nothing is read after all choices are over."""
        async with aclosing(server_sent_data(source)) as lines:
            async for line in lines:
                if line == "[DONE]":
                    break
                async for chunk in self._of(_chunk(line)):
                    yield chunk
                if self._all(lambda choice: choice.stopped):
                    return
        if not self._all(lambda choice: choice.finished):
            raise _incomplete("it ended before its last chunk")

    async def broken(self, why: str) -> AsyncIterator[dict[str, Any]]:
        """Yield, failing open, the text that was held back when the answer broke off, marked as unchecked."""
        if self._gateway.failing == "open":
            for index, choice in self._choices.items():
                if not choice.finished:
                    yield self._with([await choice.broken(index, why)])

    def leave(self) -> None:
        """Release the resources of the checks."""
        for choice in self._choices.values():
            choice.checked.leave()

    def _all(self, holds: Any) -> bool:
        return len(self._choices) >= self._wanted and all(holds(choice) for choice in self._choices.values())

    async def _of(self, chunk: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        choices = chunk.get("choices")
        if not choices:
            yield chunk
            return
        self._last = chunk
        taken = []
        for values in choices:
            index = values.get("index", 0)
            if index not in self._choices:
                choice = self._choices[index] = _Choice(self._gateway, self._request)
                await choice.open()
            if not self._choices[index].finished:
                taken.append(await self._choices[index].take(values, close=values.get("finish_reason") is not None))
        told = [v for v in taken if v["delta"] or v["syncheck"]["events"] or v.get("finish_reason")]
        if told or chunk.get("usage"):
            yield self._with(told)

    def _with(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._last, "choices": choices}


class _Choice:
    """One of the answers to a request, while it is streamed."""

    def __init__(self, gateway: Gateway, request: ChatRequest) -> None:
        self.checked = gateway.check(request)
        self._gateway = gateway
        self._answer = FoldedAnswer()
        self._received = 0
        self._logprobs: list[tuple[int, dict[str, Any]]] = []
        self._unchecked: set[str] = set()
        self._opening: list[ProtocolEvent] = []
        self.finished = False
        self.stopped = False

    async def open(self) -> None:
        self._opening = await in_thread(self.checked.open)

    async def take(self, values: dict[str, Any], *, close: bool) -> dict[str, Any]:
        """Return a choice of a chunk in the form in which it is passed on."""
        delta, unchecked = self._gateway.without_unchecked(values.get("delta") or {})
        self._unchecked.update(unchecked)
        text = delta.pop("content", None) or ""
        if not isinstance(text, str):
            raise ServiceError(502, "upstream_invalid", "the upstream's answer has a content that is not a string")
        self._received += len(text)
        if values.get("logprobs"):
            self._logprobs.append((self._received, values["logprobs"]))
        events, self._opening = self._opening, []
        if text:
            events += await self.checked.feed_in_turns(text)
        self.stopped = self.checked.is_over
        if close and not self.stopped:
            events += await in_thread(self.checked.close)
        self.finished = close or self.stopped
        return self._passed({**values, "delta": delta}, events)

    async def broken(self, index: int, why: str) -> dict[str, Any]:
        """Return the last part of a choice that is not complete."""
        self.finished = True
        opening, self._opening = self._opening, []
        events = opening + await in_thread(self.checked.break_off, why)
        return self._passed({"index": index, "delta": {}, "finish_reason": None}, events)

    def _passed(self, values: dict[str, Any], events: list[ProtocolEvent]) -> dict[str, Any]:
        fold(events, self._answer)
        shown = shown_text(events)
        own = {"v": VERSION, "events": [to_dict(event) for event in events]}
        passed = {**values, "syncheck": own}
        if shown:
            passed["delta"] = {**values["delta"], "content": shown}
        passed.pop("logprobs", None)
        if logprobs := self._due():
            passed["logprobs"] = logprobs
        if self.stopped:
            passed["finish_reason"] = "content_filter"
        if self.finished:
            passed["syncheck"] |= self.checked.outcome.to_dict() | _named(sorted(self._unchecked))
        return passed

    def _due(self) -> dict[str, Any] | None:
        """Return the log-probabilities of the text that is shown, since they contain the text too."""
        shown = len(self._answer.text)
        due = [values for end, values in self._logprobs if end <= shown]
        self._logprobs = [(end, values) for end, values in self._logprobs if end > shown]
        if not due:
            return None
        parts = [part for values in due for part in values.get("content") or ()]
        return {**due[-1], "content": parts}


async def server_sent_data(source: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """Yield the data of server-sent events, wherever the bytes are divided; an unfinished last line does not count.

    Raises
    ------
    ServiceError
        If a line is not UTF-8 or too long.
    """
    rest: list[bytes] = []
    held = 0
    async for piece in source:
        *ended, last = piece.split(b"\n")
        for part in ended:
            line = b"".join([*rest, part]).strip()
            rest, held = [], 0
            if line.startswith(b"data:"):
                try:
                    yield line[5:].strip().decode()
                except UnicodeDecodeError as error:
                    raise ServiceError(502, "upstream_invalid", "the upstream's stream is not UTF-8") from error
        rest.append(last)
        held += len(last)
        if held > _MOST_LINE:
            raise ServiceError(502, "upstream_invalid", f"a line of the upstream's stream has over {_MOST_LINE} bytes")


async def _whole(checked: CheckedText, text: str) -> None:
    await in_thread(checked.open)
    await checked.feed_in_turns(text)
    if not checked.is_over:
        await in_thread(checked.close)


def _named(unchecked: list[str]) -> dict[str, Any]:
    return {"unchecked": unchecked} if unchecked else {}


def _chunk(line: str) -> dict[str, Any]:
    chunk = _object(line.encode())
    _require_no_error(chunk)
    choices = chunk.get("choices")
    if not isinstance(choices, list | None) or not all(isinstance(choice, dict) for choice in choices or ()):
        raise ServiceError(502, "upstream_invalid", "the upstream sent a chunk whose choices are not objects")
    return chunk


def _require_no_error(answer: Mapping[str, Any]) -> None:
    """Refuse, with a ServiceError, an error that arrived with a status of success."""
    if error := answer.get("error"):
        said = error.get("message") if isinstance(error, dict) else error
        raise ServiceError(502, "upstream_error", f"the upstream's answer ended with an error: {said}")


async def _pieces(response: httpx.Response, deadline: Deadline) -> AsyncIterator[bytes]:
    pieces = response.aiter_bytes()
    try:
        while True:
            async with deadline.waiting():
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece
    except httpx.HTTPError as error:
        raise _incomplete(_what_happened(error)) from error


async def _read(response: httpx.Response) -> bytes:
    try:
        return await response.aread()
    except httpx.TimeoutException as error:
        raise _late(error) from error
    except httpx.HTTPError as error:
        raise _incomplete(_what_happened(error)) from error


def _late(error: httpx.TimeoutException) -> ServiceError:
    return ServiceError(504, "upstream_timeout", f"the upstream did not answer in time: {_what_happened(error)}")


def _what_happened(error: httpx.HTTPError) -> str:
    """Return in words why a connection to the upstream server failed."""
    limits = error.request.extensions["timeout"]
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {limits['connect']:g} seconds"
    if isinstance(error, httpx.TimeoutException):
        return f"no data for {limits['read']:g} seconds (--upstream-timeout {limits['read']:g})"
    return str(error) or "the connection was lost"


def _incomplete(why: str) -> ServiceError:
    return ServiceError(502, "upstream_incomplete", f"the upstream's answer broke off: {why}")


def _object(data: bytes) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ServiceError(502, "upstream_invalid", f"the upstream did not send a JSON object; found {data[:80]!r}")
    return values


def _refused(status: int, data: bytes, headers: Mapping[str, str]) -> ServiceError:
    """Return the refusal of the upstream server, with its status, as a ServiceError."""
    try:
        error = json.loads(data)["error"]
        said = error["message"] if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError):
        said = data[:400].decode(errors="replace")
        if status == 404:  # the address is unknown; a server without the model says so in OpenAI's format
            said += "; --upstream must be the address before /chat/completions, such as http://localhost:8000/v1"
    kept = {"Retry-After": headers["retry-after"]} if "retry-after" in headers else {}
    return ServiceError(status, "upstream_refused", f"the upstream refused: {said}", headers=kept)
