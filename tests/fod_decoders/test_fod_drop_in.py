"""FOD and its baselines are called as ``generate`` is: streamers, batches, limits."""

import pytest
import torch
from doubles import PASSAGES, SentenceGrammar
from test_fod_generator import decoder, grammar, response_of
from transformers import TextStreamer
from transformers.generation import LogitsProcessorList

from fod import AbstainGenerator, BacktrackGenerator, BestOfNGenerator, CADGenerator, FLAREGenerator
from syncheck.base.errors import InputError


def generators(monitor):
    models = (monitor.model, monitor.tokenizer, monitor)
    return {
        "fod": decoder(monitor, 0.6, 0.6),
        "fod-backtrack": BacktrackGenerator(*models, backtrack_threshold=0.2),
        "abstain": AbstainGenerator(*models, threshold=0.0),
        "rerank": BestOfNGenerator(*models, samples=3),
        "cad": CADGenerator(*models),
        "flare": FLAREGenerator(*models, retriever=lambda query: list(PASSAGES)[::-1], threshold=0.001),
    }


NAMES = ("fod", "fod-backtrack", "abstain", "rerank", "cad", "flare")


class Recorder:
    def __init__(self):
        self.parts, self.ended = [], False

    def put(self, value):
        assert value.dim() == 1 or len(value) == 1
        self.parts.append(value.flatten().tolist())

    def end(self):
        self.ended = True


@pytest.mark.parametrize("limit", [60, 9, 1])
def test_nothing_to_reject_and_one_beam_is_greedy(monitor, prompt, limit):
    constraint = grammar(monitor, prompt)
    plain = monitor.model.generate(**prompt.inputs(), max_new_tokens=limit, logits_processor=constraint)
    fod = decoder(monitor, 0.0, beam_size=1, samples_per_step=1)
    assert torch.equal(fod.generate(prompt, max_new_tokens=limit, logits_processor=constraint), plain)


@pytest.mark.parametrize("name", NAMES)
class TestAll:
    def test_a_streamer_is_given_what_is_returned(self, monitor, prompt, name):
        recorder = Recorder()
        ids = generators(monitor)[name].generate(
            prompt, max_new_tokens=40, logits_processor=grammar(monitor, prompt), streamer=recorder
        )
        assert recorder.parts[0] == list(prompt.with_context_ids) and recorder.ended
        assert [i for part in recorder.parts[1:] for i in part] == response_of(prompt, ids)

    def test_a_batch_is_its_prompts_one_by_one(self, monitor, name):
        prompts = [
            monitor.prompt(question="Who is Angus Scott?", context=PASSAGES),
            monitor.prompt(question="Who is he?", context=PASSAGES[:1]),
        ]
        fod = generators(monitor)[name]
        options = {"max_new_tokens": 30, "seed": 2, "logits_processor": grammar(monitor, prompts[0])}
        both = fod.generate(prompts, **options)
        alone = [fod.generate(one, **options) for one in prompts]
        width = len(prompts[0].with_context_ids)
        pad = monitor.model.generation_config.pad_token_id
        pad = monitor.tokenizer.eos_token_id if pad is None else pad
        gap = width - len(prompts[1].with_context_ids)
        assert gap > 0 and both.shape[0] == 2
        for row, one, before in zip(both.tolist(), alone, (0, gap), strict=True):
            (expected,) = one.tolist()
            assert row == [*[pad] * before, *expected, *[pad] * (len(row) - before - len(expected))]
        found = fod.generate(prompts, return_dict_in_generate=True, **options)
        assert [out.sequences.tolist() for out in found] == [one.tolist() for one in alone]

    def test_the_stream_is_the_answer(self, monitor, prompt, name):
        fod = generators(monitor)[name]
        options = {"max_new_tokens": 40, "seed": 1, "logits_processor": grammar(monitor, prompt)}
        *events, end = fod.stream(prompt, **options)
        out = fod.generate(prompt, return_dict_in_generate=True, **options)
        assert end.output.sequences.tolist() == out.sequences.tolist()
        assert [event.sentence.text for event in events] == [s.text for s in out.report.sentences]
        assert [i for event in events for i in event.token_ids] == out.report.tokens.token_ids.tolist()

    def test_custom_generate_is_generate(self, monitor, prompt, name):
        fod = generators(monitor)[name]
        options = {"max_new_tokens": 30, "logits_processor": grammar(monitor, prompt)}
        own = fod.generate(prompt, **options)
        through = monitor.model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt, **options)
        assert torch.equal(through, own)

    def test_custom_generate_takes_a_seed(self, monitor, prompt, name):
        fod = generators(monitor)[name]
        options = {"max_new_tokens": 30, "logits_processor": grammar(monitor, prompt)}
        own = [fod.generate(prompt, seed=seed, **options) for seed in (0, 5)]
        through = [
            monitor.model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt, seed=seed, **options)
            for seed in (0, 5)
        ]
        assert [ids.tolist() for ids in through] == [ids.tolist() for ids in own]
        if name == "rerank":  # it samples every answer
            assert own[0].tolist() != own[1].tolist()

    def test_the_limit_of_tokens(self, monitor, prompt, name):
        for limit in (1, 7):
            out = generators(monitor)[name].generate(
                prompt,
                max_new_tokens=limit,
                logits_processor=grammar(monitor, prompt),
                return_dict_in_generate=True,
            )
            if out.report.stop == "abstained":  # a refusal is whole
                assert out.report.response == out.message
            else:
                assert len(response_of(prompt, out.sequences)) <= limit

    def test_refusals(self, monitor, prompt, name):
        fod = generators(monitor)[name]
        with pytest.raises(InputError, match="num_return_sequences"):
            fod.generate(prompt, num_return_sequences=2, do_sample=True, max_new_tokens=4)
        with pytest.raises(InputError, match="streamer"):
            fod.generate([prompt, prompt], streamer=Recorder(), max_new_tokens=4)
        with pytest.raises(InputError, match="prompt"):
            fod.generate([], max_new_tokens=4)
        with pytest.raises(InputError, match="context"):
            fod.generate(monitor.prompt(question="Who?", context=""), max_new_tokens=4)


