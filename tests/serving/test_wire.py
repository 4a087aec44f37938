"""What servers really send: event streams in every form, reasoning, several choices, and why an answer ended."""

import asyncio
import json
import time

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
from syncheck.serving import checked
from syncheck.serving import gateway as gateway_module
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.gateway import Gateway

GOOD = "Lyon is large."
EVENTS = [json.dumps(each) for each in chunks_of(PIECES)]
USAGE = json.dumps(chunk(usage={"total_tokens": 3}) | {"choices": []})
FORMS = {
    "empty data": "\n\n".join(f"data:\n\ndata: {each}\n\ndata: " for each in EVENTS) + "\n\ndata: [DONE]\n\n",
    "comments": ": ping\n\n" + "".join(f": keep-alive\nevent: message\nid: 7\ndata: {each}\n\n" for each in EVENTS),
    "no space": "".join(f"data:{each}\n\n" for each in EVENTS) + "data:[DONE]\n\n",
    "carriage returns": "".join(f"data: {each}\r\n\r\n" for each in EVENTS) + "data: [DONE]\r\n\r\n",
    "returns alone": "".join(f"data: {each}\r\r" for each in EVENTS) + "data: [DONE]\r\r",
    "several lines": "".join(
        "".join(f"data: {line}\r\n" for line in json.dumps(json.loads(each), indent=1).split("\n")) + "\r\n"
        for each in EVENTS
    ),
    "no blank lines": "".join(f"data: {each}\n" for each in EVENTS) + "data: [DONE]\n",
    "a mark of the byte order": "\ufeff" + "".join(f"data: {each}\n\n" for each in EVENTS),
    "usage alone": f"data: {USAGE}\n\n" + "".join(f"data: {each}\n\ndata: {USAGE}\n\n" for each in EVENTS),
    "another object": 'event: ping\ndata: {"type": "ping"}\n\n' + "".join(f"data: {each}\n\n" for each in EVENTS),
}


@pytest.mark.parametrize("cuts", [None, "all"])
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_is_read_in_every_form_of_the_standard(posted, form, cuts):
    response = posted(Upstream(stream=FORMS[form].encode(), cuts=cuts), asked(stream=True))
    chunks = data_of(response)
    assert response.status_code == 200 and chunks[-1] == "[DONE]"
    assert text_of(chunks) == folded(chunks).text == ANSWER and scores(folded(chunks)) == [0.97, 0.1]


def test_an_empty_finish_reason_does_not_end_an_answer(posted):
    parts = [*(chunk({"content": piece}, finish="") for piece in PIECES), chunk(finish="stop")]
    chunks = data_of(posted(Upstream(stream=sse(parts)), asked(stream=True)))
    assert text_of(chunks) == ANSWER and chunks[-2]["choices"][0]["finish_reason"] == "stop"


THOUGHT = "It is in Spain. Lyon is in Spain."
BLOCKS = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, {"type": "text", "text": GOOD}]
REASONED = {
    "tags": (f"<think>\n{THOUGHT}\n</think>\n\n{GOOD}", {}),
    "other tags": (f"[THINK]{THOUGHT}[/THINK]{GOOD}", {}),
    "between": (f"{GOOD} <think>{THOUGHT}</think>{GOOD}", {}),
    "opened by the template": (f"{THOUGHT}</think>\n{GOOD}", {"opens_reasoning": True}),
    "never closed": (f"<think>{THOUGHT}", {}),
    "never opened nor closed": (THOUGHT, {"opens_reasoning": True}),
    "blocks": (
        [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, {"type": "text", "text": GOOD}],
        {},
    ),
}
FIELDS = {"reasoning_content": THOUGHT, "reasoning": THOUGHT, "thinking_blocks": [{"thinking": THOUGHT}]}


def as_parts(content):
    pieces = [[block] for block in content] if isinstance(content, list) else content
    return [chunk({"role": "assistant"}), *(chunk({"content": piece}) for piece in pieces), chunk(finish="stop")]


