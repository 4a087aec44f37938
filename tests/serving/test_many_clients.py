"""Many clients at once, clients that leave, that do not read, and too many of them: nothing crosses, nothing stays."""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from upstreams import ANSWER, PASSAGES, Upstream, asked, chunk, chunks_of, running, sse, until, whole

from syncheck.kit import load_kit
from syncheck.scoring import SentenceScorer
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.gateway import Gateway


@contextmanager
def served(monitor, upstream, config=None, **options):
    with running(create_app(Gateway(monitor, "http://up/v1", transport=upstream, **options), config)) as address:
        yield address


class Echo(httpx.AsyncBaseTransport):
    """Answers each request with its own question."""

    async def handle_async_request(self, request):
        body = json.loads(await request.aread())
        text = f"Lyon is large. {body['messages'][-1]['content']}"
        if not body.get("stream"):
            return httpx.Response(200, json=whole(text))
        data = sse(chunks_of(text))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Slow(data))


class _Slow(httpx.AsyncByteStream):
    def __init__(self, data):
        self.data = data

    async def __aiter__(self):
        for start in range(0, len(self.data), 700):
            await asyncio.sleep(0)
            yield self.data[start : start + 700]


def gauge(address, name):
    lines = httpx.get(f"{address}/metrics").text.split("\n")
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_no_answer_reaches_another_client(monitor):
    async def client(address, number):
        async with httpx.AsyncClient(timeout=120) as http:
            for turn in range(3):
                nonce = f"The nonce is {number}x{turn}."
                body = asked(messages=[{"role": "user", "content": nonce}], stream=turn != 1)
                response = await http.post(f"{address}/v1/chat/completions", json=body)
                assert response.status_code == 200
                found = {line for line in response.text.replace('"', ".").split(".") if "nonce is" in line}
                assert {line.strip() for line in found} == {nonce[:-1]}

    async def all_clients(address):
        await asyncio.gather(*(client(address, number) for number in range(8)))

    with served(monitor, Echo(), ServerConfig(max_running=3, max_waiting=20)) as address:
        asyncio.run(all_clients(address))
        assert gauge(address, "syncheck_running") == gauge(address, "syncheck_waiting") == 0


def test_more_than_may_wait_are_refused_at_once(monitor):
    async def held():
        while not released:
            await asyncio.sleep(0.01)

    released = []
    upstream = Upstream(stream=sse(chunks_of([ANSWER])), wait=held)

    async def three(address):
        async with httpx.AsyncClient(timeout=60) as http:
            url, body = f"{address}/v1/chat/completions", asked(stream=True)
            first = asyncio.create_task(http.post(url, json=body))
            await asyncio.to_thread(until, lambda: gauge(address, "syncheck_running") == 1)
            second = asyncio.create_task(http.post(url, json=body))
            await asyncio.to_thread(until, lambda: gauge(address, "syncheck_waiting") == 1)
            third = await http.post(url, json=body)
            released.append(True)
            return [await first, await second, third]

    with served(monitor, upstream, ServerConfig(max_running=1, max_waiting=1)) as address:
        first, second, third = asyncio.run(three(address))
    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert third.headers["retry-after"] and third.json()["error"]["code"] == "too_many_requests"


class Held:
    """An aligner that is held until it is released."""

    name = "held"

    def __init__(self, aligner):
        self.aligner, self.release = aligner, threading.Event()

    def align(self, passages, claims):
        assert self.release.wait(60)
        if "It breaks." in claims:
            raise RuntimeError("the aligner broke")
        return self.aligner.align(passages, claims)


@pytest.mark.parametrize("broken", [False, True])
def test_responses_at_the_same_time_are_scored_as_each_is_alone(monitor, monkeypatch, broken):
    responses = [ANSWER, "Lyon is large.", "It is in Spain.", "It breaks." if broken else "Lyon is large."]
    alone = [monitor.score(monitor.prompt(question="Q?", context=PASSAGES), text).to_dict() for text in responses]
    held = Held(monitor.aligner)
    monkeypatch.setattr(monitor, "aligner", held)

    async def clients(address):
        async with httpx.AsyncClient(timeout=60) as http:
            bodies = [{"question": "Q?", "context": PASSAGES, "response": text} for text in responses]
            url = f"{address}/v1/score"
            tasks = [asyncio.create_task(http.post(url, json=body)) for body in bodies]
            await asyncio.to_thread(until, lambda: gauge(address, "syncheck_running") == len(tasks))
            too_many = await http.post(url, json=bodies[0])
            held.release.set()
            return too_many, [await task for task in tasks]

    with served(monitor, Upstream(), ServerConfig(max_running=1, max_waiting=len(responses) - 1)) as address:
        too_many, found = asyncio.run(clients(address))
        assert gauge(address, "syncheck_running") == gauge(address, "syncheck_waiting") == 0
    assert too_many.status_code == 429
    if broken:
        statuses = [{s["status"] for s in response.json()["sentences"]} for response in found]
        assert statuses == [{"scored"}, {"scored"}, {"scored"}, {"failed"}]
    else:
        together = [response.json() for response in found]
        for report in (*together, *alone):
            report.pop("seconds", None)
        assert together == json.loads(json.dumps(alone))


