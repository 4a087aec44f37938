"""Many clients of the gateway at once: whether an answer reaches another client, and whether memory stays flat.

    python benchmarks/serving_load.py --clients 50 --seconds 120
    python benchmarks/serving_load.py --clients 4 --seconds 120 --kinds stream

Starts ``syncheck gateway`` with the default verifier before an upstream that answers a question with the nonce in it.
The clients read streams and whole answers, read slowly, leave in the middle, have answers scored, send too much, or
bring a wrong key.
Prints JSON: answers of each kind by status, whole answers for each second of processor time of the gateway, that is,
per second and core; seconds from the moment when the upstream has sent the first sentence to that when a client has its
score, without the wait for a place in the queue; answers with another client's nonce (must be 0), memory of the gateway
over time in MiB, and what its metrics count as running at the end (must be 0). Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from machine import describe_machine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PASSAGES = ["Lyon is a city in France. It has 520,000 people and two rivers."]
KEY = "the-right-key"
MOST_BYTES = 20_000
KINDS = ("stream", "stream", "stream", "whole", "slow", "leaves", "score", "too_large", "wrong_key")
_NONCE = re.compile(r"n\d+x\d+n")
_FIRST = "France."
"""Last word of the first sentence."""
_WHOLE = frozenset({"stream 200", "whole 200", "slow 200", "score 200"})
_sent: dict[str, float] = {}
"""When the upstream sent the end of the first sentence of the answer with a nonce."""


async def upstream_chat(request: Request) -> Response:
    """Answer with the question's nonce, a few words at a time."""
    body = await request.json()
    nonce = _NONCE.findall(body["messages"][-1]["content"])[-1]
    text = f"Lyon is a city in France. Its code is {nonce}. It has 900,000 people."
    opening = {"id": "c", "created": 1, "model": "echo"}
    if not body.get("stream"):
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({**opening, "object": "chat.completion", "choices": [choice]})

    async def pieces() -> AsyncIterator[str]:
        deltas = [{"content": word + " "} for word in text.split()]
        for index, delta in enumerate([*deltas, {}]):
            if delta.get("content", "").strip() == _FIRST:
                _sent[nonce] = time.monotonic()
            choice = {"index": 0, "delta": delta, "finish_reason": "stop" if index == len(deltas) else None}
            yield f"data: {json.dumps({**opening, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
            await asyncio.sleep(0.005)
        yield "data: [DONE]\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


async def client(
    number: int,
    address: str,
    until: float,
    kinds: Sequence[str],
    outcomes: Counter[str],
    crossed: list[str],
    added: list[float],
) -> None:
    """Ask until the time is over, each time as another kind of client."""
    chance = random.Random(number)
    async with httpx.AsyncClient(timeout=300) as http:
        for turn in range(10**6):
            if time.monotonic() > until:
                return
            kind, nonce = chance.choice(kinds), f"n{number}x{turn}n"
            outcome, text = await asked(http, address, kind, nonce, chance, added)
            outcomes[f"{kind} {outcome}"] += 1
            crossed += [other for other in _NONCE.findall(text) if other != nonce]
            if outcome == "429":
                await asyncio.sleep(chance.uniform(0.2, 1.0))


