"""Loading an aligner by name: its kind, and the options that the kind takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from syncheck import aligners
from syncheck.aligners.bundled import is_packed
from syncheck.aligners.reader.network import INSTALL, can_read
from syncheck.base.errors import CheckpointError, InputError, describe_failure
from syncheck.base.pretrained import cached_file, require_plain_folder

if TYPE_CHECKING:
    from syncheck.aligners.alignscore import Mode, Overflow
    from syncheck.aligners.protocol import Aligner

NEARNESS = 0.75  # similarity, in [0, 1], from which a name is taken for a mistyped one


def check_name(name: str | Path, known: Sequence[str]) -> None:
    """Refuse, with a CheckpointError, a single word that is like a known name or that the Hub does not have.

    The Hub is asked once; the repeated attempts of a download take most of a minute without a connection.
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
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        get_hf_file_metadata(hf_hub_url(word, "config.json"))
        return
    except RepositoryNotFoundError:
        fault = "it has no such repository"
    except HfHubHTTPError:  # such as a busy server, which the loader asks again
        return
    except Exception as error:  # no connection, offline mode, a name that it does not allow
        fault = describe_failure(error)
    raise CheckpointError(
        f"{word!r} is neither an aligner's name nor a folder here nor a checkpoint in the cache, and the Hub does not "
        f"give it: {fault}. {names}; the names of most checkpoints have an owner (owner/name)"
    )


logger = logging.getLogger(__name__)
ALIGNER_OPTIONS = ("backbone", "mode", "overflow", "entailment")
"""Every option that an aligner may be stored with."""
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class _Published:
    """A published checkpoint of an alias: the name that loads it, and its repository and revision on the hub."""

    alias: str
    name: str
    repository: str
    revision: str | None = None
    needs: str | None = None  # repository of the config and tokenizer that a ``.ckpt`` lacks

    def folder(self) -> Path | None:
        """Find its folder in the cache of Hugging Face; None where a file is missing. Nothing is downloaded."""
        repository = self.needs or self.repository
        config = cached_file(repository, "config.json", self.revision)
        tokenizer = any(cached_file(repository, name, self.revision) for name in _TOKENIZERS)
        weights = (self.name.rpartition("/")[2],) if self.needs else _WEIGHTS
        cached = [path for name in weights if (path := cached_file(self.repository, name, self.revision))]
        return cached[0].parent if cached and config and tokenizer else None


_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_TOKENIZERS = ("tokenizer.json", "spiece.model", "spm.model", "vocab.json", "vocab.txt")
_HHEM = "vectara/hallucination_evaluation_model"
_NLI = "MoritzLaurer/DeBERTa-v3"
_STRONGER = (
    _Published("minicheck", "lytang/MiniCheck-Flan-T5-Large", "lytang/MiniCheck-Flan-T5-Large"),
    _Published("minicheck", "minicheck:lytang/MiniCheck-RoBERTa-Large", "lytang/MiniCheck-RoBERTa-Large"),
    _Published("minicheck", "minicheck:lytang/MiniCheck-DeBERTa-v3-Large", "lytang/MiniCheck-DeBERTa-v3-Large"),
    _Published("alignscore", "yzha/AlignScore/AlignScore-large.ckpt", "yzha/AlignScore", needs="roberta-large"),
    _Published("hhem", "hhem", _HHEM, revision="hhem-1.0-open"),  # later ones bring their own code
    _Published("alignscore", "yzha/AlignScore/AlignScore-base.ckpt", "yzha/AlignScore", needs="roberta-base"),
    _Published("nli", f"{_NLI}-large-mnli-fever-anli-ling-wanli", f"{_NLI}-large-mnli-fever-anli-ling-wanli"),
    _Published("nli", f"{_NLI}-base-mnli-fever-anli", f"{_NLI}-base-mnli-fever-anli"),
)
"""The best first; the order of those measured in arXiv 2505.04847, table 1."""
_PLAIN: Mapping[str, Callable[..., Aligner | None]] = {
    "bundled": lambda device: aligners.BundledAligner.load(device=device),
    "reader": lambda device: aligners.ReaderAligner.load(device=device),
    "none": lambda device: None,
}
"""Loaders of the aligners that a name alone determines."""
_ALIASES = (AUTO, *dict.fromkeys(known.alias for known in _STRONGER))
_NAMES = (*_PLAIN, *_ALIASES)