def joined(response, stream, field):
    """A field of the message, joined over chunks."""
    if not stream:
        return response.json()["choices"][0]["message"].get(field) or ""
    return "".join(choice["delta"].get(field) or "" for part in data_of(response)[:-1] for choice in part["choices"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reasoning", ["pass", "drop"])
@pytest.mark.parametrize("case", REASONED)
def test_reasoning_in_the_content_is_never_scored_and_never_stops(posted, case, reasoning, stream):
    content, options = REASONED[case]
    upstream = Upstream(answer=whole(content), stream=sse(as_parts(content)), cuts="all")
    body = asked(stream=stream, syncheck={"stop_below": 0.5})
    response = posted(upstream, body, reasoning=reasoning, **options)
    choice = data_of(response)[-2]["choices"][0] if stream else response.json()["choices"][0]
    told = choice["syncheck"]
    shown = {"between": f"{GOOD} {GOOD}", "never closed": "", "never opened nor closed": ""}.get(case, GOOD)
    assert joined(response, stream, "content") == shown
    assert joined(response, stream, "reasoning_content").strip() == (THOUGHT if reasoning == "pass" else "")
    assert (reasoning == "pass" or "Spain" not in response.text) and "think" not in response.text.lower()
    assert told["status"] == ("verified" if shown else "no_text") and told["unchecked"] == ["reasoning_content"]
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failing", ["closed", "open"])
@pytest.mark.parametrize("reasoning", ["pass", "drop", None])
@pytest.mark.parametrize("field", FIELDS)
def test_fields_with_reasoning_pass_or_are_dropped(posted, field, reasoning, failing, stream):
    fields = {field: FIELDS[field]}
    upstream = Upstream(answer=whole(GOOD, **fields), stream=sse([chunk(fields), *chunks_of([GOOD])]))
    body = asked(stream=stream, syncheck={"stop_below": 0.5})
    response = posted(upstream, body, reasoning=reasoning, failing=failing)
    passes = reasoning == "pass" or (reasoning is None and failing == "open")
    assert ("Spain" in response.text) is passes
    told = (data_of(response)[-2] if stream else response.json())["choices"][0]
    assert told["syncheck"]["unchecked"] == [field] and told["syncheck"]["status"] == "verified"
    assert joined(response, stream, "content") == GOOD and told["finish_reason"] == "stop"


def test_reasoning_that_only_its_end_shows_is_taken_back(posted):
    upstream = Upstream(stream=sse(chunks_of(f"{THOUGHT}</think>\n\n{GOOD}")))
    chunks = data_of(posted(upstream, asked(stream=True), reasoning="pass"))
    answer = folded(chunks)
    assert answer.text == answer.report["response"] == GOOD and scores(answer) == [0.97]
    assert joined_reasoning(chunks) == THOUGHT and chunks[-2]["choices"][0]["syncheck"]["status"] == "verified"
    told = chunks[-2]["choices"][0]["delta"]["syncheck"]["sentences"]
    assert [(s["text"], s["start"]) for s in told] == [(GOOD, 0)]


def joined_reasoning(chunks):
    return "".join(c["delta"].get("reasoning_content", "") for part in chunks[:-1] for c in part["choices"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "text", ["Lyon writes `<think>` and `</think>`.", 'Lyon says "<think>" [1] a < b.', "Lyon <think> is large.", " \n"]
)
def test_text_that_only_mentions_the_tags_is_kept_and_checked(posted, text, stream):
    upstream = Upstream(answer=whole(text), stream=sse(chunks_of(text)))
    response = posted(upstream, asked(stream=stream))
    assert joined(response, stream, "content") == text and "unchecked" not in response.text


def test_an_assistant_message_can_open_the_reasoning(posted):
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "<think>\n"}]
    upstream = Upstream(stream=sse(chunks_of(f"{THOUGHT}</think>{GOOD}")))
    chunks = data_of(posted(upstream, asked(stream=True, messages=messages, syncheck={"stop_below": 0.5})))
    assert text_of(chunks) == folded(chunks).text == GOOD


def test_log_probabilities_of_reasoning_that_is_dropped_are_dropped(posted):
    def part(token):
        made = chunk({"content": token})
        made["choices"][0]["logprobs"] = {"content": [{"token": token, "logprob": -0.1}]}
        return made

    tokens = ["<th", "ink>", "Spain", "</think>", "\n\n", "Lyon ", "is ", "large."]
    upstream = Upstream(stream=sse([*map(part, tokens), chunk(finish="stop")]))
    for failing in ("closed", "open"):
        chunks = data_of(posted(upstream, asked(stream=True), reasoning="drop", failing=failing))
        entries = [e for c in chunks[:-1] for x in c["choices"] for e in (x.get("logprobs") or {}).get("content", [])]
        assert [entry["token"] for entry in entries] == ["Lyon ", "is ", "large."]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_of_several_choices_says_why_it_ended(posted, order, stream):
    """The upstream's reasons are kept apart, and a sentence that fails in one choice ends that one alone."""
    texts, ends = ["Lyon is large. It is in Spain. Lyon is large.", f"{GOOD} {GOOD}"], ["stop", "length"]
    parts = [[chunk({"content": each}, index=i) for each in texts[i]] + [chunk(finish=ends[i], index=i)] for i in order]
    mixed = [part for pair in zip(*parts, strict=False) for part in pair]
    mixed += parts[0][len(parts[1]) :] + parts[1][len(parts[0]) :]
    answer = whole(*texts)
    for choice, end in zip(answer["choices"], ends, strict=True):
        choice["finish_reason"] = end
    upstream = Upstream(answer=answer, stream=sse(mixed))
    for stop_below, expected in ((None, ends), (0.5, ["content_filter", "length"])):
        response = posted(upstream, asked(stream=stream, n=2, syncheck={"stop_below": stop_below}))
        if stream:
            told = [c for part in data_of(response)[:-1] for c in part["choices"] if c["finish_reason"]]
        else:
            told = response.json()["choices"]
        reasons = {choice["index"]: choice["finish_reason"] for choice in told}
        assert len(told) == 2 and [reasons[0], reasons[1]] == expected
        statuses = {choice["index"]: choice["syncheck"]["status"] for choice in told}
        assert statuses == {0: "checked" if stop_below is None else "stopped", 1: "verified"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("end", ["stop", "length", "tool_calls"])
def test_an_answer_whose_last_sentence_fails_is_filtered(posted, end, after, reveal, stream):
    answer = whole(ANSWER)
    answer["choices"][0]["finish_reason"] = end
    parts = [*(chunk({"content": piece}) for piece in PIECES), chunk(finish=end)]
    own = {"stop_below": 0.5, "stop_after": after, "reveal": reveal}
    response = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream, syncheck=own))
    choice = (data_of(response)[-2] if stream else response.json())["choices"][0]
    assert (choice["finish_reason"], choice["syncheck"]["status"]) == ("content_filter", "stopped")


