"""The benchmark of FOD's cost compares ways that decode the same tokens, and runs."""

import json
import sys

import fod_cost
import fod_rounds
import pytest
import torch
from workload import random_subject

SENTENCES, SIZES = 3, (2, 6)


@pytest.fixture(scope="module")
def subject():
    return random_subject("tiny", device="cpu", dtype=torch.float32)


@pytest.fixture(scope="module")
def searched(subject):
    """A search twice over, with the rounds that were announced."""
    prompt, pool = fod_rounds.pool_of(subject, context=80, seed=0)
    rounds = []
    outputs = [
        fod_rounds.fod(subject, prompt, pool, sentences=SENTENCES, sizes=SIZES, between=rounds.append) for _ in range(2)
    ]
    return [fod_rounds.search_of(subject, prompt, output) for output in outputs], pool, rounds, outputs


def test_the_search_is_scripted(searched):
    (search, again), pool, rounds, outputs = searched
    assert search == again and rounds == [0, 1, 2, 3] * 2
    assert [len(step) for step in search.rounds] == [3, 6, 6]
    samples = [sample for step in search.rounds for _, sample in step]
    assert {search.greedy, *samples} <= set(pool)
    assert sum(map(len, samples)) == search.sampled_tokens
    assert search.sampled_tokens + len(search.greedy) <= outputs[0].sampled_tokens + 1
    for step in search.rounds:
        first = [(before, sample[0]) for before, sample in step]
        assert len(set(first)) == len(first)
    parts = [
        sample
        for start, end in zip((0, *search.ends[:-1]), search.ends, strict=True)
        for sample in samples
        if sample == search.answer[start:end]
    ]
    assert search.ends[-1] == len(search.answer) and len(parts) >= SENTENCES


def test_the_other_ways_decode_what_the_search_did(subject, searched, monkeypatch):
    (search, _), *_ = searched
    asked = []
    for monitored in (False, True):
        fod_rounds.greedy(subject, search, asked.append, monitored=monitored)
    assert asked == [*range(len(search.answer))] * 2
    jobs, turns = [], []
    monkeypatch.setattr(fod_rounds, "plain", lambda subject, job, between: jobs.append(job))
    fod_rounds.published(subject, search, turns.append, tokens=65)
    assert turns == [0, 1, 2, 3]
    written = [(job.prompts[0].with_context_ids[len(search.prompt.with_context_ids) :], job.answers[0]) for job in jobs]
    expected = [((), search.greedy), *(pair for step in search.rounds for pair in step)]
    pairs = zip(written, expected, strict=True)
    assert [(before, sample[: len(other)]) for (before, sample), (_, other) in pairs] == expected
    assert {len(sample) for _, sample in written} == {65}


@pytest.mark.slow
def test_the_quick_run_prints_its_table_and_writes_its_figures(capsys, monkeypatch, tmp_path):
    output = tmp_path / "fod.json"
    monkeypatch.setattr(sys, "argv", ["fod_cost.py", "--quick", "--models", "random", "--output", str(output)])
    fod_cost.main()
    shown = capsys.readouterr().out
    for part in ("times plain generate", "times monitored greedy", "published way, times FOD's", "K=2, S=6"):
        assert part in shown
    (setting,) = json.loads(output.read_text())["settings"]
    for compared in setting["fod_over"].values():
        assert len(compared["rounds"]) == 2 and min(compared["rounds"]) > 0
        assert compared["of_the_sums"] == pytest.approx(compared["seconds"][0] / compared["seconds"][1])


@pytest.mark.slow
def test_branches_are_compared_with_plain_generate_on_the_same_questions(capsys, monkeypatch, tmp_path):
    output = tmp_path / "fod.json"
    options = ["--quick", "--models", "copying", "--propose", "branch", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["fod_cost.py", *options])
    fod_cost.main()
    shown = capsys.readouterr().out
    for part in ("a step of 6 rows takes", *(f"alpha {alpha:g} |" for alpha in (0, fod_cost.REPAIR.alpha))):
        assert part in shown
    (setting,) = json.loads(output.read_text())["settings"]
    assert setting["tokens"].keys() == {*setting["over_plain"], fod_cost.PLAIN}
