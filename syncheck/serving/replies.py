"""Replies to a client: JSON, events, and answers that are kept for its return."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    _headers: Mapping[str, str] = field(default_factory=dict)
    _begun: bool = False

    async def whole(self, status: int, values: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Send one JSON body."""
        body = json.dumps(values, allow_nan=False).encode()
        await self._begin(status, "application/json", {**headers, "Content-Length": str(len(body))})
        await self._part({"body": body})

    async def send(self, events: Iterable[Sent], *, event_id: int | None = None) -> None:
        """Send server-sent events, each with its name; ``event_id`` is that of all of them."""
        for name, data in events:
            named = "" if event_id is None else f"id: {event_id}\n"
            named += "" if name is None else f"event: {name}\n"
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
        told = {"Content-Type": kind, "Cache-Control": "no-store", **self._headers, **headers}
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


_MOST_CHARACTERS = 2**26  # of kept answers, as JSON, beyond which no more begin


class KeptAnswer:
    """One answer in chunks, which any number of readers may follow, and which its ``task`` writes."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(18)  # a name that cannot be guessed
        self.size = 0  # characters of its chunks, as JSON
        self.readers = 0
        self.expiry: asyncio.TimerHandle | None = None
        self._chunks: list[Mapping[str, Any]] = []
        self._error: ServiceError | None = None
        self._is_over = False
        self._news = asyncio.Event()

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next chunk; one that JSON cannot hold raises ValueError."""
        self.size += len(json.dumps(chunk, allow_nan=False))
        self._chunks.append(chunk)
        self._tell()

    def end(self, error: ServiceError | None) -> None:
        """End the answer, with an error or without."""
        self._error, self._is_over = error, True
        self._tell()

    @property
    def is_refused(self) -> bool:
        """True if it ended with an error before its first chunk, so that a reader has nothing to come back to."""
        return self._error is not None and not self._chunks

    async def chunks(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield all chunks, waiting for those that are not written yet; at the end, raise the error of the answer."""
        read = 0
        while read < len(self._chunks) or not self._is_over:
            if read == len(self._chunks):
                await self._news.wait()
            else:
                yield self._chunks[read]
                read += 1
        if self._error is not None:
            raise self._error

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class KeptAnswers:
    """Answers that readers may come back to, at most ``most``, each until it has had no reader for some seconds."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._kept: dict[str, KeptAnswer] = {}

    def begin(self, write: Callable[[KeptAnswer], Awaitable[None]]) -> KeptAnswer:
        """Begin to write an answer; ServiceError with the status 429 if there is no place for it."""
        if len(self._kept) >= self._most or sum(kept.size for kept in self._kept.values()) > _MOST_CHARACTERS:
            told = "too many resumable answers are kept; try again, or ask without syncheck.resumable"
            raise ServiceError(429, "too_many_kept", told, headers={"Retry-After": "1"})
        answer = KeptAnswer()

        async def written() -> None:
            await write(answer)
            if answer.is_refused and not answer.readers:
                self.give_up(answer)

        answer.task = asyncio.create_task(written())
        self._kept[answer.token] = answer
        return answer

    def find(self, token: str) -> KeptAnswer:
        """Find the answer with this name; ServiceError with the status 404 if there is none."""
        if token not in self._kept:
            told = "there is no such answer, or it expired because no client read it"
            raise ServiceError(404, "unknown_answer", told)
        return self._kept[token]

    @contextmanager
    def reading(self, answer: KeptAnswer) -> Iterator[None]:
        """Keep the answer while it is read, and for some seconds afterwards."""
        answer.readers += 1
        if answer.expiry is not None:
            answer.expiry.cancel()
        try:
            yield
        finally:
            answer.readers -= 1
            if not answer.readers and answer.token in self._kept:
                if answer.is_refused:
                    self.give_up(answer)
                else:
                    answer.expiry = asyncio.get_running_loop().call_later(self._seconds, self.give_up, answer)

    def give_up(self, answer: KeptAnswer) -> None:
        """Forget an answer, and stop the work on it."""
        if answer.expiry is not None:
            answer.expiry.cancel()
        if self._kept.pop(answer.token, None) is not None:
            answer.task.cancel()

    async def close(self) -> None:
        """Give up all answers."""
        answers = list(self._kept.values())
        for answer in answers:
            self.give_up(answer)
        await asyncio.gather(*(answer.task for answer in answers), return_exceptions=True)
