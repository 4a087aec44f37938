"""The score of a whole answer: a probability that falls with each low score and with each further sentence."""

import asyncio
import math
from dataclasses import replace

import pytest
from command_runs import read, write
from test_model import small

from fod import FODGenerator
from syncheck import Monitor, load_kit
from syncheck.base.errors import InputError
from syncheck.cli import main
from syncheck.results import AnswerScale
from syncheck.results.protocol import Final
from syncheck.serving.chat import ServiceError
from syncheck.serving.checked import outcome_of
from syncheck.serving.given_answers import Guardrail

SCALE = AnswerScale(0.5, 0.6)
PASSAGE = "The Avon bridge opened in 1967. It has two lanes."
TRUE, FALSE = "The Avon bridge opened in 1967.", "The ferry was sold to Norway in 1981."


@pytest.fixture(scope="module")
def verifier():
    return load_kit("generic-bundled")


@pytest.mark.parametrize("scores", [[0.5], [0.1, 0.9], [0.0, 1.0, 0.7], [0.99] * 8])
def test_it_rises_with_each_score_and_never_with_a_further_sentence(scores):
    whole = SCALE.probability(scores)
    assert 0 < whole < 1
    assert SCALE.probability(scores[::-1]) == whole
    for place, score in enumerate(scores):
        raised = [*scores[:place], (score + 1) / 2, *scores[place + 1 :]]
        assert SCALE.probability(raised) > whole or score == 1
    assert all(SCALE.probability([*scores, further]) < whole for further in (0.0, 0.5, 0.999, 1.0))


def test_it_is_the_formula_of_the_documentation():
    against = math.exp(-0.5) * (0.1 / 0.9 + 0.5 / 0.5) ** 0.6
    assert SCALE.probability([0.9, 0.5], prior=0.5) == pytest.approx(1 / (1 + against))
    assert SCALE.probability([0.9, 0.5], prior=0.8) == pytest.approx(1 / (1 + against / 4))


def test_the_prior_of_the_sentences_changes_their_scores_and_not_the_answer_s(verifier):
    reports = [v.check(f"{TRUE} {FALSE}", passages=PASSAGE) for v in (verifier, verifier.with_prior(0.9))]
    assert reports[0].lowest.score < reports[1].lowest.score
    assert reports[0].answer_score() == pytest.approx(reports[1].answer_score())
    assert reports[0].answer_score(prior=0.5) < reports[0].answer_score(prior=0.9)


@pytest.mark.parametrize("values", [(math.nan, 1.0), (0.0, 0.0), (0.0, math.inf), (0.0, 1.0, 1.0)])
def test_a_scale_that_is_none_is_refused(values):
    with pytest.raises(InputError, match="scale of answers needs"):
        AnswerScale(*values)


@pytest.mark.parametrize(("scores", "prior"), [([], 0.5), ([1.5], 0.5), ([0.5], 0.0), ([0.5], 1), ([math.nan], 0.5)])
def test_what_has_no_probability_is_refused(scores, prior):
    with pytest.raises(InputError):
        SCALE.probability(scores, prior=prior)


def test_an_answer_that_was_not_checked_in_full_has_none_unless_asked():
    full, open_ = (replace(small(*scores), answer_scale=SCALE) for scores in [(0.9, 0.4), (0.9, None, 0.4)])
    assert open_.answer_score() is None and open_.to_dict()["answer_score"] is None
    assert open_.answer_score(allow_unscored=True) == full.answer_score()
    assert replace(small(None), answer_scale=SCALE).answer_score(allow_unscored=True) is None
    assert replace(small(), answer_scale=SCALE).answer_score() is None
    assert small(0.9).answer_score() is None  # a monitor whose scale was not measured


def test_what_claims_nothing_does_not_count(verifier):
    alone, greeted = (verifier.check(f"{TRUE}{more}", passages=PASSAGE) for more in ("", " I hope this helps!"))
    assert greeted.unscored == 1 and greeted.answer_score() == alone.answer_score()
    assert verifier.check("I hope this helps!", passages=PASSAGE).answer_score() is None


def test_it_is_the_same_alone_in_a_batch_in_a_stream_and_in_the_events(verifier):
    answer = f"{TRUE} {FALSE}"
    expected = verifier.check(answer, passages=PASSAGE).answer_score()
    many = verifier.check_many([{"answer": text, "passages": PASSAGE} for text in (TRUE, answer)])
    assert [report.answer_score() for report in many][1] == expected
    events = list(verifier.watch([answer[:20], answer[20:]], passages=PASSAGE))
    assert isinstance(events[-1], Final) and events[-1].report["answer_score"] == expected
    assert outcome_of(events, stop_below=None, stopped=False, reason=None)["answer_score"] == expected
    assert outcome_of(events, stop_below=None, stopped=False, reason="broken")["answer_score"] is None
    report = verifier.check(answer, passages=PASSAGE)
    assert f"whole answer {expected:.2f}" in str(report) and f"whole answer {expected:.2f}" in report.to_html()


