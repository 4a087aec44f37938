"""Files of models in the cache: looked up, and large ones checked whole and made there once, as kept arrays are.

The content of a :class:`ModelFile` is known beforehand; that of a :class:`DerivedFile`, once it is made.

The SHA-256 of the whole file is computed each time a process loads it: a quarter of a second for 438 MB where the
processor has instructions for it. Size and time of change would be quicker to compare, but a failing
disk leaves both as they are, and whoever alters a file can set them.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import escape
from importlib.metadata import version
from io import BufferedRandom
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING

from huggingface_hub import constants

from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import UNFINISHED, check_digests, file_sha256, note_digests, replaced, require_regular

if TYPE_CHECKING:
    from torch import Tensor

Make = Callable[[BufferedRandom], None]
"""Function that writes the content into an open, empty file. It checks what it reads: any OSError that it raises is
attributed to the file that it writes."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file whose content is known, wherever it lies.

    Attributes
    ----------
    sha256 : str
        Of the whole file, in hexadecimal digits.
    remedy : str
        What to do where it is missing or has another content, as the end of a message.
    """

    sha256: str
    remedy: str

    def check(self, path: Path) -> None:
        """Refuse, with a CheckpointError, a file that is missing, cannot be read, or has another content."""
        require_regular(path)
        try:
            sha256 = file_sha256(path)
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error.strerror}); {self.remedy}") from error
        self._check_digest(sha256, path)

    def is_at(self, path: Path) -> bool:
        """Tell whether a path leads to the whole file."""
        try:
            self.check(path)
        except CheckpointError:
            return False
        return True

    @contextmanager
    def made_once(self, place: Path, make: Make) -> Iterator[Path]:
        """Yield the path of the file, which the first call leaves at ``place``, and later ones find there.

        A lock lets one process make it while others wait. What a killed process left is removed, and a file with
        another content is replaced, as the log says. Where ``place`` cannot be written, because the disk is full, for
        example, the log says so too, and the file is made for this block alone and has no name that could outlast it.
        If what was made has another content, or there is no room for it anywhere, CheckpointError is raised.
        """
        if self.is_at(place):
            yield place
            return
        try:
            _make_at(place, self.is_at, lambda file: self._fill(file, make, place))
        except (InputError, OSError) as error:
            reason = error if isinstance(error, InputError) else f"{place}: {error.strerror}"
            logger.warning("%s. Until then it is made again by each process that needs it", reason)
            with self._made_unnamed(make) as file:
                yield Path(f"/dev/fd/{file.fileno()}")
        else:
            yield place

    def _made_unnamed(self, make: Make) -> BufferedRandom:
        try:
            with ExitStack() as stack:
                file = stack.enter_context(TemporaryFile())
                self._fill(file, make, Path(gettempdir()))
                stack.pop_all()
                return file
        except OSError as error:
            raise CheckpointError(
                f"there is no room for temporary files either ({error.strerror}); free some, or set HF_HOME to a "
                "folder that can be written"
            ) from error

    def _fill(self, file: BufferedRandom, make: Make, place: Path) -> None:
        make(file)
        file.flush()
        file.seek(0)
        self._check_digest(hashlib.file_digest(file, "sha256").hexdigest(), place)

    def _check_digest(self, sha256: str, place: Path) -> None:
        if sha256 != self.sha256:
            raise CheckpointError(
                f"{place} is not the file that was published, or was cut off or altered: its SHA-256 is {sha256}, "
                f"expected {self.sha256}; {self.remedy}"
            )


@dataclass(frozen=True, slots=True)
class DerivedFile:
    """A file in a folder of its own, made of other files on this machine; its SHA-256 is written beside it.

    That digest shows damage, not intent: whoever can alter the file can write another digest.
    """

    place: Path

    def is_whole(self) -> bool:
        """Tell whether the file is there as it was made."""
        try:
            check_digests(self.place.parent, [self.place.name])
        except (CheckpointError, OSError):
            return False
        return True

    def make_once(self, make: Callable[[], bytes]) -> None:
        """Write what ``make`` returns, unless another process is first; see :meth:`ModelFile.made_once`.

        If the file cannot be written, because the disk is full, for example, InputError or OSError is raised.
        """

        def fill(file: BufferedRandom) -> None:
            content = make()
            file.write(content)
            note_digests(self.place.parent, {self.place.name: hashlib.sha256(content).hexdigest()})

        _make_at(self.place, lambda _: self.is_whole(), fill)


def _make_at(place: Path, is_there: Callable[[Path], bool], fill: Make) -> None:
    """Let one process at a time fill the file, unless it is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock")):
        for left in place.parent.glob(f"{escape(place.name)}{UNFINISHED}*"):  # by a process that was killed
            left.unlink(missing_ok=True)
        if is_there(place):  # another process was first
            return
        if place.exists():
            logger.warning("%s was cut off or altered, and is replaced", place)
        with replaced(place) as (file, _):
            fill(file)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait for a lock, which the system releases if its holder is killed; the empty file stays."""
    import fcntl  # which Windows lacks

    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def cached_file(repository: str, file: str, revision: str | None = None) -> Path | None:
    """Find a file of a repository in the cache of Hugging Face; None where it is missing."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(repository, file, revision=revision)
    return Path(path) if isinstance(path, str) else None


def kept_arrays(name: str, sources: Sequence[str], make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Load the arrays of this name from the cache, where the first call leaves what ``make`` returns.

    Their place depends on the ``sources``, such as the digests of the files that they are made of, and on the version
    of this package, so that no others are mistaken for them. Where the cache cannot be written, they are made for this
    process alone, and the log says so.
    """
    from safetensors.torch import load_file, save

    key = hashlib.sha256("\n".join((*sources, version("syncheck"))).encode()).hexdigest()[:32]
    kept = DerivedFile(Path(constants.HF_ASSETS_CACHE) / "syncheck" / name / key / "arrays.safetensors")
    made: dict[str, Tensor] = {}

    def content() -> bytes:
        made.update(make())
        file: bytes = save(made)
        return file

    if not kept.is_whole():
        try:
            kept.make_once(content)
        except (InputError, OSError) as error:
            reason = error if isinstance(error, InputError) else f"{kept.place}: {error.strerror}"
            logger.warning("%s. Until then it is made again by each process that needs it", reason)
            return made or make()
    arrays: dict[str, Tensor] = load_file(kept.place)
    return arrays
