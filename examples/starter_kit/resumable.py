"""An optimizer's state and a run's progress on disk, so that training continues where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

_STATE = "optimizer.safetensors"
_PROGRESS = "progress.json"


def save_progress(path: Path, optimizer: torch.optim.Optimizer, progress: dict[str, float]) -> None:
    """Write the optimizer's state, then the progress, whose file is replaced last."""
    state = {
        f"{index}.{name}": value.contiguous()
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }
    save_file(state, path / _STATE)
    temporary = path / "progress.tmp"
    temporary.write_text(json.dumps(progress))
    temporary.replace(path / _PROGRESS)


def restore_optimizer(path: Path, optimizer: torch.optim.Optimizer) -> None:
    """Load the optimizer's state that :func:`save_progress` wrote."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in load_file(path / _STATE).items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
