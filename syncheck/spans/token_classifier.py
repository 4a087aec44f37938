"""Checkpoints that mark words themselves: token classifiers, such as the shared task's XLM-R baseline, and FAVA.

FAVA (Mishra et al., 2024) edits the response according to the references; the words that it removes are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from syncheck.aligners.evaluators import TextGenerator
from syncheck.base.errors import CheckpointError, InputError, TextGeneratorError
from syncheck.base.pretrained import fingerprint, load_pretrained
from syncheck.results.spans import SpanItem, SpanLabels, labels_of
from syncheck.results.types import Floats
from syncheck.spans.words import Word, words_of


class TokenClassifierDetector:
    """Detector that marks the characters of tokens with a risk above one half.

    The checkpoint has a fast tokenizer; ``wrong`` is the index of its class for hallucinated tokens, 1 in the
    organisers' baseline. If it cannot be loaded, or has no such class, CheckpointError is raised. The response is
    classified without question and passages, as by the organisers. A response longer than the window is classified in
    windows that share half of their tokens, and a token gets the mean of its risks.
    """

    def __init__(self, name: str, *, wrong: int = 1, device: str = "cpu") -> None:
        self._tokenizer: Any = load_pretrained(AutoTokenizer, name, what="a tokenizer")
        model = load_pretrained(AutoModelForTokenClassification, name, what="a token classifier")
        self._model = model.to(device).eval()
        if not self._tokenizer.is_fast:
            raise CheckpointError(f"{name!r} has no fast tokenizer, which is needed to locate its tokens in the text")
        if not 0 <= wrong < self._model.config.num_labels:
            raise CheckpointError(f"{name!r} has classes 0 to {self._model.config.num_labels - 1}; found wrong={wrong}")
        self._wrong = wrong
        self.name = "classifier"

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Fingerprint of the checkpoint, its weights included, and of the class."""
        return fingerprint(self._model, self._tokenizer) | {"wrong": self._wrong}

    def detect(self, item: SpanItem) -> SpanLabels:
        """Label a response; see :class:`~syncheck.results.SpanDetector`.

        A window with room only for special tokens raises InputError.
        """
        risk = np.nan_to_num(self.risks(item), nan=0.0)
        return labels_of(risk, risk > 0.5)

    @torch.inference_mode()
    def risks(self, item: SpanItem) -> Floats:
        """Compute the risk of each character, (C,) float64 in [0, 1]; NaN outside the tokens, as between words."""
        window = int(self._tokenizer.model_max_length)
        positions = getattr(self._model.config, "max_position_embeddings", window)
        window = min(window, positions - 2)  # RoBERTa's positions begin after its padding's
        if window < 4:
            raise InputError(f"the classifier's window of {window} tokens is too short for a response")
        given = self._tokenizer(
            item.response,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            truncation=True,
            max_length=window,
            stride=(window - 2) // 2,
            padding=True,
            return_tensors="pt",
        )
        inputs = {name: given[name].to(self._model.device) for name in ("input_ids", "attention_mask")}
        logits = self._model(**inputs).logits  # (windows, T, classes)
        risks = logits.float().softmax(-1)[..., self._wrong].cpu().numpy().astype(np.float64)
        sums, counts = np.zeros(len(item.response)), np.zeros(len(item.response))
        for (start, stop), risk in zip(given["offset_mapping"].reshape(-1, 2).tolist(), risks.ravel(), strict=True):
            sums[start:stop] += risk
            counts[start:stop] += 1
        means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return means.clip(0, 1)


@dataclass(frozen=True, slots=True)
class ClassifierSource:
    """:class:`~syncheck.spans.WordSource` with a token classifier's mean and highest risk over a word's characters.

    A classifier that was fine-tuned on the items to which the regression is fitted knows their labels, so the
    regression trusts it more than it deserves on other items.
    """

    classifier: TokenClassifierDetector
    name: str = "classifier"

    @property
    def columns(self) -> tuple[str, ...]:
        """``<name>_risk_mean`` and ``<name>_risk_max``."""
        return f"{self.name}_risk_mean", f"{self.name}_risk_max"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Fingerprint of the classifier."""
        return self.classifier.fingerprint

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> Floats:
        """Compute both risks, (W, 2) float64 in [0, 1]; NaN for a word that shares no character with a token."""
        risk = self.classifier.risks(item)
        values = np.full((len(words), 2), np.nan)
        for row, word in zip(values, words, strict=True):
            own = risk[word.start : word.end]
            if not np.isnan(own).all():
                row[:] = np.nanmean(own), np.nanmax(own)
        return values


PROMPT = """Read the following references:
{references}
Please identify all the errors in the following text using the information in the references provided and suggest \
edits if necessary:
[Text] {output}
[Edited] """
"""Prompt from REFIND's Figure 5."""

_REMOVED = re.compile(r"<(delete|contradictory|invented|subjective|unverifiable)>.*?</\1>", re.DOTALL)
_TAG = re.compile(r"</?(?:entity|relation|mark)>")


class FavaDetector:
    """Detector that marks the words which an editing model removes or replaces.

    The ``editor`` answers FAVA's prompt with the edited text: FAVA's checkpoint, or any instruct model.
    """

    def __init__(self, editor: TextGenerator) -> None:
        self._editor = editor
        self.name = "fava"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Label a response, with risks 0 and 1; see :class:`~syncheck.results.SpanDetector`.

        An answer without an edited text raises TextGeneratorError.
        """
        answer = self._editor(PROMPT.format(references="\n".join(item.passages), output=item.response))
        if not answer.strip():
            raise TextGeneratorError(
                f"the answer of {self._editor.name!r} for item {item.id!r} is empty; expected the edited text"
            )
        marked = SpanLabels((), tuple(removed_words(item.response, edited_text(answer)))).marked(len(item.response))
        return labels_of(marked.astype(np.float64), marked)


def edited_text(answer: str) -> str:
    """Apply FAVA's edits to a text: drop the words it deletes, keep those it adds."""
    return _TAG.sub("", _REMOVED.sub("", answer.partition("[Edited]")[2] or answer))


def removed_words(response: str, edited: str) -> list[tuple[int, int]]:
    """Find the spans of words in a response that the edited text lacks, by the longest common runs of words."""
    words = words_of(response)
    matcher = SequenceMatcher(None, [w.text for w in words], [w.text for w in words_of(edited)], autojunk=False)
    return [
        (words[start].start, words[stop - 1].end)
        for kind, start, stop, _, _ in matcher.get_opcodes()
        if kind in ("delete", "replace")
    ]
