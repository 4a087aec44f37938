"""The batch of a round shrinks as rows finish their sentence, and nothing that is measured changes by it."""

import gc

import pytest
import torch
from doubles import LAYERS, PASSAGES, QUESTION
from test_fod_generator import grammar

from fod import FODConfig, FODGenerator, SentenceProposer, Thresholds, search
from syncheck import SegmenterConfig
from syncheck.base.errors import NotReadyError
from syncheck.decoding import SearchSession, prepare_generation
from syncheck.prompts import build_prompt
from syncheck.results.types import SentenceSignals

TEXTS = (" No.", " He is a player.", " The farm in New South Wales lies far from any other farm.")
FILLER = 5


@pytest.fixture
def prompt(golden):
    return build_prompt(golden.tokenizer, question=QUESTION, context=PASSAGES)


@pytest.fixture
def session(golden, prompt):
    with SearchSession(golden.model, golden.tokenizer, prompt, layers=LAYERS, segmenter=SegmenterConfig()) as opened:
        opened.select([0] * len(TEXTS))
        yield opened


def columns(golden, texts):
    """The tokens of each text with the one behind it that closes the sentence."""
    return [golden.tokenizer(text + " The", add_special_tokens=False)["input_ids"] for text in texts]


def write(session, rows, **options):
    for step in range(max(map(len, rows))):
        session.push(torch.tensor([row[step] if step < len(row) else FILLER for row in rows]), **options)


@pytest.fixture
def fed(golden):
    """Cache and number of tokens of every forward."""
    found = []
    handle = golden.model.register_forward_pre_hook(
        lambda module, args, kwargs: found.append((kwargs["past_key_values"], kwargs["input_ids"].numel())),
        with_kwargs=True,
    )
    yield found
    handle.remove()


def test_rows_leave_the_batch_behind_their_sentence(golden, session, fed):
    rows = columns(golden, TEXTS)
    write(session, rows, one_sentence=True)
    assert session.complete() and session.running == []
    lengths = [len(row) - 1 for row in rows]  # the token that closes a sentence is not fed
    tokens = [count for _, count in fed]
    assert tokens == [sum(length > step for length in lengths) for step in range(max(lengths))]
    session.measure()
    assert [count for _, count in fed[len(tokens) :]] == [3 * max(lengths)]  # one pass without the context


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_what_is_measured_and_what_follows_is_that_of_rows_alone(golden, prompt, session, order):
    texts = [TEXTS[i] for i in order]
    rows = columns(golden, texts)
    write(session, rows, one_sentence=True)
    measured = session.measure()
    session.select([2, 0, 1, 0])
    after = session.next_logits
    for place, row in enumerate([2, 0, 1, 0]):
        with SearchSession(golden.model, golden.tokenizer, prompt, layers=LAYERS, segmenter=SegmenterConfig()) as alone:
            write(alone, rows[row : row + 1])
            ((expected,),) = alone.measure()
            alone.select([0])
            torch.testing.assert_close(after[place], alone.next_logits[0], rtol=0, atol=1e-4)
        (found,) = measured[row]
        assert (found.text, found.span.token_end) == (expected.text, expected.span.token_end)
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            torch.testing.assert_close(
                torch.tensor(getattr(found, name)), torch.tensor(getattr(expected, name)), rtol=0, atol=1e-4
            )
        for layer in LAYERS:
            torch.testing.assert_close(
                torch.tensor(found.activations[layer]), torch.tensor(expected.activations[layer]), rtol=0, atol=5e-4
            )


def test_backtracking_while_rows_are_left_out(golden, session):
    before = session.next_logits.clone()
    write(session, columns(golden, TEXTS), one_sentence=True)
    session.select([0, 1, 2], keep_sentences=False)
    torch.testing.assert_close(session.next_logits, before, rtol=0, atol=0)
    write(session, columns(golden, TEXTS), one_sentence=True)
    assert [len(row) for row in session.measure()] == [1, 1, 1]


@pytest.mark.slow
def test_a_longer_round_than_the_buffer(golden, session):
    """The buffers grow while a row is left out; it is still there afterwards."""
    long = TEXTS[2].removesuffix(".") + " and the farm of the player" * 30 + "."
    rows = columns(golden, [TEXTS[0], long, TEXTS[1]])
    assert len(rows[1]) > 100
    write(session, rows, one_sentence=True)
    measured = session.measure()
    session.select([0])
    with_others = session.next_logits[0]
    assert measured[0][0].text == TEXTS[0].strip()
    session.push(torch.tensor([FILLER]))
    assert with_others.isfinite().all() and session.next_logits.isfinite().all()


@pytest.mark.parametrize("step", ["push", "advance"])
def test_going_on_with_rows_that_have_left(golden, session, step):
    write(session, columns(golden, TEXTS), one_sentence=True)
    session.measure()
    with pytest.raises(NotReadyError, match="select"):
        session.push(torch.tensor([FILLER] * 3)) if step == "push" else session.advance()


