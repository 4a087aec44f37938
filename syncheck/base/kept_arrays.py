"""Arrays that take long to make, kept in the cache: made once on a machine, and mapped from their file from then on."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import constants

from syncheck.base.errors import InputError
from syncheck.base.model_files import DerivedFile

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)


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
