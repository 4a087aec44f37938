"""The Hugging Face Hub: folders of monitors, fetched by the name of a repository."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from syncheck import checkpoint
from syncheck.aggregators.aggregator import file_names
from syncheck.aggregators.kinds import KINDS
from syncheck.base.errors import CheckpointError, InputError, describe_failure
from syncheck.base.files import DIGESTS

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def fetched(
    name: str | Path,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Return a monitor's folder: the one named, or that of a repository ``owner/name`` in the Hub's cache.

    A string is taken for a repository only if neither it nor its first part is a folder. A revision of a folder raises
    InputError; a repository that cannot be fetched raises CheckpointError.
    """
    if not is_repository(name):
        if revision is not None:
            raise InputError(
                f"revision is for a repository, 'owner/name'; found the folder {str(name)!r}. Leave it out"
            )
        return Path(name)
    import huggingface_hub

    files = {checkpoint.CONFIG, DIGESTS, checkpoint.REFERENCES, *(file for kind in KINDS for file in file_names(kind))}
    try:
        return Path(
            huggingface_hub.snapshot_download(
                str(name),
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                allow_patterns=sorted(files),
                library_name="syncheck",
                library_version=version("syncheck"),
            )
        )
    except (OSError, ValueError) as error:  # those of the Hub and of HTTP are kinds of OSError, a bad name a ValueError
        raise CheckpointError(
            f"{str(name)!r} is not a folder here, and fetching the repository of that name failed: "
            f"{describe_failure(error)}. Pass a monitor's folder, or a repository and revision that you can read"
        ) from error


def is_repository(name: str | Path) -> bool:
    """Return True if a name is taken for a repository ``owner/name``: neither it nor its first part exists here."""
    if not isinstance(name, str) or _REPOSITORY.fullmatch(name) is None:
        return False
    return not Path(name).exists() and not Path(name).parent.exists()
