"""Scores by way of an inference server are those of local replay."""

import numpy as np
import pytest
import torch
from copying import copying_monitor
from inference_servers import InferenceServer
from transformers import AutoConfig, AutoModelForCausalLM

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import Aggregator
from syncheck.base.errors import EndpointError, InputError, MismatchError
from syncheck.endpoints import Connection, EndpointReplay, SglangServer, VllmServer
from syncheck.kit import demo_questions
from syncheck.testing import WordAligner

QUICK = {"retries": 0, "backoff_s": 0.0}
KINDS = ("vllm", "sglang")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def kit():
    return copying_monitor()


@pytest.fixture(scope="module")
def answers(kit):
    """Prompts, and the bundled model's own answers to them."""
    prompts = [kit.prompt(question=q.question, context=q.passages) for q in demo_questions()[:3]]
    reports = kit.generate(prompts, max_new_tokens=60)
    return prompts, [report.response for report in reports]


@pytest.fixture(scope="module")
def server(kit):
    with InferenceServer(kit.model) as running:
        yield running


def client(server, kind, **options):
    options = QUICK | options
    if kind == "vllm":
        return VllmServer(Connection(f"{server.url}/v1", **options), "kit")
    return SglangServer(Connection(server.url, **options))


@pytest.fixture(scope="module")
def monitor(kit):
    """A monitor of the bundled model whose aggregator is trained on random rows, so that every feature counts."""
    known = feature_schema("endpoint.v1", ())
    source = np.random.default_rng(0)
    X = np.abs(source.normal(size=(300, len(known.names))))
    X[source.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X) @ source.normal(size=X.shape[1]) + source.normal(size=300) > 0).astype(int)
    aggregator = Aggregator.fit(X, y, schema=known, kind="lr")
    config = MonitorConfig(schema="endpoint.v1", layers=())
    return Monitor(kit.model, kit.tokenizer, config=config, aggregator=aggregator, aligner=WordAligner())


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_local_replay(monitor, answers, server, kind):
    prompts, responses = answers
    found = EndpointReplay(monitor, client(server, kind)).replay(prompts, responses)
    for answer, report in zip(found, monitor.score_batch(prompts, responses), strict=True):
        assert [(s.text, s.start, s.end, s.status) for s in answer.sentences] == [
            (s.text, s.start, s.end, s.status) for s in report.sentences
        ]
        for sentence, local in zip(answer.sentences, report.sentences, strict=True):
            assert sentence.score == pytest.approx(local.score, abs=1e-3)
            assert sentence.features == pytest.approx(local.features, abs=1e-3, nan_ok=True)
        assert all(np.isnan(s.entropy).all() and np.isnan(s.kl).all() for s in answer.signals)


def test_a_report_is_that_of_local_replay(monitor, answers, server):
    prompt, response = answers[0][0], answers[1][0]
    report = EndpointReplay(monitor, client(server, "sglang")).score(prompt, response)
    local = monitor.score(prompt, response)
    assert report.response == local.response
    np.testing.assert_allclose(report.tokens.log_prob, local.tokens.log_prob, atol=1e-4)
    np.testing.assert_allclose(report.tokens.log_prob_without_context, local.tokens.log_prob_without_context, atol=1e-4)


def test_a_monitor_trained_on_what_no_server_reports_is_refused(kit, answers, server):
    with pytest.raises(MismatchError, match="max_entropy"):
        EndpointReplay(kit, client(server, "vllm")).replay(*answers)


def test_the_model_may_be_without_weights(monitor, answers, server):
    with torch.device("meta"):
        shape = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(monitor.model.config._name_or_path))
    parts = {"config": monitor.config, "aggregator": monitor.aggregator, "aligner": monitor.aligner}
    empty = Monitor(shape, monitor.tokenizer, **parts)
    prompt, response = answers[0][0], answers[1][0]
    there, here = (EndpointReplay(m, client(server, "sglang")).score(prompt, response) for m in (empty, monitor))
    assert [s.score for s in there.sentences] == [s.score for s in here.sentences]


