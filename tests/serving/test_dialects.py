"""Responses and messages beside chat completions: the same checked answer, read by the official clients."""

import json
from contextlib import ExitStack

import anthropic
import httpx
import openai
import pytest
from upstreams import ANSWER, PASSAGES, PIECES, Upstream, asked, chunk, chunks_of, running, sse, whole

from syncheck.results import fold, from_dict
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.gateway import Gateway

GOOD = "Lyon is large."
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
CALLS = [
    {
        "index": i,
        "id": f"call_{i}",
        "type": "function",
        "function": {"name": "look_up", "arguments": json.dumps({"n": i})},
    }
    for i in range(2)
]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
OWN = {"context": PASSAGES}


def upstream_of(pieces=PIECES, *, end="stop", reasoning="", calls=(), cuts=None):
    """An upstream that gives the same answer whole and in chunks."""
    fields = {"reasoning_content": reasoning} if reasoning else {}
    answer = whole("".join(pieces) or None, **fields, **({"tool_calls": list(calls)} if calls else {})) | {
        "usage": USAGE
    }
    answer["choices"][0]["finish_reason"] = end
    parts = [chunk({"role": "assistant"}), *(chunk({name: text}) for name, text in fields.items())]
    parts += [chunk({"content": piece}) for piece in pieces] + [chunk({"tool_calls": [call]}) for call in calls]
    parts += [chunk(finish=end), chunk(usage=USAGE) | {"choices": []}]
    return Upstream(answer=answer, stream=sse(parts), cuts=cuts)


class Clients:
    """The official clients, each of which asks the same and reads text, scores, reason and status."""

    def __init__(self, address):
        self.openai = openai.OpenAI(base_url=f"{address}/v1", api_key="key-of-client", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=address, api_key="key-of-client", max_retries=0)

    def responses(self, stream, own=OWN, **fields):
        fields = {"model": "m", "input": "Where is Lyon?", "extra_body": own} | fields
        if not stream:
            return self.openai.responses.create(**fields), []
        events = list(self.openai.responses.create(stream=True, **fields))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        return events[-1].response, events

    def messages(self, stream, own=OWN, **fields):
        messages = [{"role": "user", "content": "Where is Lyon?"}]
        fields = {"model": "m", "max_tokens": 50, "messages": messages, "extra_body": own} | fields
        if not stream:
            return self.anthropic.messages.create(**fields), []
        with self.anthropic.messages.stream(**fields) as streamed:
            events = list(streamed)
            message = streamed.get_final_message()
        (last,) = [event for event in events if event.type == "message_delta"]
        message.syncheck = last.syncheck
        return message, events


@pytest.fixture
def clients(monitor):
    """Runs a gateway before an upstream; gives the clients."""
    stack = ExitStack()

    def run(upstream, config=None, **options):
        app = create_app(Gateway(monitor, "http://up/v1", transport=upstream, **options), config)
        made = Clients(stack.enter_context(running(app)))
        stack.enter_context(made.openai)
        stack.enter_context(made.anthropic)
        return made

    with stack:
        yield run


def events_in(events):
    """The events of the protocol that came with the text."""
    return [told for event in events for told in (getattr(event, "syncheck", None) or {}).get("events", [])]


