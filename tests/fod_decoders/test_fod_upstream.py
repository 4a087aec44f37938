"""FOD before a server that continues a text: the same answers as with the model, cheap policies, budgets."""

import asyncio

import pytest
from copying import copying_model

from fod import Budget, FODConfig, FODGenerator, RepairConfig, UpstreamFOD
from fod.config import ABSTENTION
from syncheck import Aggregator, Monitor, MonitorConfig, SentenceEvent, Verifier, feature_schema
from syncheck.aligners import load_aligner
from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.features.schemas import ALIGNER_ALONE
from syncheck.kit import demo_questions
from syncheck.results import EventWriter, Piece, fold
from syncheck.testing import ScriptedAligner

QUESTION = "Where is Lyon?"
PASSAGE = "Lyon is large. It is in France. It has two rivers."
WRONG = "Lyon is large. It is in Spain. It has two rivers."
BAD = {"It is in Spain.": 0.1}


def parts(aligner):
    schema = feature_schema(ALIGNER_ALONE, ())
    config = MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.7, prune_threshold=0.7)
    return {
        "config": config,
        "aggregator": Aggregator.from_signal("align_score", schema=schema),
        "aligner": aligner,
    }


class Server:
    """Writes the stream given for a beginning, in words, and the samples given for it; keeps its requests."""

    def __init__(self, streams, samples=(), *, usage=False):
        self.streams, self.samples, self.usage = streams, dict(samples), usage
        self.requests, self.closed = [], 0

    def __call__(self, request):
        self.requests.append(request)
        if request.samples is None:
            texts = [self.streams[request.beginning]]
        else:
            texts = self.samples[request.beginning][: request.samples]
        return self.pieces([text if isinstance(text, tuple) else (text, "end_of_text") for text in texts])

    async def pieces(self, texts):
        done = False
        try:
            for sample, (text, stop) in enumerate(texts):
                for count, word in enumerate(text.split(" ")):
                    told = {"prompt_tokens": 7, "completion_tokens": count + 1} if self.usage else None
                    yield Piece(word if count == 0 else f" {word}", sample, usage=told)
                    await asyncio.sleep(0)
                yield Piece(sample=sample, stop=stop)
            done = True
        finally:
            self.closed += not done


def decoder(server, *, supports=BAD, **options):
    return UpstreamFOD(Verifier(**parts(ScriptedAligner(supports))), server, **options)


def answer(fod, **options):
    return fod.generate(question=QUESTION, passages=PASSAGE, **options)


