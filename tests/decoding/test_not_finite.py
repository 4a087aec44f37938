"""A sentence has no score where the model put out something that is not finite, whichever way it is measured."""

import logging
from contextlib import contextmanager

import numpy as np
import pytest
from doubles import ANSWER, PASSAGES, QUESTION, Script, SentenceGrammar
from transformers.generation import LogitsProcessorList

from fod import CADGenerator, FODConfig, FODGenerator
from syncheck import EndEvent, SentenceEvent, TokenEvent
from syncheck.labelling import LabelledResponse
from syncheck.training import measure

NAN, INF = float("nan"), float("inf")
HURT = 2
"""The sentence of ANSWER that is hurt."""
KINDS = {"NaN": (NAN, 7), "all NaN": (NAN, slice(None)), "+inf": (INF, 7), "nothing allowed": (-INF, slice(None))}


@pytest.fixture
def monitor(llama, make_monitor):
    return make_monitor(llama, schema="paper.v1")


@pytest.fixture
def ids(llama):
    return llama.tokenizer(ANSWER, add_special_tokens=False)["input_ids"]


@pytest.fixture
def trigger(ids, prompt, monitor):
    """A token of the hurt sentence, not its last, that stands nowhere else."""
    sentence = monitor.score(prompt, response_token_ids=ids).sentences[HURT]
    others = {*prompt.with_context_ids, *ids[: sentence.token_start], *ids[sentence.token_end :]}
    own = ids[sentence.token_start : sentence.token_end - 1]
    return next(token for token in own if token not in others and own.count(token) == 1)


@contextmanager
def hurt(model, trigger, value, entry, *, from_position=0, to_position=10**6):
    """Change the logits that follow a token, where it has one of these positions, whenever the model puts them out."""

    def after(module, args, kwargs, output):
        output.logits = output.logits.clone()
        columns = output.logits.shape[1]
        positions = kwargs["position_ids"].expand_as(kwargs["input_ids"])
        wanted = (kwargs["input_ids"] == trigger) & (positions >= from_position) & (positions < to_position)
        for row, column in wanted[:, -columns:].nonzero().tolist():
            output.logits[row, column, entry] = value

    handle = model.register_forward_hook(after, with_kwargs=True, prepend=True)
    try:
        yield
    finally:
        handle.remove()


def live(monitor, prompt, ids):
    script = LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])
    return monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids))


def streamed(monitor, prompt, ids):
    script = LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])
    *_, end = monitor.stream(prompt, logits_processor=script, max_new_tokens=len(ids))
    return end.report


def replayed(monitor, prompt, ids):
    return monitor.score(prompt, response_token_ids=ids)


def attached(monitor, prompt, ids):
    script = LogitsProcessorList([Script(len(prompt.with_context_ids), ids)])
    with monitor.attach(prompt) as watch:
        output = monitor.model.generate(
            **prompt.inputs(), logits_processor=watch.processors + script, max_new_tokens=len(ids)
        )
    return watch.report(output)


WAYS = pytest.mark.parametrize("way", [live, streamed, replayed, attached], ids=lambda way: way.__name__)


def assert_only_the_hurt_one_failed(report, clean, *words):
    for index, (sentence, expected) in enumerate(zip(report.sentences, clean.sentences, strict=True)):
        if index == HURT:
            assert (sentence.status, sentence.score) == ("failed", None)
            assert all(word in sentence.reason for word in words)
        else:
            assert sentence.status == "scored"
            assert sentence.score == pytest.approx(expected.score, abs=1e-3)


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_fails_the_sentence_and_scores_the_others(monitor, prompt, ids, trigger, way, kind):
    clean = replayed(monitor, prompt, ids)
    with hurt(monitor.model, trigger, *KINDS[kind]):
        assert_only_the_hurt_one_failed(way(monitor, prompt, ids), clean, "logits", "not finite")


@WAYS
def test_the_branch_without_the_context_counts_too(monitor, prompt, ids, trigger, way):
    clean = replayed(monitor, prompt, ids)
    with hurt(monitor.model, trigger, NAN, 7, to_position=len(prompt.with_context_ids)):
        assert_only_the_hurt_one_failed(way(monitor, prompt, ids), clean, "without the context", "not finite")


