"""Lies of an upstream and requests of hostile clients, at random, through the gateway.

Each run sends one request to a gateway before an upstream that tells one to three lies, in its fields, its
log-probabilities, its JSON, its status or its stream. In every third run, the client is hostile instead, that of the
gateway or of ``syncheck serve``: it alters the body, the headers or the address. Afterwards:

* the status is a documented one, and 500 only if the upstream said so;
* what came is JSON as its standard has it, or events of it that end in ``[DONE]`` or in an error, not in both;
* failing closed, no byte holds a word that is withheld: those that the upstream put anywhere but in the text, and,
  where ``stop_below`` was asked for, those of the first sentence below it, also if it is repeated elsewhere;
* failing closed, no character of the text came before its sentence was checked;
* no key is in any byte or line of the log, and each line is printable;
* nothing failed that the gateway did not expect.

Run: python benchmarks/reliability/gateway.py --count 20000 --seed 0
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from syncheck.results import FoldedAnswer, fold, from_dict  # noqa: E402
from syncheck.serving.app import ServerConfig, create_app  # noqa: E402
from syncheck.serving.gateway import Gateway  # noqa: E402
from syncheck.serving.sources import OwnModel  # noqa: E402
from syncheck.testing import scripted_monitor  # noqa: E402

QUOTED = "<the key>"
"""Stands for the key that the upstream is sent, wherever it quotes it."""
SECRET = "VEILED thought of the moon"
WITHHELD = "It is in Quito."
GOOD = ["Lyon is large.", "It has a river."]
KEYS = {"upstream": "sk-upstream/of-the-operator", "client": "sk-client/of-one-user"}
CODES = {400, 401, 403, 404, 405, 408, 413, 415, 429, 502, 504}
PASSAGES = ["Lyon is large. It has a river. It is in France."]
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
Chance = random.Random


class Upstream(httpx.AsyncBaseTransport):
    """Answers with bytes, whatever is asked, cut at random."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.status = 200
        self.headers: dict[str, bytes] = {}
        self.data = b""
        self.is_endless = self.breaks = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        await request.aread()
        key = request.headers["authorization"].removeprefix("Bearer ")
        self.data = self.data.replace(QUOTED.encode(), self.chance.choice([key, key.replace("/", "\\/")]).encode())
        self.headers = {name: value.replace(QUOTED.encode(), key.encode()) for name, value in self.headers.items()}
        return httpx.Response(self.status, headers=self.headers, stream=_Pieces(self))


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        upstream = self._upstream
        cuts = sorted(upstream.chance.randrange(len(upstream.data) + 1) for _ in range(upstream.chance.randrange(12)))
        for start, end in zip([0, *cuts], [*cuts, len(upstream.data)], strict=True):
            yield upstream.data[start:end]
        while upstream.is_endless:
            yield b"a" * 2**20
        if upstream.breaks:
            raise httpx.ReadError("the peer closed the connection")


def deep(levels: int) -> list[Any]:
    """Return nested lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def odd(chance: Chance) -> Any:
    """Return a value of any type."""
    kinds = [None, True, 0, -1, 2**64, 10**400, 1.5, "", "x", "\ud83d", "9" * 5000, [], {}, deep(70), {"a": 1}, ["a"]]
    return chance.choice([*kinds, float("nan"), float("inf"), -0.5, "a\nb\x1b[2J", deep(500)])


def veiled(chance: Chance, secret: str) -> Any:
    """Return a secret in any wrapping."""
    wraps: list[Callable[[Any], Any]] = [
        lambda x: x,
        lambda x: [x],
        lambda x: {"text": x},
        lambda x: {"a": [{"b": x}]},
        lambda x: {x: 1},
        lambda x: {"transcript": x, "data": None},
        lambda x: [{"token": x, "logprob": -0.1, "bytes": list(x.encode()), "top_logprobs": []}],
    ]
    return chance.choice(wraps)(secret)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects in a value, itself included."""
    found, rest = [], [value]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            found.append(value)
            rest += reversed(value.values())
        elif isinstance(value, list):
            rest += reversed(value)
    return found


