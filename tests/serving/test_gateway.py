"""The gateway: the upstream's text, held back until it is checked; nothing unchecked is passed in silence."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import openai
import pytest
from upstreams import (
    ANSWER,
    PASSAGES,
    PIECES,
    Upstream,
    asked,
    chunk,
    chunks_of,
    data_of,
    folded,
    running,
    scores,
    sse,
    text_of,
    whole,
)

from syncheck import load_kit
from syncheck.cli import main
from syncheck.results import Append, FoldedAnswer, Verified, fold, from_dict
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.chat import read_chat
from syncheck.serving.checked import outcome_of
from syncheck.serving.gateway import Gateway
from syncheck.serving.replies import headers_of

DOCS = Path(__file__).parents[2] / "docs" / "serving.md"


def test_an_answer_has_scores_and_citations(posted):
    upstream = Upstream(answer=whole(ANSWER))
    response = posted(upstream, asked(temperature=0.3))
    answer = response.json()
    choice = answer["choices"][0]
    assert response.headers["x-syncheck-status"] == "checked"  # a sentence is contradicted
    assert choice["message"]["content"] == ANSWER and answer["usage"]["total_tokens"] == 3
    assert [round(s["score"], 2) for s in choice["syncheck"]["sentences"]] == [0.97, 0.1]
    assert choice["syncheck"]["sentences"][0]["text"] == "Lyon is large."
    assert choice["syncheck"]["sentences"][0]["evidence"][0]["passage"] == 0
    url, _, sent = upstream.requests[0]
    assert url == "http://up/v1/chat/completions" and sent["temperature"] == 0.3
    assert not sent.keys() & {"context", "syncheck", "decoder"}


@pytest.mark.parametrize("stream", [False, True])
def test_citations_are_checked_when_the_answer_is_complete(posted, stream):
    answer = (
        "Lyon is large [1]. Lyon is large (atlas). It is in Spain [4]. Lyon is large [2]. Lyon is large https://x.org."
    )
    passages = [
        {"text": PASSAGES[0]},
        {"text": "It rains."},
        {"text": "It is old.", "id": "atlas", "url": "https://x.org"},
    ]
    upstream = Upstream(answer=whole(answer), stream=sse(chunks_of([answer[:30], answer[30:]])))
    response = posted(upstream, asked(context=passages, stream=stream))
    if stream:
        chunks = data_of(response)
        sentences = chunks[-2]["choices"][0]["delta"]["syncheck"]["sentences"]
        assert [s["citations"] for s in folded(chunks).report["sentences"]] == [s["citations"] for s in sentences]
    else:
        sentences = response.json()["choices"][0]["syncheck"]["sentences"]
    cited = [(one["marker"], one["passage"], one["status"]) for sentence in sentences for one in sentence["citations"]]
    found = [(0, "supported"), (2, "supported"), (None, "fabricated"), (1, "supported"), (2, "supported")]
    assert cited == [
        (mark, *one) for mark, one in zip(["[1]", "(atlas)", "[4]", "[2]", "https://x.org"], found, strict=True)
    ]


@pytest.mark.parametrize("cuts", [None, "all"])
def test_a_stream_folds_to_the_upstream_s_text(posted, cuts):
    usage = chunk(usage={"total_tokens": 3}) | {"choices": []}
    response = posted(Upstream(stream=sse([*chunks_of(PIECES), usage]), cuts=cuts), asked(stream=True))
    chunks = data_of(response)
    answer = folded(chunks)
    assert chunks[-1] == "[DONE]" and chunks[-2]["usage"] == {"total_tokens": 3}
    assert text_of(chunks) == answer.text == ANSWER
    assert scores(answer) == [0.97, 0.1] and answer.report["response"] == ANSWER
    finished = chunks[-3]["choices"][0]
    assert finished["finish_reason"] == "stop" and finished["syncheck"]["status"] == "checked"


def test_no_character_comes_before_its_sentence_is_checked(posted):
    answer = FoldedAnswer()
    for part in data_of(posted(Upstream(stream=sse(chunks_of(ANSWER))), asked(stream=True)))[:-1]:
        events = [from_dict(event) for event in part["choices"][0]["syncheck"].get("events", [])]
        fold(events, answer)
        checked = max((s.end for s in answer.sentences), default=0)
        assert len(answer.text.rstrip()) <= checked


def test_several_choices_are_checked_apart(posted):
    one, two = chunks_of(PIECES), chunks_of(["It is in Spain."], index=1)
    mixed = [part for pair in zip(one, two, strict=False) for part in pair] + one[len(two) :]
    chunks = data_of(posted(Upstream(stream=sse(mixed)), asked(stream=True, n=2)))
    assert [text_of(chunks, i) for i in (0, 1)] == [ANSWER, "It is in Spain."]
    assert [scores(folded(chunks, i)) for i in (0, 1)] == [[0.97, 0.1], [0.1]]
    answer = posted(Upstream(answer=whole(ANSWER, "It is in Spain.")), asked(n=2)).json()
    assert [len(choice["syncheck"]["sentences"]) for choice in answer["choices"]] == [2, 1]


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_a_stream_that_ends_at_any_byte_is_never_taken_for_whole(monitor, step):
    data = sse(chunks_of(PIECES))
    finish = data.index(b"data: " + json.dumps(chunk(finish="stop")).encode())
    complete = data.index(b"\n", finish)  # the line that finishes the choice

    async def each():
        for end in range(0, len(data), step):
            upstream = Upstream(stream=data[:end], breaks=end % 2 == 1)
            gateway = Gateway(monitor, "http://up/v1", transport=upstream)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(gateway))) as client:
                response = await client.post("http://localhost/v1/chat/completions", json=asked(stream=True))
            parts = data_of(response) if response.status_code == 200 else [response.json()]
            text = text_of(parts)
            assert ANSWER.startswith(text) and text in ("", "Lyon is large.", ANSWER)
            if parts[-1] == "[DONE]":
                assert end > complete
            else:
                assert parts[-1]["error"]["code"] == "upstream_incomplete"

    asyncio.run(each())


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize("breaks", [True, False])
def test_failing_open_shows_what_came_of_a_broken_answer_as_unverified(posted, reveal, breaks):
    upstream = Upstream(stream=sse(chunks_of(PIECES)[:-2], done=False), breaks=breaks)
    chunks = data_of(posted(upstream, asked(stream=True, syncheck={"reveal": reveal}), failing="open"))
    answer = folded(chunks)
    assert text_of(chunks) == answer.text == "Lyon is large. It is in Spain" and scores(answer) == [0.97]
    assert answer.report is None and "broke off" in answer.notices[0].text
    last = chunks[-2]["choices"][0]
    assert (last["finish_reason"], last["syncheck"]["status"]) == (None, "unverified")
    assert "broke off" in last["syncheck"]["reason"]
    assert chunks[-1]["error"]["code"] == "upstream_incomplete"


def cut_short(then):
    """An upstream that sends all but the end of its answer, and then does something else."""

    async def wait():
        if next(pieces):
            await then()

    pieces = iter(range(2))
    data = sse(chunks_of(PIECES)[:-2], done=False)
    return Upstream(stream=data + b":", cuts=[len(data)], wait=wait)


async def forever():
    await asyncio.sleep(60)


async def read_timeout():
    raise httpx.ReadTimeout("")


@pytest.mark.parametrize("failing", ["closed", "open"])
def test_no_text_is_lost_when_time_runs_out(posted, failing):
    chunks = data_of(posted(cut_short(forever), asked(stream=True), config=ServerConfig(timeout=0.3), failing=failing))
    answer, last, why = folded(chunks), chunks[-2]["choices"][0], "no complete answer after 0.3 seconds (--timeout 0.3)"
    assert (chunks[-1]["error"]["code"], chunks[-1]["error"]["message"]) == ("timeout", why)
    assert scores(answer) == [0.97] and answer.report is None and last["finish_reason"] is None
    if failing == "closed":
        assert text_of(chunks) == "Lyon is large."
    else:
        assert text_of(chunks) == answer.text == "Lyon is large. It is in Spain"
        assert (last["syncheck"]["status"], last["syncheck"]["reason"]) == ("unverified", why)
        assert answer.notices[0].text == f"Incomplete: {why}"


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_falls_silent_is_told_in_words(posted, stream):
    upstream = cut_short(read_timeout)
    if not stream:
        upstream.handle_async_request = lambda request: read_timeout()
    response = posted(upstream, asked(stream=stream), timeout=7)
    error = data_of(response)[-1]["error"] if stream else response.json()["error"]
    assert error["code"] == ("upstream_incomplete" if stream else "upstream_timeout")
    assert error["message"].endswith(": no data for 7 seconds (--upstream-timeout 7)")


def test_text_that_arrived_in_time_is_checked_even_if_its_check_takes_longer(monitor, posted, monkeypatch):
    class Slow:
        name = "slow"

        def __init__(self, aligner):
            self.aligner = aligner

        def align(self, passages, claims):
            time.sleep(0.3)
            return self.aligner.align(passages, claims)

    monkeypatch.setattr(monitor, "aligner", Slow(monitor.aligner))
    upstream = Upstream(stream=sse(chunks_of(PIECES)[:-2], done=False))
    chunks = data_of(posted(upstream, asked(stream=True), config=ServerConfig(timeout=0.2), failing="open"))
    assert text_of(chunks) == "Lyon is large. It is in Spain" and scores(folded(chunks)) == [0.97]
    assert chunks[-1]["error"]["code"] == "timeout"


def test_an_error_inside_a_stream_is_a_break_too(posted):
    data = sse(chunks_of(PIECES)[:-2], done=False) + b'data: {"error": {"message": "out of memory"}}\n\n'
    closed, opened = (data_of(posted(Upstream(stream=data), asked(stream=True), failing=f)) for f in ("closed", "open"))
    assert text_of(closed) == "Lyon is large." and text_of(opened) == "Lyon is large. It is in Spain"
    for chunks in (closed, opened):
        assert folded(chunks).report is None and chunks[-1]["error"]["code"] == "upstream_error"


@pytest.mark.parametrize("stream", [False, True])
def test_without_passages_it_fails_closed_or_says_so(posted, stream):
    body = asked(stream=stream, context=[])
    upstream = Upstream(answer=whole(ANSWER), stream=sse(chunks_of(PIECES)))
    refused = posted(upstream, body)
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "no_passages"
    assert not upstream.requests
    response = posted(upstream, body, failing="open")
    if stream:
        chunks = data_of(response)
        finished = chunks[-2]["choices"][0]["syncheck"]
        assert text_of(chunks) == folded(chunks).text == ANSWER
        assert folded(chunks).notices[0].kind == "warning"
        assert folded(chunks).report["response"] == ANSWER and folded(chunks).report["sentences"] == []
    else:
        finished = response.json()["choices"][0]["syncheck"]
        assert response.headers["x-syncheck-status"] == "unverified" and finished["notices"]
    assert finished["status"] == "unverified" and "passages" in finished["reason"]


def test_text_that_is_not_checked_says_that_stop_below_has_no_effect(posted):
    body = asked(context=[], syncheck={"stop_below": 0.9})
    own = posted(Upstream(answer=whole(ANSWER)), body, failing="open").json()["choices"][0]["syncheck"]
    assert "stop_below" in own["reason"] and "stop_below" in own["notices"][0]


def test_the_report_of_a_check_that_was_given_up_has_the_sentences_before(monitor, posted):
    text = f"{ANSWER}{monitor.tokenizer.eos_token} It is so."
    known, given_up = (
        folded(data_of(posted(Upstream(stream=sse(chunks_of([t]))), asked(stream=True), failing="open"))).report
        for t in (ANSWER, text)
    )
    assert given_up.keys() == known.keys() and given_up["response"] == text
    assert [s["text"] for s in given_up["sentences"]] == ["Lyon is large.", "It is in Spain."]
    assert given_up["sentences"][0].keys() == known["sentences"][0].keys()
    assert given_up["faithfulness"] == known["faithfulness"]


class Failing:
    """An aligner that breaks at a sentence."""

    name = "failing"

    def __init__(self, aligner):
        self.aligner = aligner

    def align(self, passages, claims):
        if any("Spain" in claim for claim in claims):
            raise RuntimeError("the aligner broke")
        return self.aligner.align(passages, claims)


@pytest.mark.parametrize("stream", [False, True])
def test_a_sentence_whose_check_breaks_is_not_shown_unless_open(monitor, posted, monkeypatch, stream):
    monkeypatch.setattr(monitor, "aligner", Failing(monitor.aligner))
    upstream = Upstream(answer=whole(ANSWER), stream=sse(chunks_of(PIECES)))
    closed = posted(upstream, asked(stream=stream))
    opened = posted(upstream, asked(stream=stream), failing="open")
    if stream:
        assert text_of(data_of(closed)) == "Lyon is large."
        assert data_of(closed)[-1]["error"]["code"] == "verification_failed"
        assert text_of(data_of(opened)) == ANSWER
        assert data_of(opened)[-2]["choices"][0]["syncheck"]["status"] == "unverified"
    else:
        assert closed.status_code == 502 and "Spain" not in closed.text
        assert opened.json()["choices"][0]["syncheck"]["status"] == "unverified"


@pytest.mark.parametrize("by_request", [False, True])
@pytest.mark.parametrize(("after", "shown"), [(False, "Lyon is large."), (True, ANSWER)])
def test_it_stops_before_or_after_a_sentence_and_leaves_the_upstream(posted, after, shown, by_request):
    text = ANSWER + " Lyon is large." * 50
    own = {"stop_below": 0.5} | ({"stop_after": after} if by_request else {})
    config = ServerConfig(stop_after=after and not by_request)
    upstream = Upstream(stream=sse(chunks_of([word + " " for word in text.split()])), cuts="all")
    response = posted(upstream, asked(stream=True, syncheck=own), config=config)
    chunks = data_of(response)
    assert text_of(chunks) == folded(chunks).text == folded(chunks).report["response"] == shown and upstream.left == 1
    last = chunks[-2]["choices"][0]
    assert last["finish_reason"] == "content_filter" and last["syncheck"]["status"] == "stopped"
    whole_one = posted(Upstream(answer=whole(text)), asked(syncheck=own), config=config)
    (choice,) = whole_one.json()["choices"]
    assert choice["message"]["content"] == shown and choice["finish_reason"] == "content_filter"
    assert "scored 0.10, and 0.50 was asked for" in choice["syncheck"]["notices"][0]
    for told in (response.text, whole_one.text):
        assert ("Spain" in told) is after


@pytest.mark.parametrize("stream", [False, True])
def test_a_last_sentence_that_fails_is_withheld_too(posted, stream):
    upstream = Upstream(answer=whole("It is in Spain."), stream=sse(chunks_of(["It is in", " Spain."])))
    response = posted(upstream, asked(stream=stream, syncheck={"stop_below": 0.5}))
    (choice,) = data_of(response)[-2]["choices"] if stream else response.json()["choices"]
    assert (choice["finish_reason"], choice["syncheck"]["status"]) == ("content_filter", "stopped")
    assert "Spain" not in response.text


def test_text_that_was_shown_at_once_is_taken_back(posted):
    own = {"stop_below": 0.5, "reveal": "immediate"}
    chunks = data_of(posted(Upstream(stream=sse(chunks_of(PIECES))), asked(stream=True, syncheck=own)))
    assert text_of(chunks) == ANSWER and folded(chunks).text == folded(chunks).report["response"] == "Lyon is large."


@pytest.mark.parametrize(("least", "status"), [(None, "checked"), (0.05, "verified"), (0.99, "stopped")])
def test_the_header_says_verified_only_if_every_sentence_passed(posted, least, status):
    response = posted(Upstream(answer=whole(ANSWER)), asked(syncheck={"stop_below": least}))
    assert response.headers["x-syncheck-status"] == response.json()["choices"][0]["syncheck"]["status"] == status
    supported = posted(Upstream(answer=whole("Lyon is large.")), asked())
    assert supported.headers["x-syncheck-status"] == "verified"


@pytest.mark.parametrize("scored", [True, False])
def test_an_answer_that_repeats_itself_is_checked_and_not_verified(scored):
    text = "Lyon is large. " * scored + "Lyon lyon lyon lyon."
    events = [Append(1, text), Verified(2, 0, 14, 0.99, "scored", "supported")][: 1 + scored]
    events.append(Verified(len(events) + 1, len(text) - 20, len(text), None, "degenerate"))
    assert outcome_of(events, stop_below=None, stopped=False, reason=None)["status"] == "checked"


def test_a_choice_that_breaks_off_while_it_is_checked_has_no_finish_reason(monitor):
    gateway = Gateway(monitor, "http://up/v1", failing="open")
    request = read_chat(asked(stream=True, syncheck={"stop_below": 0.5}), ServerConfig())

    async def broken():
        choice = gateway.choice(request, gateway.allowed(request))
        choice.checked.open()
        await choice.checked.feed("It is in Spain. Lyon is large. It")  # completed by its thread after the deadline
        last = await choice.broken(0, "it is late")
        choice.checked.leave()
        return choice.checked.is_stopped, last

    is_stopped, last = asyncio.run(broken())
    assert is_stopped and last["finish_reason"] is None and last["syncheck"]["status"] == "unverified"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("own", [{}, {"stop_below": 0.5}])
def test_the_numbers_of_tokens_come_whatever_ended_the_stream(posted, own, told):
    usage = [chunk(usage={"total_tokens": 3}) | {"choices": []}] if told else []
    body = asked(stream=True, stream_options={"include_usage": True}, syncheck=own)
    chunks = data_of(posted(Upstream(stream=sse([*chunks_of([*PIECES, " Lyon is large."]), *usage])), body))
    assert chunks[-1] == "[DONE]" and [c["usage"] for c in chunks[:-1] if not c["choices"]] == [
        {"total_tokens": 3} if told else None
    ]
    broken = data_of(posted(Upstream(stream=sse(chunks_of(PIECES)[:-2], done=False)), body))
    if not own:
        assert broken[-1]["error"]["code"] == "upstream_incomplete"
    assert (broken[-2]["choices"], broken[-2]["usage"]) == ([], None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", [3, 16, 10_000])
def test_text_that_is_checked_in_slices_stops_at_the_same_sentence(posted, monkeypatch, size, stream):
    """All of it comes at once, and the sentences behind the one that fails are in the same slice or another."""
    monkeypatch.setattr(
        "syncheck.serving.checked.slices", lambda text, _: (text[i : i + size] for i in range(0, len(text), size))
    )
    shown, reasoning = " ".join(["Lyon is large."] * 5), {"reasoning_content": "It is in Spain, I think."}
    text = f"{shown} It is in Spain. Lyon is large. It is in Spain."
    usage = chunk(usage={"total_tokens": 3}) | {"choices": []}
    upstream = Upstream(
        answer=whole(text, **reasoning), stream=sse([chunk(reasoning), *chunks_of([text]), usage]), cuts="all"
    )
    body = asked(stream=stream, syncheck={"stop_below": 0.5}, stream_options={"include_usage": True})
    response = posted(upstream, body)
    assert "Spain" not in response.text
    if not stream:
        (choice,) = response.json()["choices"]
        assert choice["message"]["content"] == shown and choice["syncheck"]["status"] == "stopped"
        return
    chunks = data_of(response)
    assert text_of(chunks) == folded(chunks).text == shown
    assert [c["usage"] for c in chunks[:-1] if not c["choices"]] in ([{"total_tokens": 3}], [None])
    (last,) = [c["choices"][0] for c in chunks[:-1] if c["choices"] and c["choices"][0]["finish_reason"]]
    assert last["finish_reason"] == "content_filter" and last["syncheck"]["unscored"] == 0


def test_text_beside_the_answer_is_left_out_and_named(posted):
    upstream = Upstream(answer=whole(ANSWER, reasoning_content="It may be in Spain."))
    choice = posted(upstream, asked()).json()["choices"][0]
    assert "reasoning_content" not in choice["message"] and choice["syncheck"]["unchecked"] == ["reasoning_content"]
    kept = posted(upstream, asked(), failing="open").json()["choices"][0]
    assert kept["message"]["reasoning_content"] and kept["syncheck"]["unchecked"] == ["reasoning_content"]
    parts = [chunk({"reasoning_content": "Spain?"}), *chunks_of(PIECES)]
    chunks = data_of(posted(Upstream(stream=sse(parts)), asked(stream=True)))
    assert "Spain?" not in json.dumps(chunks)
    assert chunks[-2]["choices"][0]["syncheck"]["unchecked"] == ["reasoning_content"]


def test_log_probabilities_wait_for_their_text(posted):
    def with_logprobs(piece):
        part = chunk({"content": piece})
        part["choices"][0]["logprobs"] = {"content": [{"token": piece, "logprob": -0.1}]}
        return part

    parts = [with_logprobs(piece) for piece in ("Lyon ", "is ", "large. ", "It is in Spain.")] + [chunk(finish="stop")]
    seen, told = "", ""
    for part in data_of(posted(Upstream(stream=sse(parts)), asked(stream=True)))[:-1]:
        choice = part["choices"][0]
        seen += choice["delta"].get("content", "")
        told += "".join(entry["token"] for entry in (choice.get("logprobs") or {}).get("content", []))
        assert len(told) <= len(seen)
    assert told == ANSWER


def test_a_tool_call_is_passed_through(posted):
    calls = [{"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    parts = [chunk({"role": "assistant", "tool_calls": calls}), chunk(finish="tool_calls")]
    chunks = data_of(posted(Upstream(stream=sse(parts)), asked(stream=True, tools=tools)))
    assert chunks[0]["choices"][0]["delta"]["tool_calls"] == calls
    assert chunks[0]["choices"][0]["syncheck"] == {"v": 1, "events": []}
    assert chunks[-2]["choices"][0]["syncheck"]["status"] == "no_text"
    answer = posted(Upstream(answer=whole(None, tool_calls=calls)), asked(tools=tools)).json()["choices"][0]
    assert answer["message"]["tool_calls"] == calls and answer["syncheck"]["status"] == "no_text"
    assert answer["syncheck"].pop("unchecked") == ["tool_calls"]
    assert answer["syncheck"].pop("reason") == "the answer calls tools, which is not checked"
    empty = posted(Upstream(answer=whole("")), asked())
    assert answer["syncheck"] | {"reason": None} == empty.json()["choices"][0]["syncheck"]
    assert empty.json()["choices"][0]["syncheck"]["status"] == empty.headers["x-syncheck-status"] == "no_text"


@pytest.mark.parametrize(
    ("upstream", "status", "code"),
    [
        (Upstream(status=429, answer={"error": {"message": "slow"}}, headers={"retry-after": "7"}), 429, "refused"),
        (Upstream(status=500, answer={"detail": "x"}), 500, "refused"),
        (Upstream(answer=[1]), 502, "invalid"),
        (Upstream(answer={}), 502, "invalid"),
        (Upstream(answer={"error": {"message": "overloaded"}}), 502, "error"),
    ],
)
def test_what_the_upstream_refuses_is_told(posted, upstream, status, code):
    response = posted(upstream, asked())
    assert response.status_code == status and response.json()["error"]["code"] == f"upstream_{code}"
    assert response.headers.get("retry-after") == upstream.headers.get("retry-after")


def test_an_address_that_the_upstream_does_not_know_is_explained(posted):
    told = posted(Upstream(status=404, answer={"detail": "Not Found"}), asked()).json()["error"]["message"]
    assert told.startswith('the upstream refused: {"detail":"Not Found"}; --upstream must be the address before')
    told = posted(Upstream(status=404, answer={"error": {"message": "no such model"}}), asked()).json()["error"]
    assert told["message"] == "the upstream refused: no such model"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"[1]", 400),
        (json.dumps(asked(messages=[])).encode(), 400),
        (json.dumps(asked(messages=[{"role": "user", "content": " "}])).encode(), 400),
        (json.dumps(asked(context=[1])).encode(), 400),
        (json.dumps(asked(decoder="fod")).encode(), 400),
        (json.dumps(asked(context="\ud800")).encode(), 400),
        (json.dumps(asked(syncheck={"stop_below": 2})).encode(), 400),
        (json.dumps(asked(syncheck={"unknown": 2})).encode(), 400),
        (b" " * 3_000_000, 413),
    ],
)
def test_a_bad_request_is_refused_before_the_upstream_is_asked(posted, body, status):
    upstream = Upstream(answer=whole(ANSWER))
    response = posted(upstream, body, headers={"content-type": "application/json"})
    assert response.status_code == status and response.json()["error"]["type"] == "invalid_request_error"
    assert not upstream.requests


def test_keys(posted):
    config = ServerConfig(api_key="right")
    upstream = Upstream(answer=whole(ANSWER))
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer ri\u00e9"}):
        sent = {name: value.encode() for name, value in headers.items()}
        assert posted(upstream, asked(), config=config, headers=sent).status_code == 401
    assert not upstream.requests
    right = {"authorization": "Bearer right"}
    assert posted(upstream, asked(), config=config, headers=right, api_key="theirs").status_code == 200
    assert upstream.requests[0][1]["authorization"] == "Bearer theirs"
    posted(upstream, asked(), config=config, headers=right)
    assert "authorization" not in upstream.requests[1][1]
    posted(upstream, asked(), headers={"authorization": "Bearer the client's"})
    assert upstream.requests[2][1]["authorization"] == "Bearer the client's"
    posted(upstream, asked(), headers={"x-api-key": "as Anthropic's clients send it"})
    assert upstream.requests[3][1]["authorization"] == "Bearer as Anthropic's clients send it"


def test_another_host_name_and_another_form_are_refused(posted):
    upstream = Upstream(answer=whole(ANSWER))
    assert posted(upstream, asked(), headers={"host": "evil.example"}).status_code == 403
    assert posted(upstream, b"{}", headers={"content-type": "text/plain"}).status_code == 415
    config = ServerConfig(only_loopback=False)
    assert posted(upstream, asked(), headers={"host": "gpu7"}, config=config).status_code == 200


@pytest.mark.parametrize("port", [None, 99_999])
def test_a_port_that_cannot_be_had_is_bad_usage(capsys, port):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = str(port or taken.getsockname()[1])
        assert main(["gateway", "--upstream", "http://up/v1", "--port", wanted]) == 2
    told = capsys.readouterr().err
    assert wanted in told and "listening" not in told


def test_the_other_pages(posted):
    upstream = Upstream(answer={"object": "list", "data": []})
    assert posted(upstream, method="GET", path="/v1/models").json()["object"] == "list"
    assert posted(upstream, method="GET", path="/healthz").json()["status"] == "ok"
    report = posted(upstream, {"question": "Q?", "context": PASSAGES, "response": ANSWER}, path="/v1/score").json()
    assert [round(s["score"], 2) for s in report["sentences"]] == [0.97, 0.1]
    refused = posted(upstream, {"question": "Q?"}, path="/v1/score")
    assert refused.status_code == 400 and "found ['question']" in refused.json()["error"]["message"]
    assert posted(upstream, method="GET", path="/v1/completions").json()["error"]["code"] == "http_error"


def test_a_given_answer_takes_passages_in_the_forms_of_a_chat(posted):
    def scored(context):
        body = {"question": "Q?", "context": context, "response": "Lyon is large."}
        return posted(Upstream(), body, path="/v1/score")

    for form in (
        PASSAGES[0],
        {"text": PASSAGES[0], "id": "a"},
        [{"title": "Lyon", "text": PASSAGES[0]}],
        [{"data": {"page_content": PASSAGES[0]}}],
    ):
        assert scored(form).json()["sentences"] == scored(PASSAGES).json()["sentences"] != []
    refused = scored(["Lyon is large.", {"passage": "x"}]).json()["error"]
    assert refused["code"] == "invalid_request" and "context[1] must be a string, or an object" in refused["message"]
    assert "['passage']" in refused["message"]


def test_the_official_client_reads_it(monitor):
    upstream = Upstream(answer=whole(ANSWER), stream=sse(chunks_of(PIECES)), cuts="all")
    with running(create_app(Gateway(monitor, "http://up/v1", transport=upstream))) as address:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
            messages = [{"role": "user", "content": "Where is Lyon?"}]
            own = {"context": PASSAGES}
            answer = client.chat.completions.create(model="m", messages=messages, extra_body=own)
            assert answer.choices[0].message.content == ANSWER
            assert [round(s["score"], 2) for s in answer.choices[0].syncheck["sentences"]] == [0.97, 0.1]
            parts = list(client.chat.completions.create(model="m", messages=messages, stream=True, extra_body=own))
            assert "".join(part.choices[0].delta.content or "" for part in parts) == ANSWER
            events = [event for part in parts for event in part.choices[0].syncheck.get("events", [])]
            assert scores(fold(map(from_dict, events))) == [0.97, 0.1]
            with client.chat.completions.stream(model="m", messages=messages, extra_body=own) as stream:
                checks = [c.syncheck for event in stream if event.type == "chunk" for c in event.chunk.choices]
            events = [event for check in checks for event in check["events"]]
            assert scores(fold(map(from_dict, events))) == [0.97, 0.1]
            assert (checks[-1]["status"], round(checks[-1]["lowest"], 2)) == ("checked", 0.1)
            upstream.stream = upstream.stream[:-200]
            with pytest.raises(openai.APIError):
                list(client.chat.completions.create(model="m", messages=messages, stream=True, extra_body=own))
            with pytest.raises(openai.BadRequestError):
                client.chat.completions.create(model="m", messages=messages)
            metrics = httpx.get(f"{address}/metrics").text
    assert 'syncheck_sentences_total{status="scored",verdict="supported"} 4.0' in metrics
    assert 'syncheck_requests_total{status="502"} 1.0' in metrics


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_reads_a_stream(monitor):
    command = re.findall(r"^curl \S+/v1/chat/completions .*?}'$", DOCS.read_text(encoding="utf-8"), re.M | re.S)[0]
    upstream = Upstream(stream=sse(chunks_of(PIECES)), cuts="all")
    with running(create_app(Gateway(monitor, "http://up/v1", transport=upstream))) as address:
        sent = command.replace("http://localhost:8100", address).replace("curl ", "curl -sS --noproxy '*' ")
        run = subprocess.run(sent, shell=True, capture_output=True, text=True, check=True, timeout=60)
    assert text_of([json.loads(line[6:]) for line in run.stdout.split("\n") if line.startswith("data: {")]) == ANSWER
    assert run.stdout.endswith("data: [DONE]\n\n")


@pytest.mark.slow
def test_the_bundled_monitor_checks_more_than_its_model_could_read():
    filler = [f"Village number {n} has {n} wells and a church." for n in range(400)]
    upstream = Upstream(stream=sse(chunks_of(["Lyon has two rivers. ", "Lyon has nine rivers."])))
    app = create_app(Gateway(load_kit("generic"), "http://up/v1", transport=upstream))

    async def send():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            body = asked(stream=True, context=[*filler, "Lyon is large. Lyon has two rivers."])
            return await client.post("/v1/chat/completions", json=body)

    right, wrong = folded(data_of(asyncio.run(send()))).sentences
    assert right.score > 0.5 > wrong.score
    assert right.evidence[0].passage == len(filler) and right.evidence[0].text == "Lyon has two rivers."


@pytest.mark.parametrize(
    ("statuses", "header"),
    [
        (("verified", "verified"), "verified"),
        (("verified", "checked"), "checked"),
        (("stopped", "checked"), "stopped"),
        (("verified", "unverified", "stopped"), "unverified"),
    ],
)
def test_the_header_of_several_choices_is_the_worst(statuses, header):
    choices = [{"syncheck": {"status": status, "unscored": 2}} for status in statuses]
    assert headers_of({"choices": choices}) == {
        "X-Syncheck-Status": header,
        "X-Syncheck-Unscored": str(2 * len(statuses)),
    }