CALL = {"index": 0, "id": "t", "type": "function", "function": {"name": "unknown", "arguments": "{}"}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "end"), [({"refusal": "No."}, "stop"), ({"tool_calls": [CALL]}, "tool_calls")])
@pytest.mark.parametrize("content", [GOOD, None])
def test_an_answer_of_which_a_part_is_withheld_is_filtered(posted, content, fields, end, stream):
    answer = whole(content, **fields)
    answer["choices"][0]["finish_reason"] = end
    parts = [*([chunk({"content": content})] if content else []), chunk(fields), chunk(finish=end)]
    response = posted(Upstream(answer=answer, stream=sse(parts)), asked(stream=stream))
    choice = (data_of(response)[-2] if stream else response.json())["choices"][0]
    assert choice["finish_reason"] == "content_filter" and not choice.get("message", {}).get("tool_calls")


TOOLS = [
    {"type": "function", "function": {"name": "look_up", "parameters": {}}},
    {"type": "custom", "custom": {"name": "sql"}},
]
CALLS = [
    {"index": 0, "id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Lyon"}'}},
    {"index": 1, "id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("own", [{"passages_from": "tools"}, {}])
def test_an_agent_is_checked_against_the_results_of_its_tools(posted, own, stream):
    """The call passes unchanged although there are no passages yet; the answer after its result is checked."""
    question = {"role": "user", "content": "Where is Lyon?"}
    body = asked(stream=stream, messages=[question], tools=TOOLS, syncheck=own)
    del body["context"]
    answer = whole(None, tool_calls=CALLS)
    answer["choices"][0]["finish_reason"] = "tool_calls"
    parts = [chunk({"role": "assistant"}), chunk({"tool_calls": CALLS}), chunk(finish="tool_calls")]
    response = posted(Upstream(answer=answer, stream=sse(parts)), body)
    choice = (data_of(response)[-2] if stream else response.json())["choices"][0]
    told = data_of(response)[1]["choices"][0]["delta"] if stream else choice["message"]
    assert told["tool_calls"] == CALLS and choice["finish_reason"] == "tool_calls"
    assert (choice["syncheck"]["status"], choice["syncheck"]["unchecked"]) == ("no_text", ["tool_calls"])
    assert choice["syncheck"]["lowest"] is None and "calls tools, which is not checked" in choice["syncheck"]["reason"]
    refused = posted(Upstream(answer=whole(GOOD), stream=sse(chunks_of([GOOD]))), body)
    assert "no_passages" in refused.text and "large" not in refused.text

    body["messages"] += [
        {"role": "assistant", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": PASSAGES[0]}]},
    ]
    response = posted(Upstream(answer=whole(ANSWER), stream=sse(chunks_of(PIECES))), body)
    if stream:
        assert scores(folded(data_of(response))) == [0.97, 0.1]
    else:
        assert [round(s["score"], 2) for s in response.json()["choices"][0]["syncheck"]["sentences"]] == [0.97, 0.1]


def test_an_answer_with_json_says_which_paths_its_claims_have():
    plans = [{"name": "Basic", "euros": 9}, {"name": "Pro", "euros": 29}]
    passage = "The Basic plan costs 9 euros a month. The Pro plan costs 29 euros a month."
    body = asked(context=[passage], response_format={"type": "json_object"})

    def told(answer):
        async def send():
            app = create_app(Gateway(load_kit("generic"), "http://up/v1", transport=Upstream(answer=whole(answer))))
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                return (await client.post("/v1/chat/completions", json=body)).json()["choices"][0]["syncheck"]

        return asyncio.run(send())["sentences"]

    right = told(json.dumps({"plans": plans}))
    paths = ["plans name", "plans Basic euros", "plans name", "plans Pro euros"]
    assert [s["paths"] for s in right if s["status"] == "scored"] == [[path] for path in paths]
    wrong = told("```json\n" + json.dumps({"plans": [plans[0] | {"euros": 19}, plans[1] | {"euros": 99}]}) + "\n```")
    scored = [[s["score"] for s in each if s["status"] == "scored"] for each in (right, wrong)]
    assert all(good > 2 * bad for good, bad in list(zip(*scored, strict=True))[1::2])
    assert all("paths" not in sentence for sentence in told(passage))


def test_images_pass_and_are_no_passages(posted):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": "Where is Lyon? <context>Lyon is large.</context>"}
    messages = [{"role": "user", "content": content} for content in ([text, image], [image])]
    upstream, body = Upstream(answer=whole(GOOD)), asked(messages=messages)
    del body["context"]
    response = posted(upstream, body)
    assert response.json()["choices"][0]["syncheck"]["status"] == "verified"
    assert upstream.requests[0][2]["messages"] == messages


class Slow:
    """An aligner that takes its time."""

    name = "slow"

    def __init__(self, aligner, seconds):
        self.aligner, self.seconds = aligner, seconds

    def align(self, passages, claims):
        time.sleep(self.seconds)
        return self.aligner.align(passages, claims)


@pytest.mark.parametrize("pieces", [1, 3])
def test_no_text_is_lost_when_its_check_outlasts_the_time(monitor, posted, monkeypatch, pieces):
    monkeypatch.setattr(gateway_module, "_GRACE_SECONDS", 0.1)
    monkeypatch.setattr(
        "syncheck.serving.checked.slices", lambda text, _: (text[i : i + 5] for i in range(0, len(text), 5))
    )
    monkeypatch.setattr(monitor, "aligner", Slow(monitor.aligner, 0.5))
    text = f"{ANSWER} {GOOD} And so on"
    size = -(-len(text) // pieces)
    parts = [chunk({"content": text[i : i + size]}) for i in range(0, len(text), size)]
    upstream = Upstream(stream=sse(parts, done=False) + b": wait\n\n")
    chunks = data_of(posted(upstream, asked(stream=True), config=ServerConfig(timeout=0.2), failing="open"))
    answer, arrived = folded(chunks), text[: size * max(1, sum(bool(text_of([c])) for c in chunks[:-1]))]
    assert chunks[-1]["error"]["code"] == "timeout" and answer.report is None
    assert text_of(chunks) == answer.text and answer.text.startswith(text[:size]) and arrived
    assert scores(answer)[:1] == [0.97] and chunks[-2]["choices"][0]["syncheck"]["status"] == "unverified"


def test_no_text_is_lost_when_its_passages_take_too_long_to_read(posted, monkeypatch):
    def slow(*args, **options):
        time.sleep(0.5)
        return watch_over(*args, **options)

    watch_over = checked.watch_over
    monkeypatch.setattr(checked, "watch_over", slow)
    monkeypatch.setattr(gateway_module, "_GRACE_SECONDS", 0.1)
    upstream = Upstream(stream=sse(chunks_of([ANSWER])[1:]))
    chunks = data_of(posted(upstream, asked(stream=True), config=ServerConfig(timeout=0.2), failing="open"))
    assert text_of(chunks) == folded(chunks).text == ANSWER and chunks[-1]["error"]["code"] == "timeout"


def test_checked_text_is_sent_before_an_error_even_if_it_fails_closed(monitor, posted, monkeypatch):
    monkeypatch.setattr(gateway_module, "_GRACE_SECONDS", 0.1)
    monkeypatch.setattr(monitor, "aligner", Slow(monitor.aligner, 0.5))
    upstream = Upstream(stream=sse(chunks_of([f"{GOOD} It is"])))
    chunks = data_of(posted(upstream, asked(stream=True), config=ServerConfig(timeout=0.2)))
    assert text_of(chunks) == GOOD and chunks[-1]["error"]["code"] == "timeout"


@pytest.mark.parametrize("wanted", [1, 2])
def test_the_stream_helper_of_the_official_client_keeps_the_scores(monitor, wanted):
    pieces = [[chunk({"content": p}, index=i) for p in PIECES] + [chunk(finish="stop", index=i)] for i in range(wanted)]
    upstream = Upstream(stream=sse([part for group in zip(*pieces, strict=True) for part in group]))
    with running(create_app(Gateway(monitor, "http://up/v1", transport=upstream))) as address:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
            messages = [{"role": "user", "content": "Where is Lyon?"}]
            own = {"context": PASSAGES}
            with client.chat.completions.stream(model="m", messages=messages, n=wanted, extra_body=own) as stream:
                completion = stream.get_final_completion()
    for choice in completion.choices:
        told = choice.message.syncheck
        assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
        assert told["status"] == "checked" and [round(s["score"], 2) for s in told["sentences"]] == [0.97, 0.1]
        assert [s["text"] for s in told["sentences"]] == [GOOD, "It is in Spain."]


@pytest.mark.parametrize("thought", ["<think>It is in Spain.</think> ", "It is in Spain.</think> ", "<think>" * 2000])
def test_a_given_answer_is_scored_without_the_reasoning_before_it(posted, thought):
    before = thought if "</" in thought else f"{thought}</think>"
    body = {"question": "Where is Lyon?", "context": PASSAGES, "response": before + ANSWER}
    report = posted(Upstream(), body, path="/v1/score").json()
    assert [(s["text"], round(s["score"], 2)) for s in report["sentences"]] == [(GOOD, 0.97), ("It is in Spain.", 0.1)]
    assert all(report["response"][s["start"] : s["end"]] == s["text"] for s in report["sentences"])
