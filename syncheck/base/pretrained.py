"""Checkpoints of transformers: loaded without running their code, with one error class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from syncheck.base.errors import CheckpointError, WrongTypeError, describe_failure, is_out_of_memory
from syncheck.base.files import require_regular

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WORDS = "the water of 1 年 и"
"""Words of which a genuine tokenizer knows some, at least by their letters."""

MAX_LAYERS = 512
"""Largest number of layers that a config may ask for, in any part of a model: each takes milliseconds to make, before
any weight is read. Widths need no limit, since weights of other shapes are refused before anything of that size is
made."""

MAX_FILE_BYTES = 1 << 40
"""Largest file of a checkpoint; weights are mapped, not read into memory at once."""

_CONFIG = "config.json"
_REACH_SECONDS = 10.0
"""Time limit for asking the Hub whether it has a model, in seconds."""
_HUB_OPTIONS = ("cache_dir", "local_files_only", "revision", "subfolder", "token")
_LAYERS = re.compile("(^|_)(layers?|blocks)$")


def require_tokenizer(tokenizer: object) -> None:
    """Refuse, with a WrongTypeError, anything that is not a tokenizer, such as its name."""
    if not callable(tokenizer) or not hasattr(tokenizer, "decode"):
        found = repr(tokenizer) if isinstance(tokenizer, str) else type(tokenizer).__name__
        raise WrongTypeError(
            f"tokenizer must be the model's tokenizer, as AutoTokenizer.from_pretrained(...) returns; found {found}"
        )


def load_pretrained(auto: Any, name: str | Path, *, what: str, **options: Any) -> Any:
    """Load with one of transformers' Auto classes; code in a checkpoint is never run, nor is the user asked about it.

    ``name`` is a folder or the name of a model, and ``what`` is for the message: ``"a causal language model"``. Options
    are passed on to ``from_pretrained``. A checkpoint that cannot be loaded raises CheckpointError.
    """
    require_plain_folder(Path(name))
    require_reachable(name, options, what=what)
    try:
        require_few_layers(name, options)
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

    The Hub is asked once; the loaders would ask for each file again and again, for minutes. What it answers is left to
    the loader.
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


def require_few_layers(name: str | Path, options: Mapping[str, Any] | None = None) -> None:
    """Refuse, with a CheckpointError, a config that asks for too many layers; the loader reports a missing one."""
    from transformers import PreTrainedConfig

    given = {option: value for option, value in (options or {}).items() if option in _HUB_OPTIONS}
    try:
        config, _ = PreTrainedConfig.get_config_dict(name, **given)
    except (OSError, ValueError):
        return
    for field, count in _counts(config):
        if count > MAX_LAYERS:
            raise CheckpointError(
                f"the config of {str(name)!r} asks for {count} in {field!r}; at most {MAX_LAYERS} layers are allowed. "
                "Pass another checkpoint"
            )


def _counts(config: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 (JSON)
    """Yield the name and value of each count of layers in a config and its parts."""
    if isinstance(config, list):
        for part in config:
            yield from _counts(part)
    if not isinstance(config, dict):
        return
    for field, value in config.items():
        if type(value) in (int, float) and _LAYERS.search(field):
            yield field, value
        yield from _counts(value)


def load_model(name: str | Path, device: str | torch.device) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer: float32 on a CPU, the checkpoint's own type elsewhere."""
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(name)
    dtype = torch.float32 if torch.device(device).type == "cpu" else "auto"
    model: PreTrainedModel = load_pretrained(AutoModelForCausalLM, name, what="a causal language model", dtype=dtype)
    return model.to(device).eval(), tokenizer


def load_tokenizer(name: str | Path, **options: Any) -> PreTrainedTokenizerBase:
    """Load a tokenizer; see :func:`load_pretrained`.

    A folder without a tokenizer's files, for which transformers makes up a tokenizer that knows no words, is refused
    too.
    """
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = load_pretrained(AutoTokenizer, name, what="a tokenizer", **options)
    if not _knows_words(tokenizer):
        raise CheckpointError(
            f"cannot load a tokenizer from {str(name)!r}: none of its {len(tokenizer)} tokens encodes any part of "
            f"{WORDS!r}; put the tokenizer's files there, such as tokenizer.json"
        )
    return tokenizer


def _knows_words(tokenizer: PreTrainedTokenizerBase) -> bool:
    if len(tokenizer) <= len(set(tokenizer.all_special_tokens)):  # some of these tokenizers cannot even be called
        return False
    ids = tokenizer(WORDS, add_special_tokens=False)["input_ids"]
    return bool(tokenizer.decode(ids, skip_special_tokens=True).strip())
