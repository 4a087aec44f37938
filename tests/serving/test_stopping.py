"""A server that stops: open answers are completed, or end with what they have; it tells when it takes no more."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from upstreams import (
    ANSWER,
    PASSAGES,
    PIECES,
    Upstream,
    asked,
    chunks_of,
    data_of,
    folded,
    running,
    sse,
    text_of,
    until,
)

from syncheck.serving.app import ServerConfig, create_app, end_in
from syncheck.serving.gateway import Gateway


def streamed_while_ending(monitor, wait, *, grace, failing="closed"):
    """The chunks of an answer whose server is told to stop after its first pieces."""
    data = sse(chunks_of(PIECES))
    cut = data.index(b" in Spain")
    cut = data.index(b"\n\n", cut) + 2
    reached = asyncio.Event()

    async def waits():
        if reached.is_set():
            await wait()
        reached.set()

    async def send():
        app = create_app(
            Gateway(monitor, "http://up/v1", transport=Upstream(stream=data, cuts=[cut], wait=waits), failing=failing)
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            asking = asyncio.create_task(client.post("/v1/chat/completions", json=asked(stream=True)))
            await reached.wait()
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            end_in(app, grace)
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()) == (503, {"status": "shutting_down"})
            assert (await client.get("/healthz")).status_code == 200
            return data_of(await asking)

    return asyncio.run(send())


def test_an_open_answer_is_completed_if_there_is_time(monitor):
    chunks = streamed_while_ending(monitor, lambda: asyncio.sleep(0.1), grace=20)
    assert chunks[-1] == "[DONE]" and text_of(chunks) == ANSWER and folded(chunks).report


@pytest.mark.parametrize("failing", ["closed", "open"])
def test_one_that_is_not_complete_by_then_ends_with_an_error(monitor, failing):
    chunks = streamed_while_ending(monitor, lambda: asyncio.sleep(30), grace=0.2, failing=failing)
    assert chunks[-1]["error"]["code"] == "shutting_down" and folded(chunks).report is None
    assert text_of(chunks) == ("Lyon is large." if failing == "closed" else "Lyon is large. It is in Spain")


def test_a_full_queue_is_not_ready(monitor):
    async def forever():
        await asyncio.sleep(30)

    async def send():
        upstream = Upstream(stream=sse(chunks_of(PIECES)), wait=forever)
        app = create_app(
            Gateway(monitor, "http://up/v1", transport=upstream), ServerConfig(max_running=1, max_waiting=0)
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            asking = asyncio.create_task(client.post("/v1/chat/completions", json=asked(stream=True)))
            while (ready := await client.get("/readyz")).status_code == 200:
                await asyncio.sleep(0.01)
            asking.cancel()
            return ready.json()

    assert asyncio.run(asyncio.wait_for(send(), 10)) == {"status": "full"}


@pytest.mark.slow
@pytest.mark.parametrize("grace", ["20", "0.5"])
def test_the_command_ends_its_answers_when_it_is_told_to_stop(grace):
    going_on = threading.Event()

    async def answer(request):
        async def pieces():
            for piece in sse(chunks_of(PIECES)).split(b"\n\n")[:-1]:
                yield piece + b"\n\n"
                if b"Spain" in piece:
                    await asyncio.to_thread(going_on.wait, 3)

        return StreamingResponse(pieces(), media_type="text/event-stream")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    upstream = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    with running(upstream) as address:
        variables = {"UPSTREAM": f"{address}/v1", "PORT": str(port), "GRACE": grace, "MONITOR": "generic-bundled"}
        command = [sys.executable, "-c", "import sys; from syncheck.cli import main; sys.exit(main(['gateway']))"]
        environment = os.environ | {f"SYNCHECK_{name}": value for name, value in variables.items()}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"

            def is_ready():
                try:
                    return httpx.get(f"{url}/readyz").status_code == 200
                except httpx.TransportError:
                    return False

            assert until(is_ready) or until(is_ready)
            lines = []
            body = asked(stream=True, context=PASSAGES)
            with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as response:
                for line in response.iter_lines():
                    lines.append(line)
                    if "large" in line and not going_on.is_set():
                        process.send_signal(signal.SIGTERM)
                        if grace == "20":
                            going_on.set()
            last = [line[6:] for line in lines if line.startswith("data: ")][-1]
            assert last == "[DONE]" if grace == "20" else json.loads(last)["error"]["code"] == "shutting_down"
            assert process.wait(20) in (0, -signal.SIGTERM)
        finally:
            going_on.set()
            process.kill()
            process.wait()
