"""A gateway that repairs: FOD before a server that continues a text, over HTTP."""

import asyncio
import json
from contextlib import suppress

import httpx
import pytest
import upstream_fod
from upstreams import PASSAGES, asked, data_of, folded, text_of, until

import fod
from syncheck import Aggregator, MonitorConfig, Verifier, feature_schema
from syncheck.cli import main
from syncheck.features.schemas import ALIGNER_ALONE
from syncheck.results import ContinuationRequest
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway
from syncheck.serving.repairing import RepairingGateway, ServerContinuations
from syncheck.serving.upstream import Upstream
from syncheck.testing import ScriptedAligner

WRONG, RIGHT = "Lyon is large. It is in Spain. Bye.", "Lyon is large. It is in France."
FIRST = "Lyon is large."
SUPPORTS = {"Lyon is large.": 0.97, "It is in Spain.": 0.1, "It is in France.": 0.9, "Bye.": 0.9}
TEXTS = {
    ("", None): [WRONG],
    (FIRST, 2): [" It is in Spain. Bye.", " It is in France. It"],
    (RIGHT, 2): ["", " It is in Spain."],
}


class Continuing(httpx.AsyncBaseTransport):
    """A server that continues as it is told, word by word, with usage in each chunk; keeps requests, counts closes."""

    def __init__(self, texts=TEXTS, *, by="chat", breaks_after=None, wait=0.0, usage="each"):
        self.texts, self.by, self.breaks_after, self.wait, self.usage = texts, by, breaks_after, wait, usage
        self.requests, self.left = [], 0

    async def handle_async_request(self, request):
        body = json.loads(await request.aread())
        self.requests.append((request.url.path, body))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Words(self, body))

    def beginning(self, body):
        last = body["messages"][-1]
        return last["content"] if last["role"] == "assistant" else ""

    def answers(self, body):
        beginning = self.beginning(body)
        if self.by == "prefill" and beginning:
            samples = next(texts for (start, n), texts in self.texts.items() if start == beginning and n)
            return [samples[sum(self.beginning(b) == beginning for _, b in self.requests) - 1]]
        return self.texts[beginning, body.get("n")]


class _Words(httpx.AsyncByteStream):
    def __init__(self, upstream, body):
        self.upstream, self.body, self.finished = upstream, body, False

    async def __aiter__(self):
        upstream, sent, total = self.upstream, 0, 0
        for index, text in enumerate(upstream.answers(self.body)):
            words = [w if n == 0 else f" {w}" for n, w in enumerate(text.split(" "))] if text else []
            for count, word in enumerate([*words, None], 1):
                if upstream.breaks_after is not None and sent >= upstream.breaks_after:
                    raise httpx.RemoteProtocolError("peer closed connection")
                choice = {"index": index, "delta": {"content": word}, "finish_reason": "stop" if word is None else None}
                values = {"id": "c", "choices": [choice]}
                if upstream.usage == "each":
                    values["usage"] = {"prompt_tokens": 10, "completion_tokens": min(count, len(words))}
                await asyncio.sleep(upstream.wait)
                yield f"data: {json.dumps(values)}\n\n".encode()
                sent += 1
            total += len(words)
        if upstream.usage != "none":
            told = {"prompt_tokens": 10, "completion_tokens": total}
            yield f"data: {json.dumps({'choices': [], 'usage': told})}\n\n".encode()
        self.finished = True
        yield b"data: [DONE]\n\n"

    async def aclose(self):
        self.upstream.left += not self.finished


@pytest.fixture(scope="module")
def verifier():
    schema = feature_schema(ALIGNER_ALONE, ())
    return Verifier(
        ScriptedAligner(SUPPORTS),
        config=MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.7, prune_threshold=0.7),
        aggregator=Aggregator.from_signal("align_score", schema=schema),
    )


