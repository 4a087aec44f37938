"""What a monitor works with: caches, devices, chat templates, options; and what it refuses, with a reason."""

from pathlib import Path

import pytest
import torch
from doubles import ANSWER, LAYERS, PASSAGES, QUESTION, Script
from transformers import AutoModelForCausalLM, BartConfig, BartForCausalLM, T5Config, T5ForConditionalGeneration
from transformers.cache_utils import DynamicCache, QuantizedCache
from transformers.generation import LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import InputError, UnsupportedModelError, WrongTypeError

GOLDEN = Path(__file__).parents[1] / "golden" / "signals"


@pytest.fixture
def golden(llama):
    return llama


def same_signals(report, other, tolerance=1e-4):
    assert report.tokens.token_ids.tolist() == other.tokens.token_ids.tolist()
    for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
        a, b = (torch.from_numpy(getattr(r.tokens, name)) for r in (report, other))
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance)
    for a, b in zip(report.sentences, other.sentences, strict=True):
        assert a.text == b.text
        assert [k for k, v in a.features.items() if v is None] == [k for k, v in b.features.items() if v is None]
        found = {k: v for k, v in a.features.items() if v is not None}
        assert found == pytest.approx({k: b.features[k] for k in found}, rel=1e-3, abs=1e-3)


class TestCaches:
    def test_a_static_cache_of_the_loop_that_is_watched(self, monitor, prompt):
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(**prompt.inputs(), max_new_tokens=12, cache_implementation="static")
        report = watch.report(out)
        assert len(report.tokens) == 12
        same_signals(report, monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist()))

    def test_a_quantised_cache_of_the_loop_that_is_watched(self, monitor, prompt):
        cache = QuantizedCache("fp8", monitor.model.config)
        with pytest.raises(InputError, match="quantised"), monitor.attach(prompt):
            monitor.model.generate(**prompt.inputs(), max_new_tokens=3, past_key_values=cache)

    @pytest.mark.parametrize("kind", ["static", "quantized", "offloaded"])
    def test_another_cache_in_our_own_loop(self, monitor, prompt, kind):
        with pytest.raises(InputError, match="cache_implementation"):
            monitor.generate(prompt, max_new_tokens=3, cache_implementation=kind)

    def test_a_cache_of_the_caller(self, monitor, prompt):
        with pytest.raises(InputError, match="past_key_values"):
            monitor.generate(prompt, max_new_tokens=3, past_key_values=DynamicCache())


class TestOptions:
    @pytest.mark.parametrize("option", ["output_scores", "output_logits", "output_hidden_states", "output_attentions"])
    def test_outputs_that_a_report_does_not_hold(self, monitor, prompt, option):
        with pytest.raises(InputError, match=option):
            monitor.generate(prompt, max_new_tokens=3, return_dict_in_generate=True, **{option: True})

    def test_assisted_decoding(self, monitor, prompt):
        with pytest.raises(InputError, match="prompt_lookup_num_tokens"):
            monitor.generate(prompt, max_new_tokens=3, prompt_lookup_num_tokens=2)

    def test_a_list_of_end_tokens(self, monitor, prompt):
        ids = monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
        script = LogitsProcessorList([Script(len(prompt.with_context_ids), [*ids, 7])])
        report = monitor.generate(prompt, logits_processor=script, max_new_tokens=99, eos_token_id=[5, 7])
        assert (report.response, report.stop) == (ANSWER, "end_of_text")

    def test_a_stopping_criterion_of_the_caller(self, monitor, prompt):
        class AfterSeven(StoppingCriteria):
            def __call__(self, input_ids, scores, **kwargs):
                done = input_ids.shape[1] - len(prompt.with_context_ids) >= 7
                return torch.full((input_ids.shape[0],), done, device=input_ids.device)

        report = monitor.generate(prompt, max_new_tokens=20, stopping_criteria=StoppingCriteriaList([AfterSeven()]))
        assert (len(report.tokens), report.stop) == (7, "criteria")


