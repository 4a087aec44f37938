"""How a command ends other than by its own exit code: interrupted, or without anybody who reads its output."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from syncheck.errors import describe_failure

__all__ = ["INTERRUPTED", "one_line_logs", "reader_left"]


INTERRUPTED = 130
"""128 and the number of SIGINT."""

READER_LEFT = 141
"""128 and the number of SIGPIPE."""


def reader_left() -> int:
    """Let what is still to be written go nowhere, without a word; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError):  # a stream without a descriptor is not flushed again at the end of the process
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return READER_LEFT


class _OneLine(logging.Formatter):
    """Says of an error that was logged what it is, without its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        return message if error is None else f"{message}: {describe_failure(error)}"


@contextmanager
def one_line_logs() -> Iterator[None]:
    """Show warnings and errors that are logged as one line each until the block ends."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_OneLine())
    loggers = [logging.getLogger(name) for name in ("syncheck", "fod")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