@pytest.fixture
def source(verifier):
    def made(upstream, *, repair="search", budget=None, failing="closed", opens_reasoning=False, **options):
        config = fod.FODConfig(beam_size=1, samples_per_step=2) if repair == "search" else fod.RepairConfig()

        def decode(continue_from, *, in_thread, **asked):
            decoder = fod.UpstreamFOD(
                verifier, continue_from, repair=repair, config=config, budget=budget, in_thread=in_thread
            )
            return decoder.stream_async(**asked)

        gateway = Gateway(
            verifier, "http://up/v1", transport=upstream, failing=failing, opens_reasoning=opens_reasoning
        )
        return RepairingGateway(gateway, verifier, decode, by=upstream.by, **options)

    return made


@pytest.fixture
def posted(source):
    def post(upstream, body=None, path="/v1/chat/completions", **options):
        async def send():
            transport = httpx.ASGITransport(create_app(source(upstream, **options)))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.post(path, json=body or asked())

        return asyncio.run(send())

    return post


def test_a_failing_sentence_is_replaced(posted):
    upstream = Continuing()
    response = posted(upstream)
    answer = response.json()
    choice = answer["choices"][0]
    assert choice["message"]["content"] == RIGHT and choice["finish_reason"] == "stop"
    assert response.headers["x-syncheck-status"] == "verified" and answer["model"] == "m"
    assert [s["text"] for s in choice["syncheck"]["sentences"]] == [FIRST, "It is in France."]
    (_, first), (_, second), (path, third) = upstream.requests
    assert path == "/v1/chat/completions" and first["temperature"] == 0 and "continue_final_message" not in first
    assert second["messages"] == [*first["messages"], {"role": "assistant", "content": FIRST}]
    assert second["continue_final_message"] is True and second["add_generation_prompt"] is False
    assert (second["n"], second["temperature"], third["messages"][-1]["content"]) == (2, 0.9, RIGHT)
    assert second["seed"] != third["seed"] and "context" not in first and upstream.left == 2


@pytest.mark.parametrize(("first", "stop"), [(FIRST, "nothing_passed"), ("", "abstained")])
def test_an_answer_that_ends_since_nothing_passes_is_filtered(posted, first, stop):
    texts = {("", None): [f"{first} It is in Spain."], (first, 2): [" It is in Spain. It", " It is in Spain."]}
    choice = posted(Continuing(texts)).json()["choices"][0]
    assert choice["message"]["content"] == (first or fod.config.ABSTENTION)
    assert (choice["finish_reason"], choice["syncheck"]["stop"]) == ("content_filter", stop)


def test_usage_counts_what_was_rejected_too(posted):
    usage = posted(Continuing()).json()["usage"]
    assert usage["syncheck"] == {"requests": 3, "samples": 4, "rounds": 2}
    assert usage["prompt_tokens"] == 30 and usage["completion_tokens"] > len(RIGHT.split())
    assert posted(Continuing(usage="none")).json()["usage"]["prompt_tokens"] == 0


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
def test_a_stream_is_events_and_plain_chunks(posted, reveal):
    body = asked(stream=True, stream_options={"include_usage": True}, syncheck={"reveal": reveal})
    *chunks, last = data_of(posted(Continuing(), body))
    assert last == "[DONE]" and chunks[-1]["usage"]["completion_tokens"] > 0
    assert folded(chunks).text == RIGHT and folded(chunks).report["stop"] == "end_of_text"
    assert text_of(chunks) == RIGHT


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_the_other_interfaces_have_the_same_answer(posted, path):
    body = {"model": "m", "context": PASSAGES, "max_tokens": 99}
    told = {"input": "Where is Lyon?"} if path.endswith("responses") else {"messages": asked()["messages"]}
    assert RIGHT in posted(Continuing(), {**body, **told}, path).text


def test_a_prefilled_message_asks_for_each_sample_apart(posted):
    upstream = Continuing(by="prefill")
    assert posted(upstream).json()["choices"][0]["message"]["content"] == RIGHT
    assert [b["messages"][-1]["content"] for _, b in upstream.requests[1:]] == [FIRST, FIRST, RIGHT, RIGHT]
    assert all(not b.keys() & {"n", "continue_final_message"} for _, b in upstream.requests)
    assert len({b["seed"] for _, b in upstream.requests[1:]}) == 4


