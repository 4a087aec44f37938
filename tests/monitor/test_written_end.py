"""An end-of-text token that is written in a text ends it there, as one among token ids does."""

import pytest
from doubles import ANSWER
from test_works_with import same_signals
from transformers import ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import InputError


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
    assert by_text.after_end == by_ids.after_end == behind.strip()
    assert [(s.text, s.token_end) for s in by_text.sentences] == [(s.text, s.token_end) for s in by_ids.sentences]
    same_signals(by_text, by_ids)
    same_signals(by_text, monitor.score(prompt, ANSWER))


def test_a_text_of_an_end_alone_is_empty(monitor, prompt, end):
    report = monitor.score(prompt, end)
    assert (report.response, report.sentences, report.after_end) == ("", (), "")


def test_text_behind_the_end_is_told_in_report_and_batch(monitor, prompt, end):
    report = monitor.score(prompt, f"He is a player.{end} No one reads <this>. {end}")
    assert report.to_dict()["after_end"] == "No one reads <this>."
    empty, whole = monitor.score_batch([prompt] * 2, [f"{end} More.", "He is a player."])
    assert (empty.response, empty.after_end, whole.after_end) == ("", "More.", "")


def test_a_watch_tells_what_it_was_fed_behind_the_end(monitor, prompt, end):
    with monitor.watch_text(prompt) as watch:
        watch.feed(f"He is a player.{end} Nobody")
        watch.feed(" reads this. ")
        watch.close()
    assert (watch.report.response, watch.report.after_end) == ("He is a player.", "Nobody reads this.")


def test_padding_behind_the_end_is_no_text(monitor, prompt, end):
    ids = monitor.tokenizer(ANSWER + 3 * end, add_special_tokens=False)["input_ids"]
    assert monitor.score(prompt, response_token_ids=ids).after_end == ""
    config = monitor.model.generation_config
    before, config.pad_token_id = config.pad_token_id, monitor.tokenizer("a", add_special_tokens=False)["input_ids"][-1]
    try:
        assert monitor.score(prompt, response_token_ids=[*ids, *[config.pad_token_id] * 3]).after_end == ""
    finally:
        config.pad_token_id = before


def test_text_that_the_model_does_not_read_has_no_end(llama, prompt, end):
    text = f"Scott is a player. {end} He grew up on a farm."
    report = Monitor(llama.model, llama.tokenizer).score(prompt, text)
    assert (report.response, report.after_end) == (text, "")
    assert [s.text for s in report.sentences][-1].endswith("He grew up on a farm.")


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
    assert (report.response, report.after_end) == ("He played.", "No.")
    same_signals(report, monitor.score(prompt, "He played."))
