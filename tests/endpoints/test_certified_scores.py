"""Certified scores hold whatever a server leaves out, and what no distribution can have is refused."""

import json
from random import Random

import numpy as np
import pytest
from doubles import PASSAGES, QUESTION
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import Aggregator
from syncheck.base.errors import EndpointError
from syncheck.endpoints import EndpointReplay, KnownTokens, SglangServer, VllmServer
from syncheck.results.types import SentenceSignals
from syncheck.testing import WordAligner

SCHEMA = "paper-no-lid.v1"
TEXT = " Angus Scott is a rugby player. He grew up on a farm in 1982."
TOP = 5
SERVERS = {"vllm": lambda connection: VllmServer(connection, "model"), "sglang": SglangServer}


@pytest.fixture(scope="module", params=["lr", "xgb"])
def monitor(request, llama):
    known = feature_schema(SCHEMA, ())
    source = np.random.default_rng(0)
    X = 3 * np.abs(source.normal(size=(1500, len(known.names))))
    y = (X[:, known.names.index("mean_entropy")] < 4).astype(int)
    aggregator = Aggregator.fit(X, y, schema=known, kind=request.param)
    config = MonitorConfig(schema=SCHEMA, layers=())
    return Monitor(llama.model, llama.tokenizer, config=config, aggregator=aggregator, aligner=WordAligner())


@pytest.fixture(scope="module")
def response(monitor):
    return monitor.read(monitor.prompt(question=QUESTION, context=PASSAGES), TEXT)


class Server:
    """Reports random distributions as vLLM and SGLang do; ``change`` alters each position of the answer."""

    base_url = "http://server/v1"

    def __init__(self, monitor, response, *, seed=0, scale=1.0, change=lambda place: None):
        size = monitor.model.get_input_embeddings().num_embeddings
        source = np.random.default_rng(seed)
        self.change = change
        self.count = len(response.token_ids)
        self.rows = {}
        for context in (PASSAGES, ()):
            logits = source.normal(scale=scale, size=(self.count, size))
            self.rows[bool(context)] = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        self.with_context = monitor.prompt(question=QUESTION, context=PASSAGES).with_context_ids

    def post(self, path, body):
        ids = body.get("prompt") or body["input_ids"]
        rows = self.rows[tuple(ids[: len(self.with_context)]) == self.with_context]
        tokens, before = ids[-self.count :], len(ids) - self.count
        top = body.get("prompt_logprobs", body.get("top_logprobs_num"))
        places = []
        for row, token in zip(rows, tokens, strict=True):
            likeliest = [[int(i), float(row[i])] for i in np.argsort(-row, kind="stable")[:top]]
            places.append({"given": token, "value": float(row[token]), "likeliest": likeliest})
            self.change(places[-1])
        answer = self.vllm(places, before) if path == "/completions" else self.sglang(places)
        return json.loads(json.dumps(answer))

    def vllm(self, places, before):
        told = [None] * before
        for place in places:
            entries = {}
            if place["value"] is not None:
                entries[str(place["given"])] = {"logprob": place["value"]}
            for token, value in place["likeliest"]:
                while str(token) in entries and token != place["given"]:
                    token = f" {token}"  # noqa: PLW2901 - JSON objects have no key twice
                entries.setdefault(str(token), {"logprob": value})
            told.append(entries)
        return {"choices": [{"prompt_logprobs": told}]}

    def sglang(self, places):
        own = [[None, 1, None], *([place["value"], place["given"], None] for place in places)]
        best = [None, *([[value, token, None] for token, value in place["likeliest"]] for place in places)]
        return {"meta_info": {"input_token_logprobs": own, "input_top_logprobs": best}}


def certified(monitor, kind, server):
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    return EndpointReplay(monitor, SERVERS[kind](server), top=TOP, workers=1).certify([prompt], [TEXT])[0]


def exact(monitor, response, server):
    """The sentences with the scores of the distributions themselves."""
    with_context, without = (server.rows[key] for key in (True, False))
    chosen = np.arange(server.count), response.token_ids
    columns = {
        "log_prob": with_context[chosen],
        "log_prob_without_context": without[chosen],
        "entropy": -(np.exp(with_context) * with_context).sum(-1),
        "kl": (np.exp(with_context) * (with_context - without)).sum(-1),
    }
    parts = [(span, slice(span.token_start, span.token_end)) for span in response.spans]
    signals = [
        SentenceSignals(
            text=TEXT[span.start : span.end],
            span=span,
            token_ids=np.array(response.token_ids[part]),
            **{name: values[part].astype(np.float32) for name, values in columns.items()},
        )
        for span, part in parts
    ]
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    return monitor.scorer(prompt).answers([signals], earlier=[()])[0]


def fewer(place, source):
    place["likeliest"] = place["likeliest"][: source.randint(0, TOP)]


def some(place, source):
    place["likeliest"] = source.sample(place["likeliest"], source.randint(0, len(place["likeliest"])))


def shuffled(place, source):
    source.shuffle(place["likeliest"])


def repeated(place, source):
    place["likeliest"] += place["likeliest"][:1]


