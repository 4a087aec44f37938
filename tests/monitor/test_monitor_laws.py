"""However the tokens came about, the same ids give the same sentences: live = attached = replay."""

import numpy as np
import pytest
import torch
from doubles import ANSWER, PASSAGES, QUESTION, Script, SentenceGrammar, assert_same
from transformers.generation import BaseStreamer, GenerationConfig, LogitsProcessor, LogitsProcessorList

from syncheck import EndEvent, SentenceEvent, TokenEvent
from syncheck.base.errors import InputError


def scripted(monitor, prompt, text=ANSWER, *, end=True):
    """The response's ids, and a processor that makes any loop write them."""
    ids = monitor.tokenizer(text, add_special_tokens=False)["input_ids"]
    ids += [monitor.tokenizer.eos_token_id] if end else []
    return ids, LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])


def generated_by_hand(monitor, prompt, choose, *, use_cache, beyond_end=0):
    ids, past = prompt.inputs()["input_ids"], None
    with torch.no_grad():
        while True:
            fed = ids if past is None else ids[:, -1:]
            output = monitor.model(input_ids=fed, past_key_values=past, use_cache=use_cache)
            past = output.past_key_values if use_cache else None
            token = choose(ids, output.logits[:, -1]).argmax(-1)
            ids = torch.cat([ids, token[:, None]], 1)
            if int(token) == monitor.tokenizer.eos_token_id:
                beyond_end -= 1
                if beyond_end < 0:
                    return ids


def hooks(model):
    """Ours; transformers has its own once hidden states were asked for."""
    found = [h for m in model.modules() for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())]
    return sum(h.__module__.startswith("syncheck") for h in found)


class TestLiveAttachedReplay:
    @pytest.fixture
    def replayed(self, monitor, prompt):
        ids, _ = scripted(monitor, prompt)
        return monitor.score(prompt, response_token_ids=ids)

    def test_replay_has_the_sentences_of_the_text(self, replayed):
        assert replayed.response == ANSWER
        assert [s.text for s in replayed.sentences] == [
            "Angus Scott is a rugby player.",
            "He grew up on a farm in 1982.",
            "The Brumbies signed him as a prop!",
            "He did play long.",
            "No one knows it.",
        ]
        assert {s.status for s in replayed.sentences} == {"scored"}

    @pytest.mark.parametrize("end", [True, False], ids=["end of text", "max_new_tokens"])
    def test_live(self, monitor, prompt, replayed, end):
        ids, script = scripted(monitor, prompt, end=end)
        report = monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids))
        assert report.stop == ("end_of_text" if end else "length")
        assert all(s.latency_ms > 0 for s in report.sentences)
        assert_same(report, replayed)

    @pytest.mark.parametrize("end", [True, False], ids=["end of text", "max_new_tokens"])
    @pytest.mark.parametrize("inside", [True, False], ids=["inside", "after"])
    def test_attached_to_generate(self, monitor, prompt, replayed, end, inside):
        ids, script = scripted(monitor, prompt, end=end)
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(
                **prompt.inputs(), logits_processor=watch.processors + script, max_new_tokens=len(ids)
            )
            assert len(watch.sentences) == 4  # the fifth is certain only once the text has ended
            report = watch.report(out) if inside else None
        report = report or watch.report(out)
        assert report.stop == ("end_of_text" if end else "length")
        assert_same(report, replayed)

    def test_attached_to_generate_that_returns_a_dictionary(self, monitor, prompt, replayed):
        ids, script = scripted(monitor, prompt)
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(
                **prompt.inputs(), logits_processor=script, max_new_tokens=len(ids), return_dict_in_generate=True
            )
        assert_same(watch.report(out), replayed)

    @pytest.mark.slow
    @pytest.mark.parametrize("use_cache", [True, False], ids=["cache", "no cache"])
    def test_attached_to_a_loop_by_hand(self, monitor, prompt, replayed, use_cache):
        _, script = scripted(monitor, prompt)
        with monitor.attach(prompt) as watch:
            out = generated_by_hand(monitor, prompt, script, use_cache=use_cache)
        assert_same(watch.report(out), replayed)

    @pytest.mark.slow
    def test_attached_to_a_loop_that_goes_on_after_the_end(self, monitor, prompt, replayed):
        ids, _ = scripted(monitor, prompt)
        script = Script(len(prompt.with_context_ids), [*ids, 30, 31, ids[-1]])
        with monitor.attach(prompt) as watch:
            out = generated_by_hand(monitor, prompt, script, use_cache=True, beyond_end=1)
        assert_same(watch.report(out), replayed)

    @pytest.mark.slow
    def test_attached_to_a_prompt_fed_in_parts(self, monitor, prompt, replayed):
        ids, script = scripted(monitor, prompt)
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(
                **prompt.inputs(), logits_processor=script, max_new_tokens=len(ids), prefill_chunk_size=16
            )
        assert_same(watch.report(out), replayed)

    def test_replay_of_the_text(self, monitor, prompt, replayed):
        assert_same(monitor.score(prompt, ANSWER), replayed)

    def test_what_follows_the_end_of_text_does_not_count(self, monitor, prompt, replayed):
        ids, _ = scripted(monitor, prompt)
        assert_same(monitor.score(prompt, response_token_ids=[*ids, 5, 6]), replayed)

    @pytest.mark.slow
    def test_without_a_context(self, monitor):
        prompt = monitor.prompt(question=QUESTION, context="")
        ids, script = scripted(monitor, prompt)
        replayed = monitor.score(prompt, response_token_ids=ids)
        assert np.isnan(replayed.tokens.kl).all() and np.isnan(replayed.tokens.log_prob_without_context).all()
        live = monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids))
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(**prompt.inputs(), logits_processor=script, max_new_tokens=len(ids))
        for report in (live, watch.report(out)):
            np.testing.assert_allclose(report.tokens.log_prob, replayed.tokens.log_prob, atol=1e-4)
            assert {s.status for s in report.sentences} == {"no_context"}