def test_no_context_and_no_text(monitor, server):
    replay = EndpointReplay(monitor, client(server, "sglang"))
    prompts = [monitor.prompt(question="Who was it?", context=""), monitor.prompt(question="Who?", context="A man.")]
    without, empty = replay.replay(prompts, ["It was him.", ""])
    assert [(s.status, s.score) for s in without.sentences] == [("no_context", None)]
    assert list(empty.sentences) == []


def test_no_workers_are_refused(kit, server):
    with pytest.raises(InputError, match="workers"):
        EndpointReplay(kit, client(server, "vllm"), workers=0)


class Constant:
    """A connection to vLLM or SGLang that reports one log-probability for every token."""

    base_url = "http://server"

    def __init__(self, value):
        self.value = value

    def post(self, path, body):
        if path == "/completions":
            return {"choices": [{"prompt_logprobs": [{str(i): {"logprob": self.value}} for i in body["prompt"]]}]}
        told = [[self.value, i, None] for i in body["input_ids"][body["logprob_start_len"] :]]
        return {"meta_info": {"input_token_logprobs": told}}


def score_of_constant(monitor, kind, value):
    server = VllmServer(Constant(value), "kit") if kind == "vllm" else SglangServer(Constant(value))
    prompt = monitor.prompt(question="Who was it?", context="It was a man of forty.")
    return EndpointReplay(monitor, server).score(prompt, "It was a man of forty.")


