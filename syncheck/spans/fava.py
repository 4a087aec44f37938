"""FAVA (Mishra et al., 2024): a model edits the response by the references, and the words that it removes are wrong."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import numpy as np

from syncheck.aligners.evaluators import TextGenerator
from syncheck.base.errors import TextGeneratorError
from syncheck.results.spans import SpanItem, SpanLabels, labels_of
from syncheck.spans.words import words_of

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
        """Label a response, with risks 0 and 1; see :class:`~syncheck.spans.SpanDetector`.

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