def logprobs(text: str) -> dict[str, Any]:
    """Return the log-probabilities of the words of a text."""
    words = [text[:1], *text[1:].split(" ")] if text else []
    words = words[:1] + [words[1], *(f" {word}" for word in words[2:])] if len(words) > 1 else words
    return {"content": [{"token": w, "logprob": -0.1, "bytes": list(w.encode()), "top_logprobs": []} for w in words]}


FIELDS = ("text", "output", "refusal", "reasoning", "reasoning_content", "audio", "annotations", "id", "model", "note")
FIELDS += ("object", "usage", "timings", "finish_reason", "role", "token_ids", "stop_reason", "syncheck", "logprobs")
FIELDS += ("top_logprobs", "function_call", "tool_calls", "message", "system_fingerprint", SECRET)


def with_secret(values: list[dict[str, Any]], chance: Chance, secret: str) -> str:
    """Put a secret into a field of some object, but for the text itself."""
    part = chance.choice(values)
    place = chance.choice(objects(part))
    taken = {"message", "delta", "logprobs"} & place.keys()  # the answer would be another one
    name = chance.choice([name for name in FIELDS if name not in taken or name == "logprobs"])
    place[name] = veiled(chance, secret)
    return "secret"


def with_secret_tokens(values: list[dict[str, Any]], chance: Chance, secret: str) -> str:
    """Put the words of a secret among the log-probabilities."""
    choices = [place for part in values for place in objects(part) if "logprobs" in place]
    if (
        choices
        and isinstance((told := chance.choice(choices)["logprobs"]), dict)
        and isinstance(told.get("content"), list)
    ):
        at = chance.randrange(len(told["content"]) + 1)
        told["content"][at:at] = logprobs(secret)["content"]
        if chance.random() < 0.3 and at < len(told["content"]):
            told["content"][at]["top_logprobs"] = [{"token": secret, "logprob": -1.0}]
        if chance.random() < 0.3 and at:
            told["content"][at - 1]["token"] = secret
    return "secret tokens"


def with_odd_value(values: list[dict[str, Any]], chance: Chance, secret: str) -> str:
    """Replace a value of some object."""
    place = chance.choice(objects(chance.choice(values)))
    if place:
        place[chance.choice(sorted(place))] = odd(chance)
    return "odd value"


def with_key(values: list[dict[str, Any]], chance: Chance, secret: str) -> str:
    """Quote the key in some field, or in an error."""
    place = chance.choice(objects(chance.choice(values)))
    quoted = f"Bearer {QUOTED}"
    place[chance.choice([*FIELDS, "content"])] = quoted
    if chance.random() < 0.3:
        values[-1]["error"] = chance.choice([quoted, {"message": f"{quoted}\nCRITICAL forged \x1b[31m"}])
    return "key"


def other_choices(values: list[dict[str, Any]], chance: Chance, secret: str) -> str:
    """Send no choices, more choices, or choices in another form."""
    part = chance.choice(values)
    found = part["choices"] if isinstance(part.get("choices"), list) else []
    part["choices"] = chance.choice([[], [*found, *found], ["abc"], {}, "abc", [{}], [*found, {"index": 9}], None])
    return "choices"


_OTHER_TEXT = {"odd value", "choices", "key", "bytes"}
"""Lies that can alter the text, so that the sentence with a low score is another one, which may pass."""
LIES = (
    with_secret,
    with_secret,
    with_secret,
    with_secret_tokens,
    with_odd_value,
    with_odd_value,
    with_key,
    other_choices,
)


