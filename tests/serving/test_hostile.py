"""Upstreams that lie and clients that are hostile: nothing withheld passes, no key is told, errors are documented."""

import gzip
import json
import logging
import socket
import threading
import time

import httpx
import pytest
import uvicorn
from upstreams import ANSWER, Upstream, asked, chunk, chunks_of, sse, whole

from syncheck.base.errors import InputError
from syncheck.cli import main
from syncheck.serving import limits, upstream
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.chat import read_json
from syncheck.serving.gateway import Gateway
from syncheck.serving.limits import PromptConnection

SECRET = "SECRETTHOUGHT of the moon"
KEY = "sk-upstream/secret-key"
GOOD = "Lyon is large."
WORDS = ("Lyon", " is", " large", ".")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


class Says(httpx.AsyncBaseTransport):
    """An upstream that answers with given bytes, status and headers, and can quote the request's."""

    def __init__(self, data, status=200, headers=None):
        self.data, self.status, self.headers = data, status, {"content-type": "application/json"} | (headers or {})

    async def handle_async_request(self, request):
        data = self.data(request) if callable(self.data) else self.data
        return httpx.Response(self.status, content=data, headers=self.headers)


def entries(*tokens, **more):
    return {"content": [{"token": token, "logprob": -0.1, "bytes": list(token.encode())} | more for token in tokens]}


def streamed(*parts):
    return Upstream(stream=sse([*parts, chunk({"content": GOOD}), chunk(finish="stop")]))


def in_choice(part=None, **fields):
    values = part or chunk()
    values["choices"][0] |= fields
    return values


CARRIED = {"annotations": [SECRET], "audio": {"transcript": SECRET}, "reasoning": SECRET, "refusal": SECRET}
IN_MESSAGE = {
    **CARRIED,
    "reasoning_content": SECRET,
    "role": SECRET,
    SECRET: 1,
    "token_ids": [1, 2],
    "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": SECRET}}],
    "function_call": {"name": "f", "arguments": SECRET},
}
IN_CHOICE = {"text": SECRET, "finish_reason": SECRET, "stop_reason": SECRET, "token_ids": [1, 2], "syncheck": SECRET}
IN_ANSWER = {"output": SECRET, "id": SECRET, "model": SECRET, "usage": {SECRET: 1}, "prompt_token_ids": [1, 2]}
IN_ANSWER |= {"usage": {"note": SECRET}, "object": SECRET, "service_tier": SECRET, "syncheck": {"status": SECRET}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("place", "name"),
    [(p, n) for p, names in (("message", IN_MESSAGE), ("choice", IN_CHOICE), ("answer", IN_ANSWER)) for n in names],
)
def test_what_is_withheld_is_withheld_in_every_field(posted, stream, place, name):
    value = {"message": IN_MESSAGE, "choice": IN_CHOICE, "answer": IN_ANSWER}[place][name]
    fields = {name: value}
    answer = whole(GOOD, **(fields if place == "message" else {}))
    answer["choices"][0] |= fields if place == "choice" else {}
    answer |= fields if place == "answer" else {}
    part = chunk({"role": "assistant"} | (fields if place == "message" else {}))
    part["choices"][0] |= {k: v for k, v in fields.items() if place == "choice" and k != "finish_reason"}
    part |= fields if place == "answer" else {}
    parts = [part, chunk({"content": GOOD}), chunk(finish=SECRET if name == "finish_reason" else "stop")]
    response = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream))
    assert response.status_code == 200 and "SECRET" not in response.text and 'token_ids": [' not in response.text
    named = "other" if name == SECRET else name
    assert f'"unchecked": ["{named}"]' in response.text
    opened = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream), failing="open")
    assert f'"unchecked": ["{named}"]' in opened.text
    if name not in ("syncheck", "finish_reason"):
        assert json.dumps(value)[1:-1] in opened.text