def load_aligner(
    name: str | Path,
    *,
    backbone: str | Path | None = None,
    mode: Mode | None = None,
    overflow: Overflow | None = None,
    entailment: int | None = None,
    device: str | torch.device = "cpu",
) -> Aligner | None:
    """Load an aligner by name, folder or checkpoint.

    Parameters
    ----------
    name
        One of

        - ``"bundled"``, :class:`BundledAligner`; ``"reader"``, :class:`ReaderAligner`; ``"none"``, which returns None;
        - ``"minicheck"``, ``"alignscore"``, ``"hhem"`` or ``"nli"``: the best published checkpoint of that kind in the
          local cache of Hugging Face; ``"auto"``: the best of these, else the reader if its encoder is there, else the
          bundled aligner. Nothing is downloaded, and the log says which it is;
        - an AlignScore checkpoint: a ``.ckpt`` file, or ``owner/repository/file.ckpt`` of the Hugging Face Hub;
        - a folder in the bundled aligner's format;
        - ``"minicheck:"``, followed by a folder or the name of a checkpoint;
        - the folder or name of a classifier of entailment.
    backbone
        For an AlignScore ``.ckpt``: folder or name of the RoBERTa whose config and tokenizer it needs. None takes the
        one that the checkpoint names; see :func:`~syncheck.aligners.alignscore.load_alignscore`.
    mode, overflow
        For AlignScore; see :class:`AlignScoreAligner`. None stands for ``"nli_sp"`` and ``"split"``.
    entailment
        For a classifier: index of the class that means "supported". None finds it by its name in the config.
    device
        Where the network runs.

    Raises
    ------
    CheckpointError
        If the checkpoint cannot be loaded, the cache has none of an alias, or the name is a mistyped alias.
    InputError
        If an alias is also the name of a file or folder here, or an option is not one of this kind's.
    """
    if Path(name).is_dir():
        require_plain_folder(Path(name))
    takes, load = _loader(name)
    options = {"backbone": backbone, "mode": mode, "overflow": overflow, "entailment": entailment}
    given = {option: value for option, value in options.items() if value is not None}
    if foreign := [option for option in given if option not in takes]:
        raise InputError(
            f"aligner {str(name)!r} takes {', '.join(takes) or 'no options'}; found {', '.join(foreign)}. Leave them "
            "out: backbone, mode and overflow are for an AlignScore .ckpt, entailment is for a classifier"
        )
    return load(device=device, **given)


def _loader(name: str | Path) -> tuple[tuple[str, ...], Callable[..., Aligner | None]]:
    """Find the options that an aligner takes, and the function that loads it with them."""
    prefix, _, path = str(name).partition(":")
    if name in _PLAIN:
        return (), _PLAIN[str(name)]
    if name in _ALIASES:
        return (), partial(_load_cached, str(name))
    if path and prefix == "minicheck":
        return (), partial(aligners.ClassifierAligner.load_minicheck, path)
    if Path(name).suffix == ".ckpt":
        return ("backbone", "mode", "overflow"), partial(aligners.AlignScoreAligner.load, name)
    if is_packed(Path(name)):
        return (), partial(aligners.BundledAligner.load, Path(name))
    return ("entailment",), partial(_load_classifier, name)


def _load_classifier(name: str | Path, **options: Any) -> Aligner:
    check_name(name, _NAMES)
    return aligners.ClassifierAligner.load(name, **options)


def _load_cached(alias: str, device: str | torch.device) -> Aligner:
    if Path(alias).exists():
        raise InputError(
            f"{alias!r} names published aligners, but there is also a {alias!r} here; write ./{alias} for it"
        )
    asked = [known for known in _STRONGER if alias in (AUTO, known.alias)]
    for known in asked:
        if (folder := known.folder()) is not None:
            logger.info("aligner %r is %s, from the cache", alias, known.name)
            aligner: Aligner  # from the folder, which asks the hub for nothing, under the name that a saved monitor has
            if known.needs is not None:
                aligner = aligners.AlignScoreAligner.load(folder / known.name.rpartition("/")[2], device=device)
            elif known.alias == "minicheck":
                aligner = aligners.ClassifierAligner.load_minicheck(folder, device=device)
            else:
                aligner = aligners.ClassifierAligner.load(folder, device=device)
            aligner.name = known.name
            return aligner
    if alias == AUTO and can_read():
        logger.info("aligner 'auto' is reader; the cache has none of %s", ", ".join(k.name for k in asked))
        return aligners.ReaderAligner.load(device=device)
    if alias == AUTO:
        logger.warning(
            "aligner 'auto' is bundled, which mostly compares words, since neither the reader's encoder nor a "
            "published checkpoint is on this machine; run `%s` for the reader",
            INSTALL,
        )
        return aligners.BundledAligner.load(device=device)
    first = asked[0]
    wanted = f"{first.repository} --revision {first.revision}" if first.revision else first.repository
    more = f", and `hf download {first.needs}`" if first.needs else ""
    raise CheckpointError(
        f"the Hugging Face cache has no complete checkpoint for {alias!r} ({', '.join(k.name for k in asked)}); "
        f"download one with `hf download {wanted}`{more}, or pass 'auto', 'reader' or 'bundled'"
    )
