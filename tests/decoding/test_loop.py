"""What the decoders share of their loops."""

import pytest

from fod.search import Returning, drain
from syncheck.base.errors import InputError
from syncheck.decoding import prepare_generation, take_step


def counted(number):
    yield from range(number)
    return number


@pytest.mark.parametrize("number", [0, 3])
def test_a_generators_value_is_kept_beside_its_steps(number):
    steps = Returning(counted(number))
    assert list(steps) == list(range(number)) and steps.value == number
    assert drain(counted(number)) == number


def test_the_value_is_there_only_at_the_end():
    steps = Returning(counted(2))
    assert next(iter(steps)) == 0 and not hasattr(steps, "value")


def test_stop_strings_of_a_loop_of_ones_own_need_the_tokenizer(monitor, prompt):
    with pytest.raises(InputError, match="tokenizer="):
        prepare_generation(monitor.model, prompt, max_new_tokens=12, stop_strings=["a"])


@pytest.mark.parametrize("rows", [None, [0]])
def test_steps_of_a_loop_of_ones_own_are_those_of_generate(monitor, prompt, rows):
    plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=12, do_sample=False)
    plan = prepare_generation(monitor.model, prompt, max_new_tokens=12, do_sample=False)
    steps = []
    with monitor.session(prompt) as watched:
        (row,) = watched.decoding.rows
        while not row.ended:
            steps.append(take_step(watched.decoding, plan, lambda scores: scores.argmax(-1), rows=rows))
    assert [*prompt.with_context_ids, *(step.token_ids[0] for step in steps)] == plain[0].tolist()
    assert [step.stops for step in steps] == [(None,)] * 11 + [("length",)]
