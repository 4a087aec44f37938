"""What a watch refuses: loops that run something else than the prompt it was attached to."""

import numpy as np
import pytest
import torch
from doubles import ANSWER, PASSAGES, Script
from transformers.generation import LogitsProcessorList

from syncheck.base.errors import InputError, WrongTypeError


@pytest.fixture
def golden(llama):
    return llama


def test_processors_change_no_score(monitor, prompt):
    with monitor.attach(prompt) as watch:
        inputs = prompt.inputs()["input_ids"]
        logits = monitor.model(input_ids=inputs).logits[:, -1]
        assert torch.equal(watch.processors(inputs, logits), logits)


def test_a_prompt_of_another_text(monitor, prompt):
    other = monitor.prompt(question="What else?", context=PASSAGES)
    with pytest.raises(InputError, match="another"), monitor.attach(prompt):
        monitor.model.generate(**other.inputs(), max_new_tokens=2)


def test_a_batch(monitor, prompt):
    ids = prompt.inputs()["input_ids"].repeat(2, 1)
    with (
        pytest.raises(InputError, match="attached"),
        monitor.attach(prompt),
    ):
        monitor.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=2)


def test_embeddings(monitor, prompt):
    embeddings = monitor.model.get_input_embeddings()(prompt.inputs()["input_ids"])
    with pytest.raises(WrongTypeError, match="input_ids"), monitor.attach(prompt):
        monitor.model(inputs_embeds=embeddings)


def test_several_tokens_a_step(monitor, prompt):
    ids = torch.cat([prompt.inputs()["input_ids"], torch.tensor([[5, 6]])], 1)
    with pytest.raises(InputError, match="step"), monitor.attach(prompt):
        monitor.model(input_ids=ids)


def test_a_second_answer_in_the_same_watch(monitor, prompt):
    with pytest.raises(InputError, match="sequence"), monitor.attach(prompt):
        for token in (5, 6):
            script = Script(len(prompt.with_context_ids), [token, token])
            monitor.model.generate(**prompt.inputs(), max_new_tokens=2, logits_processor=LogitsProcessorList([script]))


def test_ids_that_the_model_did_not_see(monitor, prompt):
    with monitor.attach(prompt) as watch:
        monitor.model.generate(**prompt.inputs(), max_new_tokens=2)
        with pytest.raises(InputError, match="fed"):
            watch.processors(torch.tensor([[1, 2, 3]]), torch.zeros(1, 9))


class TestFinalIds:
    @pytest.fixture
    def watched(self, monitor, prompt):
        with monitor.attach(prompt) as watch:
            out = monitor.model.generate(**prompt.inputs(), max_new_tokens=6, logits_processor=watch.processors)
        return watch, out

    def test_tensor_list_and_nested_list(self, watched):
        watch, out = watched
        responses = {watch.report(ids).response for ids in (out, out[0], out.tolist(), out[0].tolist())}
        assert len(responses) == 1

    @pytest.mark.parametrize("kind", ["other prompt", "other response", "response alone"])
    def test_ids_of_something_else(self, watched, prompt, kind):
        watch, out = watched
        ids = out[0].tolist()
        n = len(prompt.with_context_ids)
        wrong = {
            "other prompt": [ids[0] + 1, *ids[1:]],
            "other response": [*ids[:n], (ids[n] + 1) % 900, *ids[n + 1 :]],
            "response alone": ids[n:],
        }
        with pytest.raises(InputError, match="continue"):
            watch.report(wrong[kind])

    def test_several_sequences(self, watched):
        watch, out = watched
        with pytest.raises(InputError, match="attached"):
            watch.report(torch.cat([out, out]))

    @pytest.mark.parametrize("value", ["text", None, [1.5, 2.0], 7], ids=repr)
    def test_wrong_types(self, watched, value):
        with pytest.raises(WrongTypeError, match="list"):
            watched[0].report(value)


def test_a_report_of_nothing(monitor, prompt):
    with monitor.attach(prompt) as watch:
        pass
    report = watch.report(prompt.inputs()["input_ids"])
    assert (report.response, report.sentences, len(report.tokens)) == ("", (), 0)


def test_ids_that_another_loop_made_are_fed_afterwards(monitor, prompt):
    ids = [*prompt.with_context_ids, *monitor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"]]
    with monitor.attach(prompt) as watch:
        pass
    report, replayed = watch.report(ids), monitor.score(prompt, ANSWER)
    assert report.response == ANSWER
    np.testing.assert_allclose(report.tokens.kl, replayed.tokens.kl, rtol=0, atol=1e-4)


def test_an_answer_that_ends_at_once(monitor, prompt):
    script = Script(len(prompt.with_context_ids), [monitor.tokenizer.eos_token_id])
    with monitor.attach(prompt) as watch:
        out = monitor.model.generate(
            **prompt.inputs(), logits_processor=LogitsProcessorList([script]), max_new_tokens=5
        )
    report = watch.report(out)
    assert (report.response, report.sentences, len(report.tokens), report.stop) == ("", (), 0, "end_of_text")


def test_the_model_may_run_other_prompts_outside_the_block(monitor, prompt):
    other = monitor.prompt(question="What else?", context=PASSAGES)
    with monitor.attach(prompt) as watch:
        out = monitor.model.generate(**prompt.inputs(), max_new_tokens=4)
    monitor.model.generate(**other.inputs(), max_new_tokens=3)
    ids = watch.report(out).tokens.token_ids.tolist()
    assert ids == out[0, len(prompt.with_context_ids) :].tolist()


def test_a_watched_cache_grows_in_place_and_changes_nothing(monitor, prompt):
    def written(tokens):
        ids, cache, places, logits = prompt.inputs()["input_ids"], None, set(), []
        for token in tokens:
            output = monitor.model(ids if cache is None else ids[:, -1:], past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
            places.add(cache.layers[0].keys.data_ptr())
            logits.append(output.logits[0, -1])
        return torch.stack(logits), len(places)

    tokens = list(range(20, 50))
    with torch.inference_mode():
        plain, _ = written(tokens)
        with monitor.attach(prompt):
            watched, places = written(tokens)
    assert places == 2  # where the prompt was read, and the buffer to which its keys were copied
    torch.testing.assert_close(watched, plain, rtol=0, atol=1e-5)
