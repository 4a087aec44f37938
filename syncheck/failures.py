"""Errors that are not of our own tree, in one line: which they are, what they say, whether memory ran out."""

from __future__ import annotations

from syncheck.errors import SyncheckError
from syncheck.printable import printable

__all__ = ["describe_failure", "is_out_of_memory"]

SHOWN = 400
"""Characters of a foreign message that are shown; some quote a whole file."""

_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says of the memory of a CPU in a plain ``RuntimeError``."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, that of the CPU or of an accelerator."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, without loading torch
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def describe_failure(error: BaseException) -> str:
    """Return an error as one line; of one that is not ours also its type, and what to do where memory ran out."""
    if isinstance(error, SyncheckError):
        return str(error)
    said = printable(" ".join(str(error).split()))
    found = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if len(found) > SHOWN:
        found = f"{found[:SHOWN]}... ({len(found)} characters)"
    if is_out_of_memory(error):
        return f"out of memory ({found}); pass shorter texts, or use a device with more memory"
    return found
