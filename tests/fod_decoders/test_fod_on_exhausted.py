"""What is done when no sample of a round reaches tau_2."""

from dataclasses import replace

import pytest
from doubles import PASSAGES, QUESTION
from test_fod_generator import decoder, grammar, response_of

from fod import walk
from syncheck import closest_evidence
from syncheck.base.errors import InputError
from syncheck.results import fold, protocol_events


def run(monitor, prompt, tau_1, tau_2, *, seed=0, max_new_tokens=60, **options):
    fod = decoder(monitor, tau_1, tau_2, **options)
    options = {"seed": seed, "max_new_tokens": max_new_tokens, "logits_processor": grammar(monitor, prompt)}
    return fod, options, fod.generate(prompt, return_dict_in_generate=True, **options)


def second_best(monitor, prompt):
    """A threshold that greedy's first sentence reaches, and a later one does not."""
    scores = [s.score for s in run(monitor, prompt, 0.0, 0.0)[2].report.sentences]
    return scores[0] - 1e-6 if min(scores) < scores[0] - 1e-6 else None


class TestAbstain:
    def test_the_message_is_the_answer(self, monitor, prompt):
        fod, options, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="abstain", message="No more.")
        assert (out.report.response, out.report.sentences, out.report.stop) == ("No more.", (), "abstained")
        assert out.message == "No more."
        assert monitor.tokenizer.decode(response_of(prompt, out.sequences)) == "No more."
        notice, end = fod.stream(prompt, **options)
        assert (notice.type, notice.text, list(notice.token_ids)) == (
            "notice",
            "No more.",
            response_of(prompt, out.sequences),
        )
        assert end.output.message == "No more."

    @pytest.mark.parametrize("on_exhausted", ["stop", "abstain"])
    def test_it_is_one_text_everywhere_where_no_sentence_passes(self, monitor, prompt, on_exhausted):
        fod, options, out = run(monitor, prompt, 1.0, 1.0, on_exhausted=on_exhausted, message="No more.")
        assert (out.report.response, out.report.stop, out.message) == ("No more.", "abstained", "No more.")
        ids = fod.generate(prompt, **options)
        by_model = monitor.model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt, **options)
        for found in (ids, by_model, out.sequences):
            assert monitor.tokenizer.decode(response_of(prompt, found)) == "No more."
        assert fold(protocol_events(fod.stream(prompt, **options))).text == "No more."
        _, _, empty = run(monitor, prompt, 1.0, 1.0, on_exhausted=on_exhausted, message="")
        assert (empty.report.response, empty.report.stop, empty.message) == ("", "nothing_passed", None)

    def test_a_quotation_is_one_text_everywhere_where_no_sentence_passes(self, monitor, prompt):
        fod, options, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="quote", message="No more.")
        quotes = closest_evidence(QUESTION, PASSAGES, count=2)
        said = " ".join(f"Passage {one.passage + 1} says: \u201c{one.text}\u201d" for one in quotes)
        assert quotes and all(one.text in PASSAGES[one.passage] for one in quotes)
        assert (out.report.response, out.report.stop, out.message) == (said, "quoted", said)
        assert not out.report.sentences
        assert monitor.tokenizer.decode(response_of(prompt, fod.generate(prompt, **options))) == said
        assert fold(protocol_events(fod.stream(prompt, **options))).text == said

    def test_marks_of_bold_type_are_not_quoted(self, monitor):
        passages = ["**Angus Scott plays** and sings in Leeds.", "Leeds is large."]
        prompt = monitor.prompt(question="Who is Angus Scott in Leeds?", context=passages)
        _, _, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="quote")
        assert out.message == "Passage 1 says: \u201cAngus Scott plays and sings in Leeds.\u201d"

    def test_two_parts_are_quoted_if_they_are_as_relevant(self, monitor):
        passages = ["Angus Scott plays rugby.", "Leeds is large.", "Angus Scott lives here.", "Angus Scott sings."]
        prompt = monitor.prompt(question="Who is Angus Scott?", context=passages)
        _, _, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="quote")
        first, second = closest_evidence(QUESTION, passages, count=2)
        assert {first.text, second.text} < set(passages)
        assert (
            out.message
            == f"Passage {first.passage + 1} says: “{first.text}” Passage {second.passage + 1} says: “{second.text}”"
        )

    def test_without_anything_to_quote_the_message_is_the_answer(self, monitor):
        prompt = monitor.prompt(question="Xyzzy?", context=PASSAGES)
        _, _, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="quote", message="No more.")
        assert (out.report.response, out.report.stop) == ("No more.", "abstained")

    def test_what_was_released_beside_the_question_is_followed_by_a_quotation(self, monitor, prompt):
        threshold = second_best(monitor, prompt)
        if threshold is None:
            pytest.skip("greedy's first sentence is its worst")
        _, _, quoting = run(monitor, prompt, threshold, 1.0, on_exhausted="quote")
        _, _, stopping = run(monitor, prompt, threshold, 1.0)
        texts = [sentence.text for sentence in stopping.report.sentences]
        quotes = closest_evidence(QUESTION, PASSAGES, count=2, said=texts)
        assert quotes, "random words are beside any question"
        assert quoting.report.response == stopping.report.response + quoting.message
        assert quoting.message.startswith(f" Passage {quotes[0].passage + 1} says: \u201c{quotes[0].text}")
        assert quoting.report.stop == "quoted" and [s.text for s in quoting.report.sentences] == texts

    def test_what_was_released_stays_before_it(self, monitor, prompt):
        threshold = second_best(monitor, prompt)
        if threshold is None:
            pytest.skip("greedy's first sentence is its worst")
        _, _, out = run(monitor, prompt, threshold, 1.0, on_exhausted="abstain", message="No more.")
        assert out.report.sentences and out.message == " No more."
        decoded = monitor.tokenizer.decode(response_of(prompt, out.sequences))
        assert decoded.strip() == out.report.response.strip() and out.report.response.endswith(" No more.")

    def test_no_message_behind_a_text_that_has_ended(self, monitor, prompt, monkeypatch):
        """With until='all' the best beam may have ended when nothing passes behind another one; that is rare."""

        def stuck(propose, config, thresholds):
            result = yield from walk(propose, config, thresholds)
            assert result.beam.stop is not None
            return replace(result, stop="nothing_passed")

        monkeypatch.setattr("fod.generator.walk", stuck)
        _, _, out = run(monitor, prompt, 0.0, 0.0, on_exhausted="abstain")
        assert (out.report.stop, out.message) == ("nothing_passed", None)

    def test_no_message_where_something_passes(self, monitor, prompt):
        _, _, out = run(monitor, prompt, 0.0, 0.0, on_exhausted="abstain")
        assert out.message is None and out.report.stop != "abstained"


class TestAnnotate:
    @pytest.mark.parametrize("seed", range(3))
    def test_decoding_goes_on_and_says_which_sentences_did_not_pass(self, monitor, prompt, seed):
        _, _, out = run(monitor, prompt, 0.7, 0.9, seed=seed, on_exhausted="annotate")
        assert out.report.stop != "nothing_passed" and out.report.sentences
        greedy = len(out.search.greedy.sentences)
        below = [i for i, s in enumerate(out.report.sentences) if s.score < (0.7 if i < greedy else 0.9)]
        assert list(out.marked) == below

    def test_the_stream_marks_them(self, monitor, prompt):
        fod, options, out = run(monitor, prompt, 1.0, 1.0, on_exhausted="annotate")
        *events, _ = fod.stream(prompt, **options)
        assert out.marked and [i for i, event in enumerate(events) if event.marked] == list(out.marked)


def test_another_action_is_refused(monitor, prompt):
    with pytest.raises(InputError, match="on_exhausted"):
        run(monitor, prompt, 1.0, 1.0, on_exhausted="guess")