def without_given(place, source):
    place["value"] = None


def with_given(place, source):
    if place["given"] not in [token for token, _ in place["likeliest"]]:
        place["likeliest"].append([place["given"], place["value"]])


OMISSIONS = [fewer, some, shuffled, repeated, without_given, with_given]


@pytest.mark.parametrize("kind", SERVERS)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.3, 1.0, 3.0, 10.0]),
    omissions=st.lists(st.sampled_from(OMISSIONS), max_size=3),
    share=st.sampled_from([0.1, 1.0]),
)
@settings(max_examples=60)
def test_exact_scores_lie_within_or_the_answer_is_refused(monitor, response, kind, seed, scale, omissions, share):
    source = Random(seed)

    def change(place):
        for omission in omissions if source.random() < share else ():
            omission(place, source)

    server = Server(monitor, response, seed=seed, scale=scale, change=change)
    try:
        found = certified(monitor, kind, server)
    except EndpointError:
        assert {repeated, without_given, with_given} & {*omissions}
        return
    for sentence, whole in zip(found, exact(monitor, response, server), strict=True):
        if sentence.low is None:  # SGLang's null: the model excludes the token
            assert sentence.status == "failed" and without_given in omissions
        else:
            assert sentence.low - 1e-9 <= whole.score <= sentence.high + 1e-9
            features = np.array([*whole.features.values()])
            assert (sentence.features.low - 1e-6 <= features).all()
            assert (features <= sentence.features.high + 1e-6).all()


def test_tokens_that_are_left_out_widen_the_bounds(monitor, response):
    widths = []
    for kept in (TOP, TOP - 1):
        server = Server(
            monitor, response, scale=3.0, change=lambda place, n=kept: place["likeliest"].__delitem__(slice(n, None))
        )
        widths.append(sum(s.high - s.low for s in certified(monitor, "sglang", server)))
    assert widths[0] < widths[1]


def both(value):
    """Change the given token's log-probability, wherever it is reported."""

    def change(place):
        place["likeliest"] = [[t, value if t == place["given"] else v] for t, v in place["likeliest"]]
        place["value"] = value

    return change


def louder(place):
    place["likeliest"] = [[token, value + 3.0] for token, value in place["likeliest"]]
    place["value"] += 3.0


def of_likeliest(place, change):
    place["likeliest"][0] = change(*place["likeliest"][0])


IMPOSSIBLE = {
    "above 0": both(0.9),
    "far above 0": both(1e300),
    "infinite": both(float("inf")),
    "NaN": both(float("nan")),
    "true": both(True),
    "a string": both("-1"),
    "beyond a float": both(-(10**400)),
    "above 1 together": louder,
    "NaN among the likeliest": lambda place: of_likeliest(place, lambda token, value: [token, float("nan")]),
    "no token": lambda place: of_likeliest(place, lambda token, value: [-1, value]),
    "another vocabulary": lambda place: of_likeliest(place, lambda token, value: [10**6, value]),
    "part of a token": lambda place: of_likeliest(place, lambda token, value: [token + 0.5, value]),
}


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_distribution_has_is_refused(monitor, response, kind, name):
    with pytest.raises(EndpointError, match="expected"):
        certified(monitor, kind, Server(monitor, response, scale=3.0, change=IMPOSSIBLE[name]))


def test_a_given_token_with_two_values_is_refused(monitor, response):
    def change(place):
        place["likeliest"][0] = [place["given"], place["value"] - 1.0]

    with pytest.raises(EndpointError, match="two values"):
        certified(monitor, "sglang", Server(monitor, response, change=change))


def test_a_given_token_above_the_likeliest_is_refused(monitor, response):
    def change(place):
        place["value"] = -0.5
        place["likeliest"] = [[token, value] for token, value in place["likeliest"] if token != place["given"]]
        place["likeliest"] += [[token, -9.0] for token in range(TOP) if token != place["given"]][
            : TOP - len(place["likeliest"])
        ]

    with pytest.raises(EndpointError, match="above the likeliest"):
        certified(monitor, "sglang", Server(monitor, response, change=change))


def test_a_vocabulary_that_is_not_all_of_the_probability_is_refused(monitor, response):
    size = monitor.model.get_input_embeddings().num_embeddings
    known = KnownTokens(np.full(1, -20.0), np.arange(size)[None], np.full((1, size), -20.0))
    with pytest.raises(EndpointError, match="less than 1"):
        known.check([0], vocab_size=size, error=0.0, name="server")


@pytest.mark.parametrize("name", ["above 0", "NaN", "true", "infinite", "beyond a float"])
@pytest.mark.parametrize("kind", SERVERS)
def test_no_score_comes_of_what_is_no_log_probability(llama, make_monitor, response, kind, name):
    monitor = make_monitor(llama, schema="endpoint.v1", formula=lambda values: 0.5)
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    server = Server(monitor, response, change=IMPOSSIBLE[name])
    with pytest.raises(EndpointError, match="expected"):
        EndpointReplay(monitor, SERVERS[kind](server)).score(prompt, TEXT)