class TestSearch:
    def test_a_failing_sentence_is_replaced_and_the_stream_is_cancelled(self):
        after = "Lyon is large."
        samples = {
            after: [" It is in Spain. It is", " It is in France. It is"],
            f"{after} It is in France.": [" It has two rivers."],
        }
        server = Server({"": WRONG}, samples)
        out = answer(decoder(server, config=FODConfig(beam_size=1, samples_per_step=2)))
        assert out.report.response == PASSAGE and out.report.stop == "end_of_text"
        assert [s.text for s in out.dropped] == ["It is in Spain."] and server.closed >= 1
        assert [(r.beginning, r.samples) for r in server.requests] == [
            ("", None),
            (after, 2),
            (f"{after} It is in France.", 2),
        ]
        assert server.requests[1].temperature == 0.9 and server.requests[0].temperature is None
        assert [node.fate for node in out.trace] == ["answer"]
        checked = Verifier(**parts(ScriptedAligner(BAD))).check(PASSAGE, question=QUESTION, passages=PASSAGE)
        assert [(s.start, s.text, s.score, s.evidence) for s in out.report.sentences] == [
            (s.start, s.text, s.score, s.evidence) for s in checked.sentences
        ]
        assert (out.spent.requests, out.spent.samples, out.spent.rounds) == (3, 4, 2)

    @pytest.mark.parametrize("reveal", ["verified", "immediate"])
    def test_the_events_fold_to_the_answer(self, reveal):
        samples = {"Lyon is large.": [" It is in France. It has two rivers."]}
        samples["Lyon is large. It is in France."] = [" It has two rivers."]
        fod = decoder(Server({"": WRONG}, samples))
        writer = EventWriter([PASSAGE], reveal=reveal)
        for event in fod.stream(question=QUESTION, passages=PASSAGE):
            writer.write(event)
        assert fold(writer.events).text == event.output.report.response == PASSAGE

    def test_a_round_is_scored_in_one_batch_while_the_loop_runs(self):
        aligner = ScriptedAligner(BAD)
        samples = {"Lyon is large.": [" It is in Spain. It", " It is in France. It", " It has two rivers. It"]}
        server = Server({"": WRONG}, samples)
        config = FODConfig(beam_size=2, samples_per_step=6)
        fod = UpstreamFOD(Verifier(**parts(aligner)), server, config=config, budget=Budget(rounds=1))
        out = asyncio.run(fod.generate_async(question=QUESTION, passages=PASSAGE))
        assert aligner.asked[-1] == ("It is in Spain.", "It is in France.", "It has two rivers.")
        assert len(out.search.rounds[0].beams) == 2 and out.report.stop == "budget"

    def test_beams_are_continued_at_one_time(self):
        after = "Lyon is large."
        one, two = f"{after} It is in France.", f"{after} It has two rivers."
        samples = {after: [" It is in France. It", " It has two rivers. It"], one: ["", ""], two: ["", ""]}
        config = FODConfig(beam_size=2, samples_per_step=4)
        fod = decoder(Server({"": WRONG}, samples), config=config)
        answer(fod)
        requests = fod.continue_from.requests
        assert [r.beginning for r in requests] == ["", after, one, two] and len({r.seed for r in requests}) == 4

    def test_nothing_passed(self):
        server = Server({"": "It is in Spain."}, {"": ["It is in Spain."]})
        out = answer(decoder(server))
        assert out.report.response == out.message == ABSTENTION and out.report.stop == "abstained"
        assert out.search.stop == "nothing_passed"

    def test_a_quotation_where_nothing_passed(self):
        server = Server({"": "It is in Spain."}, {"": ["It is in Spain."]})
        out = answer(decoder(server, config=FODConfig(on_exhausted="quote")))
        assert out.report.response == out.message == "Passage 1 says: \u201cLyon is large.\u201d"
        assert out.report.stop == "quoted"

    def test_a_stream_that_is_left_cancels_the_server(self):
        server = Server({"": WRONG})
        for event in decoder(server).stream(question=QUESTION, passages=PASSAGE):
            assert isinstance(event, SentenceEvent)
            break
        assert server.closed == 1


class TestPolicies:
    def test_a_sentence_is_left_out_and_the_stream_goes_on(self):
        server = Server({"": WRONG})
        out = answer(decoder(server, repair="drop"))
        assert out.report.response == "Lyon is large. It has two rivers." and len(server.requests) == 1
        assert [(h.start, h.text) for h in out.report.hidden] == [(14, " It is in Spain.")]
        assert [(s.start, s.text) for s in out.report.sentences] == [(0, "Lyon is large."), (15, "It has two rivers.")]
        assert [s.text for s in out.dropped] == ["It is in Spain."]

    def test_a_sentence_is_marked(self):
        out = answer(decoder(Server({"": WRONG}), repair="mark"))
        assert out.report.response == WRONG and out.marked == (1,)

    def test_what_the_limit_on_tokens_cuts_off_is_left_out(self):
        out = answer(decoder(Server({"": ("Lyon is large. It is", "length")}), repair="drop"))
        assert out.report.response == "Lyon is large." and out.report.stop == "length"


class TestBudgets:
    @pytest.mark.parametrize(
        ("budget", "said"),
        [
            ({"samples": 2}, "budget of 2 samples"),
            ({"rounds": 1}, "budget of 1 rounds"),
            ({"tokens": 9}, "budget of 9 tokens"),
        ],
    )
    def test_the_verified_sentences_are_released(self, budget, said):
        samples = {"Lyon is large.": [" It is in France. It"] * 2, PASSAGE[:31]: [" It has two rivers."]}
        fod = decoder(
            Server({"": WRONG}, samples),
            config=FODConfig(beam_size=1, samples_per_step=2),
            budget=Budget(**budget),
        )
        out = answer(fod)
        assert PASSAGE.startswith(out.report.response) and out.report.stop == out.search.stop == "budget"
        assert out.report.response and out.message is None
        assert said in out.trace[-1].reason

    def test_seconds(self):
        async def slow(request):
            yield Piece("Lyon is large. It is in")
            await asyncio.sleep(30)

        out = answer(decoder(slow, budget=Budget(seconds=0.3)))
        assert out.report.response == "Lyon is large." and out.report.stop == "budget"
        assert "0.3 seconds" in out.trace[-1].reason and out.trace[-1].text == "It is in"

    def test_tokens_are_those_that_the_server_reports(self):
        out = answer(decoder(Server({"": PASSAGE}, usage=True)))
        assert (out.spent.prompt_tokens, out.spent.completion_tokens) == (7, 11)
        counted = answer(decoder(Server({"": PASSAGE})))
        assert (counted.spent.prompt_tokens, counted.spent.completion_tokens) == (0, 11)

    @pytest.mark.parametrize("wrong", [{"samples": 0}, {"seconds": 0}])
    def test_what_cannot_be_spent_is_refused(self, wrong):
        with pytest.raises(InputError):
            Budget(**wrong)