def test_a_text_streamer_prints_the_answer(monitor, prompt, capsys):
    streamer = TextStreamer(monitor.tokenizer, skip_prompt=True)
    out = decoder(monitor, 0.0).generate(
        prompt,
        max_new_tokens=30,
        logits_processor=grammar(monitor, prompt),
        streamer=streamer,
        return_dict_in_generate=True,
    )
    assert capsys.readouterr().out.strip() == out.report.response.strip()


def test_custom_generate_of_a_padded_batch(monitor):
    prompts = [
        monitor.prompt(question="Who is Angus Scott?", context=PASSAGES),
        monitor.prompt(question="Who is he?", context=PASSAGES[:1]),
    ]
    fod = decoder(monitor, 0.6, 0.6)
    constraint = LogitsProcessorList([SentenceGrammar(monitor.tokenizer, prompts[0].with_context_ids)])
    own = fod.generate(prompts, max_new_tokens=30, logits_processor=constraint)
    width = len(prompts[0].with_context_ids)
    ids, mask = own[:, :width], torch.ones(2, width, dtype=torch.long)
    mask[1, : width - len(prompts[1].with_context_ids)] = 0
    through = monitor.model.generate(
        input_ids=ids,
        attention_mask=mask,
        custom_generate=fod,
        prompt=prompts,
        max_new_tokens=30,
        logits_processor=constraint,
    )
    assert torch.equal(through, own)


def test_a_streamer_beside_custom_generate_never_gets_here(monitor, prompt):
    """Why the README says not to: once transformers hands it on, or ends it, this can be served."""
    recorder = Recorder()
    monitor.model.generate(
        **prompt.inputs(),
        custom_generate=decoder(monitor, 0.0),
        prompt=prompt,
        streamer=recorder,
        max_new_tokens=8,
        logits_processor=grammar(monitor, prompt),
    )
    assert recorder.parts == [list(prompt.with_context_ids)] and not recorder.ended
