"""What a sentence must be before it may stand in place of a greedy one, whatever its score."""

import pytest
from doubles import Script
from test_branch import PASSAGE, QUESTION, RIGHT, WRONG, answer, decoder, prompt_of, texts

from fod import FODConfig, FODGenerator, RepairConfig
from fod.config import ABSTENTION
from fod.guards import is_echo
from syncheck import Monitor
from syncheck.report import render_html, render_text
from syncheck.results import Answer, Case
from syncheck.results.types import Evidence, Support
from syncheck.testing import scripted_monitor

START = "Lyon is large."
SPAIN = "It is in Spain."


def choice(other, start=START, *, greedy=SPAIN):
    """Answers that go on with a greedy sentence that scores 0.1, or else with another, which scores 1."""
    return {f"{start} {greedy}".strip(): 0.6, f"{start} {other}".strip(): 0.4}, {greedy: 0.1, other: 1.0}


def released(answers, supports, **options):
    out = answer(decoder(answers, supports, **options))
    assert prompt_of(decoder(answers, supports)).passages == (PASSAGE,)
    return out.report.response.strip()


def reasons(out):
    return [child.reason for node in out.trace for child in node.children]


class TestClaim:
    @pytest.mark.parametrize("other", ["I hope this helps!", "Is it so?", "GAME.", "Yes."])
    def test_a_branch_that_claims_nothing_does_not_pass(self, other):
        assert released(*choice(other), guards=False) == f"{START} {other}"
        assert released(*choice(other)) == START

    def test_it_may_replace_one_that_claims_nothing_either(self):
        assert released(*choice("Of course!", greedy="Sure thing!")) == f"{START} Of course!"

    def test_the_trace_says_why(self):
        out = answer(decoder(*choice("Is it so?")))
        assert "a branch, a question, which claims nothing" in reasons(out)


class TestRelevance:
    OTHER = "The passage has an answer."

    def test_a_branch_beside_the_question_does_not_pass(self):
        assert released(*choice(self.OTHER), least_relevance=0.0) == f"{START} {self.OTHER}"
        out = answer(decoder(*choice(self.OTHER)))
        assert out.report.response == START and "a branch, it is beside the question" in reasons(out)
        (rated,) = {c.relevance for step in out.search.rounds for c in step.candidates if c.text.strip() == self.OTHER}
        assert 0.0 < rated < RepairConfig().least_relevance

    def test_it_may_replace_one_that_claims_nothing(self):
        assert released(*choice(self.OTHER, greedy="Sure thing!")) == f"{START} {self.OTHER}"


class TestCutOff:
    LONG = "It lies in the south of France."

    def test_a_branch_at_the_limit_is_no_candidate(self):
        answers, supports = choice(self.LONG)
        supports |= {"It lies in the south": 1.0}
        for guards, wanted in ((False, f"{START} It lies in the south"), (True, START)):
            fod = decoder(answers, supports, guards=guards, cuts=0)
            out = fod.generate(prompt_of(fod), max_new_tokens=9, return_dict_in_generate=True)
            assert out.report.response == wanted
        assert "a branch, cut off at the limit of tokens" in reasons(out)

    @pytest.mark.parametrize("lookup", [0, 16])
    def test_an_answer_ends_with_its_last_complete_sentence(self, lookup):
        fod = decoder(RIGHT, lookup=lookup)
        out = fod.generate(prompt_of(fod), max_new_tokens=7, return_dict_in_generate=True)
        assert (out.report.response, out.report.stop) == (START, "length")
        assert fod.tokenizer.decode(out.response_ids) == START
        assert out.report.tokens.token_ids.tolist() == out.response_ids
        (cut,) = out.dropped
        assert (cut.text, cut.start, cut.token_start, cut.truncated) == ("It is in", 15, 4, True)
        assert [(c.text, c.fate, c.reason) for c in out.trace[0].children] == [
            ("It is in", "taken_back", "greedy, cut off at the limit of tokens")
        ]
        ids = fod.generate([prompt_of(fod)] * 2, max_new_tokens=7)
        assert ids.tolist() == [out.sequences[0].tolist()] * 2
        *events, _ = fod.stream(prompt_of(fod), max_new_tokens=7)
        assert [i for event in events for i in event.token_ids] == out.response_ids

    def test_a_sentence_that_is_complete_at_the_limit_stays(self):
        for most, wanted in ((4, START), (9, f"{START} It is in France.")):
            fod = decoder(RIGHT)
            out = fod.generate(prompt_of(fod), max_new_tokens=most, return_dict_in_generate=True)
            assert (out.report.response, out.report.stop, out.dropped) == (wanted, "length", ())

    def test_nothing_complete_is_a_refusal(self):
        fod = decoder(RIGHT)
        out = fod.generate(prompt_of(fod), max_new_tokens=2, return_dict_in_generate=True)
        assert (out.report.response, out.report.stop) == (ABSTENTION, "abstained")
        assert [s.text for s in out.dropped] == ["Lyon is"]


@pytest.mark.parametrize(
    ("other", "repeats"),
    [("Large it is, Lyon.", True), ("Large it is not, Lyon.", False), ("It is Lyon that is large.", True)],
)
def test_a_branch_that_repeats_the_content_of_the_answer_does_not_pass(other, repeats):
    assert released(*choice(other), guards=False) == f"{START} {other}"
    assert released(*choice(other)) == (START if repeats else f"{START} {other}")


