import math

import numpy as np
import pytest
from doubles import ANSWER, PASSAGES, QUESTION, BrokenAligner, FormulaAggregator, Script

from syncheck import LidReferences, Monitor, MonitorConfig, feature_schema
from syncheck.base.errors import InputError, PromptError, UnsupportedModelError, WrongTypeError
from syncheck.testing import WordAligner


@pytest.fixture
def golden(llama):
    return llama


class TestStatus:
    def test_scored(self, golden, make_monitor, prompt):
        monitor = make_monitor(golden, formula=lambda values: values["align_score"])
        first, *_ = monitor.score(prompt, " Scott is a rugby player. He has wings.").sentences
        assert (first.status, first.reason, first.score) == ("scored", None, 1.0)
        assert first.evidence.text == PASSAGES[0] and first.latency_ms is None
        assert set(first.attribution) == set(monitor.schema.names) == set(first.features)

    def test_no_aggregator(self, golden, make_monitor, prompt):
        monitor = make_monitor(golden, formula=None)
        report = monitor.score(prompt, ANSWER)
        assert {(s.status, s.score) for s in report.sentences} == {("no_aggregator", None)}
        assert report.sentences[0].features["mean_contrastive_kl"] > 0

    @pytest.mark.parametrize("context", ["", [], [" \n"]], ids=repr)
    def test_no_context(self, golden, make_monitor, context):
        monitor = make_monitor(golden, aligner=BrokenAligner())  # not asked
        report = monitor.score(monitor.prompt(question=QUESTION, context=context), ANSWER)
        assert {(s.status, s.score, s.reason) for s in report.sentences} == {
            ("no_context", None, "the context is empty")
        }
        features = report.sentences[0].features
        assert features["mean_contrastive_kl"] is None and features["align_score"] is None
        assert 0 < features["mean_prob"] < 1

    def test_not_checkable(self, monitor, prompt):
        report = monitor.score(prompt, sentences=["***", " He is a player."])
        assert [(s.status, s.score is None, s.reason) for s in report.sentences] == [
            ("not_checkable", True, "no letter or digit"),
            ("scored", False, None),
        ]

    def test_a_monitor_with_signals_scores_nothing_that_claims_nothing(self, monitor, prompt):
        said = [
            "Did he play long? ",
            "## Overview\n",
            "Here is the answer: ",
            "1. ",
            "He grew up there. ",
            "He grew up there. ",
        ]
        report = monitor.score(prompt, sentences=said)
        assert [s.status for s in report.sentences] == [*["not_a_claim"] * 4, "scored", "degenerate"]
        assert [s.score is None for s in report.sentences] == [True] * 4 + [False, True]
        assert all(s.features["mean_prob"] > 0 for s in report.sentences)

    @pytest.mark.parametrize("schema", ["paper.v1", "paper-no-lid.v1"])
    def test_the_papers_features_score_every_sentence(self, golden, make_monitor, prompt, schema):
        report = make_monitor(golden, schema=schema).score(prompt, sentences=["Did he play long? ", "1."])
        assert [s.status for s in report.sentences] == ["scored", "scored"]

    def test_a_failing_aligner_costs_the_score_and_says_why(self, golden, make_monitor, prompt, caplog):
        monitor = make_monitor(golden, aligner=BrokenAligner())
        report = monitor.score(prompt, " He is. *** She was.")
        assert {s.status for s in report.sentences} == {"failed"}
        sentence = report.sentences[0]
        assert sentence.score is None and sentence.features["align_score"] is None
        assert "'broken'" in sentence.reason
        assert sentence.features["mean_contrastive_kl"] > 0
        assert "aligner 'broken' failed" in caplog.text

    @pytest.mark.parametrize("given", [{"response": ""}, {"response_token_ids": []}, {"sentences": []}], ids=str)
    def test_an_empty_response_has_no_sentences(self, monitor, prompt, given):
        report = monitor.score(prompt, **given)
        assert (report.response, report.sentences, len(report.tokens)) == ("", (), 0)

    def test_an_answer_that_ends_at_once_has_no_sentences(self, golden, monitor, prompt):
        script = Script(len(prompt.with_context_ids), [golden.tokenizer.eos_token_id])
        report = monitor.generate(prompt, logits_processor=[script], max_new_tokens=5)
        assert (report.response, report.sentences, report.stop) == ("", (), "end_of_text")

    def test_a_sentence_that_is_too_long_is_cut_and_marked(self, golden, make_monitor, prompt):
        from syncheck import SegmenterConfig

        monitor = make_monitor(golden, segmenter=SegmenterConfig(max_tokens=4))
        report = monitor.score(prompt, " He grew up on a farm")
        assert [s.truncated for s in report.sentences][0] and not report.sentences[-1].truncated
        assert all(s.token_end - s.token_start <= 4 for s in report.sentences)
        assert report.sentences[-1].token_end == len(report.tokens)


