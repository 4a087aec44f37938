"""Slices of work take turns: who has used the threads least comes first, and nobody's place is lost."""

import asyncio
import time

from syncheck.serving.limits import Turns, in_thread, slices


def in_turns(threads, *requests):
    """Run requests at the same time; each is an async function."""

    async def request(turns, work):
        turns.share()
        return await work()

    async def everything():
        turns = Turns(threads)
        found = await asyncio.gather(*(request(turns, work) for work in requests), return_exceptions=True)
        turns.close()
        return found

    return asyncio.run(everything())


def test_a_small_request_passes_large_ones():
    done = []

    def large(name):
        async def work():
            for _ in range(10):
                await in_thread(time.sleep, 0.02)
            done.append(name)

        return work

    async def small():
        await asyncio.sleep(0.1)
        started = time.monotonic()
        for _ in range(2):
            await in_thread(time.sleep, 0.001)
        done.append("small")
        return time.monotonic() - started

    seconds = in_turns(1, *map(large, range(5)), small)[-1]
    assert done[0] == "small" and seconds < 0.5  # the others need a second


def test_a_request_that_is_cancelled_gives_its_turn_away():
    ran = []

    async def busy():
        await in_thread(time.sleep, 0.1)

    async def cancelled():
        async with asyncio.timeout(0.02):
            await in_thread(ran.append, "cancelled")

    async def later():
        await asyncio.sleep(0.05)
        await in_thread(ran.append, "later")

    found = in_turns(1, busy, cancelled, later)
    assert isinstance(found[1], TimeoutError) and found[0] is found[2] is None
    assert ran == ["later"]


def test_the_end_of_a_slice_is_awaited_when_it_is_cancelled():
    ended = []

    def work():
        time.sleep(0.1)
        ended.append(True)

    async def cancelled():
        try:
            async with asyncio.timeout(0.02):
                await in_thread(work)
        except TimeoutError:
            return list(ended)

    assert in_turns(1, cancelled) == [[True]]


def test_slices_are_the_text_and_shorter_with_long_passages():
    text = "Lyon is large. " * 100
    assert "".join(slices(text, 0)) == "".join(slices(text, 400_000)) == text
    assert len(next(slices(text, 0))) > 10 * len(next(slices(text, 400_000)))
    assert list(slices("", 0)) == []
