"""HTTP interface of the gateway and the server: limits, keys, metrics, and answers in OpenAI's format."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from syncheck.base.errors import describe_failure
from syncheck.kit import demo_questions
from syncheck.results import Report
from syncheck.serving.chat import (
    ChatRequest,
    ServerConfig,
    ServiceError,
    read_chat,
    read_given,
    read_json,
    refusing,
    unsupported,
)
from syncheck.serving.dialects import ChatCompletions
from syncheck.serving.given_answers import Guardrail, score_given
from syncheck.serving.limits import Deadline, Metrics, Queue, Turns, in_thread
from syncheck.serving.replies import Reply, headers_of, json_response
from syncheck.serving.translations import Messages, Responses

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from syncheck.serving.gateway import Gateway
    from syncheck.serving.repairing import RepairingGateway
    from syncheck.serving.sources import OwnModel

    AnswerSource = Gateway | RepairingGateway | OwnModel

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_DIALECTS: Mapping[str, type[ChatCompletions]] = {
    "/v1/chat/completions": ChatCompletions,
    "/v1/responses": Responses,
    "/v1/messages": Messages,
}
_AT_LEAST = 0.5  # score that the sentences of a guarded answer must reach
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)
_THREADS = 4  # or one for each core if that is more; one more reads requests
_SMALL = 2**14  # bytes of a request that is read without a thread
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_PAGE = {
    path: Response(files("syncheck.serving").joinpath(name).read_bytes(), media_type=kind, headers=_PAGE_HEADERS)
    for path, name, kind in (
        ("/", "page.html", "text/html"),
        ("/page.css", "page.css", "text/css"),
        ("/page.js", "page.js", "text/javascript"),
        ("/client.js", "client.js", "text/javascript"),
    )
}


def end_in(app: Starlette, seconds: float) -> None:
    """Give an application's open answers so many seconds; those that are not complete by then end with an error."""
    service: _Service = app.state.service
    service.end_in(seconds)


def create_app(source: AnswerSource, config: ServerConfig | None = None) -> Starlette:
    """Build the application for any ASGI server; None takes the default limits."""
    config = config or ServerConfig()
    service = _Service(source, config)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await source.close()
        service.turns.close()

    routes = [
        *(Route(path, service.chat, methods=["POST"]) for path in _DIALECTS),
        Route("/v1/score", service.score, methods=["POST"]),
        Route("/beta/litellm_basic_guardrail_api", service.guard, methods=["POST"]),
        Route("/v1/models", service.models),
        Route("/healthz", service.health),
        Route("/readyz", service.ready),
        Route("/page.json", service.page),
        *(Route(path, file, methods=["GET"]) for path, file in _PAGE.items()),
        Route("/metrics", service.metrics),
    ]
    handlers: Mapping[Any, Any] = {ServiceError: service.refused, HTTPException: _on_http_error}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.state.service = service
    return app


