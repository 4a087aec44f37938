"""The bundled starter kit: a small language model, an aligner and two trained aggregators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from syncheck.alignment import load_aligner
from syncheck.checkpoint import packaged_monitor
from syncheck.files import read_json
from syncheck.given import check_choice
from syncheck.monitor import Monitor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

KitPurpose = Literal["generation", "generic", "generic-reader"]
"""``generation``: trained on the answers of the kit's own model. ``generic``, ``generic-reader``: read text alone, of
any model; the latter with the reader as aligner, whose encoder is not in this package."""

ASSETS = Path(str(files("syncheck") / "assets"))


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question with Wikipedia passages (CC BY-SA 4.0) that the kit's model was not trained on."""

    question: str
    passages: tuple[str, ...]
    titles: tuple[str, ...]


def kit_language_model(device: str = "cpu") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the kit's language model, in float32, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = ASSETS / "language_model"
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    shown = is_progress_bar_enabled()
    disable_progress_bar()  # it takes a tenth of a second
    try:
        model = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, local_files_only=True, trust_remote_code=False
        )
    finally:
        if shown:
            enable_progress_bar()
    return model.to(device).eval(), tokenizer


def load_kit(purpose: KitPurpose, *, device: str = "cpu") -> Monitor:
    """Load a bundled monitor with its model; nothing is downloaded.

    Parameters
    ----------
    purpose
        ``generation`` watches or steers the kit's own model. ``generic`` scores answers of other models from their
        text alone, as ``Monitor(model, tokenizer)`` does with a model of your own. ``generic-reader`` does so with the
        reader, which finds more contradictions and takes about ten times as long.
    device
        ``cpu`` or ``cuda``.

    Raises
    ------
    InputError
        If the purpose is unknown.
    CheckpointError
        If the reader's encoder is neither in the cache of Hugging Face nor installed.
    """
    check_choice(purpose, "purpose", KitPurpose)
    model, tokenizer = kit_language_model(device)
    aligner = load_aligner("reader" if purpose == "generic-reader" else "bundled", device=device)
    return Monitor.from_pretrained(packaged_monitor(purpose), model=model, tokenizer=tokenizer, aligner=aligner)


def demo_questions() -> Sequence[DemoQuestion]:
    """Return the questions of the demo."""
    return tuple(
        DemoQuestion(entry["question"], tuple(entry["passages"]), tuple(entry["titles"]))
        for entry in read_json(ASSETS / "demo" / "questions.json")
    )
