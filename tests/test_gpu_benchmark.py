"""The GPU benchmark runs to its end on tiny shapes, so that it works the first time there is a GPU."""

import json
import sys
from pathlib import Path

import pytest
import torch


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import gpu

    return gpu.main


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux")
def test_the_dry_run(benchmark, tmp_path):
    assert benchmark(["--dry-run", "--output", str(tmp_path)]) == 0
    for name in ("overhead.json", "fod_cost.json"):
        assert json.loads((tmp_path / name).read_text(encoding="utf-8"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_dry_run_is_named(benchmark, capsys):
    with pytest.raises(SystemExit):
        benchmark([])
    assert "--dry-run" in capsys.readouterr().err
