"""Folders of packed networks: config, arrays and tokenizer."""

from __future__ import annotations

import json
from importlib.resources.abc import Traversable
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor

from syncheck.base.errors import CheckpointError


def read_folder(
    folder: Traversable, config: str, weights: str, expected: str
) -> tuple[dict[str, Any], dict[str, Tensor], Tokenizer]:
    """Read the config, the arrays and the tokenizer, which neither truncates nor pads, from an aligner's folder.

    A missing or damaged file, and a config of another ``format`` than is expected, raise CheckpointError.
    """
    try:
        values = json.loads(folder.joinpath(config).read_text(encoding="utf-8"))
        arrays = load(folder.joinpath(weights).read_bytes())
        written = folder.joinpath("tokenizer.json").read_text(encoding="utf-8")
        try:
            tokenizer = Tokenizer.from_str(written)
        except Exception as error:  # tokenizers raises no other type
            raise ValueError(f"tokenizer.json: {error}") from error
    except FileNotFoundError as error:
        raise CheckpointError(
            f"an aligner's folder holds {config}, {weights} and tokenizer.json; {error.filename!r} is missing: copy "
            "the folder again"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise damaged(folder, expected, error) from error
    kind = values.get("format") if isinstance(values, dict) else None
    if kind != expected:
        raise CheckpointError(
            f"expected an aligner of format {expected!r}, found {kind!r}; load it with the version of syncheck that "
            "wrote it"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return values, arrays, tokenizer


def damaged(folder: Traversable, expected: str, error: Exception) -> CheckpointError:
    """Describe, as an error, a folder whose contents do not match its format."""
    return CheckpointError(
        f"expected an aligner's folder of format {expected!r}, found {str(folder)!r}, which is damaged "
        f"({type(error).__name__}: {error}); copy the folder again"
    )