class TestScores:
    def test_score_is_the_aggregators_of_the_features(self, golden, make_monitor, prompt):
        monitor = make_monitor(golden, formula=lambda values: values["mean_prob"])
        report = monitor.score(prompt, ANSWER)
        for sentence in report.sentences:
            assert sentence.score == sentence.features["mean_prob"]
            own = np.exp(report.tokens.log_prob[sentence.token_start : sentence.token_end], dtype=np.float64)
            assert sentence.score == pytest.approx(own.mean(), rel=1e-6)

    def test_lid_is_of_the_bank(self, golden, monitor, prompt):
        watched = monitor.replay(prompt, ANSWER)
        for signals, sentence in zip(watched.signals, watched.sentences, strict=True):
            for layer in (2, 3, 4):
                expected = float(golden.lid_references.lid_of(layer, signals.activations[layer][None])[0])
                assert sentence.features[f"lid_layer_{layer}"] == pytest.approx(expected, rel=1e-5)

    def test_without_a_bank_lid_is_not_measured(self, golden, prompt):
        config = MonitorConfig(schema="paper.v1", layers=(2,))
        monitor = Monitor(golden.model, golden.tokenizer, config=config)
        (sentence,) = monitor.score(prompt, " He is.").sentences
        assert sentence.features["lid_layer_2"] is None and sentence.features["align_score"] is None

    def test_a_schema_without_lid_taps_nothing(self, golden, make_monitor, prompt):
        monitor = make_monitor(golden, schema="paper-no-lid.v1")
        watched = monitor.replay(prompt, ANSWER)
        assert watched.signals[0].activations == {}
        assert not any("lid" in name for name in watched.sentences[0].features)


