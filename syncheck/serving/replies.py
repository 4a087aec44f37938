"""Replies to a client: JSON and events."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from syncheck.serving.chat import ServiceError
from syncheck.serving.dialects import ChatCompletions, Sent
from syncheck.serving.limits import Deadline

if TYPE_CHECKING:
    from starlette.types import Send

logger = logging.getLogger(__name__)

_FAREWELL_SECONDS = 1.0
_WORST_FIRST = ("unverified", "stopped", "checked", "verified", "no_text")


@dataclass(eq=False)
class Reply:
    """Response to a client; a part not taken by the deadline, or in a second if that is later, is given up."""

    _send: Send
    _deadline: Deadline
    _dialect: type[ChatCompletions]
    _begun: bool = False

    async def whole(self, status: int, values: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Send one JSON body."""
        body = json.dumps(values, allow_nan=False).encode()
        await self._begin(status, "application/json", {**headers, "Content-Length": str(len(body))})
        await self._part({"body": body})

    async def send(self, events: Iterable[Sent]) -> None:
        """Send server-sent events, each with its name."""
        for name, data in events:
            named = "" if name is None else f"event: {name}\n"
            told = data if isinstance(data, str) else json.dumps(data, allow_nan=False)
            await self._part({"body": f"{named}data: {told}\n\n".encode(), "more_body": True})

    async def end(self) -> None:
        """End the stream of events."""
        await self._part({"body": b""})

    async def error(self, error: ServiceError) -> int:
        """Send an error, as the last event if a stream has begun; a client that no longer reads is given up."""
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                told = self._dialect.error(error)
                if self._begun:
                    await self.send([(self._dialect.error_event, told)])
                    await self.end()
                else:
                    await self.whole(error.status, told, error.headers)
        except TimeoutError:
            logger.warning("a client did not read its answer")
        return error.status

    async def _begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self._begun = True
        told = {"Content-Type": kind, "Cache-Control": "no-store", **headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _part(self, values: Mapping[str, Any]) -> None:
        if not self._begun:
            await self._begin(200, "text/event-stream; charset=utf-8", {"X-Accel-Buffering": "no"})
        async with self._deadline.waiting(at_least=_FAREWELL_SECONDS):
            await self._send({"type": "http.response.body", **values})


def json_response(values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Build a response in JSON, written in ASCII, so that it can contain half a character of somebody else's text."""
    return Response(json.dumps(values, allow_nan=False), status, headers, "application/json")


def headers_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Sum up the check of an answer in headers."""
    told = [choice["syncheck"] for choice in answer["choices"]]
    worst = min((own["status"] for own in told), key=_WORST_FIRST.index)
    return {"X-Syncheck-Status": worst, "X-Syncheck-Unscored": str(sum(own["unscored"] for own in told))}
