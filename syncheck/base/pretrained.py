"""Pretrained models: files that are checked whole, checkpoints loaded without their code, digests of weights."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import constants

from syncheck.base.errors import CheckpointError, InputError, WrongTypeError, describe_failure, is_out_of_memory
from syncheck.base.files import UNFINISHED, check_digests, file_sha256, note_digests, replaced, require_regular

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
    of this package. One process makes them while others wait, and altered arrays are made again, as the log says; the
    digest beside them shows damage, not intent. Where the cache cannot be written, they are made for this process
    alone, and the log says so.
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
    return dict(load_file(place))


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


WORDS = "the water of 1 年 и"  # a genuine tokenizer knows some of these, at least by their letters
MAX_FILE_BYTES = 1 << 40  # largest file of a checkpoint; weights are mapped, not read into memory at once

_CONFIG = "config.json"
_REACH_SECONDS = 10.0  # limit for asking the Hub whether it has a model


def require_tokenizer(tokenizer: object) -> None:
    """Refuse, with a WrongTypeError, anything that is not a tokenizer, such as its name."""
    if not callable(tokenizer) or not hasattr(tokenizer, "decode"):
        shown = repr(tokenizer) if isinstance(tokenizer, str) else type(tokenizer).__name__
        raise WrongTypeError(
            f"tokenizer must be the model's tokenizer, as AutoTokenizer.from_pretrained(...) returns; found {shown}"
        )


def load_pretrained(auto: Any, name: str | Path, *, what: str, **options: Any) -> Any:
    """Load ``what``, such as ``"a causal language model"``, with one of transformers' Auto classes.

    ``name`` is a folder or the name of a model; options are passed on to ``from_pretrained``. Code in a checkpoint is
    never run, nor is the user asked about it. A checkpoint that cannot be loaded raises CheckpointError.
    """
    require_plain_folder(Path(name))
    require_reachable(name, options, what=what)
    try:
        return auto.from_pretrained(name, trust_remote_code=False, **options)
    except Exception as error:  # damaged files raise anything, and so does a pickle that is refused
        if is_out_of_memory(error):
            raise
        if "trust_remote_code" in str(error):
            raise CheckpointError(
                f"cannot load {what} from {str(name)!r}: it needs its own code, which is never run. Pass a "
                "checkpoint with an architecture in transformers, or review the code, load the model yourself and "
                "pass the objects"
            ) from error
        raise CheckpointError(
            f"cannot load {what} from {str(name)!r}: {describe_failure(error)}. Pass a folder with config.json, the "
            "weights and the tokenizer's files, or the name of a model that can be downloaded or is in the cache"
        ) from error


def require_plain_folder(folder: Path) -> None:
    """Refuse, with a CheckpointError, a folder with a file that is not regular; a name that is no folder passes."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if not path.is_dir() and (path.exists() or path.is_symlink()):
            require_regular(path, most=MAX_FILE_BYTES)


def require_reachable(name: str | Path, options: Mapping[str, Any], *, what: str) -> None:
    """Refuse, with a CheckpointError, a model that is neither here nor in the cache if the Hub cannot be reached.

    The Hub is asked once; the loaders would ask for each file again and again, for minutes.
    """
    if Path(name).exists() or options.get("local_files_only"):
        return
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    repository, revision = str(name), options.get("revision")
    try:
        cached = huggingface_hub.try_to_load_from_cache(
            repository, _CONFIG, cache_dir=options.get("cache_dir"), revision=revision
        )
        if cached is None:
            url = huggingface_hub.hf_hub_url(repository, _CONFIG, revision=revision)
            huggingface_hub.get_hf_file_metadata(url, token=options.get("token"), timeout=_REACH_SECONDS)
    except (HfHubHTTPError, ValueError):  # ValueError: not the name of a repository
        return
    except Exception as error:  # of the HTTP client, which differs between versions
        raise CheckpointError(
            f"cannot load {what} from {repository!r}: there is no folder of that name here and no model in the cache, "
            f"and the Hub cannot be reached ({describe_failure(error)}). Pass a folder with config.json, the weights "
            "and the tokenizer's files, or connect to the network"
        ) from error