def answer_of(text: str, chance: Chance, tools: bool) -> dict[str, Any]:
    """Return an honest answer."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tools and chance.random() < 0.5:
        function = {"name": "look_up", "arguments": chance.choice(["{}", text])}
        message["tool_calls"] = [{"index": 0, "id": "t1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    if chance.random() < 0.5:
        choice["logprobs"] = logprobs(text)
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": {"n": 1}}


def chunks_of(answer: dict[str, Any], chance: Chance) -> list[dict[str, Any]]:
    """Return the same answer in chunks."""
    (choice,) = answer["choices"]
    message, text = choice["message"], choice["message"]["content"]
    told = choice.get("logprobs", {}).get("content", [])
    pieces = [entry["token"] for entry in told] if told else [text[i : i + 5] for i in range(0, len(text), 5)]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}, *({"content": piece} for piece in pieces)]
    deltas += [{"tool_calls": message["tool_calls"]}] if "tool_calls" in message else []
    chunks = [{**answer, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in [*deltas, {}]]
    for chunk, entry in zip(chunks[1:], told, strict=False):
        chunk["choices"][0]["logprobs"] = {"content": [entry]}
    chunks[-1]["choices"][0]["finish_reason"] = "stop"
    for chunk in chunks:
        del chunk["usage"]
    copies: list[dict[str, Any]] = json.loads(json.dumps(chunks))
    return [*copies, {**copies[0], "choices": [], "usage": {"n": 1}}]


def spoilt(upstream: Upstream, chance: Chance, stream: bool) -> str:
    """Lie about the transfer: its status, kind or length, or its bytes."""
    data, at = upstream.data, chance.randrange(len(upstream.data))
    lie = chance.choice(["status", "kind", "cut", "bytes", "endless", "packed", "breaks", "deep", "header", "no end"])
    if lie in ("status", "header"):
        _refuse(upstream, chance, lie)
    elif lie == "kind":
        upstream.headers["content-type"] = chance.choice([b"text/html", b"application/json", b"text/event-stream", b""])
    elif lie == "packed":
        upstream.headers["content-encoding"] = chance.choice([b"gzip", b"br", b"zstd", b"deflate", b"x\x1b"])
    elif lie in ("endless", "breaks"):
        upstream.is_endless, upstream.breaks = lie == "endless" and chance.random() < 0.1, True
    else:
        deep = b"[" * 100_000
        upstream.data = {
            "cut": data[:at],
            "bytes": data[:at] + bytes([chance.randrange(256)]) + data[at + chance.randrange(2) :],
            "deep": b'data: {"choices": ' + deep + b"\n\n" if stream else deep,
            "no end": data.removesuffix(b"data: [DONE]\n\n"),
        }[lie]
    return lie


def _refuse(upstream: Upstream, chance: Chance, lie: str) -> None:
    if lie == "header":
        upstream.headers["retry-after"] = chance.choice(["7; x", "9" * 500, QUOTED, "é"]).encode()
        upstream.status, upstream.data = 429, b"{}"
        return
    upstream.status = chance.choice([201, 204, 302, 304, 400, 401, 404, 418, 429, 500, 503, 599])
    if chance.random() < 0.5:
        said = f"boom {QUOTED}\n2026 CRITICAL forged \x1b[2J\u202e"
        said = chance.choice([json.dumps({"error": {"message": said}}), said, "[" * 50_000])
        upstream.data = said.encode() if upstream.status >= 400 else b"{}"


def hostile(body: dict[str, Any], headers: dict[str, bytes], chance: Chance) -> tuple[str, str, bytes]:
    """Alter a request; return its method, its path and the bytes of its body."""
    path = chance.choice(["/v1/chat/completions"] * 4 + ["/v1/score", "/beta/litellm_basic_guardrail_api"])
    if path == "/v1/score":
        body = {"question": "Where?", "context": PASSAGES, "response": GOOD[0]}
    elif path.startswith("/beta"):
        kind = chance.choice(["request", "response"])
        body = {"input_type": kind, "structured_messages": body["messages"], "texts": [GOOD[0]]}
        body["additional_provider_specific_params"] = {"context": PASSAGES, "at_least": 0.5}
    for _ in range(chance.randrange(1, 3)):
        place = chance.choice(objects(body))
        added = (
            "n",
            "seed",
            "max_tokens",
            "stream",
            "stream_options",
            "temperature",
            "syncheck",
            "context",
            "documents",
            "decoder",
        )
        place[chance.choice([*place, *added])] = odd(chance)
    data = json.dumps(body).encode()
    ways: list[dict[str, Any]] = [
        {"authorization": chance.choice([b"Bearer k\xff", b"Bearer " + b"9" * 5000, b"\t", b"Basic x"])},
        {"host": chance.choice([b"[::1", b"evil.example", b"", b"a:b:c", b"localhost:99999", b"\xff"])},
        {"content-type": chance.choice([b"text/plain", b"", b"application/json; charset=utf-16", b"\xff"])},
        {"data": data[: chance.randrange(len(data))]},
        {"data": data.replace(b'"', chance.choice([b"\xff", b"\xed\xa0\x80", b"'"]), chance.randrange(1, 4))},
        {"method": chance.choice(["GET", "PUT", "DELETE"]), "path": chance.choice([path, "/v1/models", "/%00"])},
        *[{}] * 3,
    ]
    way = chance.choice(ways)
    method, path, data = way.pop("method", "POST"), way.pop("path", path), way.pop("data", data)
    headers |= way
    return method, path, data


def events_in(response: httpx.Response) -> list[Any]:
    """Return the data of a response, of which ``[DONE]`` is None; ValueError if it is not JSON."""

    def refuse(found: str) -> None:
        raise ValueError(found)

    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        return [json.loads(response.content, parse_constant=refuse)]
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    return [None if line == "[DONE]" else json.loads(line, parse_constant=refuse) for line in lines]


def early(parts: list[Any]) -> list[str]:
    """Return what is wrong with text that is shown: it came before it was checked, or is not that of the events."""
    wrong, answers, shown = [], {}, Counter[int]()
    texts: dict[int, str] = {}
    for part in parts:
        for choice in part["choices"] if part is not None and "choices" in part else ():
            answer = answers.setdefault(choice["index"], FoldedAnswer())
            fold(map(from_dict, choice["syncheck"].get("events", [])), answer)
            texts[choice["index"]] = texts.get(choice["index"], "") + (choice["delta"].get("content") or "")
            if len(answer.text.rstrip()) > max((s.end for s in answer.sentences), default=0):
                wrong.append(f"shown before it was checked: {answer.text!r}")
            shown[choice["index"]] += 1
    return wrong + [f"other text: {texts[i]!r}" for i in texts if texts[i] != answers[i].text]


class Lines(logging.Handler):
    """Keeps the lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append((record.levelno, self.format(record)))


