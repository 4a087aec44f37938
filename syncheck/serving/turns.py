"""Turns: the work of all requests in a few threads, slice by slice, so that none waits long for another."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SLICE = 2**22
_EACH_SENTENCE = 2**14
"""Work of a slice of text, and of a sentence beside its passages, in characters of passages read."""


class Turns:
    """Threads that requests use in turn.

    The slice that has waited longest comes first, but the time for which a request has used the threads is deducted
    from its wait: a small request passes a large one, and neither waits for ever.

    Parameters
    ----------
    threads
        Number of slices at a time.
    """

    def __init__(self, threads: int) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="syncheck-turn")
        self._free = threads
        self._numbers = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def share(self) -> None:
        """Let the current task, and those that it creates, use the threads as one request."""
        _share.set(_Share(self))

    @asynccontextmanager
    async def turn(self, used: float) -> AsyncIterator[None]:
        """Wait for a turn of a request that has used the threads for so many seconds, and keep it."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (time.monotonic() + used, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it came at the same moment
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def close(self) -> None:
        """End the threads; no slice may wait or run."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class _Share:
    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.used = 0.0  # seconds


_share: contextvars.ContextVar[_Share | None] = contextvars.ContextVar("syncheck_share", default=None)


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread when it is the request's turn; see :class:`Turns`.

    The function is one slice of work: its end is awaited even when cancelled, so that no resource in use is released.
    """
    share = _share.get()
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    if share is None:
        return await _ended(call, None)
    async with share.turns.turn(share.used):
        started = time.monotonic()
        try:
            return await _ended(call, share.turns.executor)
        finally:
            share.used += time.monotonic() - started


async def _ended(call: Callable[[], _T], executor: ThreadPoolExecutor | None) -> _T:
    running = asyncio.get_running_loop().run_in_executor(executor, call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def slices(text: str, passages: int) -> Iterator[str]:
    """Yield a text in slices that take a fraction of a second to check against this many characters of passages.

    The more there is to read for each sentence, the shorter a slice; the whole text may be sentences of two characters.
    """
    size = max(16, _SLICE // (_EACH_SENTENCE + passages))
    for start in range(0, len(text), size):
        yield text[start : start + size]
