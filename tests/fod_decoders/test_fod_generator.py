"""Faithfulness-oriented decoding on the golden models, with scores by formula."""

import numpy as np
import pytest
import torch
from doubles import ANSWER, PASSAGES, QUESTION, Script, SentenceGrammar, wavy
from transformers.generation import LogitsProcessorList

from fod import FODConfig, FODGenerator
from fod.config import ABSTENTION
from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import InputError, NotReadyError, PromptError, WrongTypeError


def grammar(monitor, prompt, **options):
    """Makes the model write short sentences; see :class:`doubles.SentenceGrammar`."""
    return LogitsProcessorList([SentenceGrammar(monitor.tokenizer, prompt.with_context_ids, **options)])


def decoder(monitor, tau_1=0.5, tau_2=0.5, **options):
    config = FODConfig(backtrack_threshold=tau_1, prune_threshold=tau_2, **options)
    return FODGenerator(monitor.model, monitor.tokenizer, monitor, config=config)


def run(monitor, prompt, tau_1=0.5, tau_2=0.5, *, seed=0, max_new_tokens=60, constraint=None, **options):
    return decoder(monitor, tau_1, tau_2, **options).generate(
        prompt,
        seed=seed,
        max_new_tokens=max_new_tokens,
        logits_processor=grammar(monitor, prompt) if constraint is None else constraint,
        return_dict_in_generate=True,
    )


def response_of(prompt, sequences):
    assert sequences.shape[0] == 1 and sequences[0, : len(prompt.with_context_ids)].tolist() == [
        *prompt.with_context_ids
    ]
    return sequences[0, len(prompt.with_context_ids) :].tolist()


def test_stop_strings_are_found_with_the_monitor_s_tokenizer(monitor, prompt):
    ids = monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
    options = {
        "logits_processor": LogitsProcessorList([Script(len(prompt.with_context_ids), ids)]),
        "max_new_tokens": len(ids),
        "stop_strings": ["rugby"],
    }
    fod = decoder(monitor, 0.0)
    out = fod.generate(prompt, return_dict_in_generate=True, **options)
    assert (out.report.response, out.report.stop) == (" Angus Scott is a rugby", "stop_string")
    *_, end = fod.stream(prompt, **options)
    assert (end.report.response, end.report.stop) == (out.report.response, "stop_string")


class TestGreedy:
    """With tau_1 = 0 nothing is taken back: the ids are those of plain greedy decoding."""

    def test_free_text(self, monitor, prompt):
        plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=50, do_sample=False)
        assert torch.equal(decoder(monitor, 0.0).generate(prompt, max_new_tokens=50), plain)

    @pytest.mark.slow
    @pytest.mark.parametrize("limit", [60, 17, 8, 1])
    def test_sentences(self, monitor, prompt, limit):
        constraint = grammar(monitor, prompt)
        plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=limit, logits_processor=constraint)
        found = decoder(monitor, 0.0).generate(prompt, max_new_tokens=limit, logits_processor=constraint)
        assert torch.equal(found, plain)

    def test_a_text_that_ends(self, monitor, prompt):
        ids = [*monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"], monitor.tokenizer.eos_token_id]
        constraint = LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])
        out = run(monitor, prompt, 0.0, max_new_tokens=len(ids) + 5, constraint=constraint)
        assert response_of(prompt, out.sequences) == ids
        assert (out.report.stop, out.report.response) == ("end_of_text", ANSWER)
        assert len(out.search.beam.sentences) == 5 and out.sampled_tokens == len(ids) - 1

    def test_several_end_tokens(self, monitor, prompt):
        ids = [*monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"], 7]
        constraint = LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])
        out = decoder(monitor, 0.0).generate(
            prompt,
            max_new_tokens=len(ids) + 5,
            eos_token_id=[1, 7],
            logits_processor=constraint,
            return_dict_in_generate=True,
        )
        assert response_of(prompt, out.sequences) == ids and out.report.response == ANSWER


