"""Names of aligners that are not known: a typing error is told from a checkpoint before the Hub is asked at length."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from syncheck.base.errors import CheckpointError, describe_failure

NEARNESS = 0.75
"""Similarity, in [0, 1], from which a name is taken for a mistyped one."""


def cached_file(repository: str, file: str, revision: str | None = None) -> Path | None:
    """Find a file of a repository in the cache of Hugging Face; None where it is missing."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, file, revision=revision)
    return Path(found) if isinstance(found, str) else None


def check_name(name: str | Path, known: Sequence[str]) -> None:
    """Refuse, with a CheckpointError, a single word that is like a known name or that the Hub does not have.

    Paths, names with an owner and checkpoints in the cache pass. The Hub is asked for any other word once and without
    the repeated attempts of a download, which take most of a minute where there is no connection.
    """
    word = str(name)
    if "/" in word or Path(word).exists() or cached_file(word, "config.json") is not None:
        return
    names = f"The names of aligners are {', '.join(known)}"
    if near := get_close_matches(word.lower(), known, 1, NEARNESS):
        raise CheckpointError(
            f"there is no aligner {word!r}; did you mean {near[0]!r}? {names}. Any other name is that of a folder or "
            "of a checkpoint (owner/name)"
        )
    if (fault := _fault_of_the_hub(word)) is not None:
        raise CheckpointError(
            f"{word!r} is neither an aligner's name nor a folder here nor a checkpoint in the cache, and the Hub does "
            f"not give it: {fault}. {names}; the names of most checkpoints have an owner (owner/name)"
        )


def _fault_of_the_hub(repository: str) -> str | None:
    """Say why the Hub does not give the config of a repository; None if it may do so."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        get_hf_file_metadata(hf_hub_url(repository, "config.json"))
    except RepositoryNotFoundError:
        return "it has no such repository"
    except HfHubHTTPError:  # such as a busy server, which the loader asks again
        return None
    except Exception as error:  # no connection, offline mode, a name that it does not allow
        return describe_failure(error)
    return None
