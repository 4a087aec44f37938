"""Peak memory of a call, above what was in use when it began."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Value to write to ``clear_refs`` to set the peak of the resident memory back to its present value (man 5 proc)."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""glibc's numbers (malloc.h)."""
KEEP_LITTLE = {M_MMAP_THRESHOLD: 16 * 1024, M_TRIM_THRESHOLD: 16 * 1024}
"""Bytes: free blocks larger than this go back to the system at once."""
KEEP_MUCH = {M_MMAP_THRESHOLD: 32 * 1024**2, M_TRIM_THRESHOLD: 64 * 1024**2}
"""The threshold that glibc itself arrives at in a process that has freed large blocks (man 3 mallopt)."""


def can_measure(device: str) -> bool:
    """Return True if :func:`peak_mb` works here: on CUDA, and on a CPU with Linux and glibc."""
    return device == "cuda" or (sys.platform == "linux" and CLEAR.exists() and hasattr(ctypes.CDLL(None), "mallopt"))


def peak_mb(call: Callable[[], object], *, device: str) -> float:
    """Run a call and return its peak, in MB (10^6 bytes), above the memory in use before.

    On CUDA it is what torch's allocator handed out. On a CPU it is the resident memory of the process; meanwhile the
    heap keeps no large free blocks, for what it keeps of one call would hide the needs of the next, which makes the
    call slower. Repeated calls agree within 1 MB, except the first, which fills what libraries keep for themselves.
    """
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    _set_heap(KEEP_LITTLE)
    try:
        ctypes.CDLL(None).malloc_trim(0)
        CLEAR.write_text(RESET_PEAK)
        start, files = resident_bytes("VmRSS"), resident_bytes("RssFile")
        call()
        # Pages of libraries that are loaded meanwhile are not memory of the call.
        return (resident_bytes("VmHWM") - start - (resident_bytes("RssFile") - files)) / 1e6
    finally:
        _set_heap(KEEP_MUCH)


def _set_heap(options: Mapping[int, int]) -> None:
    for option, value in options.items():
        if not ctypes.CDLL(None).mallopt(option, value):
            raise OSError(f"mallopt({option}, {value}) was refused; peak memory cannot be measured here")


def resident_bytes(name: str) -> int:
    """Read a number of bytes of this process from its status, such as VmRSS or VmHWM."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{STATUS} has no line of the form '{name}:  1234 kB'")
    return int(found.group(1)) * 1024