class TestDropIn:
    @pytest.mark.parametrize("tau", [0.0, 0.5])
    def test_custom_generate_is_generate(self, monitor, prompt, tau):
        fod = decoder(monitor, tau, tau)
        options = {"max_new_tokens": 40, "logits_processor": grammar(monitor, prompt)}
        own = fod.generate(prompt, **options)
        assert torch.equal(
            monitor.model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt, **options), own
        )

    @pytest.mark.slow
    def test_custom_generate_returns_a_dictionary_when_asked(self, monitor, prompt):
        fod = decoder(monitor)
        options = {"max_new_tokens": 30, "logits_processor": grammar(monitor, prompt)}
        out = monitor.model.generate(
            **prompt.inputs(), custom_generate=fod, prompt=prompt, return_dict_in_generate=True, **options
        )
        own = fod.generate(prompt, return_dict_in_generate=True, **options)
        assert torch.equal(out.sequences, own.sequences) and torch.equal(out[0], own["sequences"])
        assert (out.search.stop, out.search.beam.handles) == (own.search.stop, own.search.beam.handles)
        assert out.report.sentences == out.search.beam.sentences
        assert repr(out) == f"<FODOutput {out.report!r}>"

    def test_custom_generate_without_the_prompt(self, monitor, prompt):
        with pytest.raises(InputError, match="prompt="):
            monitor.model.generate(**prompt.inputs(), custom_generate=decoder(monitor), max_new_tokens=4)

    def test_custom_generate_with_another_prompt(self, monitor, prompt):
        other = monitor.prompt(question="What else?", context=PASSAGES)
        with pytest.raises(InputError, match="input_ids"):
            monitor.model.generate(**prompt.inputs(), custom_generate=decoder(monitor), prompt=other, max_new_tokens=4)

    def test_no_hooks_stay(self, monitor, prompt):
        run(monitor, prompt, max_new_tokens=20)
        ours = [h for m in monitor.model.modules() for h in m._forward_hooks.values() if "syncheck" in h.__module__]
        assert ours == []


