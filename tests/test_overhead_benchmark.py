"""The cost benchmark compares like with like, and runs."""

import json
import sys

import numpy as np
import overhead
import pytest
import torch
from comparison import PLAIN, SIGNALS, WAYS, Setting
from peak_memory import can_measure, peak_mb
from turns import take_turns
from workload import make_job, random_subject

RANDOM = ["overhead.py", "--quick", "--models", "random", "--dtype", "bfloat16"]


@pytest.fixture(scope="module")
def subject():
    return random_subject("tiny", device="cpu", dtype=torch.float32)


@pytest.mark.parametrize("batch", [1, 2])
def test_all_ways_measure_the_same_tokens_and_values(subject, batch):
    job = make_job(subject, context=80, tokens=60, batch=batch, seed=0)
    kinds = Setting(context=80, batch=batch, tokens=60, rounds=1).ways()
    assert (len(WAYS) - len(kinds)) == (batch > 1)  # a stream has one row
    found = {name: way(subject, job, lambda token: None) for name, way in kinds.items()}
    expected = found[SIGNALS]
    assert [row.shape for row in expected] == [(4, 60)] * batch
    assert found.pop(PLAIN) == []
    for name, rows in found.items():
        assert len(rows) == batch
        for row, reference in zip(rows, expected, strict=True):
            # Re-prefill gives all rows as many sentences as the one with the fewest.
            assert row.shape[1] == 60 or (name.startswith("re-prefill") and row.shape[1] > 24)
            np.testing.assert_allclose(row, reference[:, : row.shape[1]], atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_the_quick_run_prints_every_table_and_writes_its_figures(capsys, monkeypatch, tmp_path):
    output = tmp_path / "overhead.json"
    monkeypatch.setattr(sys, "argv", [*RANDOM, "--output", str(output)])
    overhead.main()
    shown = capsys.readouterr().out
    for part in ("times plain generate", "times the two forward passes", "peak memory", "decode time relative to"):
        assert part in shown
    (model,) = json.loads(output.read_text())["models"]
    assert model["dtype"] == "torch.bfloat16"
    for setting in model["settings"]:
        assert all(cost["decode"] and min(cost["decode"]) > 0 for cost in setting["ways"].values())


def test_turns_alternate_and_errors_come_back():
    order = []

    def way(name):
        def play(pause):
            for step in range(3):
                order.append((name, step))
                pause()

        return play

    seconds = take_turns({"a": way("a"), "b": way("b")}, device="cpu")
    assert order == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]
    assert [len(taken) for taken in seconds.values()] == [4, 4]

    def failing(pause):
        pause()
        raise ZeroDivisionError("in a way")

    with pytest.raises(ZeroDivisionError, match="way"):
        take_turns({"a": way("a"), "failing": failing}, device="cpu")


def test_peak_memory_is_what_a_call_holds_at_once_however_often_it_is_repeated():
    if not can_measure("cpu"):
        pytest.skip("needs Linux with glibc")

    def hold(megabytes):
        kept = torch.ones(megabytes * 250_000)
        (torch.ones(megabytes * 250_000), kept.sum())

    hold(1)
    for _ in range(3):
        assert peak_mb(lambda: hold(40), device="cpu") == pytest.approx(80, abs=2)
    assert peak_mb(lambda: hold(10), device="cpu") == pytest.approx(20, abs=2)
