"""Branches before a server: sentences that are written again from their least certain tokens, over HTTP."""

import asyncio
import json

import httpx
import pytest
import upstream_fod
from copying import copying_model
from upstreams import asked
from vllm_double import VllmDouble

from fod import Budget, FODGenerator, RepairConfig, UpstreamFOD
from syncheck import Aggregator, Monitor, MonitorConfig, Verifier, feature_schema
from syncheck.aligners import load_aligner
from syncheck.base.errors import InputError
from syncheck.features.schemas import ALIGNER_ALONE
from syncheck.kit import demo_questions
from syncheck.results import ContinuationRequest, Piece, WrittenToken
from syncheck.serving.chat import ServiceError
from syncheck.serving.repairing import ServerContinuations
from syncheck.serving.upstream import Upstream
from syncheck.testing import ScriptedAligner, ScriptedModel, word_tokenizer

QUESTION = "Where is Lyon?"
PASSAGE = "Lyon is large. It is in France. It has two rivers."
WRONG = "Lyon is large. It is in Spain. It has two rivers."
BAD = {"It is in Spain.": 0.1}


def parts(aligner, **thresholds):
    schema = feature_schema(ALIGNER_ALONE, ())
    config = MonitorConfig(schema=ALIGNER_ALONE, **{"backtrack_threshold": 0.7, "prune_threshold": 0.7, **thresholds})
    aggregator = Aggregator.from_signal("align_score", schema=schema)
    return {"config": config, "aggregator": aggregator, "aligner": aligner}


def both(model, tokenizer, own, question, passages, *, limit=80, **options):
    """Repair one answer with the model and before a double of vLLM that has it; the outputs and the server."""
    config = RepairConfig(**{"alpha": 0.0, "branches": 4, **options})
    monitor, verifier = Monitor(model, tokenizer, **own), Verifier(**own)
    prompt = monitor.prompt(question=question, context=passages)
    local = FODGenerator(model, tokenizer, monitor, config=config)
    expected = local.generate(prompt, max_new_tokens=limit, return_dict_in_generate=True)
    server = VllmDouble(model, tokenizer, prompt.with_context_ids, limit=limit)
    return expected, before(server, verifier, question, passages, config=config), server


def before(server, verifier, question, passages, **options):
    async def write():
        upstream = Upstream("http://up/v1", transport=server)
        decoder = UpstreamFOD(verifier, ServerContinuations(upstream, asked()), repair="branch", **options)
        return await decoder.generate_async(question=question, passages=passages)

    return asyncio.run(write())


def scripted(answers, supports=BAD, **options):
    tokenizer = word_tokenizer(list(answers))
    own = parts(ScriptedAligner(supports))
    return both(ScriptedModel(tokenizer, answers), tokenizer, own, QUESTION, [PASSAGE], **options)


def texts(step):
    return [" ".join(s.text for s in candidate.sentences) for candidate in step.candidates]


SECOND = "Lyon is large. It lies in Peru. It has two rivers."


@pytest.mark.parametrize(
    ("answers", "supports"),
    [
        ({WRONG: 0.6, PASSAGE: 0.4}, BAD),
        ({WRONG: 0.5, PASSAGE: 0.3, SECOND: 0.2}, {**BAD, "It lies in Peru.": 0.2}),
        ({WRONG: 0.5, PASSAGE: 0.2, SECOND: 0.3}, BAD),
        ({WRONG: 0.99, PASSAGE: 0.01}, BAD),
        ({"It is in Spain.": 0.6, "It is in France.": 0.4}, BAD),
        ({"Lyon is in Spain": 0.6, "Lyon is in France": 0.4}, {"Lyon is in Spain": 0.1}),
    ],
)
@pytest.mark.parametrize("options", [{"cuts": 0}, {"cuts": 0, "branches": 1}, {"cuts": 2, "guards": False}])
def test_law_a_branched_answer_is_that_of_the_model_alone(answers, supports, options):
    expected, out, _ = scripted(answers, supports, **options)
    assert out.report.response.strip() == expected.report.response.strip()
    assert [texts(step) for step in out.search.rounds] == [texts(step) for step in expected.search.rounds]
    for mine, other in zip(out.search.rounds, expected.search.rounds, strict=True):
        assert [c.log_prob for c in mine.candidates] == pytest.approx([c.log_prob for c in other.candidates], abs=1e-4)
        assert [c.is_cut for c in mine.candidates] == [c.is_cut for c in other.candidates]
    assert [n.fate for n in out.trace] == [n.fate for n in expected.trace]


