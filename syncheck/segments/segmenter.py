"""Sentence boundaries that are certain before the rest of the text is known."""

from __future__ import annotations

import string
from itertools import pairwise

from nltk.tokenize.punkt import PunktSentenceTokenizer

from syncheck.config import SegmenterConfig
from syncheck.segments.assignment import CharSpan, first_token_from, visible
from syncheck.types import SentenceSpan

__all__ = ["IncrementalSegmenter"]

_TERMINALS = frozenset(".?!")
_UNDECIDED = _TERMINALS | frozenset("\"')]}\u2018\u2019\u201c\u201d\xab\xbb-")
"""What starts with these may still belong to the sentence before (closers, ellipses, dashes)."""


class IncrementalSegmenter:
    """Cuts a growing response into the sentences that NLTK's untrained Punkt finds in the whole of it.

    Parameters
    ----------
    config
        Its ``max_tokens`` bounds a sentence, since Punkt never ends one at a line break alone.

    Notes
    -----
    Punkt runs on the text since the last boundary at each first character of a word. Quotes, closing
    brackets, full stops and dashes are passed over: until another character follows, they may belong to the
    sentence before. What Punkt says there of the words so far is what it says in the whole text, for it looks
    at the word before a full stop and at how the one after it starts. A boundary also needs ASCII white space
    after it, without which a later full stop in the same word overrides it. So what is reported depends on
    the text alone, not on how it was cut into tokens (but for ``max_tokens``), and never changes.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        self._max_tokens = config.max_tokens
        self._punkt = PunktSentenceTokenizer()
        self._text = ""
        self._char_spans: list[CharSpan] = []
        self._starts: list[int] = []  # first character of each sentence reported
        self._token_start = 0  # the open sentence's first token
        self._char_start = 0  # and its first character
        self._seen = 0  # characters looked at
        self._armed = False  # white space and only undecided characters since
        self._has_terminal = False

    @property
    def text(self) -> str:
        """The response so far."""
        return self._text

    @property
    def char_spans(self) -> list[CharSpan]:
        """``(start, stop)`` of each token pushed, in characters of :attr:`text`."""
        return self._char_spans

    def push(self, text: str) -> list[SentenceSpan]:
        """Add one token's text and return the sentences it closed: none, one, or more if it holds several.

        The token that closes a sentence is usually the first of the next.
        """
        start = len(self._text)
        self._text += text
        self._char_spans.append((start, len(self._text)))
        closed = self._close_certain()
        while text and len(self._char_spans) - self._token_start > self._max_tokens:
            closed.append(self._cut())
            closed += self._close_certain()
        return closed

    def finish(self, text: str = "") -> list[SentenceSpan]:
        """Close what is open at the end of the response.

        Parameters
        ----------
        text
            Text that belongs to the last token but was held back (:meth:`Detokenizer.flush`).

        Returns
        -------
        list of SentenceSpan
            Empty when the response is nothing but white space. The last one takes all tokens left.
        """
        if text:
            self._text += text
            self._char_spans[-1] = (self._char_spans[-1][0], len(self._text))
        closed = []
        for stop, after in self._boundaries(len(self._text)):
            closed.append(self._close(stop, self._first_token_from(after)))
            self._char_start = after
        is_blank = not self._text[self._char_start :].strip()
        if not is_blank or (self._starts and self._token_start < len(self._char_spans)):
            closed.append(self._close(len(self._text), len(self._char_spans)))
            self._char_start = len(self._text)
        return closed

    def fork(self) -> IncrementalSegmenter:
        """Return an independent copy that goes on from here."""
        twin = object.__new__(IncrementalSegmenter)
        twin.__dict__.update(self.__dict__)
        twin._char_spans, twin._starts = self._char_spans.copy(), self._starts.copy()
        return twin

    def rewound(self, tokens: int, *, sentences: int) -> IncrementalSegmenter:
        """Return a copy taken back to a boundary that was reported.

        Parameters
        ----------
        tokens
            Tokens kept: those of the sentences kept.
        sentences
            Sentences kept.
        """
        twin = self.fork()
        twin._char_spans = self._char_spans[:tokens]
        twin._text = self._text[: twin._char_spans[-1][1]] if tokens else ""
        twin._token_start = tokens
        open_char = self._char_start if sentences == len(self._starts) else self._starts[sentences]
        twin._char_start = twin._seen = min(open_char, len(twin._text))
        twin._starts = self._starts[:sentences]
        twin._armed = twin._has_terminal = False
        return twin

    def _close_certain(self) -> list[SentenceSpan]:
        closed: list[SentenceSpan] = []
        while self._seen < len(self._text):
            char = self._text[self._seen]
            self._seen += 1
            self._has_terminal = self._has_terminal or char in _TERMINALS
            if char.isspace():
                self._armed = True
            elif char not in _UNDECIDED:
                if self._armed and self._has_terminal:
                    closed += self._close_before(self._seen)
                self._armed = False
        return closed

    def _close_before(self, seen: int) -> list[SentenceSpan]:
        closed: list[SentenceSpan] = []
        for stop, after in self._boundaries(seen):
            if not any(char in string.whitespace for char in self._text[stop:seen]):
                break
            token_stop = self._first_token_from(after)
            if token_stop - self._token_start > self._max_tokens:
                break
            closed.append(self._close(stop, token_stop))
            self._char_start = after
        if closed:
            self._has_terminal = not _TERMINALS.isdisjoint(self._text[self._char_start : seen])
        return closed

    def _boundaries(self, seen: int) -> list[tuple[int, int]]:
        """Return where each sentence of the open text ends and where the next starts, as Punkt has it."""
        offset = self._char_start
        spans = list(self._punkt.span_tokenize(self._text[offset:seen]))
        return [(offset + stop, offset + after) for (_, stop), (after, _) in pairwise(spans)]

    def _first_token_from(self, char: int) -> int:
        return first_token_from(char, self._text, self._char_spans, lowest=self._token_start)

    def _cut(self) -> SentenceSpan:
        """Close the open sentence after the last token with text in the limit: no character is divided."""
        limit = self._token_start + self._max_tokens
        with_text = [t for t in range(self._token_start, len(self._char_spans)) if self._has_text(t)]
        last = max((t for t in with_text if t < limit), default=with_text[0])
        cut = self._char_spans[last][1]
        span = self._close(cut, last + 1, truncated=True)
        self._char_start = self._seen = cut
        self._armed = self._has_terminal = False
        return span

    def _has_text(self, token: int) -> bool:
        start, stop = self._char_spans[token]
        return stop > start

    def _close(self, char_stop: int, token_stop: int, *, truncated: bool = False) -> SentenceSpan:
        start, stop = visible(self._text, self._char_start, char_stop)
        span = SentenceSpan(len(self._starts), start, stop, self._token_start, token_stop, truncated)
        self._starts.append(self._char_start)
        self._token_start = token_stop
        return span
