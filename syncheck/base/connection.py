"""JSON over HTTP to an inference server: time-outs, retries of transient failures, and one error class."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead
from typing import Any

from syncheck.base.checks import stripped_key
from syncheck.base.errors import EndpointError, InputError
from syncheck.base.printable import one_line

TIMEOUT_S = 60.0
RETRIES = 3
BACKOFF_S = 0.5
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses of transient failures: the server is starting, overloaded or behind a busy proxy."""
SHOWN_CHARACTERS = 300
MOST_BYTES = 2**28  # bytes of the largest answer that is read
MOST_REFUSAL_BYTES = 2**16  # bytes of a refusal that are read


class Connection:
    """Connection to an inference server: its address, such as ``"http://localhost:8000/v1"``, time-outs and retries.

    ``api_key`` is sent as a bearer token. ``timeout_s`` is the longest wait for a connection and for each part of the
    answer. A request is sent again ``retries`` times after a time-out, a lost connection, or one of the transient
    statuses, which does no harm; before the first retry it waits ``backoff_s``, which doubles before each further one.
    Another address, key or number raises InputError.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        backoff_s: float = BACKOFF_S,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise InputError(f"base_url must begin with http:// or https://; found {base_url!r}")
        if timeout_s <= 0 or retries < 0 or backoff_s < 0:
            given = f"{timeout_s}, {retries} and {backoff_s}"
            raise InputError(f"timeout_s must be above 0, retries and backoff_s at least 0; found {given}")
        self.base_url = base_url.rstrip("/")
        self._key = None if api_key is None else stripped_key(api_key, "api_key")
        self._headers = {"Content-Type": "application/json"}
        if self._key is not None:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._timeout_s = timeout_s
        self._retries = retries
        self._backoff_s = backoff_s
        self._opener = urllib.request.build_opener(_NoRedirect())

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON object in a POST request and return that of the answer; anything else raises EndpointError."""
        url = self.base_url + path
        data = json.dumps(body).encode()
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(self._backoff_s * 2 ** (attempt - 1))
            try:
                return self._once(url, data)
            except EndpointError as error:
                if attempt == self._retries or (error.status is not None and error.status not in PASSING):
                    raise
        raise AssertionError("unreachable")

    def _once(self, url: str, data: bytes) -> dict[str, Any]:
        request = urllib.request.Request(url, data=data, headers=self._headers, method="POST")
        try:
            try:
                with self._opener.open(request, timeout=self._timeout_s) as response:
                    answer, status = response.read(MOST_BYTES + 1), response.status
                    if response.length and len(answer) <= MOST_BYTES:
                        raise IncompleteRead(answer, response.length)
            except urllib.error.HTTPError as error:
                with error:
                    said = self._shown(error.read(MOST_REFUSAL_BYTES))
                raise EndpointError(f"{url} answered with status {error.code}: {said}", status=error.code) from error
        except (OSError, HTTPException) as error:  # URLError and time-outs are OSErrors
            raise EndpointError(
                f"{url} could not be reached ({self._told(str(error))}); check base_url, the network, and that the "
                "server is up",
                status=None,
            ) from error
        if len(answer) > MOST_BYTES:
            raise EndpointError(f"the answer of {url} has more than {MOST_BYTES} bytes", status=status)
        try:
            values = json.loads(answer)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise EndpointError(
                f"{url} gave no JSON object, but {self._shown(answer)!r}; check the address", status=status
            )
        return values

    def _shown(self, answer: bytes) -> str:
        """Extract the ``error.message`` of vLLM and SGLang, or else the beginning of the answer."""
        try:
            said = str(json.loads(answer)["error"]["message"])
        except (ValueError, LookupError, TypeError, RecursionError):
            said = answer[:MOST_REFUSAL_BYTES].decode(errors="replace")
        return self._told(said)

    def _told(self, said: str) -> str:
        """Put what the server said on one line, without the key, in case it quotes the request."""
        return one_line(said if self._key is None else said.replace(self._key, "[key]"), SHOWN_CHARACTERS)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect: the key and the passages are only for the server that was named."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None
