"""Passages from a text file: its paragraphs."""

from __future__ import annotations

from pathlib import Path

from syncheck.errors import InputError

__all__ = ["read_passages"]


def read_passages(name: str, *, option: str) -> list[str]:
    """Read the paragraphs of a file, white space within them made single.

    Parameters
    ----------
    name
        The file, in UTF-8, with a byte-order mark or without.
    option
        Of the command line, for the messages.

    Raises
    ------
    InputError
        If it cannot be read or holds no text.
    """
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {option} {name!r} as UTF-8 text: {error}") from error
    passages = [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]
    if not passages:
        raise InputError(f"{option} {name!r} holds no text; paragraphs in it become passages")
    return passages