def test_what_does_not_belong_together_is_refused():
    for options in ({"config": RepairConfig()}, {"config": FODConfig(), "repair": "drop"}, {"repair": "other"}):
        with pytest.raises(InputError):
            decoder(Server({}), **options)
    with pytest.raises(WrongTypeError):
        UpstreamFOD("verifier", Server({}))


def test_a_blocking_server_and_an_error_of_it():
    def blocking(request):
        yield Piece("Lyon is large.")
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        answer(decoder(blocking))


class Recorded:
    """Gives the greedy text of a model, and the samples that a search with that model has had, round by round."""

    def __init__(self, greedy, result):
        self.greedy, self.rounds = greedy, []
        beams = (result.greedy,)
        for step in result.rounds:
            opened = [beam for beam in beams if beam.stop is None]
            asked = {beam.text: [] for beam in opened}
            for candidate in step.candidates:
                asked[opened[candidate.parent].text].append(candidate)
            self.rounds.append(asked)
            beams = step.beams

    def __call__(self, request):
        if request.samples is None:
            assert request.beginning == ""
            yield from (Piece(letter) for letter in self.greedy)
            yield Piece(stop="end_of_text")
            return
        while request.beginning not in self.rounds[0]:
            self.rounds.pop(0)
        candidates = self.rounds[0].pop(request.beginning)
        for sample in range(request.samples):
            if sample < len(candidates):
                one = candidates[sample]
                yield Piece(one.text, sample)
                yield Piece("" if one.stop else " The", sample, one.stop)
            else:
                yield Piece(stop="end_of_text", sample=sample)


def require_same_answers(model, tokenizer, config, questions, *, tokens=80):
    """Require of a server that writes what the model has written that FOD before it gives the model's own answers."""
    own = parts(load_aligner("bundled"))
    own["config"] = MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.97, prune_threshold=0.9)
    monitor, verifier = Monitor(model, tokenizer, **own), Verifier(**own)
    generator = FODGenerator(model, tokenizer, monitor, config=config)
    searched = 0
    for question in questions:
        prompt = monitor.prompt(question=question.question, context=question.passages)
        greedy = monitor.generate(prompt, max_new_tokens=tokens, do_sample=False).response
        out = generator.generate(prompt, max_new_tokens=tokens, return_dict_in_generate=True)
        server = Recorded(greedy, out.search)
        got = UpstreamFOD(verifier, server, config=config).generate(
            question=question.question, passages=question.passages
        )
        assert got.report.response.strip() == out.report.response.strip()
        assert [s.text for s in got.report.sentences] == [s.text for s in out.report.sentences]
        assert [s.score for s in got.report.sentences] == pytest.approx([s.score for s in out.report.sentences])
        assert [len(r.passed) for r in got.search.rounds] == [len(r.passed) for r in out.search.rounds]
        searched += bool(out.search.rounds)
    assert searched


@pytest.mark.parametrize(("until", "guards"), [("any", False), ("all", False), ("any", True)])
def test_law_the_answer_is_that_of_the_model_for_the_same_candidates(until, guards):
    config = FODConfig(until=until, guards=guards, samples_per_step=4, beam_size=2, max_sentences=5)
    require_same_answers(*copying_model(), config, demo_questions()[:4])


@pytest.mark.slow
def test_law_with_the_model_of_the_kit(kit_monitor):
    config = FODConfig(samples_per_step=3, beam_size=1, max_sentences=3)
    model, tokenizer = kit_monitor.model, kit_monitor.tokenizer
    require_same_answers(model, tokenizer, config, demo_questions()[-1:], tokens=60)


def test_a_verifier_without_an_aggregator_scores_nothing():
    untrained = Verifier(ScriptedAligner(BAD), config=MonitorConfig(schema="syncheck.v5"))
    with pytest.raises(NotReadyError, match="train one first"):
        UpstreamFOD(untrained, Server({"": WRONG}))
