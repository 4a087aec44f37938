"""Nothing grows from answer to answer, and what grows is noticed."""

from pathlib import Path

import pytest
import soak
from doubles import ANSWER, PASSAGES, QUESTION

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@pytest.fixture(scope="module")
def monitor(llama, make_monitor):
    return make_monitor(llama)


@pytest.fixture(scope="module")
def prompt(monitor):
    return monitor.prompt(question=QUESTION, context=PASSAGES)


@pytest.mark.slow
def test_nothing_grows(monitor, prompt):
    ways = soak.ways_over(monitor, [prompt], 30, 5, seed=0, tokens=8)
    before, after, memory = soak.soak(monitor, ways, say_every=10)
    assert soak.growth(before, after, memory) == []
    assert len(memory) == 1 + 3 + 1  # at the start, every ten answers, and at the end of each way


def test_a_hook_that_stays_is_noticed(monitor, prompt):
    handles = []

    def answer(i):
        handles.append(monitor.model.register_forward_hook(lambda *_: None))
        return monitor.score(prompt, ANSWER[:20])

    before, after, memory = soak.soak(monitor, [("score", 2, answer), ("again", 2, answer)])
    found = soak.growth(before, after, memory)
    for handle in handles:
        handle.remove()
    assert found == [f"hooks: {before.hooks} before, {before.hooks + 4} after"]


def test_memory_may_level_off_but_not_go_on_growing():
    held = soak.Held(hooks=0, threads=1, files=3, memory_mib=0.0)
    assert soak.growth(held, held, [100.0, 300.0, *[400.0] * 20]) == []
    (found,) = soak.growth(held, held, [100.0 + 10 * i for i in range(30)])
    assert found.startswith("memory_mib")


@pytest.mark.parametrize("name", ["threads", "files"])
def test_what_is_not_given_back_is_noticed(name):
    before = soak.Held(hooks=0, threads=1, files=3, memory_mib=0.0)
    after = soak.Held(**{"hooks": 0, "threads": 1, "files": 3, "memory_mib": 0.0, name: 9})
    assert [line.split(":")[0] for line in soak.growth(before, after, [1.0] * 6)] == [name]