@pytest.mark.parametrize("stream", [False, True])
def test_fields_that_carry_no_text_pass(posted, stream):
    fields = {
        "system_fingerprint": "fp_1",
        "usage": {"total_tokens": 3, "details": {"cached": 1}},
        "timings": {"ms": 1.5},
    }
    answer = whole(GOOD, refusal=None, annotations=[], reasoning_content="") | fields | {"prompt_logprobs": None}
    parts = [chunk({"role": "assistant", "refusal": None}) | fields, chunk({"content": GOOD}), chunk(finish="stop")]
    response = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream))
    assert "unchecked" not in response.text
    told = response.json() if not stream else json.loads(response.text.split("\n")[0][6:])
    assert {name: told[name] for name in fields} == fields


def test_chunks_do_not_spell_out_what_is_withheld(posted):
    parts = [
        chunk({"content": piece}, id=word, model=word) for piece, word in zip(WORDS, ("c1", "x", "y", "z"), strict=True)
    ]
    response = posted(Upstream(stream=sse([*parts, chunk(finish="stop", id="w")])), asked(stream=True))
    told = [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: {")]
    assert {(part["id"], part["model"]) for part in told} == {("c1", "c1")}


def logprobs_of(response, stream):
    found = [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: {")]
    choices = [c for part in found for c in part["choices"]] if stream else response.json()["choices"]
    return [entry for c in choices for entry in (c.get("logprobs") or {}).get("content", [])]


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_hold_only_the_text_that_is_shown(posted, stream):
    answer = whole(f"{GOOD} It is in Spain.", reasoning_content=SECRET)
    tokens = ("SECRET", "THOUGHT", "</think>", *WORDS, " It is in Spain.", "<eos>")
    answer["choices"][0]["logprobs"] = entries(*tokens)
    parts = [
        in_choice(chunk({"reasoning_content": SECRET}), logprobs=entries("SECRET", "THOUGHT")),
        in_choice(chunk(), logprobs=entries("</think>")),
        *(in_choice(chunk({"content": word}), logprobs=entries(word)) for word in (*WORDS, " It is in Spain.")),
        in_choice(chunk(finish="stop"), logprobs=entries("<eos>")),
    ]
    source = Upstream(answer=answer, stream=sse(parts))
    response = posted(source, asked(stream=stream, logprobs=True, syncheck={"stop_below": 0.5}))
    assert [entry["token"] for entry in logprobs_of(response, stream)] == [*WORDS]
    assert "SECRET" not in response.text and "Spain" not in response.text
    opened = posted(source, asked(stream=stream, logprobs=True), failing="open")
    assert "".join(entry["token"] for entry in logprobs_of(opened, stream)) == "".join(tokens)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "logprobs",
    [
        entries(*WORDS, top_logprobs=[{"token": SECRET, "logprob": -3.0}]),
        entries(*WORDS, note=SECRET),
        entries(*WORDS) | {"refusal": [{"token": SECRET}]},
        {"content": [{"token": SECRET, "logprob": -0.1, "bytes": list(word.encode())} for word in WORDS]},
        {"content": [{"token": word, "logprob": SECRET} for word in WORDS]},
        {"content": [{"token": word, "logprob": -0.1, "bytes": SECRET} for word in WORDS]},
        {"content": [SECRET]},
        {"tokens": [SECRET], "token_logprobs": [-0.1]},
        [SECRET],
        SECRET,
    ],
)
def test_log_probabilities_carry_nothing_else(posted, stream, logprobs):
    answer = whole(GOOD)
    answer["choices"][0]["logprobs"] = logprobs
    parts = [in_choice(chunk({"content": GOOD}), logprobs=logprobs), chunk(finish="stop")]
    response = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream, logprobs=True))
    assert response.status_code == 200 and "SECRET" not in response.text


def test_a_character_in_several_tokens_keeps_its_log_probabilities(posted):
    halves = ["é".encode()[:1], "é".encode()[1:]]
    tokens = [{"token": "\ufffd", "bytes": list(half), "logprob": -0.1} for half in halves]
    answer = whole("é.")
    answer["choices"][0]["logprobs"] = {"content": [*tokens, {"token": ".", "logprob": -0.1, "bytes": None}]}
    response = posted(Upstream(answer=answer), asked())
    assert [entry["bytes"] for entry in logprobs_of(response, False)] == [[0xC3], [0xA9], None]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_a_tool_does_not_repeat_a_sentence_that_is_withheld(posted, stream):
    call = [{"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": "It is in Spain."}}]
    answer = whole(ANSWER, tool_calls=call)
    parts = [chunk({"content": ANSWER}), chunk({"tool_calls": call}), chunk(finish="tool_calls")]
    for least, passes in ((0.5, False), (None, True)):
        body = asked(stream=stream, tools=TOOLS, syncheck={"stop_below": least})
        response = posted(Upstream(answer=answer, stream=sse(parts)), body)
        assert ("arguments" in response.text) is ("Spain" in response.text) is passes
        assert ("content_filter" in response.text) is not passes


