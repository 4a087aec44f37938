"""Telemetry: what the spans of checks and answers say, and what they never do."""

import asyncio
import json
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from test_repairing import SUPPORTS, Continuing
from upstreams import ANSWER, PASSAGES, PIECES, Upstream, asked, chunk, chunks_of, sse, whole

import fod
from syncheck import Telemetry, Verifier
from syncheck.base.errors import MissingExtraError
from syncheck.cli import main
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.chat import read_chat
from syncheck.serving.gateway import Gateway
from syncheck.serving.repairing import RepairingGateway
from syncheck.serving.tracing import traced
from syncheck.testing import ScriptedAligner

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736
WITHOUT_TEXT = {"Lyon", "France", "Spain", "Where"}


@pytest.fixture
def spans():
    """The spans of a test that have ended, and the provider that records them."""
    exporter = InMemorySpanExporter()
    exporter.provider = TracerProvider()
    exporter.provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def config(spans):
    return ServerConfig(telemetry=Telemetry(provider=spans.provider))


def only(spans):
    (span,) = spans.get_finished_spans()
    return span


def written(span):
    return str({**span.attributes}) + str([{**event.attributes} for event in span.events]) + str(span.status)


def results(span):
    assert {event.name for event in span.events} <= {"gen_ai.evaluation.result"}
    named = ("gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value")
    return [tuple(event.attributes.get(name) for name in named) for event in span.events]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_a_span_without_its_text(posted, spans, config, stream):
    usage = chunk(usage={"prompt_tokens": 5, "completion_tokens": 2}) | {"choices": []}
    upstream = Upstream(stream=sse([*chunks_of(PIECES), usage]), answer=whole(ANSWER))
    posted(upstream, asked(stream=stream, temperature=0.5), config=config, headers={"traceparent": PARENT})
    span, told = only(spans), only(spans).attributes
    assert (span.name, span.kind, span.context.trace_id) == ("chat m", SpanKind.CLIENT, TRACE)
    assert span.parent.span_id == 0x00F067AA0BA902B7
    sent = upstream.requests[0][1]["traceparent"]
    assert sent == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"
    assert (told["gen_ai.operation.name"], told["gen_ai.provider.name"]) == ("chat", "openai")
    assert (told["gen_ai.request.model"], told["gen_ai.response.model"]) == ("m", "m")
    assert (told["gen_ai.request.stream"], told["gen_ai.request.temperature"]) == (stream, 0.5)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == ((5, 2) if stream else (1, 2))
    assert told["gen_ai.response.finish_reasons"] == ("stop",) and told["syncheck.statuses"] == ("checked",)
    assert told["server.address"] == "up"
    assert (
        told["syncheck.sentences"],
        told["syncheck.sentences.supported"],
        told["syncheck.sentences.unsupported"],
    ) == (2, 1, 1)
    assert told["syncheck.sentences.unscored"] == 0
    assert told["syncheck.score.lowest"] == pytest.approx(0.1, abs=0.01)
    assert 0 < told["syncheck.check.seconds"] < 10
    assert [(label, round(score, 2)) for label, score in results(span)] == [("supported", 0.97), ("unsupported", 0.1)]
    assert not any(word in written(span) for word in WITHOUT_TEXT)


