"""Connections of clients, which must send their requests in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0
"""How long the line and the headers of a request may take."""


class PromptConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Connection that is closed if the headers of a request are not complete in time.

    Uvicorn waits for headers without a limit; its keep-alive time ends with the first byte of the next request.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # noqa: D102
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        super().connection_lost(exc)
        self._end_watch()

    def _watch(self) -> None:
        """Start waiting for the next request, or stop waiting if its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_watch()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _end_watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
