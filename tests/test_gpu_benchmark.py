"""The GPU benchmark runs to its end on tiny shapes, so that it works the first time there is a GPU."""

import json
import sys

import gpu
import pytest
import torch


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux")
def test_the_dry_run(tmp_path):
    assert gpu.main(["--dry-run", "--output", str(tmp_path)]) == 0
    for name in ("overhead.json", "fod_cost.json"):
        assert json.loads((tmp_path / name).read_text(encoding="utf-8"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_dry_run_is_named(capsys):
    with pytest.raises(SystemExit):
        gpu.main([])
    assert "--dry-run" in capsys.readouterr().err