def test_an_answer_that_is_withheld_altogether_says_so(posted):
    (choice,) = posted(Upstream(answer=whole(None, refusal=SECRET)), asked()).json()["choices"]
    assert (choice["finish_reason"], choice["syncheck"]["unchecked"]) == ("content_filter", ["refusal"])


ECHOES = {
    "refused": (lambda r: json.dumps({"error": {"message": f"bad {r.headers['authorization']}"}}).encode(), 401),
    "refused, escaped": (lambda r: b'{"error": {"message": "bad sk-upstream\\/secret-key"}}', 500),
    "refused in text": (lambda r: r.headers["authorization"].encode(), 403),
    "an error with success": (lambda r: json.dumps({"error": r.headers["authorization"]}).encode(), 200),
    "the text": (lambda r: json.dumps(whole(f"It is {r.headers['authorization']}.")).encode(), 200),
}


@pytest.mark.parametrize("of_client", [False, True])
@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_the_upstream_quotes_reaches_neither_client_nor_log(posted, caplog, echo, of_client):
    data, status = ECHOES[echo]
    given = {"headers": {"authorization": f"Bearer {KEY}"}} if of_client else {"api_key": f"{KEY}\n"}
    with caplog.at_level(logging.DEBUG, logger="syncheck"):
        response = posted(Says(data, status), asked(), **given)
    assert "secret-key" not in response.text + caplog.text and "[key]" in response.text


def test_a_key_is_stripped_or_refused_at_the_start(posted, monitor, monkeypatch, capsys):
    source = Upstream(answer=whole(GOOD))
    assert posted(source, asked(), api_key=f" {KEY}\r\n").status_code == 200
    assert source.requests[0][1]["authorization"] == f"Bearer {KEY}"
    for wrong in ("a\nsecret", "sécret", "secret\x00", " "):
        for make in (lambda: Gateway(monitor, "http://up", api_key=wrong), lambda: ServerConfig(api_key=wrong)):  # noqa: B023
            with pytest.raises(InputError, match="one line of printable ASCII") as caught:
                make()
            assert "cret" not in str(caught.value)
    monkeypatch.setenv("SYNCHECK_UPSTREAM_KEY", "a\nsecret")
    assert main(["gateway", "--upstream", "http://up/v1", "--port", "1"]) == 2
    told = capsys.readouterr().err
    assert "$SYNCHECK_UPSTREAM_KEY must be one line" in told and "secret" not in told
    for address in ("up/v1", "http://[::1", "http://up\x00/"):
        with pytest.raises(InputError, match="http://"):
            Gateway(monitor, address)


