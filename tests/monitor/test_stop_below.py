"""A generation that ends with the first sentence below a score."""

import pytest
import torch

from syncheck import EndEvent, Monitor, SentenceEvent, TokenEvent
from syncheck.base.errors import InputError, NotReadyError
from syncheck.results import fold, protocol_events
from syncheck.testing import scripted_monitor

ANSWER = "Lyon is large. It is in Spain. It has a river. It is old."
SHOWN = "Lyon is large. It is in Spain."


@pytest.fixture(scope="module")
def monitor():
    supports = {"Lyon is large.": 0.9, "It is in Spain.": 0.1, "It has a river.": 0.9, "It is old.": 0.2}
    return scripted_monitor(ANSWER, supports=supports)


@pytest.fixture
def prompt(monitor):
    return monitor.prompt(question="Where is Lyon?", context="Lyon is in France.")


def test_generate(monitor, prompt):
    report = monitor.generate(prompt, max_new_tokens=40, stop_below=0.5)
    assert (report.response, report.stop) == (SHOWN, "below_threshold")
    assert [s.score for s in report.sentences] == [0.9, 0.1]
    assert len(report.tokens) == report.sentences[-1].token_end


def test_the_sentences_are_those_of_a_generation_that_goes_on(monitor, prompt):
    whole = monitor.generate(prompt, max_new_tokens=40)
    assert whole.response == ANSWER
    stopped = monitor.generate(prompt, max_new_tokens=40, stop_below=0.5)
    for one, two in zip(stopped.sentences, whole.sentences[:2], strict=True):
        assert (one.text, one.score, one.features) == (two.text, two.score, two.features)


@pytest.mark.parametrize(("threshold", "end"), [(0.05, ANSWER), (0.95, "Lyon is large.")])
def test_the_threshold_decides(monitor, prompt, threshold, end):
    assert monitor.generate(prompt, max_new_tokens=40, stop_below=threshold).response == end


def test_a_response_that_ends_by_itself_with_such_a_sentence(prompt):
    ended = scripted_monitor(SHOWN, supports={"It is in Spain.": 0.1, "Lyon is large.": 0.9})
    options = {"max_new_tokens": 40, "stop_below": 0.5}
    *_, end = ended.stream(prompt, **options)
    with ended.attach(prompt) as watch:
        out = ended.model.generate(**prompt.inputs(), stopping_criteria=watch.stop_below(0.5), max_new_tokens=40)
    *_, final = ended.watch([SHOWN], prompt, stop_below=0.5)
    for report in (ended.generate(prompt, **options), end.report, watch.report(out)):
        assert (report.response, report.stop) == (SHOWN, "below_threshold")
    assert (final.report["response"], final.report["stop"]) == (SHOWN, "below_threshold")


def test_rows_of_a_batch_end_each_by_itself(monitor):
    supports = {"One is bad.": 0.1, "Two is good.": 0.9}
    other = scripted_monitor(
        {"One is bad. Two is good.": 1.0, "Two is good. One is bad. Two is good.": 1.0}, supports=supports
    )
    prompts = [other.prompt(question=q, context="A passage.") for q in ("A?", "Is B the longer one?")]
    reports = other.generate(
        prompts,
        max_new_tokens=40,
        do_sample=True,
        generator=torch.Generator().manual_seed(3),
        stop_below=0.5,
        num_return_sequences=4,
    )
    assert {report.response for report in reports} <= {"One is bad.", "Two is good. One is bad."}
    assert len({report.response for report in reports}) == 2
    assert {report.stop for report in reports} == {"below_threshold"}


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
def test_a_stream(monitor, prompt, reveal):
    events = list(monitor.stream(prompt, max_new_tokens=40, stop_below=0.5, reveal=reveal))
    assert isinstance(events[-1], EndEvent) and events[-1].report.response == SHOWN
    assert events[-1].report.stop == "below_threshold"
    assert len([e for e in events if isinstance(e, SentenceEvent)]) == 2
    if reveal == "verified":
        assert "".join(e.text for e in events if isinstance(e, TokenEvent)) == SHOWN
    assert fold(protocol_events(events, prompt.passages, reveal=reveal)).text == SHOWN


def test_a_loop_of_your_own(monitor, prompt):
    with monitor.attach(prompt) as watch:
        criteria = watch.stop_below(0.5)
        out = monitor.model.generate(**prompt.inputs(), stopping_criteria=criteria, max_new_tokens=40)
        report = watch.report(out)
    assert (report.response, report.stop) == (SHOWN, "below_threshold")
    text = monitor.tokenizer.decode(out[0, len(prompt.with_context_ids) :])
    assert text.startswith(SHOWN) and len(text) < len(ANSWER)


def test_a_loop_written_by_hand(monitor, prompt):
    with monitor.attach(prompt) as watch:
        criteria, ids, cache = watch.stop_below(0.5), prompt.inputs()["input_ids"], None
        fed = ids
        for _ in range(40):
            out = monitor.model(input_ids=fed, past_key_values=cache, use_cache=True)
            cache, fed = out.past_key_values, out.logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, fed], dim=1)
            if criteria(ids, None).all():
                break
        report = watch.report(ids)
    assert (report.response, report.stop) == (SHOWN, "below_threshold")


def test_what_cannot_be_held_against_a_score(monitor, prompt):
    untrained = Monitor(monitor.model, monitor.tokenizer, config=monitor.config)
    for refused in (untrained.generate, lambda *a, **k: list(untrained.stream(*a, **k))):
        with pytest.raises(NotReadyError):
            refused(prompt, max_new_tokens=4, stop_below=0.5)
    with pytest.raises(NotReadyError), untrained.attach(prompt) as watch:
        watch.stop_below(0.5)
    with pytest.raises(InputError):
        monitor.generate(prompt, max_new_tokens=4, stop_below=50)
