"""Watching changes no token: the ids are those of plain ``model.generate``, for every family."""

import torch

GREEDY = {"do_sample": False}
PENALISED = {"do_sample": False, "repetition_penalty": 1.5}
SAMPLED = {"do_sample": True, "temperature": 0.8, "top_p": 0.9, "top_k": 50}
LENGTH = 5


def test_ids_are_those_of_generate(monitor, prompt):
    chosen = set()
    for options in (GREEDY, PENALISED, SAMPLED):
        ids = seeded(plain, monitor, prompt, options)
        assert len(ids) == LENGTH
        assert seeded(live, monitor, prompt, options) == ids, options
        chosen.add(tuple(ids))
    assert seeded(attached, monitor, prompt, SAMPLED) == ids
    assert len(chosen) > 1  # or a decoder that ignores the options would pass


def seeded(run, monitor, prompt, options):
    torch.manual_seed(11)
    return run(monitor, prompt, min_new_tokens=LENGTH, max_new_tokens=LENGTH, **options)


def plain(monitor, prompt, **options):
    output = monitor.model.generate(**prompt.inputs(), **options)
    return output[0, len(prompt.with_context_ids) :].tolist()


def live(monitor, prompt, **options):
    return monitor.generate(prompt, **options).tokens.token_ids.tolist()


def attached(monitor, prompt, **options):
    with monitor.attach(prompt):
        return plain(monitor, prompt, **options)
