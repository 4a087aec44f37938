"""Replies to a client: JSON, server-sent events, files of the page, and work that ends when the client leaves."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from syncheck.base.errors import describe_failure
from syncheck.serving.chat import ServiceError
from syncheck.serving.limits import Deadline

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_FAREWELL_SECONDS = 1.0
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/client.js": ("client.js", "text/javascript"),
}
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Working:
    """Response that takes work, which is cancelled when the client disconnects."""

    def __init__(self, answer: Callable[[], Coroutine[Any, Any, Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an ASGI application."""
        response = await while_there(receive, self._answer())
        if response is not None:
            await response(scope, receive, send)


class Reply:
    """Response to a client: one JSON body, or server-sent events.

    A part that the client has not taken by the deadline, or in a second if that is later, is given up.
    """

    def __init__(self, send: Send, deadline: Deadline, headers: Mapping[str, str] | None = None) -> None:
        self._send = send
        self._deadline = deadline
        self._headers = headers or {}
        self._begun = False

    async def whole(self, status: int, values: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Send one JSON body."""
        body = json.dumps(values, allow_nan=False).encode()
        await self._begin(status, "application/json", {**headers, "Content-Length": str(len(body))})
        await self._part({"body": body})

    async def data(self, data: str, *, event_id: int | None = None) -> None:
        """Send one server-sent event."""
        named = "" if event_id is None else f"id: {event_id}\n"
        await self._open()
        await self._part({"body": f"{named}data: {data}\n\n".encode(), "more_body": True})

    async def end(self) -> None:
        """End the stream of events."""
        await self._open()
        await self._part({"body": b""})

    async def error(self, error: ServiceError) -> int:
        """Send an error, as the last event if a stream has begun; a client that no longer reads is given up."""
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                if self._begun:
                    await self.data(json.dumps(error.to_dict()))
                    await self.end()
                else:
                    await self.whole(error.status, error.to_dict(), error.headers)
        except TimeoutError:
            logger.warning("a client did not read its answer")
        return error.status

    async def _open(self) -> None:
        if not self._begun:
            await self._begin(200, "text/event-stream; charset=utf-8", {"X-Accel-Buffering": "no"})

    async def _begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self._begun = True
        told = {"Content-Type": kind, "Cache-Control": "no-store", **self._headers, **headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _part(self, values: Mapping[str, Any]) -> None:
        async with self._deadline.waiting(at_least=_FAREWELL_SECONDS):
            await self._send({"type": "http.response.body", **values})


def json_response(values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Build a response in JSON, written in ASCII, so that it can contain half a character of somebody else's text."""
    return Response(json.dumps(values, allow_nan=False), status, headers, "application/json")


def headers_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Sum up the check of an answer in headers."""
    unscored = sum(choice["syncheck"]["unscored"] for choice in answer["choices"])
    return {"X-Syncheck-Status": _status_of(answer), "X-Syncheck-Unscored": str(unscored)}


def _status_of(answer: Mapping[str, Any]) -> str:
    statuses = {choice["syncheck"]["status"] for choice in answer["choices"]}
    return next(
        (status for status in ("unverified", "stopped", "checked", "verified") if status in statuses), "no_text"
    )


def file_handler(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Make the handler of a file of the page."""
    text = files("syncheck.serving").joinpath(name).read_bytes()

    async def send(request: Request) -> Response:
        return Response(text, media_type=kind, headers=_PAGE_HEADERS)

    return send


def failure_of(error: Exception) -> ServiceError:
    """Log a failure, and put it in the words that the client gets."""
    if isinstance(error, ServiceError):
        if error.status >= 500:
            logger.warning("%s: %s", error.code, error)
        return error
    logger.error("a request failed", exc_info=error)
    return ServiceError(500, "internal_error", describe_failure(error))


async def while_there(receive: Receive, answering: Coroutine[Any, Any, _T]) -> _T | None:
    """Answer a client, and cancel the work if it disconnects, which gives None."""
    work = asyncio.create_task(answering)
    gone = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