class TestModels:
    @pytest.mark.parametrize("way", ["by block", "auto"])
    def test_layers_that_are_not_in_memory(self, golden, make_monitor, tmp_path, way):
        """The device map of a model that is larger than its device; blocks on the disk are loaded when they run."""
        everywhere = {name: "cpu" for name in ("model.embed_tokens", "model.rotary_emb", "model.norm", "lm_head")}
        blocks = {f"model.layers.{k}": ("disk" if k % 2 else "cpu") for k in range(6)}
        placed = {
            "by block": {"device_map": everywhere | blocks},
            "auto": {"device_map": "auto", "max_memory": {"cpu": "900KB"}},
        }[way]
        spread = AutoModelForCausalLM.from_pretrained(GOLDEN / "llama", offload_folder=tmp_path, **placed).eval()
        assert set(spread.hf_device_map.values()) == {"cpu", "disk"}
        whole = make_monitor(golden)
        monitor = Monitor(
            spread, golden.tokenizer, config=whole.config, lid_references=golden.lid_references, aligner=whole.aligner
        )
        prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
        same_signals(monitor.score(prompt, ANSWER), whole.score(prompt, ANSWER))
        same_signals(monitor.generate(prompt, max_new_tokens=9), whole.generate(prompt, max_new_tokens=9))
        for sentence in monitor.score(prompt, ANSWER).sentences:
            assert None not in [sentence.features[f"lid_layer_{k}"] for k in LAYERS]

    @pytest.mark.parametrize("way", ["torch.compile(model)", "model.compile()", "forward", "one block"])
    def test_a_compiled_model_is_refused(self, golden, way):
        model = AutoModelForCausalLM.from_pretrained(GOLDEN / "llama")
        if way == "torch.compile(model)":
            model = torch.compile(model, backend="eager")
        elif way == "model.compile()":
            model.compile(backend="eager")
        elif way == "forward":
            model.forward = torch.compile(model.forward, backend="eager")
        else:
            model.model.layers[3].compile(backend="eager")
        with pytest.raises(UnsupportedModelError, match="compiled"):
            Monitor(model, golden.tokenizer, config=MonitorConfig())

    def test_a_wrapper_of_adapters_is_refused(self, golden):
        """As PEFT makes them: their generate runs the model inside."""

        class Wrapper(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model, self.config, self.peft_config = model, model.config, {"default": None}

            def forward(self, input_ids=None, **options):
                return self.model(input_ids=input_ids, **options)

            def get_base_model(self):
                return self.model

        wrapper = Wrapper(golden.model)
        with pytest.raises(UnsupportedModelError, match=r"get_base_model\(\)"):
            Monitor(wrapper, golden.tokenizer, config=MonitorConfig())
        Monitor(wrapper.get_base_model(), golden.tokenizer, config=MonitorConfig())

    def test_a_model_that_is_compiled_later_is_refused(self, golden):
        model = AutoModelForCausalLM.from_pretrained(GOLDEN / "llama")
        monitor = Monitor(model, golden.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
        model.compile(backend="eager")
        with pytest.raises(UnsupportedModelError, match="compiled"):
            monitor.score(prompt, ANSWER)

    def test_padding_that_a_model_would_misread_is_refused(self, golden):
        """It takes no positions; one prompt alone is measured as ever."""
        sizes = {
            "vocab_size": 900,
            "d_model": 16,
            "decoder_ffn_dim": 16,
            "decoder_layers": 2,
            "decoder_attention_heads": 2,
        }
        model = BartForCausalLM(BartConfig(**sizes, max_position_embeddings=256))
        monitor = Monitor(model, golden.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        prompts = [monitor.prompt(question=q, context=PASSAGES) for q in (QUESTION, "Who?")]
        with pytest.raises(UnsupportedModelError, match="position_ids"):
            monitor.score_batch(prompts, [ANSWER, ANSWER])
        for prompt, report in zip(prompts, monitor.score_batch(prompts, [ANSWER, ANSWER], batch_size=1), strict=True):
            same_signals(report, monitor.score(prompt, ANSWER))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"model": "my-model"}, r"model must be a loaded causal language model.*found 'my-model'"),
            ({"model": 5}, r"model must be a loaded.*found int"),
            ({"tokenizer": "my-model"}, r"tokenizer must be the model's tokenizer.*found 'my-model'"),
            ({"aligner": "minicheck"}, r"aligner must be an aligner, as load_aligner.*found 'minicheck'"),
        ],
    )
    def test_a_name_in_place_of_a_part_is_refused(self, golden, given, message):
        with pytest.raises(WrongTypeError, match=message):
            Monitor(**{"model": golden.model, "tokenizer": golden.tokenizer} | given)

    def test_a_model_with_an_encoder_is_refused(self, golden):
        sizes = {"vocab_size": 900, "d_model": 16, "d_ff": 16, "d_kv": 8, "num_layers": 1, "num_heads": 2}
        with pytest.raises(UnsupportedModelError, match="encoder"):
            Monitor(T5ForConditionalGeneration(T5Config(**sizes)), golden.tokenizer, config=MonitorConfig())


@pytest.mark.parametrize("template", ["chat", "plain", "ragtruth-qa"])
def test_a_system_prompt(golden, make_monitor, monkeypatch, template):
    turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<bot>"
    monkeypatch.setattr(golden.tokenizer, "chat_template", turns)
    monitor = make_monitor(golden, template=template)
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES, system="Be brief.")
    start = {"chat": "<system>Be brief.<user>"}.get(template, "Be brief.\n\n")
    assert prompt.with_context.startswith(start) and prompt.without_context.startswith(start)
    same_signals(monitor.generate(prompt, max_new_tokens=9), monitor.generate(prompt, max_new_tokens=9))