def test_the_contrast_is_what_the_other_prompt_predicts(golden, prompt, session):
    ids = columns(golden, [" He is a player"])[0][:-1]
    for token in ids:
        session.push(torch.tensor([token] * 3))
    with torch.no_grad():
        expected = golden.model(torch.tensor([[*prompt.without_context_ids, *ids]]), use_cache=False).logits[0, -1]
    torch.testing.assert_close(session.contrast_logits[1], expected, rtol=0, atol=1e-4)


def test_no_contrast_without_a_context(golden):
    bare = build_prompt(golden.tokenizer, question=QUESTION, context="")
    with SearchSession(golden.model, golden.tokenizer, bare, segmenter=SegmenterConfig()) as session:
        with pytest.raises(NotReadyError, match="contrast"):
            session.contrast_logits  # noqa: B018 - a property that raises


def test_a_search_feeds_each_sampled_token_once(monitor, prompt, fed):
    fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, backtrack_threshold=1.0, prune_threshold=0.0)
    out = fod.generate(
        prompt, max_new_tokens=40, logits_processor=grammar(monitor, prompt), return_dict_in_generate=True
    )
    assert len(out.search.rounds) > 1
    (_, encoded), *_ = fed
    assert encoded == len(prompt.with_context_ids)
    decoded = sum(count for cache, count in fed if cache is fed[0][0]) - encoded
    assert decoded <= out.sampled_tokens + 1  # only the token that is last at the limit is fed to be measured
    (without_context, encoded), rows = fed[1], 6
    assert encoded == len(prompt.without_context_ids)
    taken_back = len(monitor.tokenizer(" " + out.dropped[0].text, add_special_tokens=False)["input_ids"])
    longest = sum(max(len(c.token_ids) for c in round_.candidates) for round_ in out.search.rounds)
    read = sum(count for cache, count in fed if cache is without_context) - encoded
    assert 0 < read <= rows * longest + taken_back  # every sentence once


@pytest.mark.slow
def test_a_tree_and_a_batch_find_the_same(monitor, prompt, monkeypatch):
    fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, backtrack_threshold=1.0, prune_threshold=0.0)

    def search():
        return fod.generate(
            prompt, max_new_tokens=60, logits_processor=grammar(monitor, prompt), return_dict_in_generate=True, seed=3
        ).search

    found = search()
    monkeypatch.setattr("syncheck.signals.branch.reads_less", lambda model, rows: False)
    expected = search()
    assert len(found.rounds) > 1
    for one, other in zip(found.rounds, expected.rounds, strict=True):
        assert [c.token_ids for c in one.candidates] == [c.token_ids for c in other.candidates]
        scores = [[s.score for c in step.candidates for s in c.sentences] for step in (one, other)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_an_exception_leaves_no_hooks(monitor, prompt):
    def failing(input_ids, scores):
        if len(input_ids) > 1:
            raise ZeroDivisionError("in stage 2")
        return scores

    fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, backtrack_threshold=1.0, prune_threshold=0.0)
    constraint = grammar(monitor, prompt)
    constraint.append(failing)
    with pytest.raises(ZeroDivisionError, match="stage"):
        fod.generate(prompt, max_new_tokens=40, logits_processor=constraint)
    assert not [h for m in monitor.model.modules() for h in m._forward_hooks.values() if "syncheck" in h.__module__]


def test_only_what_lives_is_remembered(monitor, prompt):
    """Of candidates that no beam goes through, nothing is held once the next ones are proposed."""
    config = FODConfig(beam_size=2, samples_per_step=6, until="all", max_sentences=5)
    plan = prepare_generation(
        monitor.model, prompt, max_new_tokens=200, logits_processor=grammar(monitor, prompt, least_sentences=3)
    )
    sizes, held, proposed = {}, [], 0

    def counted(beams, **asked):
        nonlocal proposed
        candidates = propose(beams, **asked)
        sizes.update({c.handle: len(c.sentences) for c in candidates})
        proposed += sum(len(c.sentences) for c in candidates)
        kept = {handle for beam in (*beams, *asked.get("waiting", ())) for handle in beam.handles}
        held.append((_measured() - before, sum(sizes[handle] for handle in {*kept, *(c.handle for c in candidates)})))
        return candidates

    with monitor.session(prompt) as watched:
        before = _measured()
        propose = SentenceProposer(watched, plan, config, generator=torch.Generator().manual_seed(1))
        result = search(counted, config, Thresholds(1.0, 0.0))
        report = propose.report(result.beam, stop=result.stop, seconds=0.0)
    assert len(held) > 3 and all(found == expected for found, expected in held)
    assert held[-1][1] < proposed and len(report.sentences) == len(result.beam.sentences)


def _measured():
    return sum(type(thing) is SentenceSignals for thing in gc.get_objects())
