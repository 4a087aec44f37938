"""The conditions of measured times: date, chip, threads, versions and clock."""

from __future__ import annotations

import platform
from datetime import date
from pathlib import Path

import torch
import transformers


def describe_machine(device: str, threads: int, clock: str) -> dict[str, str]:
    """Return the parts of the line above every table."""
    return {
        "date": date.today().isoformat(),
        "chip": torch.cuda.get_device_name() if device == "cuda" else _processor(),
        "threads": f"{threads} thread{'s' if threads > 1 else ''}",
        "versions": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "clock": f"{clock} time",
    }


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
