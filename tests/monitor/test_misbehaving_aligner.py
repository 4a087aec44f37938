"""An aligner that misbehaves costs the sentences it was asked about their score, and nothing else."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from doubles import ANSWER, PASSAGES, QUESTION, SentenceGrammar
from transformers.generation import LogitsProcessorList

from fod import FODGenerator
from syncheck.aligners import AskedAligner
from syncheck.base.errors import TextGeneratorError
from syncheck.labelling import LabelledResponse
from syncheck.reading import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.testing import WordAligner
from syncheck.training import measure


class Panic(BaseException):
    """As compiled code raises it that panics: no Exception."""


class OddAligner:
    """Answers as told once it is asked about the sentence that has the word, and as it should otherwise."""

    name = "odd"

    def __init__(self, answer, word: str = "") -> None:
        self.answer = answer
        self.word = word

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        found = WordAligner().align(passages, claims)
        return self.answer(found) if any(self.word in claim for claim in claims) else found


def raising(error):
    def answer(found):
        raise error

    return answer


def one_raising_midway(found):
    yield from found[:-1]
    raise OSError("connection lost")


FOR_ALL = {
    "one too few": lambda found: found[:-1],
    "one too many": lambda found: [*found, found[0]],
    "none at all": lambda found: [],
    "None": lambda found: None,
    "a number": lambda found: 0.9,
    "endless": lambda found: iter(lambda: found[0], None),
    "breaks off": one_raising_midway,
    **{
        type(error).__name__: raising(error)
        for error in (
            RuntimeError("out of order"),
            MemoryError(),
            torch.OutOfMemoryError("CUDA out of memory"),
            RecursionError(),
            KeyError("claim"),
            StopIteration(),
            TextGeneratorError("no answer"),
            Panic("index out of bounds"),
        )
    },
}
FOR_ONE = {
    "None": None,
    "a float": 0.9,
    "a tuple": (0.9, None),
    "NaN": Support(math.nan, None),
    "infinity": Support(math.inf, None),
    "above 1": Support(1.5, None),
    "below 0": Support(-0.1, None),
    "no score": Support(None, None),
    "a string": Support("0.9", None),
    "log-odds of NaN": Support(0.9, None, log_odds=math.nan),
    "infinite log-odds": Support(0.9, None, log_odds=math.inf),
    "log-odds in words": Support(0.9, None, log_odds="high"),
    "contradicted above 1": Support(0.9, None, contradicted=1.5),
    "contradicted of NaN": Support(0.9, None, contradicted=math.nan),
    "contradicted in words": Support(0.9, None, contradicted="yes"),
    "evidence of no passage": Support(0.9, Evidence(2, "text", 0.5)),
    "evidence of NaN": Support(0.9, Evidence(0, "text", math.nan)),
    "evidence that is text": Support(0.9, "text"),
    "evidence without text": Support(0.9, Evidence(0, None, 0.5)),
}


@pytest.fixture
def prompt(llama, make_monitor):
    return make_monitor(llama).prompt(question=QUESTION, context=PASSAGES)


def assert_failed(sentences):
    for sentence in sentences:
        assert (sentence.status, sentence.score, sentence.evidence) == ("failed", None, None)
        assert "odd" in sentence.reason
        assert sentence.features["align_score"] is None


@pytest.mark.parametrize("answer", FOR_ALL.values(), ids=FOR_ALL)
def test_an_answer_that_fits_no_claim_fails_all_of_them(llama, make_monitor, prompt, answer):
    report = make_monitor(llama, aligner=OddAligner(answer)).score(prompt, ANSWER)
    assert len(report.sentences) == 5
    assert_failed(report.sentences)


@pytest.mark.parametrize("result", FOR_ONE.values(), ids=FOR_ONE)
def test_a_result_that_is_no_support_fails_its_own_claim(llama, make_monitor, prompt, result):
    aligner = OddAligner(lambda found: [result if i == 2 else support for i, support in enumerate(found)])
    clean = make_monitor(llama, schema="paper.v1").score(prompt, ANSWER)
    report = make_monitor(llama, schema="paper.v1", aligner=aligner).score(prompt, ANSWER)
    assert_failed(report.sentences[2:3])
    others = [index for index in range(5) if index != 2]
    assert [report.sentences[i] for i in others] == [clean.sentences[i] for i in others]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_asks_the_program_to_stop_does(llama, make_monitor, prompt, kind):
    with pytest.raises(kind):
        make_monitor(llama, aligner=OddAligner(raising(kind()))).score(prompt, ANSWER)


def test_an_aligner_that_cannot_be_told_the_question(llama, make_monitor, prompt):
    class Curious(OddAligner):
        def about(self, question):
            raise RuntimeError("no such question")

    assert_failed(make_monitor(llama, aligner=Curious(list)).score(prompt, ANSWER).sentences)


def test_an_aligner_is_told_the_question(llama, make_monitor, prompt):
    asked = []

    class Curious(OddAligner):
        def about(self, question):
            asked.append(question)
            return OddAligner(lambda found: [Support(0.75, None) for _ in found])

    report = make_monitor(llama, aligner=Curious(list)).score(prompt, ANSWER)
    assert asked == [prompt.question] and {s.features["align_score"] for s in report.sentences} == {0.75}


def test_numbers_of_numpy_are_numbers(llama, make_monitor, prompt):
    aligner = OddAligner(
        lambda found: [Support(np.float32(0.5), Evidence(np.int64(1), "x", np.float64(1))) for _ in found]
    )
    report = make_monitor(llama, aligner=aligner).score(prompt, ANSWER)
    assert {(s.status, s.features["align_score"]) for s in report.sentences} == {("scored", 0.5)}
    assert '"passage": 1' in report.to_json().replace('":1', '": 1')


@pytest.mark.parametrize("evidence", [None, Evidence(1, "text", 0.5)])
def test_log_odds_and_contradicted_are_passed_on_as_plain_numbers(evidence):
    found = Support(np.float32(0.5), evidence, np.float32(-1.5), np.float64(0.25))
    (support,) = AskedAligner(OddAligner(lambda _: [found]), QUESTION, EvidenceIndex(PASSAGES))(PASSAGES, ["Yes."])
    assert support == Support(0.5, evidence, -1.5, 0.25)
    assert {type(support.score), type(support.log_odds), type(support.contradicted)} == {float}


def test_an_aligner_that_reads_an_index_is_given_it():
    class Indexed(OddAligner):
        def align_indexed(self, index, claims):
            return [Support(0.25, Evidence(c.passage, c.text, 0.25)) for c in index.chunks][: len(claims)]

    index = EvidenceIndex(PASSAGES)
    (support,) = AskedAligner(Indexed(raising(RuntimeError())), QUESTION, index)(PASSAGES, ["Yes."])
    assert support.evidence.text == index.chunks[0].text


def test_generation_and_a_watched_loop_go_on(llama, make_monitor, prompt):
    monitor = make_monitor(llama, aligner=OddAligner(FOR_ALL["OutOfMemoryError"]))
    grammar = LogitsProcessorList([SentenceGrammar(llama.tokenizer, prompt.with_context_ids)])
    options = {"logits_processor": grammar, "max_new_tokens": 30}
    report = monitor.generate(prompt, **options)
    *_, end = monitor.stream(prompt, **options)
    with monitor.attach(prompt) as watch:
        output = monitor.model.generate(**prompt.inputs(), **options)
    for found in (report, end.report, watch.report(output)):
        assert len(found.sentences) > 1
        assert_failed(found.sentences)
        assert found.response == report.response


def test_faithfulness_oriented_decoding_releases_nothing_unchecked(llama, make_monitor, prompt):
    monitor = make_monitor(llama, aligner=OddAligner(FOR_ALL["None"]), formula=lambda values: 1.0)
    grammar = LogitsProcessorList([SentenceGrammar(llama.tokenizer, prompt.with_context_ids)])
    output = FODGenerator(llama.model, llama.tokenizer, monitor).generate(
        prompt, logits_processor=grammar, max_new_tokens=30, return_dict_in_generate=True
    )
    assert (output.report.stop, output.report.sentences) == ("abstained", ())
    assert_failed(output.dropped)


def test_measuring_for_training_ends_at_an_aligner_that_misbehaves(llama, make_monitor):
    record = LabelledResponse("1", QUESTION, PASSAGES, ANSWER, (), "a model")
    monitor = make_monitor(llama, aligner=OddAligner(FOR_ALL["one too few"]), formula=None)
    with pytest.raises(TextGeneratorError, match="'odd'"):
        measure(monitor, [record], show_progress=False)