class TestSentencesGiven:
    def test_they_are_used_as_they_are(self, monitor, prompt):
        report = monitor.score(prompt, sentences=[" He grew up.", " On a", " farm. In Wales"])
        assert report.response == " He grew up. On a farm. In Wales"
        assert [s.text for s in report.sentences] == ["He grew up.", "On a", "farm. In Wales"]
        bounds = [(s.token_start, s.token_end) for s in report.sentences]
        assert bounds[0][0] == 0 and bounds[-1][1] == len(report.tokens)
        assert all(a[1] == b[0] for a, b in zip(bounds, bounds[1:], strict=False))

    def test_a_sentence_without_a_token_of_its_own(self, golden, monitor, prompt):
        text = " understudy"
        assert len(golden.tokenizer(text, add_special_tokens=False)["input_ids"]) < len(text)
        report = monitor.score(prompt, sentences=list(text))
        assert [s.text for s in report.sentences] == ["", *text.strip()]
        whole = monitor.score(prompt, text)
        np.testing.assert_allclose(report.tokens.kl, whole.tokens.kl, rtol=0, atol=1e-4)
        empty = [s for s in report.sentences if s.token_start == s.token_end]
        assert empty and all(value is None for s in empty for name, value in s.features.items() if name == "min_prob")

    def test_signals_do_not_depend_on_how_the_text_is_cut(self, monitor, prompt):
        whole = monitor.score(prompt, sentences=[ANSWER]).tokens
        cut = monitor.score(prompt, sentences=[ANSWER[:20], ANSWER[20:71], ANSWER[71:]]).tokens
        np.testing.assert_allclose(whole.kl, cut.kl, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(whole.char_spans, cut.char_spans)


class TestInput:
    @pytest.mark.parametrize(
        "given",
        [{}, {"response": "a", "response_token_ids": [5]}, {"response": "a", "sentences": ["a"]}],
        ids=["none", "text and ids", "text and sentences"],
    )
    def test_exactly_one_form_of_the_response(self, monitor, prompt, given):
        with pytest.raises(InputError, match="sentences"):
            monitor.score(prompt, **given)

    @pytest.mark.parametrize(
        "given",
        [{"response": 5}, {"response": ["a"]}, {"response_token_ids": ["a"]}, {"response_token_ids": [1.0]}],
        ids=str,
    )
    def test_wrong_types(self, monitor, prompt, given):
        with pytest.raises(WrongTypeError):
            monitor.score(prompt, **given)

    @pytest.mark.parametrize(
        ("sentences", "found"),
        [("He is.", "list"), ([5], r"sentences\[0\]")],
    )
    def test_sentences_must_be_a_list_of_strings(self, monitor, prompt, sentences, found):
        with pytest.raises(WrongTypeError, match=found):
            monitor.score(prompt, sentences=sentences)

    @pytest.mark.parametrize("run", [Monitor.generate, Monitor.score, Monitor.attach])
    def test_a_prompt_that_is_a_string(self, monitor, run):
        with pytest.raises(WrongTypeError, match="str"):
            run(monitor, *(("What?", "Anna moved.") if run is Monitor.score else ("What?",)))

    def test_an_unknown_way_to_reveal(self, monitor, prompt):
        with pytest.raises(InputError, match="'late'"):
            next(monitor.stream(prompt, reveal="late", max_new_tokens=3))

    @pytest.mark.parametrize("token", [-1, 900])
    def test_ids_outside_the_vocabulary(self, monitor, prompt, token):
        with pytest.raises(InputError, match=r"0\.\.899"):
            monitor.score(prompt, response_token_ids=[5, token])

    def test_numpy_ids(self, monitor, prompt):
        ids = np.array(monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"])
        assert monitor.score(prompt, response_token_ids=ids).response == ANSWER

    def test_prompt_and_response_longer_than_the_window(self, monitor, prompt, golden, monkeypatch):
        n = len(prompt.with_context_ids)
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", n + 5)
        monitor.score(prompt, response_token_ids=[5] * 5)
        with pytest.raises(PromptError, match=str(n + 6)):
            monitor.score(prompt, response_token_ids=[5] * 6)

    def test_prompt_longer_than_the_window(self, monitor, prompt, golden, monkeypatch):
        n = len(prompt.with_context_ids)
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", n - 1)
        for run in (monitor.generate, monitor.attach):
            with pytest.raises(PromptError, match=str(n - 1)):
                run(prompt, max_new_tokens=2) if run == monitor.generate else run(prompt)

    def test_a_full_window_ends_the_answer(self, monitor, prompt, golden, monkeypatch):
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", len(prompt.with_context_ids) + 7)
        report = monitor.generate(prompt, max_new_tokens=20, eos_token_id=None)
        assert len(report.tokens) == 7
        replayed = monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist())
        np.testing.assert_allclose(report.tokens.kl, replayed.tokens.kl, rtol=0, atol=1e-4)

    def test_equal_prompts(self, monitor):
        from syncheck import prompt_from_texts

        with pytest.raises(PromptError, match="equal"):
            prompt_from_texts(
                monitor.tokenizer, question="?", context="text", with_context="same", without_context="same"
            )

    def test_an_unknown_schema(self, golden):
        with pytest.raises(InputError, match=r"paper\.v9"):
            Monitor(golden.model, golden.tokenizer, config=MonitorConfig(schema="paper.v9"))

    @pytest.mark.parametrize("layer", [-1, 6])
    def test_a_layer_the_model_does_not_have(self, golden, prompt, layer):
        monitor = Monitor(golden.model, golden.tokenizer, config=MonitorConfig(layers=(layer,)))
        with pytest.raises(InputError, match="layers"):
            monitor.score(prompt, ANSWER)

    def test_references_of_another_model(self, golden, prompt):
        config = MonitorConfig(schema="paper.v1", layers=(2,))
        lid_references = LidReferences({2: np.random.default_rng(0).normal(size=(5, 32))})
        monitor = Monitor(
            golden.model, golden.tokenizer, config=config, lid_references=lid_references, aligner=WordAligner()
        )
        with pytest.raises(InputError, match="width"):
            monitor.score(prompt, ANSWER)


def test_the_model_is_put_into_evaluation_mode(golden, make_monitor):
    golden.model.train()
    make_monitor(golden)
    assert not golden.model.training


def test_a_model_that_keeps_its_state_to_itself_is_refused(golden, prompt):
    from transformers import RwkvConfig, RwkvForCausalLM

    sizes = {"vocab_size": 900, "hidden_size": 8, "num_hidden_layers": 2, "attention_hidden_size": 8}
    monitor = Monitor(RwkvForCausalLM(RwkvConfig(**sizes)), golden.tokenizer, config=MonitorConfig())
    with pytest.raises(UnsupportedModelError, match="cache"):
        monitor.score(prompt, ANSWER)


def test_half_precision_follows_float32(golden, monitor, prompt):
    import copy

    import torch

    reference = monitor.score(prompt, ANSWER)
    model = copy.deepcopy(golden.model).to(torch.bfloat16)
    aggregator = FormulaAggregator(feature_schema("paper-no-lid.v1", ()), lambda values: values["mean_prob"])
    config = MonitorConfig(schema="paper-no-lid.v1")
    report = Monitor(model, golden.tokenizer, config=config, aggregator=aggregator).score(prompt, ANSWER)
    assert report.tokens.log_prob.dtype == np.float32
    # eight bits of mantissa in weights and states
    assert np.abs(report.tokens.entropy - reference.tokens.entropy).max() < 0.5
    assert all(math.isfinite(s.score) for s in report.sentences)