@pytest.mark.slow
def test_several_end_tokens_are_the_same_for_all_three(llama, make_monitor):
    """A model may end a text with another token than its tokenizer's."""
    monitor = make_monitor(llama)
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    ids, _ = scripted(monitor, prompt, end=False)
    other = 7
    assert other not in ids
    script = LogitsProcessorList([Script(len(prompt.with_context_ids), [*ids, other])])
    before = llama.model.generation_config.eos_token_id
    llama.model.generation_config.eos_token_id = [before, other]
    try:
        live = monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids) + 1)
        with monitor.attach(prompt) as watch:
            out = llama.model.generate(**prompt.inputs(), logits_processor=script, max_new_tokens=len(ids) + 1)
        watched = watch.report(out)
        replayed = monitor.score(prompt, response_token_ids=out[0, len(prompt.with_context_ids) :].tolist())
    finally:
        llama.model.generation_config.eos_token_id = before
    assert out[0, -1] == other and live.response == ANSWER
    assert_same(live, replayed)
    assert_same(watched, replayed)


class TestTokens:
    def test_greedy_ids_are_those_of_generate(self, monitor, prompt):
        plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=40, do_sample=False)
        report = monitor.generate(prompt, max_new_tokens=40, do_sample=False)
        assert report.tokens.token_ids.tolist() == plain[0, len(prompt.with_context_ids) :].tolist()

    @pytest.mark.parametrize(
        "options",
        [
            {"repetition_penalty": 1.3},
            {"no_repeat_ngram_size": 2},
            {"bad_words_ids": [[5], [6, 7]]},
            {"min_new_tokens": 12},
            {"do_sample": True, "temperature": 0.7, "top_k": 20},
        ],
        ids=lambda o: next(iter(o)),
    )
    def test_options_of_generate_mean_the_same(self, monitor, prompt, options):
        torch.manual_seed(3)
        plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=15, **options)
        torch.manual_seed(3)
        report = monitor.generate(prompt, max_new_tokens=15, **options)
        assert report.tokens.token_ids.tolist() == plain[0, len(prompt.with_context_ids) :].tolist()

    def test_signals_are_of_raw_logits_whatever_the_processors_do(self, monitor, prompt):
        report = monitor.generate(prompt, max_new_tokens=10, do_sample=True, top_k=2, temperature=0.1)
        assert_same(report, monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist()))

    def test_sampling_with_a_generator_is_reproducible(self, monitor, prompt):
        ids = [
            monitor.generate(
                prompt, max_new_tokens=20, do_sample=True, generator=torch.Generator().manual_seed(seed)
            ).tokens.token_ids.tolist()
            for seed in (1, 1, 2)
        ]
        assert ids[0] == ids[1] != ids[2]

    def test_stop_strings(self, monitor, prompt):
        ids, script = scripted(monitor, prompt)
        for more in ({}, {"tokenizer": monitor.tokenizer}):
            report = monitor.generate(
                prompt, logits_processor=script, max_new_tokens=len(ids), stop_strings=["1982"], **more
            )
            assert report.stop == "stop_string" and report.response.endswith("1982")
        limit = len(report.tokens)  # a stop string says more than a limit that is reached with it
        *_, end = monitor.stream(prompt, logits_processor=script, max_new_tokens=limit, stop_strings="1982")
        assert (end.report.response, end.report.stop) == (report.response, "stop_string")

    def test_stop_strings_of_a_generation_config(self, monitor, prompt, monkeypatch):
        ids, script = scripted(monitor, prompt)
        given = GenerationConfig(max_new_tokens=len(ids), stop_strings=["1982"])
        assert monitor.generate(prompt, logits_processor=script, generation_config=given).response.endswith("1982")
        assert given.stop_strings == ["1982"]
        monkeypatch.setattr(monitor.model.generation_config, "stop_strings", "farm")
        found = monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids))
        assert found.response.endswith("farm")

    def test_beam_search_is_refused(self, monitor, prompt):
        with pytest.raises(InputError, match="num_beams"):
            monitor.generate(prompt, max_new_tokens=3, num_beams=2)

    def test_a_stream_is_of_one_response(self, monitor, prompt):
        with pytest.raises(InputError, match="stream"):
            next(monitor.stream(prompt, max_new_tokens=3, do_sample=True, num_return_sequences=2))


