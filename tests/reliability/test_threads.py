"""Threads that share a model get the answers that one thread gets, to the last bit."""

import asyncio
import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import threads
import torch
from doubles import ANSWER, PASSAGES, SentenceGrammar
from jobs import WAYS, Job, fingerprint
from transformers.generation import LogitsProcessorList

from syncheck.base.errors import InputError, NotReadyError

QUESTIONS = ("Who is he?", "Where did Angus Scott grow up, and when?", "Which team signed Scott in 2003?")
THREADS, ANSWERS = 4, 25


@pytest.fixture(scope="module")
def monitor(llama, make_monitor):
    return make_monitor(llama)


@pytest.fixture
def impatient():
    """Threads take turns so often that those that share something meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def prompts(monitor):
    return [monitor.prompt(question=question, context=PASSAGES[: 1 + i % 2]) for i, question in enumerate(QUESTIONS)]


@pytest.fixture(scope="module")
def jobs(prompts):
    return [Job(prompt=p, response=ANSWER[: 60 + 30 * i], seed=i, tokens=12) for i, p in enumerate(prompts)]


def in_threads(work, count):
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work, i) for i in range(count)]]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["one monitor", "a monitor each"])
def test_every_way_beside_every_other(monitor, jobs, shared):
    monitors = [monitor if shared else copy.copy(monitor) for _ in range(THREADS)]
    found = threads.compare(monitors, jobs, threads.serial(monitor, jobs), count=ANSWERS, seed=0)
    assert {outcome for _, outcome in found} == {"same"}
    assert {way for way, _ in found} == set(WAYS)
    assert found.total() == THREADS * ANSWERS


def test_a_stream_goes_on_in_any_thread(monitor, prompts, impatient):
    grammar = LogitsProcessorList([SentenceGrammar(monitor.tokenizer, prompts[0].with_context_ids)])

    def begin(i):
        return monitor.stream(prompts[i], max_new_tokens=30, logits_processor=grammar)

    expected = [fingerprint(list(begin(i))[-1].report) for i in range(len(prompts))]
    streams = in_threads(begin, len(prompts))
    last = [None] * len(streams)
    for turn in range(200):
        place = [(i + turn) % len(streams) for i in range(len(streams))]  # another thread each turn

        def step(worker, place=place):
            return next(streams[place[worker]], None)

        for i, event in zip(place, in_threads(step, len(streams)), strict=True):
            last[i] = event or last[i]
    assert [fingerprint(event.report) for event in last] == expected


def test_a_watch_sees_what_its_own_thread_runs(monitor, prompts):
    with monitor.attach(prompts[0]) as watch:
        (other,) = in_threads(lambda _: monitor.score(prompts[1], ANSWER), 1)
        (tokens,) = in_threads(lambda _: monitor.model.generate(**prompts[2].inputs(), max_new_tokens=3), 1)
        out = monitor.model.generate(**prompts[0].inputs(), max_new_tokens=8, logits_processor=watch.processors)
    assert tokens.shape[1] == len(prompts[2].with_context_ids) + 3
    assert other.sentences
    assert watch.report(out).tokens.token_ids.tolist() == out[0, len(prompts[0].with_context_ids) :].tolist()


def test_a_loop_in_another_thread_than_the_watch_is_told_so(monitor, prompts):
    def loop(watch):
        monitor.model.generate(**prompts[0].inputs(), max_new_tokens=3, logits_processor=watch.processors)

    with monitor.attach(prompts[0]) as watch, pytest.raises(InputError, match="entered"):
        in_threads(lambda _: loop(watch), 1)


def test_a_report_inside_the_block_of_another_thread_is_refused(monitor, prompts):
    with monitor.attach(prompts[0]) as watch:
        out = monitor.model.generate(**prompts[0].inputs(), max_new_tokens=3, min_new_tokens=3)
        with pytest.raises(NotReadyError, match="another"):
            in_threads(lambda _: watch.report(out), 1)
    (report,) = in_threads(lambda _: watch.report(out), 1)
    assert len(report.tokens.token_ids) == 3


def test_asyncio_tasks_each_watch_their_own_loop(monitor, prompts):

    async def answer(prompt):
        with monitor.attach(prompt) as watch:
            ids = prompt.inputs()["input_ids"]
            for _ in range(6):
                logits = monitor.model(input_ids=ids, use_cache=False).logits
                ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
                await asyncio.sleep(0)  # the others' turn, in the same thread
            return fingerprint(watch.report(ids))

    async def together():
        return await asyncio.gather(*map(answer, prompts))

    assert asyncio.run(together()) == [asyncio.run(answer(prompt)) for prompt in prompts]


def test_a_worker_with_the_context_of_the_block_runs_its_loop(monitor, prompts):
    async def answer():
        with monitor.attach(prompts[0]) as watch:
            out = await asyncio.to_thread(
                monitor.model.generate, **prompts[0].inputs(), max_new_tokens=5, logits_processor=watch.processors
            )
            return watch.report(out)

    assert 0 < len(asyncio.run(answer()).tokens.token_ids) <= 5


def test_a_watch_is_left_while_another_thread_is_within_a_forward(monitor, prompts):
    inside, left = threading.Event(), threading.Event()

    def wait(*_):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert left.wait(10)

    handle = monitor.model.register_forward_pre_hook(wait)  # runs before the hook of the watch
    with ExitStack() as stack:
        stack.callback(handle.remove)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        with monitor.attach(prompts[0]):
            forward = pool.submit(monitor.model, **prompts[1].inputs())
            assert inside.wait(10)
        left.set()
        assert forward.result().logits.shape[1] == len(prompts[1].with_context_ids)