async def asked(
    http: httpx.AsyncClient, address: str, kind: str, nonce: str, chance: random.Random, added: list[float]
) -> tuple[str, str]:
    """Send one request; returns its outcome and all text that came back."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": f"What is {nonce}?"}], "context": PASSAGES}
    body |= {"stream": kind != "whole", "padding": "x" * (MOST_BYTES if kind == "too_large" else 0)}
    headers = {"Authorization": f"Bearer {'wrong' if kind == 'wrong_key' else KEY}"}
    path, text = "/v1/chat/completions", ""
    if kind == "score":
        path, body = "/v1/score", {"question": "Q?", "context": PASSAGES, "response": f"Its code is {nonce}."}
    try:
        async with http.stream("POST", address + path, json=body, headers=headers) as response:
            async for piece in response.aiter_text():
                text += piece
                _note(kind, nonce, text, added)
                if kind == "leaves" and response.status_code == 200:
                    break
                if kind == "slow":
                    await asyncio.sleep(chance.uniform(0.0, 0.5))
        if kind == "leaves" and response.status_code == 200:
            return "left", text
    except httpx.HTTPError as error:
        return type(error).__name__, text
    if response.status_code == 200 and kind in ("stream", "slow") and "[DONE]" not in text:
        return "incomplete", text
    return str(response.status_code), text


def _note(kind: str, nonce: str, text: str, added: list[float]) -> None:
    """Note how long the score of the first sentence of a stream took, once it has come."""
    if kind == "stream" and nonce in _sent and '"verified"' in text:
        added.append(time.monotonic() - _sent.pop(nonce))


def resident_mib(pid: int) -> float:
    """Return the memory of a process, on Linux."""
    (line,) = [x for x in Path(f"/proc/{pid}/status").read_text().split("\n") if x.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used, on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def ready(address: str, gateway: subprocess.Popen[bytes]) -> None:
    """Wait until the gateway answers."""
    async with httpx.AsyncClient() as http:
        while gateway.poll() is None:
            try:
                await http.get(f"{address}/healthz")
                return
            except httpx.HTTPError:
                await asyncio.sleep(0.2)
    raise SystemExit("the gateway did not start")


async def load(args: argparse.Namespace, address: str, gateway: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Run the clients and return what was found."""
    await ready(address, gateway)
    counts: Counter[str] = Counter()
    crossed: list[str] = []
    added: list[float] = []
    used, started = processor_seconds(gateway.pid), time.monotonic()
    clients = [
        asyncio.create_task(client(n, address, started + args.seconds, args.kinds, counts, crossed, added))
        for n in range(args.clients)
    ]
    memory = []
    while not all(task.done() for task in clients):
        memory.append(round(resident_mib(gateway.pid), 1))
        await asyncio.wait(clients, timeout=args.seconds / 12)
    await asyncio.gather(*clients)
    used, wall = processor_seconds(gateway.pid) - used, time.monotonic() - started
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        for _ in range(100):
            metrics = (await http.get(f"{address}/metrics")).text
            (running,) = re.findall(r"^syncheck_running (.*)$", metrics, flags=re.M)
            if float(running) == 0:
                break
            await asyncio.sleep(0.1)
    complete = sum(counts[each] for each in _WHOLE)
    return {
        "outcomes": dict(sorted(counts.items())),
        "answers_per_second": round(complete / wall, 2),
        "answers_per_second_and_core": round(complete / used, 2),
        "cores_used": round(used / wall, 2),
        "seconds_added_p50_p99": [round(float(x), 3) for x in np.quantile(added, [0.5, 0.99])] if added else None,
        "crossed": len(crossed),
        "memory_mib": memory,
        "running": float(running),
    }


async def main(args: argparse.Namespace) -> int:
    """Start upstream and gateway, load them, and stop them."""
    upstream_port, port = free_port(), free_port()
    app = Starlette(routes=[Route("/v1/chat/completions", upstream_chat, methods=["POST"])])
    upstream = uvicorn.Server(uvicorn.Config(app, port=upstream_port, log_level="error"))
    serving = asyncio.create_task(upstream.serve())
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        key.write_text(KEY)
        options = ["gateway", "--upstream", f"http://127.0.0.1:{upstream_port}/v1", "--port", str(port)]
        options += ["--max-body", str(MOST_BYTES), "--api-key-file", str(key), "--max-waiting", str(args.waiting)]
        command = f"from syncheck.cli import main; raise SystemExit(main({options!r}))"
        gateway = subprocess.Popen([sys.executable, "-c", command], env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            result = await load(args, f"http://127.0.0.1:{port}", gateway)
        finally:
            gateway.terminate()
            gateway.wait()
            upstream.should_exit = True
            await serving
    print(json.dumps({"machine": describe_machine("cpu", 1, "wall"), **vars(args), **result}, indent=1, default=str))
    return int(result["crossed"] > 0 or result["running"] != 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument(
        "--kinds", type=lambda given: given.split(","), default=KINDS, help="kinds of clients, as stream,whole (all)"
    )
    parser.add_argument("--waiting", type=int, default=32, help="requests that may wait; more get 429")
    raise SystemExit(asyncio.run(main(parser.parse_args())))