class Moments(LogitsProcessor):
    """Notes when the loop is about to choose a token: how many it has so far."""

    def __init__(self, prompt_tokens, log):
        self.prompt_tokens, self.log = prompt_tokens, log

    def __call__(self, input_ids, scores):
        self.log.append(("chooses", input_ids.shape[1] - self.prompt_tokens))
        return scores


class TestStream:
    @pytest.fixture
    def started(self, monitor, prompt):
        ids, script = scripted(monitor, prompt)
        return {"logits_processor": script, "max_new_tokens": len(ids)}

    def test_a_sentence_is_judged_before_the_next_ones_second_token(self, monitor, prompt):
        ids, script = scripted(monitor, prompt)
        log = []
        script.append(Moments(len(prompt.with_context_ids), log))
        for event in monitor.stream(prompt, logits_processor=script, max_new_tokens=len(ids)):
            if isinstance(event, SentenceEvent):
                log.append(("judged", event.sentence))
        judged = [(i, s) for i, (kind, s) in enumerate(log) if kind == "judged"]
        assert len(judged) == 5
        for at, sentence in judged[:-1]:
            # the first token of the next sentence is chosen, its second is not
            assert log[at - 1] == ("chooses", sentence.token_end)
            assert log[at + 1] == ("chooses", sentence.token_end + 1)

    @pytest.mark.slow
    def test_attached_sentences_are_judged_before_the_next_ones_second_token(self, monitor, prompt):
        ids, script = scripted(monitor, prompt)
        seen = {}

        class Look(LogitsProcessor):
            def __call__(self, input_ids, scores):
                seen[input_ids.shape[1] - len(prompt.with_context_ids)] = len(watch.sentences)
                return scores

        with monitor.attach(prompt) as watch:
            monitor.model.generate(
                **prompt.inputs(), logits_processor=LogitsProcessorList([Look(), *script]), max_new_tokens=len(ids)
            )
        for index, sentence in enumerate(watch.sentences):
            assert seen[sentence.token_end] == index
            assert seen[sentence.token_end + 1] == index + 1

    def test_verified_release_gives_a_sentences_text_after_its_score(self, monitor, prompt, started):
        *events, end = monitor.stream(prompt, **started)
        assert isinstance(end, EndEvent)
        sentences = [e.sentence for e in events if isinstance(e, SentenceEvent)]
        released = 0
        for event in events:
            if isinstance(event, SentenceEvent):
                assert released == event.sentence.token_start
            else:
                released += 1
                assert any(s.token_start < released <= s.token_end for s in sentences[: self.judged(events, event)])
        assert released == len(end.report.tokens)

    @staticmethod
    def judged(events, token):
        return sum(isinstance(e, SentenceEvent) for e in events[: next(i for i, e in enumerate(events) if e is token)])

    def test_immediate_reveal_gives_each_token_as_it_comes(self, monitor, prompt, started):
        log = []
        started["logits_processor"].append(Moments(len(prompt.with_context_ids), log))
        for event in monitor.stream(prompt, reveal="immediate", **started):
            if isinstance(event, TokenEvent):
                assert log[-1] == ("chooses", sum(kind == "came" for kind, _ in log))
                log.append(("came", event.token_id))

    @pytest.mark.parametrize("reveal", ["verified", "immediate"])
    def test_events_hold_what_the_report_holds(self, monitor, prompt, started, reveal):
        *events, end = monitor.stream(prompt, reveal=reveal, **started)
        tokens = [e for e in events if isinstance(e, TokenEvent)]
        assert [t.token_id for t in tokens] == end.report.tokens.token_ids.tolist()
        assert "".join(t.text for t in tokens) == end.report.response == ANSWER
        sentences = [e for e in events if isinstance(e, SentenceEvent)]
        assert tuple(e.sentence for e in sentences) == end.report.sentences
        assert [i for e in sentences for i in e.token_ids] == end.report.tokens.token_ids.tolist()
        assert [e.type for e in (*events[:1], end)] == ["sentence" if reveal == "verified" else "token", "end"]

    def test_each_token_is_encoded_once_by_each_branch(self, monitor, prompt, started):
        widths = []
        handle = monitor.model.register_forward_pre_hook(
            lambda module, args, kwargs: widths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
        )
        try:
            monitor.generate(prompt, lookup=0, **started)
        finally:
            handle.remove()
        count = started["max_new_tokens"] - 1  # the end-of-text token is not fed
        assert sum(widths) == len(prompt.with_context_ids) + len(prompt.without_context_ids) + 2 * count
        assert len(widths) == 2 + count + 5  # prompts, one step a token, one pass a sentence

    def test_a_streamer_sees_prompt_and_tokens(self, monitor, prompt, started):
        class Recorder(BaseStreamer):
            puts, ended = [], 0

            def put(self, value):
                self.puts.append(value.flatten().tolist())

            def end(self):
                self.ended += 1

        recorder = Recorder()
        report = monitor.generate(prompt, streamer=recorder, **started)
        assert recorder.puts[0] == list(prompt.with_context_ids)
        ids = [*report.tokens.token_ids.tolist(), monitor.tokenizer.eos_token_id]
        assert recorder.puts[1:] == [[i] for i in ids] and recorder.ended == 1


