"""Files of models: checked whole, found in the cache of Hugging Face, and arrays made of them, which are kept there.

The SHA-256 of the whole file is computed each time a process loads it: a quarter of a second for 438 MB where the
processor has instructions for it. Size and time of change would be quicker to compare, but a failing
disk leaves both as they are, and whoever alters a file can set them.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import constants

from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import UNFINISHED, check_digests, file_sha256, note_digests, replaced, require_regular

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file whose content is known, wherever it lies."""

    sha256: str
    """Of the whole file, in hexadecimal digits."""
    remedy: str
    """What to do where it is missing or has another content, as the end of a message."""

    def check(self, path: Path) -> None:
        """Refuse, with a CheckpointError, a file that is missing, cannot be read, or has another content."""
        require_regular(path)
        try:
            sha256 = file_sha256(path)
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error.strerror}); {self.remedy}") from error
        self.check_digest(sha256, str(path))

    def check_digest(self, sha256: str, name: str) -> None:
        """Refuse, with a CheckpointError, a content of another digest; ``name`` says where it is from."""
        if sha256 != self.sha256:
            raise CheckpointError(
                f"{name} is not the file that was published, or was cut off or altered: its SHA-256 is {sha256}, "
                f"expected {self.sha256}; {self.remedy}"
            )


def cached_file(repository: str, file: str, revision: str | None = None) -> Path | None:
    """Find a file of a repository in the cache of Hugging Face; None where it is missing."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(repository, file, revision=revision)
    return Path(path) if isinstance(path, str) else None


def kept_arrays(name: str, sources: Sequence[str], make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Load the arrays of this name from the cache, where the first call leaves what ``make`` returns.

    Their place depends on the ``sources``, such as the digests of the files that they are made of, and on the version
    of this package, so that no others are mistaken for them. A lock lets one process make them while others wait, what
    a killed process left is removed, and arrays that were altered are replaced, as the log says. Their digest is beside
    them, which shows damage, not intent: whoever can alter the file can write another one. Where the cache cannot be
    written, they are made for this process alone, and the log says so.
    """
    from safetensors.torch import load_file, save

    key = hashlib.sha256("\n".join((*sources, version("syncheck"))).encode()).hexdigest()[:32]
    place = Path(constants.HF_ASSETS_CACHE) / "syncheck" / name / key / "arrays.safetensors"
    made: dict[str, Tensor] = {}
    if not _is_whole(place):
        try:
            with _locked(place):
                if not _is_whole(place):  # another process was not first
                    if place.exists():
                        logger.warning("%s was cut off or altered, and is replaced", place)
                    with replaced(place) as (file, _):
                        made = make()
                        content: bytes = save(made)
                        file.write(content)
                        note_digests(place.parent, {place.name: hashlib.sha256(content).hexdigest()})
        except (InputError, OSError) as error:
            reason = error if isinstance(error, InputError) else f"{place}: {error.strerror}"
            logger.warning("%s. Until then it is made again by each process that needs it", reason)
            return made or make()
    arrays: dict[str, Tensor] = load_file(place)
    return arrays


def _is_whole(place: Path) -> bool:
    try:
        check_digests(place.parent, [place.name])
    except (CheckpointError, OSError):
        return False
    return True


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Wait for the lock on a file, which the system releases if its holder is killed; remove what such a one left."""
    import fcntl  # which Windows lacks

    place.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(place.with_name(f"{place.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left in place.parent.glob(f"{escape(place.name)}{UNFINISHED}*"):
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)
