"""What a client is told of an answer that fails, what is counted, and what is loaded before the port is open."""

import asyncio
import socket

import anthropic
import httpx
import openai
import pytest
import uvicorn
from upstreams import ANSWER, PASSAGES, PIECES, SUPPORTS, Upstream, asked, chunks_of, running, sse, whole

from syncheck import Verifier
from syncheck.cli import main
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway
from syncheck.testing import ScriptedAligner, scripted_monitor


class Breaking:
    """An aligner that breaks."""

    name = "breaking"

    def align(self, passages, claims):
        raise RuntimeError("the aligner broke")


@pytest.mark.parametrize("client", ["openai", "anthropic"])
def test_an_answer_that_cannot_be_checked_is_not_asked_for_again(client):
    upstream = Upstream(answer=whole(ANSWER))
    app = create_app(Gateway(Verifier(Breaking()), "http://up/v1", transport=upstream))
    messages, own = [{"role": "user", "content": "Where is Lyon?"}], {"context": PASSAGES}
    with running(app) as address:
        if client == "openai":
            with openai.OpenAI(base_url=f"{address}/v1", api_key="k") as sender, pytest.raises(openai.APIError) as told:
                sender.chat.completions.create(model="m", messages=messages, extra_body=own)
        else:
            with (
                anthropic.Anthropic(base_url=address, api_key="k") as sender,
                pytest.raises(anthropic.APIError) as told,
            ):
                asked_for = {"model": "m", "max_tokens": 9, "messages": messages, "extra_body": own}
                sender.messages.create(**asked_for)
    assert told.value.status_code == 502 and "verification_failed" in str(told.value.body)
    assert len(upstream.requests) == 1


def counted(upstream, *bodies, path="/v1/chat/completions", headers=None):
    """The metrics of a gateway that was asked for these answers, by name and labels."""

    async def metrics():
        monitor = scripted_monitor(ANSWER, supports=SUPPORTS)
        transport = httpx.ASGITransport(create_app(Gateway(monitor, "http://up/v1", transport=upstream)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for body in bodies:
                await client.post(path, json=body, headers=headers)
            return (await client.get("/metrics")).text

    lines = asyncio.run(metrics()).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("own", [{}, {"stop_after": True}, {"reveal": "immediate"}])
def test_the_sentence_at_which_an_answer_was_stopped_is_counted(own, stream):
    upstream = Upstream(answer=whole(f"{ANSWER} It is old."), stream=sse(chunks_of([*PIECES, " It is old."])))
    found = counted(upstream, asked(stream=stream, syncheck={"stop_below": 0.5, **own}))
    assert found['syncheck_sentences_total{status="scored",verdict="unsupported"}'] == "1.0"
    assert found['syncheck_sentences_total{status="scored",verdict="supported"}'] == "1.0"
    assert found["syncheck_score_count"] == "2.0"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_refusals_are_counted_by_their_status(path):
    found = counted(Upstream(answer=whole(ANSWER)), asked(context=[]), asked(messages=7), asked(), path=path)
    statuses = {name: count for name, count in found.items() if name.startswith("syncheck_requests_total")}
    assert statuses == {
        'syncheck_requests_total{status="400"}': "2.0",
        'syncheck_requests_total{status="200"}': "1.0",
    }


def test_other_addresses_count_no_answers():
    assert not [name for name in counted(Upstream(), {}, path="/v1/score") if "requests_total{" in name]


def test_a_request_without_passages_is_told_what_to_send(posted):
    told = posted(Upstream(), asked(context=[])).json()["error"]["message"]
    assert told.startswith("expected passages") and "found none" in told
    assert "Send them in its field 'context'" in told


def test_a_given_answer_with_null_as_context_has_no_passages_as_a_chat_has(posted):
    def scored(context):
        return posted(Upstream(), {"question": "Q?", "context": context, "response": ANSWER}, path="/v1/score").json()

    assert scored(None)["sentences"] == scored([])["sentences"] != []


class Watching(ScriptedAligner):
    """Notes whether the port is open while it reads."""

    def align(self, passages, claims):
        with socket.socket() as knocking:
            self.found = [*getattr(self, "found", []), knocking.connect_ex(("127.0.0.1", self.port)) == 0]
        return super().align(passages, claims)


def test_the_verifier_is_warm_before_the_port_is_open(monkeypatch):
    aligner, opened = Watching({}), []
    with socket.create_server(("127.0.0.1", 0)) as free:
        aligner.port = free.getsockname()[1]
    monkeypatch.setattr("syncheck.cli.serving.scoring_monitor", lambda args, default: Verifier(aligner))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: opened.append([*aligner.found]))
    assert main(["gateway", "--upstream", "http://up/v1", "--port", str(aligner.port)]) == 0
    assert opened == [aligner.found] and set(aligner.found) == {False}


def test_a_server_whose_verifier_is_broken_does_not_start(monkeypatch, capsys):
    monkeypatch.setattr("syncheck.cli.serving.scoring_monitor", lambda args, default: Verifier(Breaking()))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    assert main(["gateway", "--upstream", "http://up/v1"]) != 0
    told = capsys.readouterr().err
    assert "the aligner broke" in told and "listening" not in told