def test_no_error_holds_a_header(posted, caplog):
    class Breaks(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            raise httpx.LocalProtocolError(f"Illegal header value {request.headers['authorization']!r}")

    response = posted(Breaks(), asked(), api_key="short")
    assert response.json()["error"]["code"] == "upstream_unreachable"
    assert "short" not in response.text + caplog.text and "header" not in response.text


FORGED = "boom\n2026-01-01 CRITICAL forged\x1b[2J\x9b31m \u202e\u2028end"


@pytest.mark.parametrize(
    "source",
    [
        Says(json.dumps({"error": {"message": FORGED}}, ensure_ascii=False).encode(), 500),
        Says(json.dumps({"error": FORGED}).encode()),
        Says(FORGED.encode(), 503),
    ],
)
def test_what_the_upstream_says_is_one_printable_line(posted, caplog, source):
    response = posted(source, asked())
    told = [response.json()["error"]["message"], *(record.getMessage() for record in caplog.records)]
    assert len(told) == 2
    for line in told:
        assert line.isprintable() and "boom" in line


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_body_without_an_end_is_refused_early(posted, monkeypatch, packed, path):
    monkeypatch.setattr(upstream, "MOST_BODY", 1000)
    monkeypatch.setattr(upstream, "MOST_REFUSAL", 1000)
    sent = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self):
            while True:
                sent.append(100)
                yield b"a" * 100

    class Source(httpx.AsyncBaseTransport):
        def __init__(self, status):
            self.status = status

        async def handle_async_request(self, request):
            assert request.headers["accept-encoding"] == "identity"
            if packed:
                return httpx.Response(200, content=gzip.compress(b"a"), headers={"content-encoding": "gzip"})
            return httpx.Response(self.status, stream=Endless())

    for status, code in ((200, "upstream_invalid"), (500, "upstream_invalid" if packed else "upstream_refused")):
        method, body = ("GET", None) if path.endswith("models") else ("POST", asked())
        response = posted(Source(status), body, path=path, method=method)
        assert response.json()["error"]["code"] == code and len(response.text) < 1000
        assert len(sent) <= 22


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_does_not_parse_is_not_quoted(posted, stream):
    data = json.dumps(whole(SECRET)).encode()[:-1] + b', "usage": NaN}'
    kind = {"content-type": "text/event-stream"} if stream else {}
    response = posted(Says(b"data: " + data + b"\n\n" if stream else data, headers=kind), asked(stream=stream))
    assert response.json()["error"]["code"] == "upstream_invalid" and "SECRET" not in response.text


def test_a_stream_without_an_end_is_ended(posted, monkeypatch):
    monkeypatch.setattr(upstream, "MOST_STREAM", 2000)
    response = posted(
        Upstream(stream=sse([chunk({"content": f"{GOOD} "})] * 50), cuts=range(100, 9000, 100)), asked(stream=True)
    )
    assert "over 2000 bytes" in response.text and "[DONE]" not in response.text