@pytest.mark.parametrize("cuts", [None, "all"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_same_checked_answer_is_behind_all_three(clients, stream, cuts):
    upstream = upstream_of(cuts=cuts)
    client = clients(upstream)
    response, seen = client.responses(stream)
    message, received = client.messages(stream)
    assert response.output_text == message.content[0].text == ANSWER
    assert (response.status, message.stop_reason) == ("completed", "end_turn")
    for told in (response.syncheck, message.syncheck):
        assert told["status"] == "checked" and [round(s["score"], 2) for s in told["sentences"]] == [0.97, 0.1]
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (5, 7, 12)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 7)
    assert response.usage.input_tokens_details.cached_tokens == message.usage.cache_read_input_tokens == 4
    if stream:
        for events in (seen, received):
            answer = fold(map(from_dict, events_in(events)))
            assert answer.text == ANSWER and answer.report["response"] == ANSWER
        deltas = [event.delta for event in seen if event.type == "response.output_text.delta"]
        assert "".join(deltas) == ANSWER and deltas[0] == GOOD
    for _, headers, sent in upstream.requests:
        assert headers["authorization"] == "Bearer key-of-client"
        assert sent["messages"] == [{"role": "user", "content": "Where is Lyon?"}]
        assert not sent.keys() & {"context", "input", "syncheck"}
    assert upstream.requests[1][2]["max_tokens"] == 50


@pytest.mark.parametrize("stream", [False, True])
def test_a_sentence_that_fails_ends_each_as_its_clients_expect(clients, stream):
    client = clients(upstream_of())
    own = OWN | {"syncheck": {"stop_below": 0.5}}
    response, _ = client.responses(stream, own)
    message, _ = client.messages(stream, own)
    assert response.output_text == message.content[0].text == GOOD
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "content_filter")
    assert message.stop_reason == "refusal" and message.syncheck["status"] == response.syncheck["status"] == "stopped"
    response, _ = clients(upstream_of(end="length")).responses(stream)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_and_calls_are_items_of_their_own(clients, stream):
    upstream = upstream_of([GOOD], end="tool_calls", reasoning="It may be in Spain.", calls=CALLS)
    client = clients(upstream, reasoning="pass")
    tool = {"type": "function", "name": "look_up", "parameters": SCHEMA, "strict": None}
    response, _ = client.responses(stream, tools=[tool])
    message, _ = client.messages(stream, tools=[{"name": "look_up", "input_schema": SCHEMA}])
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert response.output[0].content[0].text == message.content[0].thinking == "It may be in Spain."
    assert [json.loads(item.arguments) for item in response.output[2:]] == [{"n": 0}, {"n": 1}]
    assert [(b.id, b.name, b.input) for b in message.content[2:]] == [
        (f"call_{i}", "look_up", {"n": i}) for i in (0, 1)
    ]
    assert message.stop_reason == "tool_use" and response.output[2].call_id == "call_0"
    for told in (response.syncheck, message.syncheck):
        assert told["status"] == "verified" and told["unchecked"] == ["reasoning_content", "tool_calls"]
    tools = [sent["tools"] for _, _, sent in upstream.requests]
    assert tools[0] == tools[1] == [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_after_the_result_of_a_tool_is_checked_against_it(clients, stream):
    upstream = upstream_of()
    client = clients(upstream)
    call = {"type": "function_call", "call_id": "a", "name": "look_up", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": PASSAGES[0]}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Where is Lyon?"}]}, call, output]
    response, _ = client.responses(stream, {}, input=items, instructions="Be brief.")
    use = {"type": "tool_use", "id": "a", "name": "look_up", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": PASSAGES[0]}]}
    turns = [("user", "Where is Lyon?"), ("assistant", [use]), ("user", [result])]
    messages = [{"role": role, "content": content} for role, content in turns]
    message, _ = client.messages(stream, {}, messages=messages, system="Be brief.")
    for told in (response.syncheck, message.syncheck):
        assert [round(s["score"], 2) for s in told["sentences"]] == [0.97, 0.1]
    sent = [sent["messages"] for _, _, sent in upstream.requests]
    made = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    assert (
        sent[0]
        == sent[1]
        == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Where is Lyon?"},
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "a", "content": PASSAGES[0]},
        ]
    )