def test_a_client_that_leaves_closes_the_upstream(monitor):
    async def never():
        if left:
            await asyncio.sleep(60)

    left = []
    upstream = Upstream(
        stream=sse(chunks_of(["Lyon is large. ", "It is ", *["and is "] * 500])), cuts="all", wait=never
    )

    async def leave(address):
        async with httpx.AsyncClient() as http:
            url = f"{address}/v1/chat/completions"
            async with http.stream("POST", url, json=asked(stream=True)) as response:
                async for _ in response.aiter_bytes():
                    left.append(True)
                    break

    with served(monitor, upstream) as address:
        asyncio.run(leave(address))
        assert until(lambda: upstream.left == 1)
        assert until(lambda: gauge(address, "syncheck_running") == 0)
        assert 'syncheck_requests_total{status="client_left"} 1.0' in httpx.get(f"{address}/metrics").text


def test_an_answer_that_takes_too_long_ends_with_an_error(monitor):
    async def never():
        await asyncio.sleep(60)

    upstream = Upstream(stream=sse(chunks_of([ANSWER])), wait=never)
    with served(monitor, upstream, ServerConfig(timeout=0.2)) as address:
        response = httpx.post(f"{address}/v1/chat/completions", json=asked(stream=True))
    assert response.status_code == 504 and response.json()["error"]["code"] == "timeout"


def test_a_client_that_does_not_read_is_left(monitor):
    text = "a" * 50_000
    upstream = Upstream(stream=sse([chunk({"content": text})] * 400))  # 20 MB, more than the sockets hold
    with served(monitor, upstream, ServerConfig(timeout=1.0), failing="open") as address:
        host, _, port = address.removeprefix("http://").partition(":")
        body = b'{"messages": [{"role": "user", "content": "Q?"}], "stream": true}'
        with socket.create_connection((host, int(port))) as silent:
            silent.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            assert until(lambda: gauge(address, "syncheck_running") == 1)
            assert until(lambda: gauge(address, "syncheck_running") == 0)


def test_a_body_that_never_comes_is_given_up(monitor):
    with served(monitor, Upstream(), ServerConfig(timeout=0.2)) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.settimeout(10)
            slow.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert b" 408 " in slow.recv(1000).split(b"\r\n")[0]


@pytest.fixture(scope="module")
def text_monitor():
    """Reads text alone, so that a response may have any length."""
    return load_kit("generic-bundled")


@pytest.fixture
def counted(monkeypatch):
    """Each sentence takes twenty milliseconds; gives the number of them so far."""
    claims, sentences = SentenceScorer.claims, []

    def slow(self, found, **options):
        known = [sentence for answer in found for sentence in answer]
        sentences.extend(known)
        time.sleep(0.02 * len(known))
        return claims(self, found, **options)

    monkeypatch.setattr(SentenceScorer, "claims", slow)
    return lambda: len(sentences)


LONG = {"question": "Q?", "context": PASSAGES, "response": " ".join(f"Lyon is number {i}." for i in range(2000))}
SHORT = {"question": "Q?", "context": PASSAGES, "response": ANSWER}


@pytest.mark.parametrize("leaves", [False, True])
def test_a_long_response_lets_short_ones_pass_and_ends_with_its_request(text_monitor, counted, leaves):
    """It would take more than forty seconds."""

    async def clients(address):
        async with httpx.AsyncClient(timeout=60) as http:
            long = asyncio.create_task(http.post(f"{address}/v1/score", json=LONG))
            await asyncio.to_thread(until, lambda: counted() > 20)
            short = await http.post(f"{address}/v1/score", json=SHORT)
            assert short.status_code == 200
            assert not long.done() and counted() < 1500
            if leaves:
                long.cancel()
                return None
            return (await long).status_code

    with served(text_monitor, Upstream(), ServerConfig(max_running=1, timeout=60 if leaves else 15)) as address:
        assert asyncio.run(clients(address)) == (None if leaves else 504)
        assert until(lambda: gauge(address, "syncheck_running") == 0)
        sentences = counted()
        time.sleep(0.3)
        assert counted() == sentences < 2000


def test_a_long_answer_that_is_checked_ends_with_its_time(text_monitor, counted):
    with served(text_monitor, Upstream(answer=whole(LONG["response"])), ServerConfig(timeout=1.0)) as address:
        response = httpx.post(f"{address}/v1/chat/completions", json=asked(), timeout=30)
        assert response.status_code == 504 and response.json()["error"]["code"] == "timeout"
        assert until(lambda: gauge(address, "syncheck_running") == 0)
        sentences = counted()
        time.sleep(0.3)
        assert counted() == sentences < 2000


def test_question_and_passages_are_limited_before_work_begins(text_monitor):
    many = [f"{i}z" for i in range(40_000)]
    with served(text_monitor, Upstream(answer=whole(ANSWER)), ServerConfig(max_context=100_000)) as address:
        for path, body in (
            ("/v1/chat/completions", asked(context=many)),
            ("/v1/chat/completions", asked(messages=[{"role": "user", "content": "a" * 150_000}])),
            ("/v1/score", SHORT | {"context": many}),
            ("/v1/score", SHORT | {"question": "a" * 150_000}),
        ):
            response = httpx.post(address + path, json=body, timeout=30)
            assert response.status_code == 413 and response.json()["error"]["code"] == "context_too_large"
        assert httpx.post(f"{address}/v1/chat/completions", json=asked(), timeout=30).status_code == 200


def test_a_long_response_has_the_scores_that_it_has_without_a_server(text_monitor):
    text = LONG["response"].replace("Lyon is number 1500.", "It is in Spain.")
    alone = text_monitor.check(text, question="Q?", passages=PASSAGES).to_dict()
    with served(text_monitor, Upstream()) as address:
        found = httpx.post(f"{address}/v1/score", json=LONG | {"response": text}, timeout=60).json()
    for report in (found, alone):
        report.pop("seconds", None)
    assert found == json.loads(json.dumps(alone))