class _Service:
    def __init__(self, source: AnswerSource, config: ServerConfig) -> None:
        self.source = source
        self.config = config
        self.measured = Metrics()
        self.queue = Queue(config.max_running, config.max_waiting, self.measured)
        most = config.max_running + config.max_waiting
        self.given = Queue(most, 0, self.measured)  # all at a time, so that a short one does not wait for a long one
        self.turns = Turns(1 + min(config.max_running, max(_THREADS, os.cpu_count() or 1)))
        least = _AT_LEAST if config.stop_below is None else config.stop_below
        self.guardrail = Guardrail(self.scored, least, source.failing, config)
        self._is_ending = False
        self._deadlines: WeakSet[Deadline] = WeakSet()

    async def chat(self, request: Request) -> ASGIApp:
        self._admit(request)
        dialect = _dialect(request)
        read = await self._read(request, lambda values: read_chat(dialect.chat(values), self.config))
        chat = replace(read, authorization=self._passed_key(request), tell_withheld=self.measured.withheld)
        if dialect is not ChatCompletions and chat.body.get("n") not in (None, 1):
            raise unsupported("only /v1/chat/completions has several choices; leave n out")
        self.source.require_usable(chat)
        return partial(self._answer, chat, dialect(chat.body))

    async def score(self, request: Request) -> ASGIApp:
        self._admit(request)
        given = await self._read(request, partial(read_given, config=self.config))

        async def answer() -> Response:
            report = await self.scored(*given)
            return await in_thread(lambda: json_response(report.to_dict()))

        return partial(_work, answer())

    async def guard(self, request: Request) -> ASGIApp:
        self._admit(request)
        values = await self._read(request, lambda values: values)

        async def answer() -> Response:
            return json_response(await self.guardrail.apply(values))

        return partial(_work, answer())

    async def scored(self, question: str, context: Sequence[str], response: str) -> Report:
        """Score a given response."""
        with refusing():
            deadline = self.deadline()
            async with self.given.place(deadline), deadline.waiting():
                return await score_given(self.source.monitor, question, context, response)

    async def refused(self, request: Request, error: ServiceError) -> Response:
        """Write the error of a request that no work was begun for."""
        if request.url.path in _DIALECTS:
            self.measured.requests.labels(str(error.status)).inc()
        return json_response(_dialect(request).error(error), error.status, error.headers)

    async def models(self, request: Request) -> Response:
        self._admit(request)
        async with self.deadline().waiting():
            return json_response(await self.source.models(self._passed_key(request)))

    async def health(self, request: Request) -> Response:
        monitor = self.source.monitor
        return json_response({"status": "ok", "monitor": monitor.name, "schema": monitor.schema.version})

    async def ready(self, request: Request) -> Response:
        """Tell whether the server takes requests: neither ends nor has too many that wait."""
        why = "shutting_down" if self._is_ending else "full" if self.queue.is_full else None
        return json_response({"status": why or "ok"}, 200 if why is None else 503)

    async def page(self, request: Request) -> Response:
        examples = [{"question": one.question, "passages": one.passages} for one in demo_questions()]
        options = {"decoders": list(self.source.decoders), "needs_key": self.config.api_key is not None}
        return json_response({"title": "each sentence checked against the passages", "examples": examples, **options})

    async def metrics(self, request: Request) -> Response:
        self._admit(request)
        return Response(generate_latest(self.measured.registry), media_type=CONTENT_TYPE_LATEST)

    def deadline(self) -> Deadline:
        deadline = Deadline(self.config.timeout)
        self._deadlines.add(deadline)
        return deadline

    def end_in(self, seconds: float) -> None:
        self._is_ending = True
        error = partial(ServiceError, 503, "shutting_down", "the server is shutting down; try again")
        for deadline in self._deadlines:
            deadline.end_in(seconds, error)

    async def _chunks(self, chat: ChatRequest, deadline: Deadline) -> AsyncGenerator[Mapping[str, Any]]:
        async with self.queue.place(deadline):
            async with aclosing(self.source.stream(chat, deadline)) as chunks:
                async for chunk in chunks:
                    self.measured.observe(chunk)
                    yield chunk

    async def _answer(
        self, chat: ChatRequest, writer: ChatCompletions, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request; the work is cancelled when the client disconnects."""
        with self.measured.seconds.time():
            status = await _while_there(receive, self._reply(chat, writer, send))
            self.measured.requests.labels("client_left" if status is None else str(status)).inc()

    async def _reply(self, chat: ChatRequest, writer: ChatCompletions, send: Send) -> int:
        deadline = self.deadline()
        reply = Reply(send, deadline, type(writer))
        try:
            if chat.stream:
                async with aclosing(self._chunks(chat, deadline)) as chunks:
                    async for chunk in chunks:
                        await reply.send(writer.chunk(chunk))
                await reply.send(writer.end())
                await reply.end()
            else:
                async with self.queue.place(deadline):
                    answer = await self.source.complete(chat, deadline)
                    self.measured.observe(answer)
                    await reply.whole(200, writer.whole(answer), headers_of(answer))
            return 200
        except Exception as error:
            return await reply.error(_failure_of(error))

    def _admit(self, request: Request) -> None:
        self.turns.share()
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if self.config.only_loopback and (host is None or (host[1] or host[2]).lower() not in _LOOPBACK):
            told = "the server serves only this machine; address it as localhost, or start it with --host"
            raise ServiceError(403, "wrong_host", told)
        wanted = self.config.api_key
        given = (_key_of(request) or "").encode()
        if wanted is not None and not hmac.compare_digest(given, f"Bearer {wanted}".encode()):
            headers = {"WWW-Authenticate": "Bearer"}
            raise ServiceError(401, "invalid_api_key", "the API key is missing or wrong", headers=headers)

    def _passed_key(self, request: Request) -> str | None:
        """Find the client's key for the upstream server; None if it is the key of this server."""
        key = None if self.config.api_key is not None else _key_of(request)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ServiceError(400, "invalid_request", "the API key must be printable ASCII")
        return key

    async def _read(self, request: Request, read: Callable[[Any], _T]) -> _T:
        """Read the body of a request, in a thread unless it is small."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ServiceError(415, "wrong_content_type", f"expected application/json; found {kind!r}")
        body = bytearray()
        try:
            async with asyncio.timeout(self.config.timeout):
                async for piece in request.stream():
                    body += piece
                    if len(body) > self.config.max_body:
                        told = f"the request has more than {self.config.max_body} bytes"
                        raise ServiceError(413, "too_large", told, headers={"Connection": "close"})
        except TimeoutError as error:
            raise ServiceError(408, "timeout", "the request did not arrive in time") from error

        def parsed() -> _T:
            try:
                values = read_json(bytes(body))
            except ValueError as error:
                raise ServiceError(400, "invalid_json", f"the request is not JSON: {error}") from error
            return read(values)

        return parsed() if len(body) < _SMALL else await in_thread(parsed)


async def _while_there(receive: Receive, answering: Coroutine[Any, Any, _T]) -> _T | None:
    """Answer a client, and cancel the work if it disconnects, which gives None."""

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    work, gone = asyncio.create_task(answering), asyncio.create_task(until_gone())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _work(answer: Coroutine[Any, Any, Response], scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response that takes work, which is cancelled when the client disconnects."""
    if (response := await _while_there(receive, answer)) is not None:
        await response(scope, receive, send)


def _failure_of(error: Exception) -> ServiceError:
    """Log a failure, and put it in the words that the client gets."""
    if isinstance(error, ServiceError):
        if error.status >= 500:
            logger.warning("%s: %s", error.code, error)
        return error
    logger.error("a request failed", exc_info=error)
    return ServiceError(500, "internal_error", describe_failure(error))


def _key_of(request: Request) -> str | None:
    key = request.headers.get("x-api-key")
    return request.headers.get("authorization") or (f"Bearer {key}" if key else None)


def _dialect(request: Request) -> type[ChatCompletions]:
    return _DIALECTS.get(request.url.path, ChatCompletions)


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    asked = f"{request.method} {request.url.path}"
    said = f"{asked}: {error.detail}; chats go to POST /v1/chat/completions, given answers to POST /v1/score"
    told = ServiceError(error.status_code, "http_error", said).to_dict()
    return json_response(told, error.status_code, error.headers)
