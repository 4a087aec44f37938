"""What tells a run's options from another's, so that it is not gone on with by other models or options."""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

from syncheck.monitor import Monitor
from syncheck.training.provenance import instrument_of

__all__ = ["digest_of_run"]

_IDLE = frozenset({"input", "output", "html", "resume", "fail_under", "allow_unscored", "model", "aligner"})
"""Options that change no line of the output, and those whose weights are told by :func:`instrument_of`."""
_FILES = ("monitor", "lid_reference", "passages", "spans")


def digest_of_run(args: argparse.Namespace, monitor: Monitor) -> str:
    """Return a digest of all that decides a line of output beside its record.

    Files count by what is in them, wherever they lie; the model and its aligner by their weights.
    """
    options = {name: value for name, value in vars(args).items() if name not in _IDLE}
    for name in _FILES:
        value = options.get(name)
        if value is not None and Path(value).exists():
            options[name] = _content(Path(value))
    facts = {"options": options, "dtype": str(monitor.model.dtype), "version": version("syncheck")}
    return hashlib.sha256(json.dumps(facts | instrument_of(monitor), sort_keys=True).encode()).hexdigest()


def _content(place: Path) -> str:
    """Return a digest of a file, or of the files of a folder with their names in it."""
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(place)}\n{file.stat().st_size}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
