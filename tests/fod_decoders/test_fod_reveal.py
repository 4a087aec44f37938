"""A stream never takes anything back."""

import random

import pytest
from doubles import wavy
from test_fod_generator import decoder, grammar
from test_fod_search import Scripted, config, text

from fod import Progress, VerifiedReveal, walk
from fod.search import Returning
from syncheck import EndEvent, SentenceEvent
from syncheck.base.errors import InputError


def told(greedy, samples, **options):
    """What a reader is told after each step of a scripted search, and the result."""
    steps = Returning(walk(Scripted(greedy, samples), *config(**options)))
    reveal = VerifiedReveal()
    events = [reveal(progress) for progress in steps]
    return [*events, reveal(Progress((steps.value.beam,)))], steps.value


def names(events):
    return ["".join(event.sentence.text for event in step) for step in events]


SAMPLES = {
    "a": [("c", 0.9), ("d", 0.8)],
    "ac": [("e", 0.6)],
    "ad": [("f", 0.95), ("g", 0.94)],
    "adf": [("h", 0.9, "end_of_text")],
}


def test_verified():
    events, result = told([("a", 0.9), ("b", 0.1)], SAMPLES)
    assert text(result.beam) == "adfh"
    # after stage 1 kept a, {ac, ad}, {adf, adg}: d is certain, {adfh}
    assert names(events) == ["a", "", "d", "fh", ""]


def test_a_search_in_which_nothing_passes_releases_the_best_of_the_round_before():
    events, result = told([("a", 0.9), ("b", 0.1)], {"a": [("c", 0.9), ("d", 0.8)]})
    assert (text(result.beam), result.stop) == ("ac", "nothing_passed")
    assert names(events) == ["a", "", "", "c"]


def random_search(seed):
    chance = random.Random(seed)
    letters = iter("abcdefghijklmnopqrstuvwxyz" * 40)

    def row(*, end=0.1):
        return (next(letters), round(chance.random(), 2), *(("end_of_text",) if chance.random() < end else ()))

    class Any_(dict):
        def get(self, key, default):
            return [row() for _ in range(chance.randint(1, 4))]

    greedy = [row(end=0.05) for _ in range(40)]
    return greedy, Any_(), {"tau_1": 0.3, "tau_2": chance.choice([0.2, 0.5, 0.7])}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("until", ["any", "all"])
def test_what_was_verified_is_in_the_answer(seed, until):
    greedy, samples, options = random_search(seed)
    options |= {"until": until, "max_sentences": 8, "on_exhausted": "annotate" if seed % 2 else "stop"}
    events, result = told(greedy, samples, **options)
    assert all(isinstance(event, SentenceEvent) for step in events for event in step)
    released = [event.sentence for step in events for event in step]
    assert len(released) == len(result.beam.sentences)
    assert all(one is other for one, other in zip(released, result.beam.sentences, strict=True))
    marked = [i for i, event in enumerate(e for step in events for e in step) if event.marked]
    assert marked == list(result.beam.marked)


def ours(module):
    return [hook for hook in module._forward_hooks.values() if "syncheck" in hook.__module__]


class TestStream:
    @pytest.mark.slow
    def test_the_end_is_what_generate_returns(self, monitor, prompt):
        fod = decoder(monitor, 0.6, 0.6)
        options = {"seed": 3, "max_new_tokens": 60, "logits_processor": grammar(monitor, prompt)}
        *events, end = fod.stream(prompt, **options)
        out = fod.generate(prompt, return_dict_in_generate=True, **options)
        assert isinstance(end, EndEvent) and end.output.sequences.tolist() == out.sequences.tolist()
        assert [s.text for s in end.report.sentences] == [s.text for s in out.report.sentences]
        assert [event.sentence for event in events] == list(end.report.sentences)
        assert [i for event in events for i in event.token_ids] == end.report.tokens.token_ids.tolist()

    def test_stage_1_releases_a_sentence_before_the_next_ones_second_token(self, llama, make_monitor):
        monitor = make_monitor(llama, formula=wavy)
        prompt = monitor.prompt(question="Who is Angus Scott?", context=["He is a player."])
        calls = []
        constraint = grammar(monitor, prompt)
        constraint.append(lambda input_ids, scores: calls.append(input_ids.shape[1]) or scores)
        stream = decoder(monitor, 0.0).stream(prompt, max_new_tokens=60, logits_processor=constraint)
        first = next(stream)
        assert len(calls) == len(first.token_ids) + 1
        stream.close()

    def test_a_closed_stream_leaves_nothing_behind(self, monitor, prompt):
        stream = decoder(monitor).stream(prompt, max_new_tokens=60, logits_processor=grammar(monitor, prompt))
        next(stream)
        hooked = [m for m in monitor.model.modules() if ours(m)]
        assert hooked
        stream.close()
        assert not any(ours(m) for m in hooked)

    def test_a_streamer(self, monitor, prompt):
        with pytest.raises(InputError, match="streamer"):
            decoder(monitor).stream(prompt, streamer=object(), max_new_tokens=4)