@WAYS
def test_entries_that_the_model_excludes_are_no_fault(monitor, prompt, ids, trigger, way):
    """Models mask the padding of their vocabulary with -inf."""
    clean = replayed(monitor, prompt, ids)
    unused = [token for token in range(800, 900) if token not in ids]
    with hurt(monitor.model, trigger, -INF, unused):
        report = way(monitor, prompt, ids)
    assert [s.status for s in report.sentences] == ["scored"] * len(clean.sentences)


def test_a_token_that_the_model_excludes_has_no_probability(monitor, prompt, ids, trigger):
    clean = replayed(monitor, prompt, ids)
    with hurt(monitor.model, trigger, -INF, ids[ids.index(trigger) + 1]):
        assert_only_the_hurt_one_failed(replayed(monitor, prompt, ids), clean, "logits", "not finite")


@WAYS
def test_hidden_states_that_are_not_finite(monitor, prompt, ids, way):
    """At the last token of a sentence: the logits that they lead to belong to the next."""
    clean = replayed(monitor, prompt, ids)
    last = ids[clean.sentences[HURT].token_end - 1]
    assert ids.count(last) == 1 and last not in {*prompt.with_context_ids, *prompt.without_context_ids}
    block = monitor.model.model.layers[3]
    seen = []
    handles = [
        monitor.model.register_forward_pre_hook(lambda m, a, k: seen.append(k["input_ids"]), with_kwargs=True),
        block.register_forward_hook(
            lambda m, a, out: out.masked_fill((seen[-1] == last)[..., None], INF), prepend=True
        ),
        # What comes after is as it was, so that these states alone are hurt.
        monitor.model.model.layers[4].register_forward_pre_hook(lambda m, a: (a[0].nan_to_num(posinf=0.0), *a[1:])),
    ]
    try:
        report = way(monitor, prompt, ids)
    finally:
        for handle in handles:
            handle.remove()
    assert (report.sentences[HURT].status, report.sentences[HURT].score) == ("failed", None)
    assert "hidden states" in report.sentences[HURT].reason
    assert report.sentences[0].status == "scored"


