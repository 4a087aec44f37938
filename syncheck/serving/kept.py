"""Resumable answers, which are completed while their reader is disconnected."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from syncheck.serving.chat import ServiceError

_MOST_CHARACTERS = 2**26
"""Number of characters of kept answers, as JSON, beyond which no more answers begin."""


class KeptAnswer:
    """One answer in chunks, which any number of readers may follow.

    Its ``token`` is a name that cannot be guessed, its ``size`` the number of characters of its chunks, as JSON.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(18)
        self.size = 0
        self._chunks: list[Mapping[str, Any]] = []
        self._error: ServiceError | None = None
        self._is_over = False
        self._news = asyncio.Event()

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next chunk."""
        self._chunks.append(chunk)
        self.size += len(json.dumps(chunk))
        self._tell()

    def end(self, error: ServiceError | None = None) -> None:
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
        while True:
            for chunk in self._chunks[read:]:
                read += 1
                yield chunk
            if read < len(self._chunks):
                continue
            if self._is_over:
                break
            await self._news.wait()
        if self._error is not None:
            raise self._error

    async def events_after(self, last_id: int) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events of the protocol after the one numbered ``last_id``."""
        async for chunk in self.chunks():
            for event in events_of(chunk):
                if event["id"] > last_id:
                    yield event

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class KeptAnswers:
    """Answers that readers may come back to, at most ``most`` of them.

    Each keeps its place until it has had no reader for some seconds, whatever other clients request, and is then given
    up or, if it is complete, forgotten; an answer that was refused keeps none.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._tasks: dict[str, tuple[KeptAnswer, asyncio.Task[None]]] = {}
        self._readers: dict[str, int] = {}
        self._left: dict[str, asyncio.TimerHandle] = {}

    def begin(self, write: Callable[[KeptAnswer], Awaitable[None]]) -> KeptAnswer:
        """Begin to write an answer; ServiceError with the status 429 if there is no place for it."""
        if len(self._tasks) >= self._most or sum(kept.size for kept, _ in self._tasks.values()) > _MOST_CHARACTERS:
            raise ServiceError(
                429,
                "too_many_kept",
                "too many resumable answers are kept; try again, or ask without syncheck.resumable",
                headers={"Retry-After": "1"},
            )
        answer = KeptAnswer()

        async def written() -> None:
            await write(answer)
            if answer.is_refused and answer.token not in self._readers:
                self.give_up(answer.token)

        self._tasks[answer.token] = answer, asyncio.create_task(written())
        return answer

    def find(self, token: str) -> KeptAnswer:
        """Find the answer with this name; ServiceError with the status 404 if there is none."""
        if token not in self._tasks:
            raise ServiceError(
                404, "unknown_answer", "there is no such answer, or it expired because no client read it"
            )
        return self._tasks[token][0]

    @contextmanager
    def reading(self, answer: KeptAnswer) -> Iterator[None]:
        """Keep the answer while it is read, and for some seconds afterwards."""
        token = answer.token
        self._readers[token] = self._readers.get(token, 0) + 1
        if (timer := self._left.pop(token, None)) is not None:
            timer.cancel()
        try:
            yield
        finally:
            self._readers[token] = self._readers.get(token, 1) - 1
            if not self._readers[token]:
                del self._readers[token]
            if token not in self._readers and token in self._tasks:
                if answer.is_refused:
                    self.give_up(token)
                else:
                    self._left[token] = asyncio.get_running_loop().call_later(self._seconds, self.give_up, token)

    def give_up(self, token: str) -> None:
        """Forget an answer, and stop the work on it."""
        self._readers.pop(token, None)
        if (timer := self._left.pop(token, None)) is not None:
            timer.cancel()
        if (kept := self._tasks.pop(token, None)) is not None:
            kept[1].cancel()

    async def close(self) -> None:
        """Give up all answers."""
        tasks = [task for _, task in self._tasks.values()]
        for token in list(self._tasks):
            self.give_up(token)
        await asyncio.gather(*tasks, return_exceptions=True)


def events_of(chunk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the events of the protocol in a chunk of an answer with one choice."""
    for choice in chunk.get("choices") or ():
        yield from choice.get("syncheck", {}).get("events", ())