def test_a_server_that_takes_no_n_is_told(posted):
    response = posted(Continuing({**TEXTS, (FIRST, 2): [" It is"]}))
    assert response.status_code == 502 and "--continue prefill" in response.json()["error"]["message"]


def test_an_error_of_one_sample_ends_all(posted):
    samples = {("", None): [WRONG], (FIRST, 2): [" It is in Spain. It", " It is in France. It"]}
    response = posted(Continuing(samples, by="prefill", breaks_after=5))
    assert response.json()["error"]["code"] == "upstream_incomplete"


def test_the_sampling_of_the_request_is_that_of_the_stream(posted):
    upstream = Continuing()
    posted(upstream, asked(temperature=0.4, seed=7, stop=["X"]))
    first, second, _ = (body for _, body in upstream.requests)
    assert (first["temperature"], first["seed"], first["stop"]) == (0.4, 7, ["X"])
    assert second["temperature"] == 0.9 and second["seed"] == 8 and second["stop"] == ["X"]
    posted(upstream := Continuing(), asked(temperature=None))
    assert upstream.requests[0][1]["temperature"] == 0


def test_a_limit_on_tokens_is_for_the_whole_answer():
    async def pieces():
        upstream = Upstream("http://up", api_key=None, timeout=1, transport=Continuing())
        continue_from = ServerContinuations(upstream, asked(max_tokens=3))
        return [piece async for piece in continue_from(ContinuationRequest(FIRST, 2, tokens=3))]

    assert [(p.sample, p.stop) for p in asyncio.run(pieces())] == [(0, "length"), (1, "length")]


@pytest.mark.parametrize(("repair", "text"), [("drop", f"{FIRST} Bye."), ("mark", WRONG)])
def test_cheap_policies(posted, repair, text):
    upstream = Continuing()
    choice = posted(upstream, repair=repair).json()["choices"][0]
    assert choice["message"]["content"] == text
    assert len(upstream.requests) == 1
    assert [s["marked"] for s in choice["syncheck"]["sentences"]] == [s == "It is in Spain." for s in sentences(choice)]


def sentences(choice):
    return [s["text"] for s in choice["syncheck"]["sentences"]]


@pytest.mark.parametrize(
    ("written", "shown", "said"),
    [
        ("It is in Spain. Lyon is large.", "Lyon is large.", "Left out: 1 sentence that"),
        ("It is in Spain.\n\nIt is in Spain. Lyon is large. Bye.", "Lyon is large. Bye.", "Left out: 2 sentences that"),
        ("Lyon is large. It is in Spain. Bye.", "Lyon is large. Bye.", "Left out: 1 sentence that"),
        ("Lyon is large. It is in Spain.", "Lyon is large.", "Incomplete: the next sentence did not pass"),
    ],
)
def test_what_is_left_out_leaves_no_space_and_is_told(posted, written, shown, said):
    upstream = Continuing({("", None): [written]})
    choice = posted(upstream, repair="drop").json()["choices"][0]
    chunks = data_of(posted(upstream, asked(stream=True), repair="drop"))
    assert choice["message"]["content"] == text_of(chunks) == folded(chunks).report["response"] == shown
    places = [(s["start"], s["end"]) for s in choice["syncheck"]["sentences"]]
    assert [shown[start:end] for start, end in places] == sentences(choice)
    (notice,) = choice["syncheck"]["notices"]
    assert notice.startswith(said) and [n.text for n in folded(chunks).notices] == [notice]


def test_a_budget_that_ends_is_told(posted):
    chunks = data_of(posted(Continuing(), asked(stream=True), budget=fod.Budget(rounds=1)))[:-1]
    assert text_of(chunks) == RIGHT and chunks[-1]["choices"][0]["finish_reason"] == "length"
    told = chunks[-1]["choices"][0]["syncheck"]
    assert told["stop"] == "budget" and "budget of 1 rounds" in told["reason"]
    assert [n.text for n in folded(chunks).notices] == ["Incomplete: the budget of 1 rounds has ended"]