def test_law_with_a_model_that_has_learnt_to_copy():
    model, tokenizer = copying_model()
    own = parts(load_aligner("bundled"), backtrack_threshold=0.97, prune_threshold=0.9)
    branched = 0
    for question in demo_questions()[:2]:
        expected, out, _ = both(
            model, tokenizer, own, question.question, question.passages, cuts=0, repair_from=0.0, max_sentences=3
        )
        assert [texts(step) for step in out.search.rounds] == [texts(step) for step in expected.search.rounds]
        assert out.report.response.strip() == expected.report.response.strip()
        assert [s.score for s in out.report.sentences] == pytest.approx([s.score for s in expected.report.sentences])
        branched += sum(len(step.candidates) > 1 for step in out.search.rounds)
    assert branched


class Telling:
    """A blocking server whose stream and branches are given as tokens, each with what else was likely."""

    def __init__(self, stream, branches=None):
        self.stream, self.branches, self.requests = stream, branches or {}, []

    def __call__(self, request):
        self.requests.append(request)
        yield from self.stream if request.samples is None else self.branches[request.beginning]
        yield Piece(stop="end_of_text")


def token(data, *others, log_prob=-0.5):
    data = data if isinstance(data, bytes) else data.encode()
    told = [(o if isinstance(o, bytes) else o.encode(), -0.9 - 0.1 * n) for n, o in enumerate(others)]
    return WrittenToken(data, log_prob, ((data, log_prob), *told))


def pieces(*tokens):
    return [Piece(t.data.decode(errors="ignore"), tokens=(t,)) for t in tokens]


def branched(server, supports=BAD, **options):
    config = RepairConfig(**{"branches": 4, "cuts": 0, "repair_from": 0.0, "on_exhausted": "stop", **options})
    decoder = UpstreamFOD(Verifier(**parts(ScriptedAligner(supports))), server, repair="branch", config=config)
    return decoder.generate(question=QUESTION, passages=PASSAGE)


def test_branches_are_continued_greedily_and_only_their_stream_asks_for_the_likeliest():
    server = Telling(
        pieces(token("It is in"), token(" Spain", " France"), token(".")), {"It is in France": pieces(token("."))}
    )
    out = branched(server)
    assert out.report.response == "It is in France." and [n.fate for n in out.trace] == ["taken_back", "repaired"]
    assert [(r.likeliest > 1, r.samples, r.temperature) for r in server.requests] == [
        (True, None, None),
        (False, 1, 0.0),
    ]
    assert server.requests[1].tokens == 2 and (out.spent.samples, out.spent.rounds) == (1, 1)


def test_what_ends_a_text_or_is_no_whole_character_takes_no_place():
    others = ["<|im_end|>", "</s>", "", b"\xe4", "\ufffd", " France"]
    server = Telling(
        pieces(token("It is in"), token(" Spain", *others), token(".")), {"It is in France": pieces(token("."))}
    )
    assert branched(server).report.response == "It is in France."


def test_a_character_in_several_tokens_is_as_vllm_tells_it():
    stream = [Piece("Lyon ", tokens=(token("Lyon "), token(""), token(""))), *pieces(token("🗼"), token(" is in"))]
    stream += pieces(token(" Spain", " France"), token("."))
    server = Telling(stream, {"Lyon 🗼 is in France": pieces(token("."))})
    out = branched(server, {"Lyon 🗼 is in Spain.": 0.1, "Lyon 🗼 is in France.": 0.9})
    assert out.report.response == "Lyon 🗼 is in France."


def test_tokens_of_reasoning_may_come_first():
    stream = [
        Piece(tokens=(token("It is in"), token(" Peru?"))),
        *pieces(token("It is in"), token(" Spain", " France")),
    ]
    server = Telling([*stream, *pieces(token("."))], {"It is in France": pieces(token("."))})
    assert branched(server).report.response == "It is in France."


