"""An OpenAI-compatible upstream that says what a test tells it to, and a server on a loopback port."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from syncheck.results import FoldedAnswer, fold, from_dict

PASSAGES = ["Lyon is large. It is in France."]
SUPPORTS = {"Lyon is large.": 0.97, "It is in Spain.": 0.1}
ANSWER = "Lyon is large. It is in Spain."
PIECES = ["Lyon is", " large. It", " is in Spain", "."]


def asked(**fields):
    return {"model": "m", "messages": [{"role": "user", "content": "Where is Lyon?"}], "context": PASSAGES} | fields


def chunk(delta=None, finish=None, index=0, **fields):
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]} | fields


def chunks_of(pieces, index=0):
    return [
        chunk({"role": "assistant", "content": ""}, index=index),
        *(chunk({"content": piece}, index=index) for piece in pieces),
        chunk(finish="stop", index=index),
    ]


def sse(chunks, *, done=True):
    ended = ["[DONE]"] if done else []
    return "".join(f"data: {x}\n\n" for x in [*(json.dumps(c, ensure_ascii=False) for c in chunks), *ended]).encode()


def whole(*texts, **message):
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text} | message, "finish_reason": "stop"}
        for i, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


class Upstream(httpx.AsyncBaseTransport):
    """Answers with given bytes, in given pieces; keeps the requests, and counts the streams that were closed early."""

    def __init__(self, *, stream=b"", answer=None, cuts=None, status=200, breaks=False, headers=None, wait=None):
        self.stream, self.answer, self.cuts, self.status, self.breaks = stream, answer, cuts, status, breaks
        self.headers = headers or {}
        self.wait = wait
        self.requests = []
        self.left = 0

    async def handle_async_request(self, request):
        await request.aread()
        self.requests.append((str(request.url), dict(request.headers), json.loads(request.content or b"null")))
        if (self.requests[-1][2] or {}).get("stream") and self.status == 200:
            headers = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=headers, stream=_Pieces(self))
        return httpx.Response(self.status, json=self.answer, headers=self.headers)


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, upstream):
        self.upstream, self.finished = upstream, False

    async def __aiter__(self):
        data, cuts = self.upstream.stream, self.upstream.cuts
        bounds = [0, *(range(1, len(data)) if cuts == "all" else cuts or []), len(data)]
        for start, end in zip(bounds, bounds[1:], strict=False):
            if self.upstream.wait is not None:
                await self.upstream.wait()
            yield data[start:end]
        if self.upstream.breaks:
            raise httpx.RemoteProtocolError("peer closed connection")
        self.finished = True

    async def aclose(self):
        self.upstream.left += not self.finished


@contextmanager
def running(app):
    """Serve an application on a free loopback port; gives its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def until(holds):
    """Wait up to ten seconds; return whether it holds."""
    for _ in range(400):
        if holds():
            return True
        time.sleep(0.025)
    return False


def data_of(response):
    """The chunks of a stream; the last is whatever ended it."""
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def text_of(chunks, index=0):
    """Text of a choice as a client that knows nothing of us reads it."""
    found = [c for chunk in chunks if isinstance(chunk, dict) for c in chunk.get("choices", []) if c["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in found)


def folded(chunks, index=0):
    answer = FoldedAnswer()
    for part in chunks:
        for choice in part.get("choices", []) if isinstance(part, dict) else []:
            if choice["index"] == index:
                fold(map(from_dict, choice["syncheck"].get("events", [])), answer)
    return answer


def scores(answer):
    return [round(s.score, 2) for s in answer.sentences]
