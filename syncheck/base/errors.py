"""Errors that a caller can act on; each message says what was expected, what was found and what to do.

SyncheckError
├── InputError (ValueError)           a value the caller passed cannot be used
│   ├── InsufficientDataError         too few labelled sentences for the request
│   ├── PromptError                   prompts that are equal, empty or longer than the window
│   └── RecordError                   one record of a file; knows file, line and field
├── WrongTypeError (TypeError)        a value of the wrong type
├── CheckpointError (ValueError)      saved files that are incomplete, damaged or of an unknown format
│   └── MismatchError                 a checkpoint made for another model, tokenizer or schema
├── UnsupportedModelError (ValueError)  a model or cache that cannot be monitored or rewound this way
├── TextGeneratorError (RuntimeError)     a model asked for a judgement did not answer as expected
├── EndpointError (RuntimeError)          an inference server cannot be reached, refuses, or answers in another form
├── NotReadyError (RuntimeError)      a step was requested before the one it needs
└── MissingExtraError (ImportError)   an optional package is not installed

LeftOutWarning (UserWarning)          labelled responses are not trained on, and why
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from syncheck.base.printable import printable

__all__ = [
    "CheckpointError",
    "EndpointError",
    "InputError",
    "InsufficientDataError",
    "LeftOutWarning",
    "MismatchError",
    "MissingExtraError",
    "NotReadyError",
    "PromptError",
    "RecordError",
    "SyncheckError",
    "TextGeneratorError",
    "UnsupportedModelError",
    "WrongTypeError",
    "describe_failure",
    "is_out_of_memory",
]


class SyncheckError(Exception):
    """Base of all errors that this package raises on purpose; its text is safe to show on a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(SyncheckError, ValueError):
    """A value the caller passed cannot be used."""


class InsufficientDataError(InputError):
    """The labelled sentences are too few, or too often unfaithful."""


class PromptError(InputError):
    """The prompts with and without the context are equal, empty or too long for the model."""


class RecordError(InputError):
    """One record of a file cannot be used.

    ``source`` is the file (``"-"`` for standard input), ``line`` counts from 1, and ``field`` is None if the whole line
    is at fault.
    """

    def __init__(self, message: str, *, source: str, line: int, field: str | None = None) -> None:
        where = f"{source}:{line}" + (f", field {field!r}" if field else "")
        super().__init__(f"{where}: {message}")
        self.source = source
        self.line = line
        self.field = field


class WrongTypeError(SyncheckError, TypeError):
    """A value has the wrong type."""


class CheckpointError(SyncheckError, ValueError):
    """Saved files are incomplete, damaged or of an unknown format."""


class MismatchError(CheckpointError):
    """A checkpoint was made for another model, tokenizer or feature schema."""


class UnsupportedModelError(SyncheckError, ValueError):
    """A model or cache cannot be monitored, or cannot be rewound, in the way requested."""


class TextGeneratorError(SyncheckError, RuntimeError):
    """A model that was prompted for a judgement could not be reached, or its answer has an unexpected form."""


class EndpointError(SyncheckError, RuntimeError):
    """An inference server cannot be reached in time, refuses, or answers in another form.

    ``status`` is the HTTP status of the answer, None without one.
    """

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class NotReadyError(SyncheckError, RuntimeError):
    """A step was requested before the step it depends on."""


class MissingExtraError(SyncheckError, ImportError):
    """An optional ``package`` is not installed; the message has the command that installs it, by its ``extra``."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is not installed; run: pip install 'syncheck[{extra}]'")

    @classmethod
    @contextmanager
    def unless(cls, package: str, extra: str) -> Iterator[None]:
        """Replace the ImportError of a block that imports the package with this error."""
        try:
            yield
        except ImportError as error:
            raise cls(package, extra) from error


class LeftOutWarning(UserWarning):
    """Labelled responses are left out of training, because they cannot be measured or get no score."""

    def __str__(self) -> str:
        return printable(super().__str__())


SHOWN = 400  # characters of another library's message; some quote a whole file
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # words of torch's plain RuntimeError
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether the memory of the CPU or of an accelerator ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, without loading torch
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def describe_failure(error: BaseException) -> str:
    """Describe an error on one line: its type if it is not this package's, and advice if memory or disk is full."""
    if isinstance(error, SyncheckError):
        return str(error)
    said = printable(" ".join(str(error).split()))
    described = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if len(described) > SHOWN:
        described = f"{described[:SHOWN]}... ({len(described)} characters)"
    if is_out_of_memory(error):
        return f"out of memory ({described}); pass shorter texts, or use a device with more memory"
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return f"no room on the disk ({described}); free some, or write to another one"
    return described