def load_model(name: str | Path, device: str | torch.device) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer: float32 on a CPU, the checkpoint's own type elsewhere."""
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(name)
    dtype = torch.float32 if torch.device(device).type == "cpu" else "auto"
    model: PreTrainedModel = load_pretrained(AutoModelForCausalLM, name, what="a causal language model", dtype=dtype)
    return model.to(device).eval(), tokenizer


def load_tokenizer(name: str | Path, **options: Any) -> PreTrainedTokenizerBase:
    """Load a tokenizer; refuse one that knows no words, as transformers makes up for a folder without one."""
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = load_pretrained(AutoTokenizer, name, what="a tokenizer", **options)
    known = ""
    if len(tokenizer) > len(set(tokenizer.all_special_tokens)):  # some of the others cannot even be called
        ids = tokenizer(WORDS, add_special_tokens=False)["input_ids"]
        known = tokenizer.decode(ids, skip_special_tokens=True).strip()
    if not known:
        raise CheckpointError(
            f"cannot load a tokenizer from {str(name)!r}: none of its {len(tokenizer)} tokens encodes any part of "
            f"{WORDS!r}; put the tokenizer's files there, such as tokenizer.json"
        )
    return tokenizer


SAMPLED_WEIGHTS = 1024  # evenly spaced values of each weight matrix that a digest covers
_DIGITS = 32  # hexadecimal digits of each half of a digest


def weights_sha256(model: nn.Module) -> str | None:
    """Compute a digest of the shapes and sampled values of a model's weights; None if some are not in memory ("meta").

    The first half is of the values in bfloat16, the second in float16; see :func:`same_weights`. Folder, device and
    names of weights do not matter. If a model is split over processes, each of them must call this function.
    """
    import torch

    weights = [weight for value in model.state_dict().values() for weight in _plain(value)]
    if any(weight.is_meta for weight in weights):
        return None
    return "".join(_digest(weights, dtype)[:_DIGITS] for dtype in (torch.bfloat16, torch.float16))


def _plain(value: object) -> Iterator[Tensor]:
    """Yield the tensors in an entry of a state dict as ordinary ones: gathered from all processes, and dequantised."""
    from torch import Tensor
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    if isinstance(value, tuple):  # the packed weight and bias of torch's quantised layers
        for part in value:
            yield from _plain(part)
    if not isinstance(value, Tensor):
        return
    weight = value.detach()
    if hasattr(weight, "full_tensor"):
        weight = weight.full_tensor()
    if weight.is_quantized or is_traceable_wrapper_subclass(weight):  # the latter as torchao makes them
        weight = weight.dequantize()
    yield weight


def same_weights(first: str, second: str) -> bool:
    """Tell whether two digests are of the same checkpoint, whatever floating-point types it was loaded in.

    A checkpoint in half precision is recognised in every type. One in float32 is recognised if either digest is of
    float32, but not in bfloat16 against float16, which round it differently.
    """
    return first[:_DIGITS] == second[:_DIGITS] or "" != first[_DIGITS:] == second[_DIGITS:]


def _digest(weights: Sequence[Tensor], dtype: torch.dtype) -> str:
    digests = []
    for weight in weights:
        sampled = weight.reshape(-1)[:: max(1, weight.numel() // SAMPLED_WEIGHTS)].to(dtype).float().cpu()
        digests.append(hashlib.sha256(f"{tuple(weight.shape)}".encode() + sampled.numpy().tobytes()).hexdigest())
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Collect the facts that identify a model and its tokenizer: architecture, sizes, vocabulary, digest of weights."""
    config = model.config.get_text_config()
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()), ensure_ascii=True)
    return {
        "architecture": type(model).__name__,
        "num_hidden_layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "vocab_size": config.vocab_size,
        "tokenizer_sha256": hashlib.sha256(vocabulary.encode()).hexdigest(),
        "weights_sha256": weights_sha256(model),
    }
