"""Errors that a caller can act on. Each message says what was expected, what was found and what to do.

SyncheckError
├── InputError (ValueError)           a value the caller passed cannot be used
│   ├── InsufficientDataError         too few labelled sentences for what was asked; knows how many more
│   ├── PromptError                   prompts that are equal, empty or longer than the window
│   └── RecordError                   one record of a file; knows file, line and field
├── WrongTypeError (TypeError)        a value of the wrong type
├── CheckpointError (ValueError)      saved files that are incomplete, damaged or of an unknown format
│   └── MismatchError                 a checkpoint made for another model, tokenizer or schema
├── UnsupportedModelError (ValueError)  a model or cache that cannot be monitored or rewound this way
├── TextGeneratorError (RuntimeError)     a model asked for a judgement did not answer, or in another form
├── NotReadyError (RuntimeError)      a step was asked for before the one it needs
└── MissingExtraError (ImportError)   an optional package is not installed

LeftOutWarning (UserWarning)          labelled responses are not trained on, and why
"""

from __future__ import annotations

from syncheck.printable import printable

__all__ = [
    "CheckpointError",
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
    """Base of every error that this package raises on purpose; what it quotes is safe to show on a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(SyncheckError, ValueError):
    """A value the caller passed cannot be used."""


class InsufficientDataError(InputError):
    """The labelled sentences are too few, or too often unfaithful, for what was asked.

    Attributes
    ----------
    more_needed : int or None
        How many more would be enough at the rate observed; None where no number would.
    """

    def __init__(self, message: str, *, more_needed: int | None) -> None:
        super().__init__(message)
        self.more_needed = more_needed


class PromptError(InputError):
    """The prompts with and without the context are equal, empty or too long for the model."""


class RecordError(InputError):
    """One record of an input file cannot be used.

    Attributes
    ----------
    source : str
        The file as it was asked for, or ``"-"`` for standard input.
    line : int
        Line number, counted from 1.
    field : str or None
        The field at fault, None when the whole line is.
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
    """A model or cache cannot be monitored, or cannot be rewound, in the way asked for."""


class TextGeneratorError(SyncheckError, RuntimeError):
    """A model that was asked for a judgement could not be reached, or answered in another form than asked for."""


class NotReadyError(SyncheckError, RuntimeError):
    """A step was asked for before the one it needs."""


class MissingExtraError(SyncheckError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    package
        The missing package.
    extra
        The extra of ``syncheck`` that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is not installed; run: pip install 'syncheck[{extra}]'")


class LeftOutWarning(UserWarning):
    """Labelled responses are not trained on: they cannot be measured, or get no score."""

    def __str__(self) -> str:
        return printable(super().__str__())


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