class TestDecoding:
    """Where nothing is left to choose from."""

    @pytest.fixture
    def grammar(self, llama, prompt):
        return LogitsProcessorList([SentenceGrammar(llama.tokenizer, prompt.with_context_ids)])

    @pytest.fixture
    def broken_after(self, llama, monitor, prompt, grammar):
        """A token of the second sentence of what would be generated."""
        report = monitor.generate(prompt, logits_processor=grammar, max_new_tokens=30)
        ids = report.tokens.token_ids.tolist()
        start = report.sentences[1].token_start
        return next(t for t in ids[start : start + 3] if ids.count(t) == 1 and t not in prompt.with_context_ids)

    def test_generation_says_it_at_the_first_such_token(self, monitor, prompt, grammar, broken_after, caplog):
        clean = monitor.generate(prompt, logits_processor=grammar, max_new_tokens=30)
        with hurt(monitor.model, broken_after, NAN, slice(None)), caplog.at_level(logging.WARNING):
            report = monitor.generate(prompt, logits_processor=grammar, max_new_tokens=30)
        assert report.stop == "not_finite"
        assert [s.status for s in report.sentences] == ["scored", "failed"]
        assert report.sentences[0].score == pytest.approx(clean.sentences[0].score)
        assert report.tokens.token_ids[-2] == broken_after
        assert sum("finite" in record.message for record in caplog.records) == 1

    def test_a_stream_says_it_at_the_first_such_token(self, monitor, prompt, grammar, broken_after):
        options = {"logits_processor": grammar, "max_new_tokens": 30, "reveal": "immediate"}
        with hurt(monitor.model, broken_after, NAN, slice(None)):
            events = list(monitor.stream(prompt, **options))
        place = next(i for i, e in enumerate(events) if isinstance(e, TokenEvent) and e.token_id == broken_after)
        *others, sentence, end = events[place + 1 :]
        assert sum(isinstance(event, TokenEvent) for event in others) == 1
        assert isinstance(end, EndEvent) and end.report.stop == "not_finite"
        assert isinstance(sentence, SentenceEvent) and sentence.sentence.status == "failed"

    @pytest.mark.parametrize("value", [NAN, INF])
    @pytest.mark.parametrize("do_sample", [False, True])
    def test_a_text_does_not_end_by_such_a_token(self, llama, monitor, prompt, value, do_sample):
        """The first token: were it taken for an end-of-text token, nothing would be wrong with the text."""
        with hurt(monitor.model, prompt.with_context_ids[-1], value, llama.tokenizer.eos_token_id):
            report = monitor.generate(prompt, max_new_tokens=30, do_sample=do_sample)
            again = monitor.score(prompt, response_token_ids=report.tokens.token_ids.tolist())
        assert (report.stop, [s.status for s in report.sentences]) == ("not_finite", ["failed"])
        assert [s.reason for s in again.sentences] == [s.reason for s in report.sentences]

    @pytest.mark.parametrize("on_exhausted", ["stop", "annotate"])
    def test_without_any_logits_there_is_no_answer(self, llama, make_monitor, prompt, on_exhausted):
        monitor = make_monitor(llama, schema="paper.v1", formula=lambda values: 1.0)
        fod = FODGenerator(llama.model, llama.tokenizer, monitor, config=FODConfig(on_exhausted=on_exhausted))
        with hurt(monitor.model, prompt.with_context_ids[-1], NAN, slice(None)):
            report = monitor.generate(prompt, max_new_tokens=30)
            output = fod.generate(prompt, max_new_tokens=30, return_dict_in_generate=True)
        assert (report.stop, report.response, report.sentences) == ("not_finite", "", ())
        assert output.report.stop == {"stop": "abstained", "annotate": "not_finite"}[on_exhausted]
        assert (output.report.response, output.report.sentences) == (output.message or "", ())

    def test_rows_beside_it_go_on(self, llama, monitor, prompt, ids, trigger):
        width = len(prompt.with_context_ids)

        class TwoScripts(Script):
            def __call__(self, input_ids, scores):
                forced = super().__call__(input_ids, scores)
                forced[0] = scores[0] if scores[0].isnan().any() else forced[0]
                forced[1] = -INF
                forced[1, other[input_ids.shape[1] - width]] = 0.0
                return forced

        other = [token if token != trigger else ids[0] for token in ids]
        script = LogitsProcessorList([TwoScripts(width, ids)])
        with hurt(monitor.model, trigger, NAN, slice(None)):
            first, second = monitor.generate([prompt, prompt], logits_processor=script, max_new_tokens=len(ids))
        assert first.stop == "not_finite" and first.sentences[-1].status == "failed"
        assert second.stop == "length" and {s.status for s in second.sentences} == {"scored"}

    def test_a_search_releases_nothing_of_it(self, llama, make_monitor, prompt, grammar):
        monitor = make_monitor(llama, schema="paper.v1", formula=lambda values: 1.0)
        fod = FODGenerator(llama.model, llama.tokenizer, monitor)
        options = {"logits_processor": grammar, "max_new_tokens": 40, "return_dict_in_generate": True}
        clean = fod.generate(prompt, **options)
        second = clean.report.sentences[1]
        ids = clean.report.tokens.token_ids.tolist()
        token = next(t for t in ids[second.token_start : second.token_end] if ids.count(t) == 1)
        with hurt(llama.model, token, NAN, slice(None), from_position=len(prompt.with_context_ids)):
            output = fod.generate(prompt, **options)
        assert output.search.backtracked
        assert {s.status for s in output.report.sentences} <= {"scored"}
        assert token not in output.report.tokens.token_ids.tolist()[:-1]

    @pytest.mark.parametrize("do_sample", [False, True])
    def test_a_contrast_that_is_not_finite_ends_the_text(self, llama, monitor, prompt, do_sample):
        cad = CADGenerator(llama.model, llama.tokenizer, monitor)
        last = len(prompt.without_context_ids) - 1
        with hurt(llama.model, prompt.without_context_ids[-1], NAN, 7, from_position=last, to_position=last + 1):
            output = cad.generate(prompt, max_new_tokens=9, do_sample=do_sample, return_dict_in_generate=True)
        assert (output.report.stop, [s.status for s in output.report.sentences]) == ("not_finite", ["failed"])


def test_no_sentence_of_it_is_trained_on(llama, make_monitor, ids, trigger):
    monitor = make_monitor(llama, formula=None)
    records = [LabelledResponse(str(i), QUESTION, PASSAGES, text, (), "m") for i, text in enumerate([ANSWER, "He is."])]
    with hurt(llama.model, trigger, NAN, 7):
        measured = measure(monitor, records, batch_size=2, show_progress=False)
    assert [record.id for record in measured.records] == ["1"]
    assert "not finite" in measured.left_out["0"]
    assert np.isfinite(measured.values[:, measured.schema.names.index("mean_entropy")]).all()