def test_tokens_that_do_not_spell_the_text_are_told_in_the_trace():
    server = Telling([Piece("It is in Spain. ", tokens=(token("It"), token(" is"), token(" elsewhere", "x")))])
    out = branched(server)
    assert len(server.requests) == 1 and "do not spell" in out.trace[-1].reason
    assert out.report.stop == "abstained"


def test_a_server_without_log_probabilities_is_told():
    with pytest.raises(InputError, match="needs the log-probabilities"):
        branched(Telling([Piece("It is in Spain.")]))
    model_and_tokens = ScriptedModel(words := word_tokenizer([WRONG]), WRONG), words
    silent = VllmDouble(*model_and_tokens, [1], tells=False)
    with pytest.raises(ServiceError, match="no likeliest tokens"):
        before(silent, Verifier(**parts(ScriptedAligner(BAD))), QUESTION, [PASSAGE])


def test_a_branch_that_does_not_end_is_given_up():
    endless = pieces(*[token(" on")] * 200)
    server = Telling(pieces(token("It is in"), token(" Spain", " France"), token(".")), {"It is in France": endless})
    assert branched(server).report.stop == "abstained"
    assert len(branched(server).search.rounds[0].candidates) == 1


def test_branches_count_as_samples_of_the_budget():
    server = Telling(pieces(token("It is in"), token(" Spain", " France"), token(".")))
    config, budget = RepairConfig(branches=1), Budget(rounds=1, samples=1)
    decoder = UpstreamFOD(
        Verifier(**parts(ScriptedAligner(BAD))), server, repair="branch", config=config, budget=budget
    )
    server.branches = {"It is in France": pieces(token(".")), "It is in France.": []}
    assert decoder.generate(question=QUESTION, passages=PASSAGE).spent.samples == 1


def test_log_probabilities_as_servers_send_them():
    content = [{"token": " A", "bytes": None, "logprob": -1, "top_logprobs": [{"token": " B", "logprob": -2}]}]
    told = {"content": content}

    def reply(request):
        bodies.append(json.loads(request.content))
        chunk = {"choices": [{"index": 0, "finish_reason": "stop", "logprobs": told, "delta": {"content": " A"}}]}
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=f"data: {json.dumps(chunk)}\n\n")

    async def read():
        upstream = Upstream("http://up/v1", transport=httpx.MockTransport(reply))
        continue_from = ServerContinuations(upstream, asked())
        return [piece async for piece in continue_from(ContinuationRequest(likeliest=5))]

    bodies = []
    (piece,) = asyncio.run(read())
    assert piece.tokens == (WrittenToken(b" A", -1.0, ((b" B", -2.0),)),)
    assert (bodies[0]["logprobs"], bodies[0]["top_logprobs"]) == (True, 5)
    told["content"] = [{**content[0], "top_logprobs": None}]
    with pytest.raises(ServiceError, match="no likeliest tokens"):
        asyncio.run(read())
    for broken in ({"content": [{"token": 3}]}, {"content": None}, {"tokens": [" A"], "token_logprobs": [-1]}):
        told.clear()
        told |= broken
        with pytest.raises(ServiceError, match="log-probabilities are not as"):
            asyncio.run(read())


def test_figures_of_the_benchmark(monkeypatch, capsys):
    tokenizer = word_tokenizer([WRONG, PASSAGE])
    server = VllmDouble(ScriptedModel(tokenizer, {WRONG: 0.6, PASSAGE: 0.4}), tokenizer, [1])
    counters = iter([0, 0, 10, 8] * 9)
    monkeypatch.setattr(upstream_fod, "Upstream", lambda url, timeout: Upstream(url, transport=server))
    monkeypatch.setattr(upstream_fod, "Verifier", lambda: Verifier(**parts(ScriptedAligner(BAD))))

    async def count(url):
        return next(counters), next(counters)

    monkeypatch.setattr(upstream_fod, "_counters", count)
    upstream_fod.main(["--url", "http://up/v1", "--questions", "1", "--ways", "mark", "branch"])
    table = [line.split() for line in capsys.readouterr().out.splitlines()[-3:]]
    assert [row[:2] for row in table] == [["plain", "1"], ["mark", "1"], ["branch", "1"]]
    assert table[0][-1] == "80%" and all(row[-4:-2] == ["of", "3"] for row in table[1:])
