"""Several ways of doing the same thing, in one process, taking turns of a second or so.

On a machine with other work the speed changes from minute to minute; what is compared has to be measured close
together. Each way runs in a thread of its own, but only one at a time: it runs until it calls ``pause``, then the
next one goes on.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

Pause = Callable[[], None]

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
"""``cpu`` does not count the time in which others have the processor; it counts one thread, so torch must use one."""


@contextmanager
def loaded_objects_aside() -> Iterator[None]:
    """Let the garbage collector pass over what exists now, so that collecting between measurements takes no time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Player:
    """One way: a thread that runs from one pause to the next when it is told to."""

    def __init__(self, way: Callable[[Pause], None], device: str, clock: Callable[[], float]) -> None:
        self._way = way
        self._clock = clock
        self._device = torch.device(device)
        self._go = threading.Event()
        self._paused = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.over = False
        self.seconds: list[float] = []

    def turn(self) -> None:
        """Run to the next pause or to the end, and keep the time it took."""
        self._paused.clear()
        self._go.set()
        self._paused.wait()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        self._wait()
        try:
            self._way(self._pause)
        except BaseException as error:  # raised again in the main thread
            self._error = error
        self._stop_clock()
        self.over = True
        self._paused.set()

    def _pause(self) -> None:
        self._stop_clock()
        self._paused.set()
        self._wait()

    def _wait(self) -> None:
        self._go.wait()
        self._go.clear()
        self._started = self._clock()

    def _stop_clock(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds.append(self._clock() - self._started)


def take_turns(
    ways: Mapping[str, Callable[[Pause], None]], *, device: str, clock: str = "wall"
) -> dict[str, list[float]]:
    """Run the ways in turns; every other round goes backwards, so that none is always first.

    Returns
    -------
    dict of str to list of float
        Seconds of each turn of each way, from the moment it goes on to its next pause or its end.
    """
    players = {name: _Player(way, device, CLOCKS[clock]) for name, way in ways.items()}
    gc.collect()
    gc.disable()  # collected between the rounds instead, at nobody's expense
    try:
        forward = True
        while waiting := [player for player in players.values() if not player.over]:
            for player in waiting if forward else reversed(waiting):
                player.turn()
            forward = not forward
            gc.collect()
    finally:
        gc.enable()
    return {name: player.seconds for name, player in players.items()}
