"""An end-of-text token that is written in a text ends it there, as one among token ids does."""

import pytest
from doubles import ANSWER
from test_works_with import same_signals
from transformers import ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

from syncheck import Monitor, MonitorConfig
from syncheck.errors import InputError


@pytest.fixture(params=["llama", "another end"])
def monitor(request, llama, make_monitor):
    monitor = make_monitor(llama)
    if request.param == "another end":  # the model knows more than its tokenizer
        config = llama.model.generation_config
        before = config.eos_token_id
        config.eos_token_id = [before, llama.tokenizer.convert_tokens_to_ids("<pad>")]
        request.addfinalizer(lambda: setattr(config, "eos_token_id", before))
    return monitor


@pytest.fixture
def end(monitor):
    ends = monitor.model.generation_config.eos_token_id
    return monitor.tokenizer.convert_ids_to_tokens(ends[-1] if isinstance(ends, list) else ends)


@pytest.mark.parametrize("behind", ["", " Nobody reads this.", "\n"])
def test_a_text_is_scored_as_its_ids(monitor, prompt, end, behind):
    ids = monitor.tokenizer(ANSWER + end + behind, add_special_tokens=False)["input_ids"]
    by_text, by_ids = monitor.score(prompt, ANSWER + end + behind), monitor.score(prompt, response_token_ids=ids)
    assert by_text.response == by_ids.response == ANSWER
    assert [(s.text, s.token_end) for s in by_text.sentences] == [(s.text, s.token_end) for s in by_ids.sentences]
    same_signals(by_text, by_ids)
    same_signals(by_text, monitor.score(prompt, ANSWER))


def test_a_text_of_an_end_alone_is_empty(monitor, prompt, end):
    report = monitor.score(prompt, end)
    assert (report.response, report.sentences) == ("", ())


def test_sentences(monitor, prompt, end):
    given = [" Scott is a player.", f" He grew up on a farm.{end}"]
    report = monitor.score(prompt, sentences=given)
    assert [s.text for s in report.sentences] == ["Scott is a player.", "He grew up on a farm."]
    same_signals(report, monitor.score(prompt, sentences=[given[0], " He grew up on a farm."]))


def test_sentences_behind_the_end_are_not_lost_in_silence(monitor, prompt, end):
    with pytest.raises(InputError, match="joined"):
        monitor.score(prompt, sentences=[f" Scott is a player.{end}", " He grew up on a farm."])


def test_a_slow_tokenizer(llama):
    tokenizer = ByT5Tokenizer()
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, eos_token_id=1))
    monitor = Monitor(model, tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
    prompt = monitor.prompt(question="Who?", context="He.")
    report = monitor.score(prompt, "He played.</s> No.")
    assert report.response == "He played."
    same_signals(report, monitor.score(prompt, "He played."))