@pytest.mark.parametrize("value", [0.9, 1e300, float("inf"), float("nan"), True, "-1", -(10**400)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_score_comes_of_what_is_no_log_probability(monitor, kind, value):
    with pytest.raises(EndpointError, match="expected"):
        score_of_constant(monitor, kind, value)


def test_rounding_above_0_is_0(monitor):
    assert (score_of_constant(monitor, "vllm", 1e-4).tokens.log_prob == 0).all()


@pytest.mark.parametrize(("kind", "excluded"), [("vllm", -9999.0), ("sglang", None)])
def test_a_token_that_the_model_excludes_fails_its_sentence(monitor, kind, excluded):
    assert [s.status for s in score_of_constant(monitor, kind, excluded).sentences] == ["failed"]


def test_a_server_of_one_s_own_that_leaves_out_tokens_is_refused(monitor):
    class Short:
        name = "short"

        def replay(self, prompt_ids, token_ids):
            return np.full(len(token_ids) - 1, -1.0)

    prompt = monitor.prompt(question="Who was it?", context="It was a man of forty.")
    with pytest.raises(EndpointError, match="from short; found the shape"):
        EndpointReplay(monitor, Short()).score(prompt, "It was a man of forty.")


def test_what_vllm_is_asked(kit, server):
    server.requests.clear()
    log_prob = client(server, "vllm", api_key="secret").replay([1, 2, 3], [4, 5])
    ((path, headers, body),) = server.requests
    assert path == "/v1/completions" and headers["Authorization"] == "Bearer secret"
    assert body == {"model": "kit", "prompt": [1, 2, 3, 4, 5], "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
    assert log_prob.shape == (2,)


def test_what_sglang_is_asked(kit, server):
    server.requests.clear()
    client(server, "sglang").replay([1, 2, 3], [4, 5])
    ((path, headers, body),) = server.requests
    assert path == "/generate" and "Authorization" not in headers
    assert body == {
        "input_ids": [1, 2, 3, 4, 5],
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": 2,
        "top_logprobs_num": 0,
    }


def test_both_servers_tell_the_same(kit, server):
    one, other = (client(server, kind).replay([1, 2, 3], [4, 5, 6]) for kind in KINDS)
    np.testing.assert_array_equal(one, other)


class TestErrors:
    @pytest.fixture
    def scripted(self, llama):
        with InferenceServer(llama.model) as running:
            yield running

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_refused_request_is_not_sent_again(self, scripted, kind):
        window = list(range(1, 5)) * scripted.model.config.max_position_embeddings
        with pytest.raises(EndpointError, match="context length") as caught:
            client(scripted, kind, retries=3).replay(window, [1])
        assert caught.value.status == 400 and len(scripted.requests) == 1

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_what_may_pass_is_tried_again(self, scripted, status):
        scripted.scripted = [(status, "busy")] * 2
        assert client(scripted, "vllm", retries=2).replay([1, 2], [3]).shape == (1,)
        assert len(scripted.requests) == 3

    def test_retries_end(self, scripted):
        scripted.scripted = [(503, "busy")] * 3
        with pytest.raises(EndpointError, match="busy") as caught:
            client(scripted, "vllm", retries=2).replay([1, 2], [3])
        assert caught.value.status == 503 and len(scripted.requests) == 3

    def test_a_server_that_does_not_answer_in_time(self, scripted):
        scripted.scripted = [None]
        with pytest.raises(EndpointError) as caught:
            client(scripted, "sglang", timeout_s=0.05).replay([1, 2], [3])
        assert caught.value.status is None

    def test_a_server_that_is_not_there(self):
        with pytest.raises(EndpointError) as caught:
            SglangServer(Connection("http://127.0.0.1:9", **QUICK)).replay([1, 2], [3])
        assert caught.value.status is None

    @pytest.mark.parametrize(
        ("kind", "answer"),
        [
            ("vllm", "no JSON"),
            ("vllm", "[1]"),
            ("vllm", {"choices": [{"prompt_logprobs": None}]}),
            ("vllm", {"choices": [{"prompt_logprobs": [None, None, {"9": {"logprob": -1.0}}]}]}),
            ("vllm", {"choices": []}),
            ("sglang", {"meta_info": {}}),
            (
                "sglang",
                {"meta_info": {"input_token_logprobs": [[None, 2], [-1.0, 9]], "input_top_logprobs": [None, []]}},
            ),
        ],
    )
    def test_an_answer_in_another_form(self, scripted, kind, answer):
        scripted.scripted = [(200, answer)]
        with pytest.raises(EndpointError):
            client(scripted, kind).replay([1, 2], [3])

    def test_an_excluded_token_is_minus_infinity_from_both(self, scripted):
        told = {"3": {"logprob": -9999.0, "rank": 9, "decoded_token": ""}}
        scripted.scripted = [
            (200, {"choices": [{"prompt_logprobs": [None, told, told]}]}),
            (200, {"meta_info": {"input_token_logprobs": [[None, 2, None], [None, 3, None]]}}),
        ]
        for kind in KINDS:
            assert np.isneginf(client(scripted, kind).replay([1, 2], [3])).all()

    @pytest.mark.parametrize("key", ["a\nsecret", "sécret", " "])
    def test_a_key_that_no_header_can_carry_is_refused_without_it(self, key):
        with pytest.raises(InputError, match="api_key must be one line") as caught:
            Connection("http://localhost", api_key=key)
        assert "cret" not in str(caught.value)

    @pytest.mark.parametrize("status", [200, 401])
    def test_a_key_is_stripped_and_never_quoted(self, scripted, status):
        scripted.scripted = [(status, "you sent Bearer secret-key\nforged")]
        with pytest.raises(EndpointError) as caught:
            client(scripted, "vllm", api_key="secret-key\n").replay([1, 2], [3])
        assert "you sent Bearer [key]" in str(caught.value) and "secret-key" not in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_answer_is_read_up_to_a_limit(self, scripted, monkeypatch):
        monkeypatch.setattr("syncheck.base.connection.MOST_BYTES", 1000)
        scripted.scripted = [(200, "[" * 2000)]
        with pytest.raises(EndpointError, match="more than 1000 bytes"):
            client(scripted, "vllm").replay([1, 2], [3])

    def test_deep_json_is_no_answer(self, scripted):
        scripted.scripted = [(200, "[" * 100_000)]
        with pytest.raises(EndpointError, match="no JSON object"):
            client(scripted, "vllm").replay([1, 2], [3])

    @pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}, {"backoff_s": -1.0}])
    def test_numbers_that_make_no_sense(self, options):
        with pytest.raises(InputError):
            Connection("http://localhost", **options)

    def test_another_kind_of_address(self):
        with pytest.raises(InputError, match="http"):
            Connection("ftp://localhost")
