"""A stream that breaks off goes on after any event, without a gap and without a repeat; others cannot read it."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from upstreams import ANSWER, Upstream, asked, chunks_of, running, sse, until

import syncheck.serving
from syncheck.results import FoldedAnswer, fold, from_json
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.gateway import Gateway

PIECES = ["Lyon is", " large. It", " is in Spain", "."]
RESUMABLE = asked(stream=True, syncheck={"resumable": True})


@pytest.fixture
def http():
    with httpx.Client(timeout=60) as client:
        yield client


@pytest.fixture
def served(monitor):
    def served(upstream, **options):
        return running(create_app(Gateway(monitor, "http://up/v1", transport=upstream), ServerConfig(**options)))

    return served


def events_of(response):
    """Events and the ids they were sent with."""
    blocks = [block.split("\n") for block in response.text.split("\n\n") if block]
    assert all(named == f"id: {json.loads(data[6:])['id']}" for named, data in blocks)
    return [from_json(data[6:]) for _, data in blocks]


def test_the_stream_goes_on_after_any_event(served, http):
    with served(Upstream(stream=sse(chunks_of(PIECES)))) as address:
        posted = http.post(f"{address}/v1/chat/completions", json=RESUMABLE)
        url = f"{address}/v1/answers/{posted.headers['x-syncheck-answer']}"
        whole = events_of(http.get(url))
        assert fold(whole).text == ANSWER and fold(whole).report["response"] == ANSWER
        assert f"id: {whole[-1].id}\ndata: " in posted.text and posted.text.endswith("data: [DONE]\n\n")
        for last in range(len(whole) + 1):
            assert events_of(http.get(url, headers={"Last-Event-ID": str(last)})) == whole[last:]
        for wrong in ("x", "-1", "²", "9" * 5000):
            refused = http.get(url, headers={"Last-Event-ID": wrong.encode()})
            assert refused.status_code == 400
        assert http.get(url + "x").json()["error"]["code"] == "unknown_answer"


def test_a_reader_that_goes_comes_back_to_the_same_answer(served):
    async def wait():
        while not released and len(began) > 300:
            await asyncio.sleep(0.01)
        began.append(True)

    released, began = [], []
    upstream = Upstream(stream=sse(chunks_of(PIECES)), cuts="all", wait=wait)

    async def read(address):
        answer, url = FoldedAnswer(), f"{address}/v1/chat/completions"
        async with httpx.AsyncClient(timeout=60) as client:
            async with client.stream("POST", url, json=RESUMABLE) as response:
                token = response.headers["x-syncheck-answer"]
            released.append(True)
            while answer.report is None:  # a reader that goes after every event
                headers = {"Last-Event-ID": str(answer.last_id)}
                async with client.stream("GET", f"{address}/v1/answers/{token}", headers=headers) as response:
                    async for line in response.aiter_lines():
                        if line.startswith("data: "):
                            fold([from_json(line[6:])], answer)
                            break
        return answer

    with served(upstream) as address:
        answer = asyncio.run(read(address))
    assert answer.text == ANSWER and [round(s.score, 2) for s in answer.sentences] == [0.97, 0.1]
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("deleted", [False, True])
def test_an_answer_that_nobody_reads_is_given_up(served, http, deleted):
    async def wait():
        if left:
            await asyncio.sleep(60)

    left = []
    upstream = Upstream(stream=sse(chunks_of(["Lyon is large. ", *["and is "] * 500])), cuts="all", wait=wait)
    with served(upstream, resume_seconds=60 if deleted else 0.2) as address:
        with http.stream("POST", f"{address}/v1/chat/completions", json=RESUMABLE) as response:
            next(response.iter_bytes())
            left.append(True)
        url = f"{address}/v1/answers/{response.headers['x-syncheck-answer']}"
        if deleted:
            assert http.delete(url).status_code == 204
        assert until(lambda: upstream.left == 1)
        assert http.get(url).status_code == 404
        assert until(lambda: "syncheck_running 0.0" in http.get(f"{address}/metrics").text)
        assert 'syncheck_requests_total{status="410"} 1.0' in http.get(f"{address}/metrics").text


def test_an_answer_keeps_its_place_whatever_others_ask_for(served, http):
    upstream = Upstream(stream=sse(chunks_of(PIECES)))
    with served(upstream, max_running=1, max_waiting=1) as address:
        chats = f"{address}/v1/chat/completions"
        first = http.post(chats, json=RESUMABLE).headers["x-syncheck-answer"]
        refused = [http.post(chats, json=RESUMABLE | {"context": []}).status_code for _ in range(20)]
        assert set(refused) == {400}
        upstream.status, upstream.answer = 500, {"error": "broken"}
        assert {http.post(chats, json=RESUMABLE).status_code for _ in range(20)} == {500}
        upstream.status = 200
        posted = [http.post(chats, json=RESUMABLE) for _ in range(20)]
        tokens = [first, *(one.headers["x-syncheck-answer"] for one in posted if one.status_code == 200)]
        assert 2 <= len(tokens) < 20
        assert {http.get(f"{address}/v1/answers/{token}").status_code for token in tokens} == {200}
        last = posted[-1]
        assert last.status_code == 429 and last.json()["error"]["code"] == "too_many_kept"
        assert last.headers["retry-after"] and "x-syncheck-answer" not in last.headers
        assert http.delete(f"{address}/v1/answers/{first}").status_code == 204
        assert http.post(chats, json=RESUMABLE).status_code == 200


def test_an_answer_without_a_reader_is_not_forgotten_for_another(served, http):
    async def wait():
        while not released and len(began) > 300:
            await asyncio.sleep(0.01)
        began.append(True)

    released, began = [], []
    upstream = Upstream(stream=sse(chunks_of(PIECES)), cuts="all", wait=wait)
    with served(upstream, max_running=1, max_waiting=1) as address:
        chats = f"{address}/v1/chat/completions"
        with http.stream("POST", chats, json=RESUMABLE) as response:
            token = response.headers["x-syncheck-answer"]
        for _ in range(20):
            assert http.post(chats, json=RESUMABLE | {"context": []}).status_code == 400
        released.append(True)
        assert fold(events_of(http.get(f"{address}/v1/answers/{token}"))).text == ANSWER


def test_its_errors_reach_each_reader(served, http):
    upstream = Upstream(stream=sse(chunks_of(PIECES)[:-2], done=False))
    with served(upstream) as address:
        posted = http.post(f"{address}/v1/chat/completions", json=RESUMABLE)
        read = http.get(f"{address}/v1/answers/{posted.headers['x-syncheck-answer']}")
        for response in (posted, read):
            last = response.text.strip().split("\n\n")[-1]
            assert json.loads(last.partition("data: ")[2])["error"]["code"] == "upstream_incomplete"
        upstream.status, upstream.answer = 429, {"error": "slow"}
        assert http.post(f"{address}/v1/chat/completions", json=RESUMABLE).status_code == 429


def test_it_needs_the_key_and_a_stream_of_one_choice(served, http):
    with served(Upstream(stream=sse(chunks_of(PIECES))), api_key="right") as address:
        headers = {"Authorization": "Bearer right"}
        token = http.post(f"{address}/v1/chat/completions", json=RESUMABLE, headers=headers).headers[
            "x-syncheck-answer"
        ]
        url = f"{address}/v1/answers/{token}"
        assert http.get(url).status_code == http.delete(url).status_code == 401
        for fields in ({"stream": False}, {"n": 2}, {"syncheck": {"resumable": 1}}):
            response = http.post(f"{address}/v1/chat/completions", json=RESUMABLE | fields, headers=headers)
            assert response.status_code == 400


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_client_reads_it(served, http, tmp_path):
    client = Path(syncheck.serving.__file__).with_name("client.js")
    (tmp_path / "client.mjs").write_text(client.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "main.mjs").write_text(
        'import {follow} from "./client.mjs";\n'
        "const answer = await follow(process.argv[2]).catch((error) => ({text: error.message}));\n"
        "process.stdout.write(JSON.stringify(answer.text));",
        encoding="utf-8",
    )
    upstream = Upstream(stream=sse(chunks_of(PIECES)))
    with served(upstream) as address:
        broken = sse(chunks_of(PIECES)[:-2], done=False)
        for stream, text in ((upstream.stream, ANSWER), (broken, "broke off")):
            upstream.stream = stream
            posted = http.post(f"{address}/v1/chat/completions", json=RESUMABLE)
            url = f"{address}/v1/answers/{posted.headers['x-syncheck-answer']}"
            command = ["node", "main.mjs", url]
            run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert text in json.loads(run.stdout)