@pytest.mark.parametrize("stream", [False, True])
def test_text_is_recorded_if_it_is_asked_for(posted, spans, stream):
    config = ServerConfig(telemetry=Telemetry(text=True, provider=spans.provider))
    content = [{"type": "text", "text": "Where is Lyon?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    upstream = Upstream(stream=sse(chunks_of(PIECES)), answer=whole(ANSWER))
    posted(upstream, asked(stream=stream, messages=[{"role": "user", "content": content}]), config=config)
    told = only(spans).attributes
    parts = [{"type": "text", "content": "Where is Lyon?"}, {"type": "image_url"}]
    assert json.loads(told["gen_ai.input.messages"]) == [{"role": "user", "parts": parts}]
    said = {"role": "assistant", "finish_reason": "stop", "parts": [{"type": "text", "content": ANSWER}]}
    assert json.loads(told["gen_ai.output.messages"]) == [said]


@pytest.mark.parametrize(
    ("upstream", "kind"),
    [
        ({"status": 429, "answer": {"error": {"message": "Lyon is too much"}}}, "upstream_refused"),
        ({"stream": sse(chunks_of(PIECES)[:3], done=False)}, "upstream_incomplete"),
    ],
)
def test_a_failure_has_its_kind_and_no_words(posted, spans, config, upstream, kind):
    posted(Upstream(**upstream), asked(stream=True), config=config)
    span = only(spans)
    assert (span.attributes["error.type"], span.status.status_code) == (kind, StatusCode.ERROR)
    assert span.attributes["gen_ai.response.finish_reasons"] == () and "Lyon" not in written(span)


def test_an_answer_that_is_recorded_does_not_change(spans, config):
    sentence = {"type": "verified", "status": "scored", "verdict": "supported", "score": 0.9}
    first = {"index": 0, "syncheck": {"status": "verified", "sentences": [sentence]}}
    with traced(config.telemetry, None, read_chat(asked(), config)) as record:
        record({"choices": [first]})
        record({"choices": [{"index": 0, "syncheck": {"events": [sentence]}}]})
    assert first["syncheck"]["sentences"] == [sentence] and only(spans).attributes["syncheck.sentences"] == 2


def test_nothing_is_sent_upstream_without_telemetry(posted):
    upstream = Upstream(answer=whole(ANSWER))
    posted(upstream, asked(), headers={"traceparent": PARENT})
    assert not upstream.requests[0][1].keys() & {"traceparent", "tracestate", "baggage"}


class Watched(Continuing):
    """Keeps the headers, too."""

    async def handle_async_request(self, request):
        self.headers = [*getattr(self, "headers", []), request.headers]
        return await super().handle_async_request(request)


def test_each_request_of_a_decoder_is_in_the_trace_of_its_answer(spans, config):
    server, verifier = Watched(), Verifier(ScriptedAligner(SUPPORTS))
    searching = fod.FODConfig(beam_size=1, samples_per_step=2, backtrack_threshold=0.7, prune_threshold=0.7)

    def decode(continue_from, *, in_thread, **given):
        return fod.UpstreamFOD(verifier, continue_from, config=searching, in_thread=in_thread).stream_async(**given)

    async def sent():
        gateway = RepairingGateway(Gateway(verifier, "http://up/v1", transport=server), verifier, decode)
        transport = httpx.ASGITransport(create_app(gateway, config))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/v1/chat/completions", json=asked(), headers={"traceparent": PARENT})

    assert asyncio.run(sent()).status_code == 200 and len(server.requests) > 1
    assert {headers["traceparent"].split("-")[1] for headers in server.headers} == {f"{TRACE:032x}"}
    assert only(spans).attributes["syncheck.sentences.supported"] == 2


def test_a_given_answer_is_a_check(posted, spans, config):
    body = {"question": "Where is Lyon?", "context": PASSAGES, "response": ANSWER}
    report = posted(Upstream(), body, path="/v1/score", config=config, headers={"traceparent": PARENT}).json()
    span = only(spans)
    assert span.context.trace_id == TRACE and span.kind == SpanKind.INTERNAL
    assert span.attributes["gen_ai.operation.name"] == "check"
    assert [score for _, score in results(span)] == [sentence["score"] for sentence in report["sentences"]]


def test_a_verifier_records_its_checks(spans):
    aligner = ScriptedAligner(SUPPORTS)
    checking = Verifier(aligner, telemetry=Telemetry(provider=spans.provider))
    given = {"question": "Where is Lyon?", "passages": PASSAGES, "answer": ANSWER}
    report = checking.replaced().check(**given)  # a copy records, too
    told, span = only(spans).attributes, only(spans)
    assert (told["syncheck.sentences"], told["syncheck.passages"]) == (2, 1)
    assert told["syncheck.score.lowest"] == min(sentence.score for sentence in report.sentences)
    assert told["syncheck.check.seconds"] == report.seconds and len(span.events) == 2
    assert not any(word in written(span) for word in WITHOUT_TEXT)
    list(checking.check_many([given, given]))
    assert len(spans.get_finished_spans()) == 3
    assert Verifier(aligner).check(**given).sentences == report.sentences and len(spans.get_finished_spans()) == 3


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'syncheck\[telemetry\]'"):
        Telemetry()


def test_a_server_without_an_sdk_says_how_to_start_it(capsys):
    assert main(["gateway", "--upstream", "http://localhost:1/v1", "--port", "8199", "--telemetry", "spans"]) == 2
    assert "opentelemetry-instrument" in capsys.readouterr().err