def own_model(monitor: Any, failing: Any) -> OwnModel:
    """Return what ``syncheck serve`` serves."""

    def written(prompt: Any, *, seed: int, do_sample: bool, **options: Any) -> Any:
        generator = torch.Generator().manual_seed(seed)
        return monitor.stream(prompt, generator=generator, do_sample=do_sample, **options)

    decoders: dict[str, Any] = {name: partial(written, do_sample=name == "sample") for name in ("greedy", "sample")}
    return OwnModel(monitor, decoders, default="greedy", name="m", failing=failing, max_new_tokens=16)


async def run_one(monitor: Any, chance: Chance, log: Lines) -> tuple[str, str, list[str]]:
    """Send one request; return what was done, what came of it, and what is wrong."""
    is_closed, is_hostile = chance.random() < 0.8, chance.random() < 1 / 3
    stream, tools, has_key = chance.random() < 0.5, chance.random() < 0.3, chance.random() < 0.5
    stops = chance.random() < 0.5
    text = " ".join(
        [*chance.sample(GOOD, chance.randrange(1, 3)), *([WITHHELD] if stops else []), *chance.sample(GOOD, 1)]
    )
    upstream, answer = Upstream(chance), answer_of(text, chance, tools)
    parts = chunks_of(answer, chance) if stream else [answer]
    lies: list[str] = []
    if not is_hostile:
        secret = chance.choice([SECRET, WITHHELD]) if stops and is_closed else SECRET
        lies = [chance.choice(LIES)(parts, chance, secret) for _ in range(chance.randrange(1, 4))]
    written = [json.dumps(part).encode() for part in parts]
    upstream.data = b"".join(b"data: " + one + b"\n\n" for one in [*written, b"[DONE]"]) if stream else written[0]
    upstream.headers["content-type"] = b"text/event-stream" if stream else b"application/json"
    if not is_hostile and chance.random() < 0.3:
        lies.append(spoilt(upstream, chance, stream))

    options: dict[str, Any] = {"stop_below": 0.5} if stops else {}
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Where is Lyon?"}]}
    body |= {"context": PASSAGES, "stream": stream, "syncheck": options} | ({"tools": TOOLS} if tools else {})
    body |= {"stream_options": {"include_usage": True}} if stream and chance.random() < 0.3 else {}
    headers = {"content-type": b"application/json", "authorization": f"Bearer {KEYS['client']}".encode()}
    method, path, data = "POST", "/v1/chat/completions", json.dumps(body).encode()
    if is_hostile:
        method, path, data = hostile(body, headers, chance)

    who, failing = "lying upstream", "closed" if is_closed else "open"
    api_key = f"{KEYS['upstream']}\n" if has_key else None
    source: Any = Gateway(monitor, "http://up/v1", transport=upstream, failing=failing, api_key=api_key)
    if is_hostile:
        who = chance.choice(["client of the gateway", "client of serve"])
        source = source if who.endswith("gateway") else own_model(monitor, failing)
    app, known = create_app(source, ServerConfig()), len(log.lines)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        response = await asyncio.wait_for(client.request(method, path, content=data, headers=headers), 60)
    await source.close()
    way = f"{who}, {failing}"
    outcome = "answered" if response.status_code == 200 else "refused"
    hidden = ["VEILED"] if is_closed and not is_hostile and upstream.status == 200 else []
    if hidden and stops and not _OTHER_TEXT & set(lies):
        hidden.append("Quito")
    wrong = laws(response, log.lines[known:], is_closed=is_closed and not is_hostile, hidden=hidden, upstream=upstream)
    if outcome == "answered" and response.headers["content-type"].startswith("text/event-stream"):
        outcome = "answered" if "[DONE]" in response.text else "ended with an error"
    return way, outcome, [f"{each} ({way}, {', '.join(lies)})" for each in wrong]


