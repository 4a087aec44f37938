"""A server over a model of one's own: any decoder, in OpenAI's form; what it does not serve is refused."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial

import httpx
import openai
import pytest
from upstreams import ANSWER, PASSAGES, SUPPORTS, asked, running

import fod
from syncheck.results import FoldedAnswer, fold, from_dict
from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.chat import read_chat
from syncheck.serving.limits import Deadline
from syncheck.serving.sources import OwnModel
from syncheck.testing import scripted_monitor


@pytest.fixture(scope="module")
def monitor():
    return scripted_monitor({ANSWER: 0.6, "It is in France.": 0.4}, supports=SUPPORTS)


@pytest.fixture(scope="module")
def decoders(monitor):
    def plain(prompt, *, seed, **options):
        return monitor.stream(prompt, **options)

    built = fod.FODGenerator(monitor.model, monitor.tokenizer, monitor, samples_per_step=2)
    return {
        "greedy": partial(plain, do_sample=False),
        "sample": partial(plain, do_sample=True),
        "fod": lambda prompt, *, reveal, **options: built.stream(prompt, do_sample=False, **options),
    }


@pytest.fixture(scope="module")
def address(monitor, decoders):
    with running(create_app(OwnModel(monitor, decoders, default="greedy", name="scripted"))) as address:
        yield address


@pytest.fixture
def ask(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="-", max_retries=0) as client:

        def ask(**fields):
            body = asked(**fields)
            own = {name: body.pop(name) for name in ("context", "decoder", "syncheck") if name in body}
            return client.chat.completions.create(**body, extra_body=own)

        yield ask


def test_a_model_whose_name_is_empty_has_not_that_of_the_request(monitor, decoders):
    source = OwnModel(monitor, decoders, default="greedy", name="")

    async def answered():
        return await source.complete(read_chat(asked(), ServerConfig()), Deadline(60))

    assert asyncio.run(answered())["model"] == ""


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize(
    ("decoder", "stop", "finish"), [("greedy", "end_of_text", "stop"), ("fod", "nothing_passed", "content_filter")]
)
def test_a_stream_folds_to_the_whole_answer(ask, decoder, stop, finish, reveal):
    chosen = {"decoder": decoder, "syncheck": {"reveal": reveal}}
    whole = ask(**chosen)
    parts = list(ask(**chosen, stream=True, stream_options={"include_usage": True}))
    answer = fold((from_dict(e) for p in parts for c in p.choices for e in c.syncheck["events"]), FoldedAnswer())
    assert answer.text == whole.choices[0].message.content != ""
    assert [s.score for s in answer.sentences] == [s["score"] for s in whole.choices[0].syncheck["sentences"]]
    assert answer.report["response"] == answer.text
    assert parts[-1].usage == whole.usage and whole.usage.completion_tokens > 0
    assert parts[-2].choices[0].finish_reason == whole.choices[0].finish_reason == finish
    assert whole.choices[0].syncheck["stop"] == stop
    if reveal == "verified" or decoder == "fod":
        assert "".join(p.choices[0].delta.content or "" for p in parts[:-1]) == answer.text


def test_the_page_loads_its_own_files_alone(address):
    page = httpx.get(f"{address}/")
    assert "script-src 'self'" in page.headers["content-security-policy"] and "<script>" not in page.text
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page.text):
        assert httpx.get(f"{address}/{name}").status_code == 200
    offered = httpx.get(f"{address}/page.json").json()
    assert offered["decoders"][0] == "greedy" and offered["examples"][0]["passages"] and not offered["needs_key"]


class Broken:
    """An aligner that can check nothing."""

    name = "broken"

    def align(self, passages, claims):
        raise RuntimeError("the aligner broke")


@pytest.mark.parametrize("decoder", ["greedy", "fod", "abstain"])
def test_every_decoder_says_that_nothing_could_be_checked(monitor, decoders, monkeypatch, decoder):
    chosen = decoders | {"abstain": abstaining(monitor, None)}
    monkeypatch.setattr(monitor, "aligner", Broken())
    for failing in ("closed", "open"):
        source = OwnModel(monitor, chosen, default="greedy", name="m", failing=failing)
        with running(create_app(source)) as address:
            response = httpx.post(f"{address}/v1/chat/completions", json=asked(decoder=decoder))
        if failing == "closed":
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (502, "verification_failed") and "broke" in error["message"]
        else:
            (choice,) = response.json()["choices"]
            assert choice["syncheck"]["status"] == ("unverified" if choice["message"]["content"] else "no_text")
            assert "broke" in choice["syncheck"]["reason"]


def test_an_answer_of_which_no_sentence_passed_says_how_close_they_came(monitor):
    source = OwnModel(monitor, {"abstain": abstaining(monitor, 0.99)}, default="abstain", name="m")
    with running(create_app(source)) as address:
        (choice,) = httpx.post(f"{address}/v1/chat/completions", json=asked()).json()["choices"]
    assert choice["message"]["content"] == fod.config.ABSTENTION and choice["finish_reason"] == "content_filter"
    assert (choice["syncheck"]["status"], choice["syncheck"]["stop"]) == ("unverified", "abstained")
    assert "0.97" in choice["syncheck"]["reason"]


def abstaining(monitor, threshold):
    built = fod.AbstainGenerator(monitor.model, monitor.tokenizer, monitor, threshold=threshold)
    return lambda prompt, *, reveal, **options: built.stream(prompt, do_sample=False, **options)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_takes_too_long_ends_with_an_error(monitor, stream):
    def slow(prompt, *, seed, **options):
        for event in monitor.stream(prompt, do_sample=False, **options):
            time.sleep(0.2)
            yield event

    source = OwnModel(monitor, {"greedy": slow}, default="greedy", name="m")
    with running(create_app(source, ServerConfig(timeout=0.3))) as address:
        response = httpx.post(f"{address}/v1/chat/completions", json=asked(stream=stream))
    assert "no complete answer after 0.3 seconds (--timeout 0.3)" in response.text and "[DONE]" not in response.text
    assert stream or response.status_code == 504


def test_other_dialects_ask_the_model_too(address):
    messages = asked(max_tokens=50)
    response = httpx.post(f"{address}/v1/messages", json=messages).json()
    assert response["content"][0]["text"] == ANSWER and response["usage"]["output_tokens"] > 0
    del messages["messages"], messages["max_tokens"]
    response = httpx.post(f"{address}/v1/responses", json=messages | {"input": "Where is Lyon?"}).json()
    assert response["output"][0]["content"][0]["text"] == ANSWER and response["syncheck"]["status"] == "checked"


def test_a_short_answer_says_so(ask):
    assert ask(max_tokens=2).choices[0].finish_reason == "length"


def test_it_stops_below_a_score(ask):
    assert ask(decoder="greedy", syncheck={"stop_below": 0.05}).choices[0].message.content == ANSWER
    for after, text, notice in (
        (False, "", "Stopped: the next sentence scored 0.97, and 0.99 was asked for; it is withheld."),
        (True, "Lyon is large.", "Stopped: this sentence scored 0.97, and 0.99 was asked for."),
    ):
        options = {"stop_below": 0.99, "stop_after": after}
        choice = ask(syncheck=options).choices[0]
        assert choice.message.content == text
        assert choice.finish_reason == "content_filter" and choice.syncheck["status"] == "stopped"
        assert choice.syncheck["notices"] == [notice]
        parts = list(ask(stream=True, syncheck=options))
        assert "".join(p.choices[0].delta.content or "" for p in parts) == text


def test_it_stops_below_a_score_at_the_last_sentence_too():
    ended = scripted_monitor("It opened in 1967. It has six lanes.", supports={"It has six lanes.": 0.1})
    greedy = {"greedy": lambda prompt, *, seed, **options: ended.stream(prompt, **options)}
    with running(create_app(OwnModel(ended, greedy, default="greedy", name="m"))) as address:
        body = asked(decoder="greedy", context=["It opened in 1967."], syncheck={"stop_below": 0.5})
        (choice,) = httpx.post(f"{address}/v1/chat/completions", json=body).json()["choices"]
    assert (choice["finish_reason"], choice["syncheck"]["status"]) == ("content_filter", "stopped")
    assert choice["message"]["content"] == "It opened in 1967."


def test_a_temperature_samples_by_the_seed(ask):
    texts = {ask(temperature=1.0, seed=seed).choices[0].message.content for seed in range(8)}
    assert len(texts) > 1 and ask(temperature=1.0, seed=3).choices[0].message.content in texts


@pytest.mark.parametrize(
    "fields",
    [
        {"decoder": "unknown"},
        {"decoder": "fod", "temperature": 0.7},
        {"decoder": "fod", "top_p": 0.7},
        {"decoder": "fod", "syncheck": {"stop_below": 0.5}},
        {"stop_below": 0.5},
        {"top_k": 40},
        {"stop": ["."]},
        {"n": 2},
        {"logprobs": True},
        {"max_tokens": 0},
        {"seed": -1},
        {"seed": 2**64},
        {"temperature": -1},
        {"temperature": 1e-300},
        {"temperature": 10**400},
        {"top_p": 0},
        {"top_p": 1.5},
        {"stream_options": "x"},
        {"syncheck": {"stop_below": 10**400}},
        {"context": []},
        {"context": ["a river. " * 5000]},
    ],
)
def test_what_is_not_served_is_refused(address, fields):
    refused = httpx.post(f"{address}/v1/chat/completions", json=asked(**fields))
    assert refused.status_code == 400 and refused.json()["error"]["type"] == "invalid_request_error"


def test_earlier_turns_without_a_chat_template_are_refused_in_a_client_s_terms(address):
    turns = [("user", "Where is Lyon?"), ("assistant", "In France."), ("user", "How large is it?")]
    messages = [{"role": role, "content": content} for role, content in turns]
    refused = httpx.post(f"{address}/v1/chat/completions", json=asked(messages=messages))
    assert refused.status_code == 400 and "one message of the user" in refused.json()["error"]["message"]


def test_a_reader_that_leaves_ends_the_generation(monitor):
    ended = []

    def endless(prompt, *, reveal, seed, max_new_tokens):
        try:
            while True:
                yield from list(monitor.stream(prompt, do_sample=False))[:-1]
                time.sleep(0.01)
        finally:
            ended.append(True)

    app = create_app(OwnModel(monitor, {"endless": endless}, default="endless", name="m"))
    with running(app) as address:

        async def leave():
            async with httpx.AsyncClient() as client:
                async with client.stream(
                    "POST", f"{address}/v1/chat/completions", json=asked(stream=True, syncheck={"reveal": "immediate"})
                ) as response:
                    async for _ in response.aiter_bytes():
                        break

        asyncio.run(leave())
        for _ in range(200):
            if ended:
                break
            time.sleep(0.05)
        metrics = httpx.get(f"{address}/metrics").text
    assert ended and "syncheck_running 0.0" in metrics


@pytest.mark.slow
def test_the_command_serves_the_bundled_model():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"from syncheck.cli import main; raise SystemExit(main(['serve', '--port', '{port}']))"
    served = subprocess.Popen(
        [sys.executable, "-c", command], stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                assert httpx.get(f"{address}/healthz").json()["status"] == "ok"
                break
            except httpx.ConnectError:
                assert served.poll() is None, served.stderr.read()
                time.sleep(0.2)
        for decoder in ("greedy", "fod"):
            body = asked(decoder=decoder, max_tokens=24) | {"context": PASSAGES}
            (choice,) = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=300).json()["choices"]
            text = choice["message"]["content"]
            assert text
            refused = choice["syncheck"]["stop"] == "abstained"
            assert choice["syncheck"]["status"] in (("unverified",) if refused else ("verified", "checked"))
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(60) == 0
        served.stderr.close()