class Reads:
    """Aligner with given supports, 0.02 for other claims, that distinguishes contradicted from not stated."""

    name = "reads"

    def __init__(self, supports):
        self.supports = supports

    def align(self, passages, claims):
        scores = [self.supports.get(claim, 0.02) for claim in claims]
        return [Support(score, Evidence(0, passages[0], score), contradicted=0.01) for score in scores]


class TestRefusal:
    REFUSAL = "The passages do not say where Lyon is."

    def response(self, refusal, supports, *, message=ABSTENTION):
        answers, known = choice(refusal)
        monitor = scripted_monitor(answers)
        monitor = Monitor(
            monitor.model,
            monitor.tokenizer,
            config=monitor.config,
            aggregator=monitor.aggregator,
            aligner=Reads(known | supports | {START: 1.0}),
        )
        config = RepairConfig(backtrack_threshold=0.7, prune_threshold=0.7, branches=4, message=message)
        fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, config=config)
        return answer(fod).report.response

    def test_it_does_not_pass_in_place_of_an_answer_unless_something_judges_it(self):
        assert released(*choice(self.REFUSAL), guards=False) == f"{START} {self.REFUSAL}"
        assert released(*choice(self.REFUSAL)) == START

    def test_it_passes_if_the_passages_lack_it(self):
        assert self.response(self.REFUSAL, {}) == f"{START} {self.REFUSAL}"
        assert self.response(self.REFUSAL, {"Lyon is in France.": 0.98}) == START

    def test_the_configured_refusal_is_one(self):
        assert self.response("Ask a librarian.", {}) == f"{START} Ask a librarian."
        assert self.response("Ask a librarian.", {}, message="Ask a librarian!") == START

    def test_it_may_replace_another(self):
        other = "It is not stated in the passages."
        assert released(*choice(self.REFUSAL, greedy=other)) == f"{START} {self.REFUSAL}"


@pytest.mark.parametrize("other", ["Rome lies on hills.", "France has it."])
def test_the_same_fact_mended_comes_before_another(other):
    answers = {f"{START} {SPAIN}": 0.4, f"{START} {other}": 0.35, f"{START} It is in France.": 0.25}
    supports = {SPAIN: 0.1, other: 1.0}
    out = answer(decoder(answers, supports))
    assert len(out.search.rounds[1].passed) == 2
    assert out.report.response == f"{START} It is in France."
    assert "passed, but another branch keeps to the subject" in reasons(out)
    assert released(answers, supports, guards=False) == f"{START} {other}"


@pytest.mark.parametrize("other", ["I hope this helps!", "Large it is, Lyon.", TestRefusal.REFUSAL])
def test_in_the_search_guards_are_an_option(other):
    answers, supports = choice(other)
    plain = decoder(answers, supports, kind=FODConfig)
    guarded = decoder(answers, supports, kind=FODConfig, guards=True)
    found = [answer(fod) for fod in (plain, guarded)]
    assert [out.report.response for out in found] == [f"{START} {other}", START]
    assert [texts(out.search.rounds[0].passed) for out in found] == [[other], []]


def test_in_the_search_a_sample_at_the_limit_is_no_candidate():
    answers, supports = choice(TestCutOff.LONG)
    supports |= {"It lies in the south": 1.0}
    for guards, wanted in ((False, f"{START} It lies in the south"), (True, START)):
        fod = decoder(answers, supports, kind=FODConfig, guards=guards)
        out = fod.generate(prompt_of(fod), max_new_tokens=9, return_dict_in_generate=True)
        assert out.report.response == wanted


def test_a_repaired_sentence_says_so():
    out = answer(decoder({WRONG: 0.6, RIGHT: 0.4}))
    (repaired,) = [child for child in out.trace[0].children if child.fate == "repaired"]
    assert (repaired.text, repaired.reason) == ("It is in France.", "a branch in place of “It is in Spain.”")
    case = Case(QUESTION, (PASSAGE,), (Answer("FOD", out.report, dropped=out.dropped, trace=out.trace),))
    page = render_html([case])
    assert "1 repaired" in page and '<li class="repaired">' in page and repaired.reason in page
    assert "1 repaired" in render_text([case])


@pytest.mark.parametrize("kind", [FODConfig, RepairConfig])
def test_an_empty_answer_is_the_refusal_in_every_way(kind):
    fod = decoder(RIGHT, kind=kind, message="No more.")
    prompt = prompt_of(fod)
    given = {
        "max_new_tokens": 9,
        "logits_processor": [Script(len(prompt.with_context_ids), [fod.tokenizer.eos_token_id])],
    }
    out = fod.generate(prompt, return_dict_in_generate=True, **given)
    assert (out.report.response, out.report.stop, out.message) == ("No more.", "abstained", "No more.")
    by_model = fod.monitor.model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt, **given)
    for ids in (out.sequences, fod.generate(prompt, **given), by_model):
        assert fod.tokenizer.decode(ids[0, len(prompt.with_context_ids) :]) == "No more."


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("What does the pass cost?", "What does the pass cost", True),
        ("What does the pass cost:", "What does the pass cost?", True),
        ("Does the pass for adults cost 20 euros?", "does a pass for adults cost 20 euros?", True),
        (
            "The pass for two adults is valid by bus on Sundays.",
            "Is the pass for two adults valid by bus on Sundays?",
            False,
        ),
        ("The pass costs 20 euros.", "What does the pass cost?", False),
        ("**Question:** What does a pass cost?", "What does the pass cost?", True),
        ("Question: What does a bike cost?", "What does the pass cost?", False),
        ("...", "", False),
    ],
)
def test_an_echo_repeats_the_question_and_does_not_answer_it(text, question, expected):
    assert is_echo(text, question) is expected