def laws(
    response: httpx.Response, lines: list[tuple[int, str]], *, is_closed: bool, hidden: list[str], upstream: Upstream
) -> list[str]:
    """Return which laws are broken."""
    wrong = [f"log: {line!r}" for level, line in lines if not line.isprintable() or level >= logging.ERROR]
    try:
        parts = events_in(response)
    except ValueError as error:
        return [*wrong, f"no JSON: {error}: {response.text[:200]!r}"]
    errors = [part["error"] for part in parts if isinstance(part, dict) and part.get("error")]
    if response.status_code != 200:
        code = errors[0]["code"] if errors else None
        is_told = response.status_code in CODES or (
            code == "upstream_refused" and response.status_code == upstream.status
        )
        wrong += [] if is_told and code else [f"status {response.status_code}, {code}"]
    elif response.headers["content-type"].startswith("text/event-stream"):
        wrong += [] if (parts[-1] is None) != bool(errors) else [f"it ends in {parts[-1]!r}"]
        wrong += early(parts) if is_closed else []
    told = response.text + "".join(f"{name}: {value}\n" for name, value in response.headers.items())
    told += "".join(
        bytes(entry["bytes"]).decode(errors="replace")
        for part in parts
        for entry in objects(part)
        if isinstance(entry.get("bytes"), list) and is_closed
    )
    for key in KEYS.values():
        wrong += [f"a key: {where[:300]!r}" for where in (told, *(line for _, line in lines)) if key in where]
    return wrong + [f"{word} was told: {told[:600]!r}" for word in hidden if word in told]


def run(count: int, seed: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Send requests; return how often what came of them, and what is wrong."""
    text = " ".join([*GOOD, WITHHELD])
    monitor = scripted_monitor(text, supports={GOOD[0]: 0.97, GOOD[1]: 0.9, WITHHELD: 0.1})
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    log = Lines()
    logger = logging.getLogger("syncheck")
    logger.addHandler(log)
    before, logger.propagate = logger.propagate, False

    async def all_of_them() -> None:
        for number in range(count):
            try:
                way, outcome, found = await run_one(monitor, Chance(f"{seed}.{number}"), log)
            except Exception as error:  # of the gateway, whatever it is
                way, outcome, found = "any", "broke", [f"{type(error).__name__}: {error}"]
            outcomes[way, outcome] += 1
            wrong.extend(f"{number}: {each}" for each in found)

    try:
        asyncio.run(all_of_them())
    finally:
        logger.removeHandler(log)
        logger.propagate = before
    return outcomes, wrong


def main() -> int:
    """Send requests and print their outcomes; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Hostile clients and lying upstreams.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    outcomes, wrong = run(args.count, args.seed)
    print(f"{args.count} requests, seed {args.seed}")
    for (way, outcome), times in sorted(outcomes.items()):
        print(f"{times:6d}  {way:24s} {outcome}")
    print(f"{len(wrong)} wrong", *wrong[:40], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
