"""A label claims nothing and passes every threshold, but is counted; what only looks like one is a claim."""

import asyncio

import httpx
import pytest

from fod.search import passes
from syncheck import Monitor
from syncheck.report.labels import answer_facts
from syncheck.results import Answer
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway
from syncheck.testing import scripted_monitor

LABELS = "**Summary**\n\n## Side effects"
CLAIMS = ["**Albert Einstein**", "**Take forty tablets daily**", "## Ibuprofen cures cancer"]
SURE = "The Avon bridge opened in 1967."
CONTEXT = ["The Avon bridge opened in 1967. It has two lanes."]


@pytest.fixture(scope="module")
def monitor():
    """Reads text alone, as the bundled monitor does."""
    double = scripted_monitor(SURE)
    return Monitor(double.model, double.tokenizer)


@pytest.fixture(scope="module")
def prompt(monitor):
    return monitor.prompt(question="Who designed the Avon bridge?", context=CONTEXT)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_watch_stops_at_a_claim_in_bold_and_not_at_a_label(monitor, prompt, claim):
    def watched(*blocks):
        with monitor.watch_text(prompt, stop_below=0.5) as watch:
            watch.feed("\n\n".join(blocks))
            watch.close()
        return watch.report

    stopped, ended = watched(SURE, claim, SURE), watched(SURE, LABELS, SURE)
    assert (stopped.stop, stopped.unscored) == ("below_threshold", 0)
    assert (ended.stop, ended.unscored) == (None, 2)
    assert "2 without a score" in answer_facts(Answer("a", ended))


def test_a_search_keeps_a_label_and_no_claim_in_bold(monitor, prompt):
    *claims, label, other = monitor.score(prompt, "\n\n".join([*CLAIMS, LABELS])).sentences
    assert passes(label, 0.5) and passes(other, 0.5)
    assert not any(passes(claim, 0.5) for claim in claims)


@pytest.mark.parametrize(
    ("text", "status", "unscored"),
    [(SURE, "verified", 0), (f"{SURE}\n\n{LABELS}", "verified", 2), (LABELS, "unverified", 2), (" \n", "no_text", 0)],
)
def test_a_gateway_counts_labels_and_never_calls_them_verified(monitor, text, status, unscored):
    response = asked(monitor, text)
    (choice,) = response.json()["choices"]
    assert (choice["syncheck"]["status"], choice["syncheck"]["unscored"]) == (status, unscored)
    assert response.headers["x-syncheck-status"] == status
    assert response.headers["x-syncheck-unscored"] == str(unscored)
    assert (choice["syncheck"]["reason"] or "").startswith("no sentence") == (status == "unverified")


def asked(monitor, text):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    upstream = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))

    async def send():
        app = create_app(Gateway(monitor, "http://up/v1", transport=upstream))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            messages = [{"role": "user", "content": "Who designed the bridge?"}]
            body = {"model": "m", "messages": messages, "context": CONTEXT}
            return await client.post("/v1/chat/completions", json=body)

    return asyncio.run(send())