def test_documents_images_and_options_are_translated(clients):
    upstream = upstream_of([GOOD])
    client = clients(upstream)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": PASSAGES[0]}}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "Lyon."}]}
    content = [document, found, {"type": "text", "text": "Where is Lyon?"}, image]
    message, _ = client.messages(
        False,
        {},
        messages=[{"role": "user", "content": content}],
        stop_sequences=["END"],
        tools=[{"name": "look_up", "input_schema": SCHEMA}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
    )
    assert message.syncheck["status"] == "verified"
    shape = {"type": "json_schema", "name": "city", "schema": SCHEMA, "strict": True}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    parts = [{"type": "input_text", "text": "Where is Lyon?"}, picture]
    client.responses(
        False, input=[{"role": "user", "content": parts}], text={"format": shape}, max_output_tokens=9,
        reasoning={"effort": "low"}, temperature=0.5,
    )  # fmt: skip
    (_, _, one), (_, _, other) = upstream.requests
    texts = [part["text"] for part in one["messages"][0]["content"] if part["type"] == "text"]
    assert texts[0] == f"<document>\n{PASSAGES[0]}\n</document>" and texts[1] == "<document>\nLyon.\n</document>"
    url = {"url": "data:image/png;base64,AAAA"}
    assert one["messages"][0]["content"][-1] == {"type": "image_url", "image_url": url}
    assert (one["stop"], one["tool_choice"], one["parallel_tool_calls"]) == (["END"], "required", False)
    assert other["messages"][0]["content"][1] == {"type": "image_url", "image_url": url | {"detail": "low"}}
    assert (other["max_tokens"], other["reasoning_effort"], other["temperature"]) == (9, "low", 0.5)
    inner = {"name": "city", "schema": SCHEMA, "strict": True}
    assert other["response_format"] == {"type": "json_schema", "json_schema": inner}
    assert not {"stop_sequences", "system", "text", "reasoning", "max_output_tokens"} & (one.keys() | other.keys())


@pytest.mark.parametrize("stream", [False, True])
def test_errors_have_the_form_of_each_client(clients, stream):
    client = clients(upstream_of())
    with pytest.raises(openai.BadRequestError, match="expected passages"):
        client.responses(stream, {})
    with pytest.raises(anthropic.BadRequestError, match="expected passages"):
        client.messages(stream, {})
    refused = [
        {"previous_response_id": "r"},
        {"tools": [{"type": "web_search"}]},
        {"input": [{"type": "mcp_list_tools"}]},
    ]
    refused += [{"input": 1}, {"text": "x"}, {"extra_body": OWN | {"n": 2}}]
    for fields in refused:
        with pytest.raises(openai.BadRequestError):
            client.openai.responses.create(**{"model": "m", "input": "Where?", "extra_body": OWN} | fields)
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A"}}
    for fields in (
        {"messages": [{"role": "user", "content": [pdf]}]},
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": "Where?"},
    ):
        with pytest.raises(anthropic.BadRequestError):
            client.messages(False, **fields)
    wrong = clients(upstream_of(), ServerConfig(api_key="right"))
    with pytest.raises(openai.AuthenticationError):
        wrong.responses(stream)
    with pytest.raises(anthropic.AuthenticationError):
        wrong.messages(stream)


def test_a_stream_that_breaks_raises_in_each_client(clients):
    client = clients(Upstream(stream=sse(chunks_of(PIECES)[:-2], done=False)))
    with pytest.raises(openai.APIError, match="broke off"):
        client.responses(True)
    with pytest.raises(anthropic.APIStatusError, match="broke off"):
        client.messages(True)


def test_the_stream_helper_of_responses_has_the_scores(clients):
    client = clients(upstream_of())
    with client.openai.responses.stream(model="m", input="Where is Lyon?", extra_body=OWN) as stream:
        response = stream.get_final_response()
    assert response.output_text == ANSWER and response.syncheck["status"] == "checked"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_an_answer_without_text_has_no_empty_item(monitor, path, clients):
    client = clients(upstream_of([], end="stop"))
    body = asked(stream=True, input="Where is Lyon?", max_tokens=5)
    if path == "/v1/responses":
        del body["messages"]
    address = str(client.openai.base_url).removesuffix("/v1/")
    lines = httpx.post(f"{address}{path}", json=body).text.split("\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    names = [line[7:] for line in lines if line.startswith("event: ")]
    assert [event["type"] for event in events] == names
    assert names == (
        ["response.created", "response.in_progress", "response.completed"]
        if path == "/v1/responses"
        else ["message_start", "message_delta", "message_stop"]
    )
