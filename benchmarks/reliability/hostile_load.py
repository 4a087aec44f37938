"""One hostile client of the gateway at a time: how long the small requests of others take meanwhile.

    python benchmarks/reliability/hostile_load.py --seconds 20

Starts ``syncheck gateway`` with the bundled monitor before an upstream that answers at once, with one sentence or with
6,000 characters of initials. While one client sends one kind of hostile request after the other, small requests of
other clients (a chat, a score and ``/healthz``) are timed. Prints JSON. The exit code is 1 if a small request
failed, or took longer than ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PASSAGES = ["Lyon is a city in France. It has 520,000 people."]
SENTENCE = "Lyon is a city in France."
INITIALS = "A. " * 2000
NAMED = "Lyon number {} is in France and has many people."


def chat(**fields: Any) -> dict[str, Any]:
    """Return the body of a chat."""
    return {"model": "short", "messages": [{"role": "user", "content": "Where is Lyon?"}], "context": PASSAGES} | fields


def given(sentences: int, context: Sequence[str] = PASSAGES) -> dict[str, Any]:
    """Return the body of a request to score so many sentences."""
    response = " ".join(NAMED.format(i) for i in range(sentences))
    return {"question": "Where is Lyon?", "context": context, "response": response}


CHAT, SCORE = "/v1/chat/completions", "/v1/score"
ATTACKS: dict[str, tuple[str, dict[str, Any]] | None] = {
    "nothing": None,
    "a request that is too large": (CHAT, chat(padding="x" * 3 * 2**20)),
    "40,000 passages": (CHAT, chat(context=[f"{i}z" for i in range(40_000)], model="a" * 800_000)),
    "passages of 380,000 characters": (SCORE, given(20, [NAMED.format(i) * 20 for i in range(360)])),
    "4,000 sentences to score": (SCORE, given(4000)),
    "answers of initials": (CHAT, chat(model="initials")),
    "initials to score": (SCORE, given(0) | {"response": INITIALS * 20}),
    "streams that are left": (CHAT, chat(model="initials", stream=True)),
}


async def upstream_chat(request: Request) -> Response:
    """Answer with a sentence, or with initials."""
    body = await request.json()
    text = INITIALS if body["model"] == "initials" else SENTENCE
    opening = {"id": "c", "created": 1, "model": "echo"}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return JSONResponse({**opening, "object": "chat.completion", "choices": [choice]})
    choices = [
        {"index": 0, "delta": {"content": text}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    chunks = [json.dumps({**opening, "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]
    told = (f"data: {data}\n\n" for data in [*chunks, "[DONE]"])
    return StreamingResponse(told, media_type="text/event-stream")


async def attack(http: httpx.AsyncClient, name: str, until: float) -> Counter[str]:
    """Send hostile requests, one after the other; return how many ended with each status."""
    found: Counter[str] = Counter()
    asked = ATTACKS[name]
    while asked is not None and time.monotonic() < until:
        limit = 0.2 if name == "streams that are left" else max(until - time.monotonic(), 0.2)
        try:
            async with asyncio.timeout(limit):
                found[str((await http.post(asked[0], json=asked[1])).status_code)] += 1
        except (TimeoutError, httpx.TransportError):
            found["left"] += 1
    return found


async def small(http: httpx.AsyncClient, method: str, path: str, body: Any, until: float) -> tuple[list[float], int]:
    """Send small requests until the time is over; return the seconds of each, and how many failed."""
    seconds, failed = [], 0
    while not seconds or time.monotonic() < until:
        started = time.perf_counter()
        response = await http.request(method, path, json=body)
        seconds.append(time.perf_counter() - started)
        failed += response.status_code != 200
        await asyncio.sleep(0.1)
    return seconds, failed


async def trial(address: str, name: str, seconds: float) -> dict[str, Any]:
    """Time small requests beside one kind of hostile request."""
    async with (
        httpx.AsyncClient(base_url=address, timeout=120) as http,
        httpx.AsyncClient(base_url=address, timeout=120) as hostile,
    ):
        until = time.monotonic() + seconds
        attacking = asyncio.create_task(attack(hostile, name, until))
        asked = {
            "chat": ("POST", CHAT, chat()),
            "score": ("POST", SCORE, given(1)),
            "healthz": ("GET", "/healthz", None),
        }
        timed = await asyncio.gather(*(small(http, *each, until) for each in asked.values()))
        found = await attacking
    told = {
        kind: {"median": round(statistics.median(took), 3), "slowest": round(max(took), 3), "requests": len(took)}
        for kind, (took, _) in zip(asked, timed, strict=True)
    }
    return {"hostile": dict(found), **told, "failed": sum(failed for _, failed in timed)}


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def run(seconds: float, names: Sequence[str] = tuple(ATTACKS)) -> dict[str, Any]:
    """Start upstream and gateway, run a trial of each kind, and stop them."""
    upstream_port, port = free_port(), free_port()
    app = Starlette(routes=[Route("/v1/chat/completions", upstream_chat, methods=["POST"])])
    upstream = uvicorn.Server(uvicorn.Config(app, port=upstream_port, log_level="error"))
    serving = asyncio.create_task(upstream.serve())
    options = ["gateway", "--upstream", f"http://127.0.0.1:{upstream_port}/v1", "--port", str(port)]
    command = f"from syncheck.cli import main; raise SystemExit(main({options!r}))"
    address = f"http://127.0.0.1:{port}"
    gateway = subprocess.Popen([sys.executable, "-c", command], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        async with httpx.AsyncClient(base_url=address, timeout=120) as http:
            while gateway.poll() is None:
                try:
                    await http.post(SCORE, json=given(1))  # the monitor is loaded with the first
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.2)
            else:
                raise SystemExit("the gateway did not start")
        return {name: await trial(address, name, seconds) for name in names}
    finally:
        gateway.terminate()
        gateway.wait()
        upstream.should_exit = True
        await serving


def broken(found: dict[str, Any], limit: float) -> list[str]:
    """Return the kinds beside which a small request failed or was late."""
    late = {name: max(told[kind]["slowest"] for kind in ("chat", "score", "healthz")) for name, told in found.items()}
    return [name for name, told in found.items() if told["failed"] or late[name] > limit]


def main() -> int:
    """Run the trials and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each kind")
    parser.add_argument("--limit", type=float, default=2.0, help="longest time of a small request, in seconds")
    args = parser.parse_args()
    found = asyncio.run(run(args.seconds))
    print(json.dumps(found, indent=1))
    return int(bool(broken(found, args.limit)))


if __name__ == "__main__":
    raise SystemExit(main())