LIES = [
    {"delta": "abc", "message": "abc"},
    {"delta": [1], "message": [1]},
    {"index": [1]},
    {"index": "0"},
    {"index": True},
    {"index": 1},
    {"index": -1},
    {"index": 2**70},
    {"finish_reason": ["stop"]},
    {"finish_reason": 7},
    {"delta": {"content": [{"text": "a"}]}, "message": {"content": 0}},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_a_choice_in_another_form_is_the_upstreams_error(posted, stream, lie):
    answer, part = whole(GOOD), chunk({"content": GOOD})
    answer["choices"][0] |= lie
    part["choices"][0] |= lie
    response = posted(Upstream(answer=answer, stream=sse([part])), asked(stream=stream))
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_invalid")


DEEP = b"[" * 900 + b"]" * 900
BODIES = [
    b"[" * 200_000,
    b'{"choices": ' + DEEP + b"}",
    json.dumps(whole(GOOD)).encode()[:-1] + b', "more": ' + DEEP + b"}",
    json.dumps(whole(GOOD)).encode()[:-1] + b', "usage": {"x": NaN}}',
    json.dumps(whole(GOOD)).encode()[:-1] + b', "usage": {"x": 1e999}}',
    json.dumps(whole(GOOD)).encode()[:-1] + b', "created": ' + b"9" * 5000 + b"}",
    b'{"choices": []}',
    b'{"choices": ["abc"]}',
    json.dumps(whole(GOOD, GOOD)).encode(),
    b'{"choices": [{"message": {"content": "\xff"}}]}',
    b"",
]


@pytest.mark.parametrize("failing", ["closed", "open"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("data", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_no_answer_is_the_upstreams_error(posted, data, stream, failing):
    kind = {"content-type": "text/event-stream"} if stream else {}
    response = posted(
        Says(b"data: " + data + b"\n\n" if stream else data, headers=kind), asked(stream=stream), failing=failing
    )
    if stream and response.status_code == 200:
        assert response.text.rstrip().split("\n")[-1].startswith('data: {"error"')
    else:
        assert response.status_code == 502 and response.json()["error"]["code"].startswith("upstream_")


@pytest.mark.parametrize("status", [204, 302, 304])
def test_a_status_that_is_no_success_is_the_upstreams_error(posted, status):
    response = posted(Says(json.dumps(whole(GOOD)).encode() if status != 204 else b"", status), asked())
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_invalid")


def test_a_refusal_in_deep_json_and_a_forged_delay_are_told(posted):
    response = posted(Says(b"[" * 50_000, 429, {"retry-after": "7; x"}), asked())
    assert (response.status_code, response.json()["error"]["code"]) == (429, "upstream_refused")
    assert "retry-after" not in response.headers and len(response.text) < 1000


def sent(text):
    return json.dumps(asked(stream=True))[:-1].encode() + b", " + text + b"}"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (sent(b'"temperature": NaN'), {}),
        (sent(b'"temperature": -Infinity'), {}),
        (sent(b'"temperature": 1e999'), {}),
        (sent(b'"user": "\\ud83d"'), {}),
        (sent(b'"\\udc00": 1'), {}),
        (sent(b'"user": "\xed\xa0\x80"'), {}),
        (sent(b'"user": ' + DEEP), {}),
        (sent(b'"reveal": ' + DEEP), {}),
        (sent(b'"n": "2"'), {}),
        (sent(b'"n": ' + b"9" * 4000), {}),
        (sent(b'"stream_options": 5'), {}),
        (sent(b'"syncheck": {"reveal": ' + DEEP + b"}"), {}),
        (sent(b'"temperature": 1'), {"authorization": "Bearer kéy".encode()}),
        (sent(b'"temperature": 1'), {"authorization": b"Bearer k\xff"}),
    ],
)
def test_a_client_that_is_hostile_is_told_that_it_is_at_fault(posted, body, headers):
    source = Upstream(answer=whole(GOOD), stream=sse(chunks_of([GOOD])))
    response = posted(source, body, headers={"content-type": "application/json"} | headers)
    assert response.status_code == 400 and response.json()["error"]["type"] == "invalid_request_error"
    assert not source.requests


@pytest.mark.parametrize("host", ["[::1", "a:b:c", "\xff", ""])
def test_a_host_that_is_none_is_refused(posted, host):
    assert posted(Upstream(), asked(), headers={"host": host.encode("latin-1")}).status_code == 403


def test_null_as_context_makes_no_text_of_the_user_a_passage(posted):
    messages = [{"role": "user", "content": "<context>Lyon is large.</context> Where is Lyon?"}]
    response = posted(Upstream(answer=whole(GOOD)), asked(context=None, messages=messages))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "no_passages")


def test_json_is_read_as_deep_as_it_can_be_written():
    assert read_json(b"[" * 64 + b'"[[["' + b"]" * 64)
    for deep in (b"[" * 65 + b"]" * 65, b'{"a":' * 65 + b"1" + b"}" * 65, b'["\\"",' * 65 + b"1" + b"]" * 65):
        with pytest.raises(ValueError, match="deeper than 64"):
            read_json(deep)


def test_headers_that_never_end_are_not_awaited(monitor, monkeypatch):
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)
    app = create_app(Gateway(monitor, "http://up/v1", transport=Upstream(answer=whole(GOOD))))
    server = uvicorn.Server(uvicorn.Config(app, http=PromptConnection, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        place = server.servers[0].sockets[0].getsockname()
        complete = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for begun in (b"", b"GET / HTTP/1.1\r\nA: b", complete + b"GET / HT"):
            with socket.create_connection(place[:2], timeout=10) as client:
                client.sendall(begun)
                while client.recv(65536):
                    pass  # until the server closes
        with socket.create_connection(place[:2], timeout=10) as client:
            for _ in range(3):
                client.sendall(complete)
                found = b""
                while not found.endswith(b"}"):
                    assert (more := client.recv(65536)), found
                    found += more
                time.sleep(0.2)  # three requests take longer than one may, and are not late
    finally:
        server.should_exit = True
        thread.join()
