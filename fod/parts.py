"""An answer in parts, each under a prompt of its own: how the next part begins and how all become one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from syncheck import Evidence, RagPrompt, Report, SentenceScore, TokenSignals

__all__ = ["Draft", "continued"]


def continued(prompt: RagPrompt, token_ids: Sequence[int], text: str) -> RagPrompt:
    """Return a prompt behind which an answer goes on: its own ids, then those that are written already."""
    if not token_ids:
        return prompt
    return replace(
        prompt,
        with_context=prompt.with_context + text,
        without_context=prompt.without_context + text,
        with_context_ids=(*prompt.with_context_ids, *token_ids),
        without_context_ids=(*prompt.without_context_ids, *token_ids),
    )


class Draft:
    """What is written of an answer so far.

    Parameters
    ----------
    prompt
        The first part's.

    Attributes
    ----------
    prompt : RagPrompt
        That of the answer; with several parts, its passages are those of all, each once.
    token_ids : list of int
        Of the response, without an end-of-text token.
    """

    def __init__(self, prompt: RagPrompt) -> None:
        self.prompt = prompt
        self.token_ids: list[int] = []
        self._parts: list[Report] = []

    @property
    def text(self) -> str:
        """The response so far."""
        return "".join(part.response for part in self._parts)

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """Its sentences so far."""
        return tuple(sentence for part in self._parts for sentence in part.sentences)

    def add(self, part: Report) -> None:
        """Append a part, as reported under its own prompt; it covers all tokens that are kept of it."""
        passages = tuple(dict.fromkeys((*self.prompt.passages, *part.prompt.passages)))
        self.prompt = replace(self.prompt, passages=passages)
        moved = tuple(self.placed(sentence, part.prompt) for sentence in part.sentences)
        tokens = replace(part.tokens, char_spans=part.tokens.char_spans + len(self.text))
        self._parts.append(replace(part, sentences=moved, tokens=tokens))
        self.token_ids += part.tokens.token_ids.tolist()

    def placed(self, sentence: SentenceScore, prompt: RagPrompt) -> SentenceScore:
        """Return a sentence of the next part as one of the whole: its characters, tokens and evidence."""
        if not self._parts and prompt.passages == self.prompt.passages:
            return sentence
        characters, tokens = len(self.text), len(self.token_ids)
        return replace(
            sentence,
            start=sentence.start + characters,
            end=sentence.end + characters,
            token_start=sentence.token_start + tokens,
            token_end=sentence.token_end + tokens,
            evidence=self._evidence(sentence.evidence, prompt),
        )

    def report(self, *, stop: str | None, seconds: float | None) -> Report:
        """Return all parts as one answer."""
        text = self.text
        return Report(
            prompt=self.prompt,
            response=text,
            sentences=self.sentences,
            tokens=_joined(text, [part.tokens for part in self._parts]),
            stop=stop,
            seconds=seconds,
        )

    def _evidence(self, evidence: Evidence | None, prompt: RagPrompt) -> Evidence | None:
        if evidence is None:
            return None
        passage = prompt.passages[evidence.passage]
        known = (*self.prompt.passages, *(p for p in prompt.passages if p not in self.prompt.passages))
        return replace(evidence, passage=list(dict.fromkeys(known)).index(passage))


def _joined(text: str, parts: Sequence[TokenSignals]) -> TokenSignals:
    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    names = ("token_ids", "char_spans", "log_prob", "log_prob_without_context", "entropy", "kl")
    return TokenSignals(text=text, **{name: column(name) for name in names})