class TestHooks:
    def test_gone_after_generating(self, monitor, prompt):
        monitor.generate(prompt, max_new_tokens=3)
        monitor.score(prompt, ANSWER)
        assert hooks(monitor.model) == 0

    def test_gone_after_watching(self, monitor, prompt):
        with monitor.attach(prompt) as watch:
            assert hooks(monitor.model) == 2 + 3  # before and after the model, one for each layer
            out = monitor.model.generate(**prompt.inputs(), max_new_tokens=3)
        assert hooks(monitor.model) == 0
        watch.report(out)
        assert hooks(monitor.model) == 0

    def test_gone_after_an_error_in_the_loop(self, monitor, prompt):
        class Fails(LogitsProcessor):
            def __call__(self, input_ids, scores):
                raise ArithmeticError

        with pytest.raises(ArithmeticError):
            monitor.generate(prompt, max_new_tokens=3, logits_processor=LogitsProcessorList([Fails()]))
        assert hooks(monitor.model) == 0
        with pytest.raises(ArithmeticError), monitor.attach(prompt):
            monitor.model.generate(**prompt.inputs(), max_new_tokens=3, logits_processor=LogitsProcessorList([Fails()]))
        assert hooks(monitor.model) == 0

    def test_gone_when_a_stream_is_left(self, monitor, prompt):
        ids, script = scripted(monitor, prompt)
        stream = monitor.stream(prompt, logits_processor=script, max_new_tokens=len(ids))
        next(stream)
        assert hooks(monitor.model) == 3
        stream.close()
        assert hooks(monitor.model) == 0

    def test_watching_changes_no_token(self, monitor, prompt):
        plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=20)
        with monitor.attach(prompt) as watch:
            watched = monitor.model.generate(**prompt.inputs(), max_new_tokens=20, logits_processor=watch.processors)
        assert torch.equal(plain, watched)


@pytest.mark.slow
def test_sampled_sentences_live_and_replayed(monitor, prompt):
    """Texts that the model chose within a grammar of short sentences, for some seeds."""
    for seed in range(3):
        grammar = SentenceGrammar(monitor.tokenizer, prompt.with_context_ids)
        report = monitor.generate(
            prompt,
            max_new_tokens=60,
            do_sample=True,
            top_k=0,
            generator=torch.Generator().manual_seed(seed),
            logits_processor=LogitsProcessorList([grammar]),
        )
        assert len(report.sentences) >= 2
        assert_same(report, monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist()))


def test_processors_that_write_in_place_do_not_reach_the_signals(monitor, prompt):
    def scale(input_ids, scores):
        return scores.mul_(0.1)

    report = monitor.generate(prompt, max_new_tokens=5, logits_processor=LogitsProcessorList([scale]))
    assert_same(report, monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist()))
