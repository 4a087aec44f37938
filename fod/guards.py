"""Guards: what a sentence must be before it may stand in place of a greedy one, whatever its score."""

from __future__ import annotations

import re
from collections.abc import Sequence

from syncheck import SentenceScore
from syncheck.decoding import ScoredSession

CUT_OFF = "cut off at the limit of tokens"

_PASSED_OVER = frozenset("a an the according after as at before by during for from in of on since to with".split())
"""Words before a subject: articles, and prepositions with which a sentence opens."""


class Guards:
    """Reads candidates that may replace a greedy sentence; see ``guards`` of :class:`fod.RepairConfig`.

    Parameters
    ----------
    watched
        The session that wrote them.
    earlier
        The sentences of the answer before them, as a reader sees them.
    replaced
        The greedy sentences that they replace.
    refusal
        The configured text of an answer in which no sentence passed.
    """

    def __init__(
        self,
        watched: ScoredSession,
        *,
        earlier: Sequence[SentenceScore],
        replaced: Sequence[SentenceScore],
        refusal: str,
    ) -> None:
        self._watched = watched
        self._earlier = [sentence.text for sentence in earlier]
        self._contents = [watched.claim(text, self._earlier[:n]).content for n, text in enumerate(self._earlier)]
        self._refusal = watched.claim(refusal).content
        claims = [watched.claim(sentence.text, self._earlier) for sentence in replaced]
        self._replaces_claim = any(claim.emptiness is None or claim.repeats for claim in claims)
        self._replaces_refusal = any(map(self._is_refusal, replaced))
        self._replaced = {word for claim in claims for word in claim.content}
        self._subjects = {_subject(claim.statement) for claim in claims} - {""}

    def flaw(self, sentences: Sequence[SentenceScore], *, absent: float | None) -> str:
        """Say why sentences may not be released whatever their scores; empty if they may.

        ``absent`` is that of :meth:`absent`: a refusal that nothing judges may not replace an answer.
        """
        texts, contents = list(self._earlier), list(self._contents)
        for sentence in sentences:
            claim = self._watched.claim(sentence.text, texts)
            if sentence.truncated:
                return CUT_OFF
            if self._replaces_claim and claim.emptiness is not None:
                return claim.emptiness
            if claim.content and claim.content in contents:
                return "it repeats a sentence of the answer"
            replaces_answer = self._replaces_claim and not self._replaces_refusal
            if replaces_answer and absent is None and self._is_refusal(sentence):
                return "a refusal in place of an answer"
            texts.append(sentence.text)
            contents.append(claim.content)
        return ""

    def absent(self, sentences: Sequence[SentenceScore]) -> float | None:
        """Judge P(faithful) of what sentences call absent from the passages, the lowest; None if nothing judges it."""
        judged = (self._watched.scorer.absent(s.text) for s in sentences if self._is_refusal(s))
        return min((value for value in judged if value is not None), default=None)

    def keeps_subject(self, sentences: Sequence[SentenceScore]) -> bool:
        """Tell whether sentences have the subject of those they replace, or most of their content words.

        The subject is the first word that is neither an article nor a preposition.
        """
        claims = [self._watched.claim(sentence.text, self._earlier) for sentence in sentences]
        shared = {word for claim in claims for word in claim.content} & self._replaced
        return 2 * len(shared) > len(self._replaced) or any(_subject(c.statement) in self._subjects for c in claims)

    def _is_refusal(self, sentence: SentenceScore) -> bool:
        is_configured = bool(self._refusal) and self._watched.claim(sentence.text).content == self._refusal
        return is_configured or "says_not_stated" in sentence.remarks


def _subject(statement: str) -> str:
    """Find the first word of a statement that may be its subject; empty if there is none."""
    return next((word for word in re.findall(r"\w+", statement.casefold()) if word not in _PASSED_OVER), "")