def test_reasoning_is_left_out(posted):
    thinking = {**TEXTS, ("", None): [f"<think>In Spain? No.</think> {WRONG}"]}
    assert posted(Continuing(thinking)).json()["choices"][0]["message"]["content"] == RIGHT
    opened = {**TEXTS, ("", None): [f"In Spain? No.</think> {WRONG}"]}
    assert posted(Continuing(opened), opens_reasoning=True).json()["choices"][0]["message"]["content"] == RIGHT
    assert "--opens-reasoning" in posted(Continuing(opened)).json()["error"]["message"]


@pytest.mark.parametrize("breaks_after", [4, 11])
def test_an_upstream_that_breaks_off_ends_with_its_error(posted, breaks_after):
    chunks = data_of(posted(Continuing(breaks_after=breaks_after), asked(stream=True)))
    assert chunks[-1]["error"]["code"] == "upstream_incomplete" and text_of(chunks[:-1]) == FIRST
    assert folded(chunks[:-1]).report is None


def test_a_client_that_leaves_cancels_the_upstream(source):
    upstream = Continuing(wait=0.05)

    async def leave():
        task = asyncio.current_task()
        body = json.dumps(asked(stream=True)).encode()
        gone = asyncio.Event()
        messages = [{"type": "http.request", "body": body}]

        async def receive():
            if messages:
                return messages.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message.get("body"):
                gone.set()

        headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}
        scope |= {"query_string": b"", "raw_path": b"", "scheme": "http", "server": None, "http_version": "1.1"}
        with suppress(asyncio.CancelledError):
            await create_app(source(upstream))(scope, receive, send)
        assert task is not None

    asyncio.run(asyncio.wait_for(leave(), 20))
    assert until(lambda: upstream.left == len(upstream.requests))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"n": 2}, "unsupported"),
        ({"tools": [{"type": "function"}]}, "unsupported"),
        ({"decoder": "greedy"}, "unknown_decoder"),
        ({"syncheck": {"stop_below": 0.3}}, "unsupported"),
        ({"context": []}, "no_passages"),
        ({"max_tokens": "many"}, "invalid_request"),
        ({"messages": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "L"}]}, "unsupported"),
    ],
)
def test_what_it_cannot_do_is_refused(posted, fields, code):
    upstream = Continuing()
    response = posted(upstream, asked(**fields))
    assert response.status_code == 400 and response.json()["error"]["code"] == code and not upstream.requests


def test_failing_open_passes_an_answer_without_passages_unchecked(posted):
    chunks = data_of(posted(Continuing(), asked(stream=True, context=[]), failing="open"))[:-1]
    assert text_of(chunks) == WRONG
    assert "unverified" in json.dumps(chunks)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--samples", "3"], "--samples needs --decoder fod"),
        (["--decoder", "fod", "--stop-below", "0.3"], "--stop-below"),
        (["--decoder", "fod", "--repair", "drop", "--beams", "3"], "--repair search"),
    ],
)
def test_options_that_do_not_belong_together(given, said, capsys):
    assert main(["gateway", "--upstream", "http://up/v1", "--monitor", "generic-bundled", *given]) == 2
    assert said in capsys.readouterr().err


def test_figures_of_the_benchmark(verifier, monkeypatch, capsys):
    server, counters = Continuing(), iter([0, 0, 10, 8] * 9)
    monkeypatch.setattr(upstream_fod, "Upstream", lambda url, timeout: Upstream(url, transport=server))
    monkeypatch.setattr(upstream_fod, "Verifier", lambda: verifier)

    async def count(url):
        return next(counters), next(counters)

    monkeypatch.setattr(upstream_fod, "_counters", count)
    ways = ["--samples", "4", "--ways", "mark", "drop", "search"]
    upstream_fod.main(["--url", "http://up/v1", "--questions", "1", *ways])
    table = [line.split() for line in capsys.readouterr().out.splitlines()[-4:]]
    assert [row[:2] for row in table] == [["plain", "1"], ["mark", "1"], ["drop", "1"], ["search", "1"]]
    assert table[0][-1] == "80%" and [row[-5:-1] for row in table[1:]] == [
        ["1", "of", "3", "0"],
        ["1", "of", "3", "0"],
        ["1", "of", "2", "1"],
    ]