class TestSearch:
    @pytest.mark.slow
    def test_the_same_seed_gives_the_same_answer(self, monitor, prompt):
        found = [run(monitor, prompt, 0.6, 0.6, seed=seed) for seed in (3, 3, 4)]
        assert all(out.search.backtracked for out in found)
        assert torch.equal(found[0].sequences, found[1].sequences) and found[0].search.rounds
        same = [s.text for c in found[0].search.rounds[0].candidates for s in c.sentences]
        other = [s.text for c in found[2].search.rounds[0].candidates for s in c.sentences]
        assert same != other

    @pytest.mark.slow
    def test_the_global_seed_does_not_matter_and_is_left_alone(self, monitor, prompt):
        torch.manual_seed(1)
        first = run(monitor, prompt, 0.6, 0.6).sequences
        after = torch.rand(1)
        torch.manual_seed(2)
        assert torch.equal(run(monitor, prompt, 0.6, 0.6).sequences, first)
        torch.manual_seed(1)
        assert torch.equal(torch.rand(1), after)

    @pytest.mark.slow
    @pytest.mark.parametrize("until", ["any", "all"])
    @pytest.mark.parametrize("seed", range(4))
    def test_every_released_sentence_reaches_a_threshold(self, monitor, prompt, seed, until):
        tau_1, tau_2 = ((0.3, 0.5), (0.5, 0.7), (0.7, 0.4), (0.9, 0.9))[seed]
        out = run(monitor, prompt, tau_1, tau_2, seed=seed, until=until)
        for sentence in out.report.sentences:
            assert sentence.score >= min(tau_1, tau_2)
        for sentence in out.dropped:
            assert sentence.score < tau_1
        for round_ in out.search.rounds:
            assert {len(c.sentences) for c in round_.candidates} <= {0, 1, 2}
            assert all(s.score >= tau_2 for c in round_.passed for s in c.sentences)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(3))
    def test_scores_and_signals_are_those_of_a_replay(self, monitor, prompt, seed):
        """After backtracking, branching and pruning nothing of the rows that were dropped is left."""
        out = run(monitor, prompt, 1.0, 0.2, seed=seed, until="all")
        assert out.search.backtracked and len(out.search.rounds) >= 2 and len(out.report.sentences) >= 2
        ids = response_of(prompt, out.sequences)
        replayed = monitor.score(prompt, response_token_ids=ids)
        assert out.report.response == replayed.response
        np.testing.assert_array_equal(out.report.tokens.token_ids, replayed.tokens.token_ids)
        np.testing.assert_array_equal(out.report.tokens.char_spans, replayed.tokens.char_spans)
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            np.testing.assert_allclose(
                getattr(out.report.tokens, name), getattr(replayed.tokens, name), rtol=0, atol=1e-4, err_msg=name
            )
        for found, wanted in zip(out.report.sentences, replayed.sentences, strict=True):
            assert (found.text, found.start, found.end) == (wanted.text, wanted.start, wanted.end)
            assert (found.token_start, found.token_end) == (wanted.token_start, wanted.token_end)
            assert found.score == pytest.approx(wanted.score, abs=5e-3)
            for layer in (2, 3, 4):
                name = f"lid_layer_{layer}"
                assert found.features[name] == pytest.approx(wanted.features[name], rel=1e-3)
            for name in ("align_score", "sentence_index", "earlier_support_mean", "earlier_support_min"):
                assert found.features[name] == pytest.approx(wanted.features[name], abs=1e-6), name

    @pytest.mark.slow
    def test_candidates_hold_what_they_append(self, monitor, prompt):
        out = run(monitor, prompt, 1.0, 0.3)
        for round_ in out.search.rounds:
            assert [c.handle for c in round_.candidates] == sorted(c.handle for c in round_.candidates)
            assert [c.parent for c in round_.candidates] == sorted(c.parent for c in round_.candidates)
            for candidate in round_.candidates:
                assert monitor.tokenizer.decode(candidate.token_ids).strip() == " ".join(
                    s.text for s in candidate.sentences
                )

    @pytest.mark.slow
    def test_a_round_has_no_repeats(self, monitor, prompt):
        # at this temperature all samples are the greedy sentence
        out = run(monitor, prompt, 1.0, 0.0, temperature=1e-4, samples_per_step=8)
        greedy = run(monitor, prompt, 0.0)
        assert out.search.backtracked
        assert all(len(round_.candidates) == len(round_.beams) == 1 for round_ in out.search.rounds)
        assert torch.equal(out.sequences, greedy.sequences)

    def test_samples_differ(self, monitor, prompt):
        out = run(monitor, prompt, 1.0, 0.0, samples_per_step=8)
        texts = [c.token_ids for c in out.search.rounds[0].candidates]
        assert 1 < len(texts) == len(set(texts)) <= 4

    def test_nothing_passes(self, monitor, prompt):
        out = run(monitor, prompt, 1.0, 1.0)
        assert monitor.tokenizer.decode(response_of(prompt, out.sequences)) == out.report.response == ABSTENTION
        assert (out.report.sentences, out.report.stop) == ((), "abstained")
        assert len(out.report.tokens) == 0 and len(out.dropped) == 1

    def test_one_beam_one_sample(self, monitor, prompt):
        out = run(monitor, prompt, 1.0, 0.0, beam_size=1, samples_per_step=1)
        assert all(len(round_.candidates) == 1 for round_ in out.search.rounds)
        ids = response_of(prompt, out.sequences)
        replayed = monitor.score(prompt, response_token_ids=ids)
        np.testing.assert_allclose(out.report.tokens.kl, replayed.tokens.kl, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("limit", range(1, 16, 2))
    def test_the_limit_of_tokens_holds_in_stage_2(self, monitor, prompt, limit):
        out = run(monitor, prompt, 1.0, 0.0, max_new_tokens=limit)
        ids = response_of(prompt, out.sequences)
        assert len(ids) <= limit
        assert out.report.stop in {"length", "end_of_text"}
        assert out.report.tokens.token_ids.tolist() == [i for i in ids if i != monitor.tokenizer.eos_token_id]

    def test_the_limit_of_sentences(self, monitor, prompt):
        out = run(monitor, prompt, 1.0, 0.0, max_sentences=2, constraint=grammar(monitor, prompt, least_sentences=9))
        assert (len(out.report.sentences), out.report.stop) == (2, "max_sentences")

    def test_a_full_window_ends_the_answer(self, monitor, prompt, monkeypatch):
        monkeypatch.setattr(monitor.model.config, "max_position_embeddings", len(prompt.with_context_ids) + 10)
        for tau_1 in (0.0, 1.0):
            out = run(monitor, prompt, tau_1, 0.0, constraint=grammar(monitor, prompt, least_sentences=9))
            assert len(out.report.tokens) <= 10 and out.report.stop == "length"
            monitor.score(prompt, response_token_ids=out.report.tokens.token_ids.tolist())

    @pytest.mark.slow
    def test_processors_of_generate_hold_in_stage_2(self, monitor, prompt):
        banned = run(monitor, prompt, 1.0, 0.0).search.rounds[0].candidates[0].token_ids[0]
        out = decoder(monitor, 1.0, 0.0).generate(
            prompt,
            max_new_tokens=30,
            bad_words_ids=[[banned]],
            logits_processor=grammar(monitor, prompt),
            return_dict_in_generate=True,
        )
        assert all(banned not in c.token_ids for round_ in out.search.rounds for c in round_.candidates)

    @pytest.mark.slow
    def test_the_prompts_are_encoded_once(self, monitor, prompt):
        """All that is fed later goes on behind them, in both branches."""
        run(monitor, prompt, 0.6, 0.3)  # the model is tried once, on a few tokens
        fed = []
        handle = monitor.model.register_forward_pre_hook(
            lambda module, args, kwargs: fed.append(
                (tuple(kwargs["input_ids"].shape), int(kwargs["position_ids"].min()))
            ),
            with_kwargs=True,
        )
        try:
            out = run(monitor, prompt, 0.6, 0.3)
        finally:
            handle.remove()
        assert out.search.backtracked
        lengths = len(prompt.with_context_ids), len(prompt.without_context_ids)
        assert [shape for shape, first in fed if first < min(lengths)] == [(1, length) for length in lengths]


class TestErrors:
    def test_no_aggregator(self, llama):
        monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        with pytest.raises(NotReadyError, match="aggregator"):
            FODGenerator(llama.model, llama.tokenizer, monitor)

    def test_another_model(self, llama, mistral, make_monitor):
        with pytest.raises(InputError, match="watches"):
            FODGenerator(mistral.model, mistral.tokenizer, make_monitor(llama))

    def test_no_context(self, monitor):
        prompt = monitor.prompt(question=QUESTION, context="")
        with pytest.raises(InputError, match="context"):
            decoder(monitor).generate(prompt, max_new_tokens=4)

    def test_no_prompt(self, monitor):
        with pytest.raises(WrongTypeError, match="RagPrompt"):
            decoder(monitor).generate("Who is he?", max_new_tokens=4)

    @pytest.mark.parametrize("option", ["num_beams", "num_return_sequences"])
    def test_several_sequences(self, monitor, prompt, option):
        options = {option: 2, "max_new_tokens": 4, "do_sample": option != "num_beams"}
        with pytest.raises(InputError, match=option):
            decoder(monitor).generate(prompt, **options)
        with pytest.raises(InputError, match=option):
            monitor.model.generate(**prompt.inputs(), custom_generate=decoder(monitor), prompt=prompt, **options)

    def test_a_prompt_that_fills_the_window(self, monitor, prompt, monkeypatch):
        monkeypatch.setattr(monitor.model.config, "max_position_embeddings", len(prompt.with_context_ids))
        with pytest.raises(PromptError, match="window"):
            decoder(monitor).generate(prompt, max_new_tokens=4)

    def test_thresholds_outside_their_range(self, monitor):
        with pytest.raises(InputError, match="backtrack_threshold"):
            decoder(monitor, 1.5)


def test_thresholds_default_to_those_the_monitor_was_saved_with(llama, make_monitor):
    monitor = make_monitor(llama, formula=wavy, backtrack_threshold=0.11, prune_threshold=0.22)
    fod = FODGenerator(llama.model, llama.tokenizer, monitor)
    assert (fod.thresholds.backtrack, fod.thresholds.prune) == (0.11, 0.22)
    fod = FODGenerator(llama.model, llama.tokenizer, monitor, backtrack_threshold=0.0)
    assert (fod.thresholds.backtrack, fod.thresholds.prune) == (0.0, 0.22)
