"""Nothing stays behind an answer, whole or broken off: neither tensors nor memory."""

import gc
import resource
import sys

import pytest
import torch
from doubles import SentenceGrammar
from transformers.generation import LogitsProcessorList

from fod import FODGenerator

GENERATIONS, SETTLED = 500, 100
SLACK_BYTES = 8 * 2**20
"""What allocators may still take after the first generations; the caches of one answer take 0.3 MB here."""


class StoppedError(Exception):
    pass


def _stopping(input_ids, scores):
    if input_ids.shape[1] % 8 == 0:
        raise StoppedError
    return scores


def _tensors():
    gc.collect()
    found = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    return len(found), sum(tensor.nbytes for tensor in found)


def _peak_bytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@pytest.mark.slow
def test_memory_is_flat_over_500_generations(monitor, prompt):
    fod = FODGenerator(
        monitor.model, monitor.tokenizer, monitor, backtrack_threshold=0.6, prune_threshold=0.6, samples_per_step=4
    )
    for number in range(GENERATIONS):
        if number == SETTLED:
            tensors, peak = _tensors(), _peak_bytes()
        constraint = LogitsProcessorList([SentenceGrammar(monitor.tokenizer, prompt.with_context_ids)])
        options = {"seed": number % 7, "max_new_tokens": 12, "logits_processor": constraint}
        if number % 3 == 0:
            fod.generate(prompt, **options)
        elif number % 3 == 1:
            stream = fod.stream(prompt, **options)
            next(stream)
            stream.close()
        else:
            constraint.append(_stopping)
            with pytest.raises(StoppedError):
                fod.generate(prompt, **options)
    assert _tensors() == tensors
    assert _peak_bytes() - peak < SLACK_BYTES
