"""The starter kit: a language model with its monitor, and the verifiers for text of any model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from syncheck.base.checks import check_choice
from syncheck.checkpoint import best_generic, packaged_monitor
from syncheck.config import GENERIC
from syncheck.kit_model import kit_language_model
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

KitPurpose = Literal["generation", "generic", "generic-bundled", "generic-reader"]
"""``generation``: SmolLM2-135M-Instruct with a monitor trained on its answers. The others read text alone, of any
model: ``generic-reader`` with the reader as aligner, whose encoder is not in this package, ``generic-bundled`` with the
bundled aligner, and ``generic`` with the reader if its encoder is on this machine."""

ASSETS = Path(str(files("syncheck") / "assets"))


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
        :func:`syncheck.kit_model.kit_language_model`). The others score answers of any model from their text
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
