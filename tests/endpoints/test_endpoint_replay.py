"""Scores by way of an inference server are those of local replay, or hold them within bounds."""

import numpy as np
import pytest
import torch
from copying import copying_monitor
from inference_servers import InferenceServer
from transformers import AutoConfig, AutoModelForCausalLM

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import Aggregator
from syncheck.base.errors import EndpointError, InputError, MismatchError, NotReadyError
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
    with InferenceServer(kit.model, max_logprobs=10_000) as running:
        yield running


def client(server, kind, **options):
    options = QUICK | options
    if kind == "vllm":
        return VllmServer(Connection(f"{server.url}/v1", **options), "kit")
    return SglangServer(Connection(server.url, **options))


def trained(kit, schema, kind):
    """A monitor of the bundled model whose aggregator is trained on random rows, so that every feature counts."""
    known = feature_schema(schema, kit.layers)
    source = np.random.default_rng(0)
    X = np.abs(source.normal(size=(300, len(known.names))))
    X[source.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X) @ source.normal(size=X.shape[1]) + source.normal(size=300) > 0).astype(int)
    aggregator = Aggregator.fit(X, y, schema=known, kind=kind)
    return Monitor(
        kit.model,
        kit.tokenizer,
        config=MonitorConfig(schema=schema, layers=kit.layers if "lid" in " ".join(known.names) else ()),
        aggregator=aggregator,
        lid_references=kit.lid_references if "lid" in " ".join(known.names) else None,
        aligner=WordAligner(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_local_replay(kit, answers, server, kind):
    monitor = trained(kit, "endpoint.v1", "lr")
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


def test_a_report_is_that_of_local_replay(kit, answers, server):
    monitor = trained(kit, "endpoint.v1", "lr")
    prompt, response = answers[0][0], answers[1][0]
    report = EndpointReplay(monitor, client(server, "sglang")).score(prompt, response)
    local = monitor.score(prompt, response)
    assert report.response == local.response
    np.testing.assert_allclose(report.tokens.log_prob, local.tokens.log_prob, atol=1e-4)
    np.testing.assert_allclose(report.tokens.log_prob_without_context, local.tokens.log_prob_without_context, atol=1e-4)


@pytest.mark.parametrize("k", [1, 4, 20, 100, *(pytest.param(k, marks=pytest.mark.slow) for k in (1000, "V"))])
@pytest.mark.parametrize("kind", ["lr", "ensemble"])
def test_the_exact_score_lies_within_its_bounds(kit, answers, server, k, kind):
    monitor = trained(kit, "paper-no-lid.v1", kind)
    prompts, responses = answers
    top = kit.model.get_input_embeddings().num_embeddings if k == "V" else k
    found = EndpointReplay(monitor, client(server, "sglang"), top=top).certify(prompts[:1], responses[:1])
    check_within(found, [monitor.score(prompts[0], responses[0])])
    if k == "V":
        entropies = [monitor.schema.names.index(name) for name in ("max_entropy", "mean_entropy")]
        assert all(
            np.ptp([s.features.low[entropies], s.features.high[entropies]], axis=0).max() < 5e-3 for s in found[0]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_the_bundled_monitor_s_scores_lie_within_their_bounds(kit, answers, server, kind):
    prompts, responses = answers
    found = EndpointReplay(kit, client(server, kind)).certify(prompts, responses)
    check_within(found, kit.score_batch(prompts, responses))


def check_within(certified, reports):
    for sentences, report in zip(certified, reports, strict=True):
        assert [(s.text, s.start, s.end) for s in sentences] == [(s.text, s.start, s.end) for s in report.sentences]
        for sentence, local in zip(sentences, report.sentences, strict=True):
            assert sentence.status == local.status
            values = np.array([np.nan if v is None else v for v in local.features.values()])
            slack = 2e-4 * (1 + np.abs(np.nan_to_num(values)))
            known = ~np.isneginf(sentence.features.low)
            np.testing.assert_array_equal(np.isnan(values[known]), np.isnan(sentence.features.low[known]))
            inside = (sentence.features.low - slack <= values) & (values <= sentence.features.high + slack)
            assert (inside | np.isnan(values)).all()
            if local.score is not None:
                assert sentence.low - 1e-3 <= local.score <= sentence.high + 1e-3


def test_more_of_the_distribution_narrows_the_bounds(kit, answers, server):
    monitor = trained(kit, "paper-no-lid.v1", "lr")
    prompts, responses = answers
    widths = []
    for top in (1, 20, 1000):
        (found,) = EndpointReplay(monitor, client(server, "sglang"), top=top).certify(prompts[:1], responses[:1])
        place = monitor.schema.names.index("mean_entropy")
        widths.append(np.mean([s.features.high[place] - s.features.low[place] for s in found if s.status == "scored"]))
    assert widths[0] > widths[1] > widths[2]


def test_exact_features_decide_exactly(kit, answers, server):
    monitor = trained(kit, "endpoint.v1", "lr")
    replay = EndpointReplay(monitor, client(server, "vllm"))
    prompts, responses = answers[0][:1], answers[1][:1]
    (answer,), (certified,) = replay.replay(prompts, responses), replay.certify(prompts, responses)
    for sentence, found in zip(answer.sentences, certified, strict=True):
        if sentence.score is None:
            continue
        assert found.low == found.high == pytest.approx(sentence.score, abs=1e-12)
        assert found.reaches(sentence.score / 2) is True
        assert found.reaches((1 + found.high) / 2) is False


def test_bounds_on_both_sides_of_a_threshold_do_not_decide(kit, answers, server):
    monitor = trained(kit, "paper-no-lid.v1", "lr")
    (found,) = EndpointReplay(monitor, client(server, "vllm"), top=1).certify(answers[0][:1], answers[1][:1])
    sentence = next(s for s in found if s.status == "scored")
    assert sentence.low < sentence.high
    assert sentence.reaches((sentence.low + sentence.high) / 2) is None


def test_a_monitor_trained_on_exact_signals_is_not_fed_bounds(kit, answers, server):
    with pytest.raises(MismatchError, match="max_entropy"):
        EndpointReplay(kit, client(server, "vllm")).replay(*answers)


def test_the_model_may_be_without_weights(kit, answers, server):
    with torch.device("meta"):
        shape = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(kit.model.config._name_or_path))
    full = trained(kit, "endpoint.v1", "lr")
    monitor = Monitor(shape, kit.tokenizer, config=full.config, aggregator=full.aggregator, aligner=full.aligner)
    prompt, response = answers[0][0], answers[1][0]
    there, here = (EndpointReplay(m, client(server, "sglang")).score(prompt, response) for m in (monitor, full))
    assert [s.score for s in there.sentences] == [s.score for s in here.sentences]


def test_no_context_and_no_text(kit, server):
    monitor = trained(kit, "paper-no-lid.v1", "lr")
    replay = EndpointReplay(monitor, client(server, "sglang"))
    prompts = [monitor.prompt(question="Who was it?", context=""), monitor.prompt(question="Who?", context="A man.")]
    (without,), empty = replay.certify(prompts, ["It was him.", ""])
    assert (without.status, without.low, without.reaches(0.5), empty) == ("no_context", None, None, [])


def test_a_monitor_without_aggregator_has_nothing_to_certify(kit, server):
    bare = Monitor(kit.model, kit.tokenizer, config=MonitorConfig(schema="endpoint.v1"))
    with pytest.raises(NotReadyError, match="aggregator"):
        EndpointReplay(bare, client(server, "vllm")).certify([], [])


@pytest.mark.parametrize("options", [{"top": 0}, {"workers": 0}, {"error": -1.0}])
def test_options_that_make_no_sense_are_refused(kit, server, options):
    with pytest.raises(InputError):
        EndpointReplay(kit, client(server, "vllm"), **options)


def test_what_vllm_is_asked(kit, server):
    server.requests.clear()
    known = client(server, "vllm", api_key="secret").replay([1, 2, 3], [4, 5], top=2)
    ((path, headers, body),) = server.requests
    assert path == "/v1/completions" and headers["Authorization"] == "Bearer secret"
    assert body == {"model": "kit", "prompt": [1, 2, 3, 4, 5], "max_tokens": 1, "temperature": 0, "prompt_logprobs": 2}
    assert known.log_prob.shape == (2,) and known.top.shape == known.top_ids.shape == (2, 2)


def test_what_sglang_is_asked(kit, server):
    server.requests.clear()
    client(server, "sglang").replay([1, 2, 3], [4, 5], top=2)
    ((path, headers, body),) = server.requests
    assert path == "/generate" and "Authorization" not in headers
    assert body == {
        "input_ids": [1, 2, 3, 4, 5],
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": 2,
        "top_logprobs_num": 2,
    }


def test_both_servers_tell_the_same(kit, server):
    one, other = (client(server, kind).replay([1, 2, 3], [4, 5, 6], top=5) for kind in KINDS)
    np.testing.assert_array_equal(one.log_prob, other.log_prob)
    np.testing.assert_array_equal(one.top_ids, other.top_ids)
    np.testing.assert_array_equal(one.top, other.top)


class TestErrors:
    @pytest.fixture
    def scripted(self, llama):
        with InferenceServer(llama.model) as running:
            yield running

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_refused_request_is_not_sent_again(self, scripted, kind):
        window = list(range(1, 5)) * scripted.model.config.max_position_embeddings
        with pytest.raises(EndpointError, match="context length") as caught:
            client(scripted, kind, retries=3).replay(window, [1], top=1)
        assert caught.value.status == 400 and len(scripted.requests) == 1

    def test_more_likeliest_tokens_than_the_server_tells(self, scripted):
        with pytest.raises(EndpointError, match="max allowed: 20"):
            client(scripted, "vllm").replay([1, 2], [3], top=21)

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_what_may_pass_is_tried_again(self, scripted, status):
        scripted.scripted = [(status, "busy")] * 2
        assert client(scripted, "vllm", retries=2).replay([1, 2], [3], top=1).log_prob.shape == (1,)
        assert len(scripted.requests) == 3

    def test_retries_end(self, scripted):
        scripted.scripted = [(503, "busy")] * 3
        with pytest.raises(EndpointError, match="busy") as caught:
            client(scripted, "vllm", retries=2).replay([1, 2], [3], top=1)
        assert caught.value.status == 503 and len(scripted.requests) == 3

    def test_a_server_that_does_not_answer_in_time(self, scripted):
        scripted.scripted = [None]
        with pytest.raises(EndpointError) as caught:
            client(scripted, "sglang", timeout_s=0.05).replay([1, 2], [3], top=1)
        assert caught.value.status is None

    def test_a_server_that_is_not_there(self):
        with pytest.raises(EndpointError) as caught:
            SglangServer(Connection("http://127.0.0.1:9", **QUICK)).replay([1, 2], [3], top=1)
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
            client(scripted, kind).replay([1, 2], [3], top=1)

    def test_an_excluded_token_is_minus_infinity_from_both(self, scripted):
        told = {"3": {"logprob": -9999.0, "rank": 9, "decoded_token": ""}}
        scripted.scripted = [
            (200, {"choices": [{"prompt_logprobs": [None, told, told]}]}),
            (200, {"meta_info": {"input_token_logprobs": [[None, 2, None], [None, 3, None]]}}),
        ]
        for kind in KINDS:
            assert np.isneginf(client(scripted, kind).replay([1, 2], [3], top=0).log_prob).all()

    @pytest.mark.parametrize("key", ["a\nsecret", "sécret", " "])
    def test_a_key_that_no_header_can_carry_is_refused_without_it(self, key):
        with pytest.raises(InputError, match="api_key must be one line") as caught:
            Connection("http://localhost", api_key=key)
        assert "cret" not in str(caught.value)

    @pytest.mark.parametrize("status", [200, 401])
    def test_a_key_is_stripped_and_never_quoted(self, scripted, status):
        scripted.scripted = [(status, "you sent Bearer secret-key\nforged")]
        with pytest.raises(EndpointError) as caught:
            client(scripted, "vllm", api_key="secret-key\n").replay([1, 2], [3], top=1)
        assert "you sent Bearer [key]" in str(caught.value) and "secret-key" not in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_answer_is_read_up_to_a_limit(self, scripted, monkeypatch):
        monkeypatch.setattr("syncheck.base.connection.MOST_BYTES", 1000)
        scripted.scripted = [(200, "[" * 2000)]
        with pytest.raises(EndpointError, match="more than 1000 bytes"):
            client(scripted, "vllm").replay([1, 2], [3], top=1)

    def test_deep_json_is_no_answer(self, scripted):
        scripted.scripted = [(200, "[" * 100_000)]
        with pytest.raises(EndpointError, match="no JSON object"):
            client(scripted, "vllm").replay([1, 2], [3], top=1)

    @pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}, {"backoff_s": -1.0}])
    def test_numbers_that_make_no_sense(self, options):
        with pytest.raises(InputError):
            Connection("http://localhost", **options)

    def test_another_kind_of_address(self):
        with pytest.raises(InputError, match="http"):
            Connection("ftp://localhost")