def test_a_gate_for_answers_lets_pass_what_a_gate_for_sentences_fails(tmp_path, capsys, verifier):
    def gate(*options, answers=(f"{TRUE} {FALSE}",)):
        records = [{"id": i, "question": "", "context": PASSAGE, "response": text} for i, text in enumerate(answers)]
        command = ["score", "--monitor", "generic-bundled", "--input", write(tmp_path / "in.jsonl", *records)]
        code = main([*command, "--output", str(tmp_path / "out.jsonl"), *options])
        return code, capsys.readouterr().err

    score = verifier.check(f"{TRUE} {FALSE}", passages=PASSAGE).answer_score()
    above, below = f"{score + 0.01}", f"{score - 0.01}"
    assert gate("--fail-answers-under", below)[0] == 0
    assert read(tmp_path / "out.jsonl")[0]["answer_score"] == score
    assert gate("--fail-answers-under", below, "--answer-prior", "0.3")[0] == 1
    code, said = gate("--fail-answers-under", above, answers=(f"{TRUE} {FALSE}", TRUE))
    assert code == 1 and f"--fail-answers-under {float(above):g} missed: 1 answer below" in said
    code, said = gate("--fail-answers-under", below, "--fail-under", "0.5")
    assert (
        code == 1
        and "--fail-under 0.5 missed: 1 sentence below 0.5" in said
        and "1 answer" not in said.partition("missed")[2]
    )
    code, said = gate("--fail-answers-under", "0", answers=("***",))
    assert code == 1 and "1 record without a sentence to check" in said
    assert gate("--fail-answers-under", "0", "--allow-unscored", answers=("***",))[0] == 0
    code, said = gate("--answer-prior", "0.3")
    assert code == 2 and "--answer-prior would have no effect" in said


def test_a_gate_for_answers_needs_a_scale(tmp_path, capsys, monkeypatch, verifier):
    monkeypatch.setattr("syncheck.cli.score.scoring_monitor", lambda args, purpose: verifier.replaced(name=None))
    assert main(["score", "--input", write(tmp_path / "in.jsonl"), "--fail-answers-under", "0.5"]) == 2
    assert "measured for generic-reader and generic-bundled alone" in capsys.readouterr().err


@pytest.mark.parametrize("failing", ["closed", "open"])
def test_the_guardrail_blocks_an_answer_by_its_score_as_a_whole(verifier, failing):
    def blocked(answer, at_least, scorer=verifier):
        async def score(question, passages, text):
            return scorer.check(text, passages=passages, question=question)

        options = {"at_least": 0, "answer_at_least": at_least, "context": [PASSAGE]}
        call = {"input_type": "response", "texts": [answer], "additional_provider_specific_params": options}
        call["structured_messages"] = [{"role": "user", "content": "When did it open?"}]
        return asyncio.run(Guardrail(score, at_least=0.5, failing=failing).apply(call)).get("blocked_reason")

    whole = verifier.check(f"{TRUE} {FALSE}", passages=PASSAGE).answer_score()
    assert blocked(f"{TRUE} {FALSE}", whole - 0.01) is None
    assert f"the whole answer ({whole:.2f})" in blocked(f"{TRUE} {FALSE}", whole + 0.01)
    assert blocked("I hope this helps!", 0.5) is None
    with pytest.raises(ServiceError, match="answer_at_least needs scores of whole answers"):
        blocked(TRUE, 0.5, verifier.replaced(name=None))
    with pytest.raises(ServiceError, match="answer_at_least must be in"):
        blocked(TRUE, 1.5)


def test_a_monitor_that_reads_as_the_bundled_one_does_has_it_for_what_it_writes(llama, verifier):
    monitor = Monitor(llama.model, llama.tokenizer, aligner=verifier.aligner)
    prompt = monitor.prompt(question="When did it open?", context=[PASSAGE])
    fod = FODGenerator(llama.model, llama.tokenizer, monitor)
    written = fod.generate(prompt, max_new_tokens=24, return_dict_in_generate=True).report
    given = monitor.score(prompt, f"{TRUE} {FALSE}")
    for report in (written, monitor.generate(prompt, max_new_tokens=24)):
        assert report.answer_scale == given.answer_scale is not None
    same = verifier.check(f"{TRUE} {FALSE}", question="When did it open?", passages=PASSAGE)
    assert given.answer_score() == same.answer_score()
