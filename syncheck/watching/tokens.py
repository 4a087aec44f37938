"""Reading of a response that arrives in pieces, as :func:`syncheck.replay.read_response` reads a whole one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncheck.base.checks import check_text
from syncheck.decoding import Transcript, end_tokens_of
from syncheck.decoding.generation import check_response
from syncheck.results.types import RagPrompt, SentenceSpan
from syncheck.signals import check_window
from syncheck.text.sentences import BoundaryFinder, Detokenizer, IncrementalSegmenter, in_given, positions_in

if TYPE_CHECKING:
    from syncheck.monitor_base import MonitorParts

_OVERLAP = 16
"""Number of tokens that are made again when more text is tokenised, so that the tokenizer sees what came before."""
_SAME = 4
"""Number of these tokens, at the end, that must come out as before."""
_UNREAD = 512
"""Number of characters after which text is tokenised although no sentence seems to end."""
_LONG_WORD = 32
"""Number of characters, at the end of a run without white space, whose tokens may still change."""
_CERTAIN = re.compile(r"\s+(?=\S)|(?<=[。！？｡，、；：])(?=\S)")
"""Position before which later text cannot change the tokens."""


class GrowingResponse:
    """Growing text of a response, with its tokens and sentences as soon as more text cannot change them.

    Only the tail of the text is tokenised, once for each sentence, so that the work grows with the text and not with
    its square. (A slow tokenizer, which does not report the positions of its tokens, gets the whole text each time.)

    Parameters
    ----------
    monitor
        The monitor whose tokenizer and segmenter are used.
    prompt
        The prompt before the response.
    in_window
        True if prompt and response must fit the model's window; False if the model does not read them.

    Attributes
    ----------
    text : str
        The response so far, without half a character at its end.
    token_ids : list of int
        The tokens that are certain.
    char_spans : list of (int, int)
        Their characters in :attr:`text`, half-open.
    after_end : str
        What has come after an end-of-text token in the text, and is not read.
    is_over : bool
        True if such a token was found.
    """

    def __init__(self, monitor: MonitorParts, prompt: RagPrompt, *, in_window: bool = True) -> None:
        self._monitor = monitor
        self._tokenizer = monitor.tokenizer
        self._prompt = prompt
        self._in_window = in_window
        self._ends = end_tokens_of(monitor.model, monitor.tokenizer) if in_window else ()
        self._detokenizer = Detokenizer(monitor.tokenizer, prompt.with_context_ids)
        self._segmenter = IncrementalSegmenter(monitor.config.segmenter)
        self._finder = BoundaryFinder(monitor.config.segmenter)
        self._half = ""  # a high surrogate that waits for the low one
        self._wanted: list[int] = []  # characters up to which tokens close a sentence
        self._skipped = 0  # characters before the first token: a space that the tokenizer puts there itself
        self._offsets: list[tuple[int, int]] = []  # of each token, as the tokenizer reports them
        self._read = 0  # characters whose tokens are certain
        self._positions: list[int] = []  # in text, of each character that the tokens decode to
        self.text = ""
        self.token_ids: list[int] = []
        self.char_spans: list[tuple[int, int]] = []
        self.after_end = ""
        self.is_over = False

    @property
    def transcript(self) -> Transcript:
        """Text and tokens so far."""
        return Transcript(self.text, self.char_spans, self.after_end)

    def feed(self, piece: str) -> list[SentenceSpan]:
        """Add text and return the sentences that it closes."""
        if self.is_over:
            return []
        self.text += self._whole_characters(piece)
        self._wanted += [boundary.seen for boundary in self._finder.find(self.text)]
        if not self._wanted and len(self.text) - self._read < _UNREAD:
            return []
        certain = self._certain()
        if certain - self._read < _UNREAD and not any(place <= certain for place in self._wanted):
            return []
        closed = self._take(certain)
        self._wanted = [place for place in self._wanted if place > self._read]
        return closed

    def finish(self) -> list[SentenceSpan]:
        """Close and return the sentences that are open at the end of the response."""
        check_text(self._half, "the last piece")
        closed = [] if self.is_over else self._take(None)
        if not self.token_ids:
            self.text = self.text if not self.is_over else ""
            return closed
        spans = self._segmenter.finish(self._detokenizer.flush())
        self._positions += [self._read] * (len(self._segmenter.text) - len(self._positions))
        return closed + self._placed(spans)

    def _whole_characters(self, piece: str) -> str:
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if piece.isascii():
            return piece
        joined = piece.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        check_text(joined, "a piece")
        return joined

    def _certain(self) -> int:
        """Return the end of the text whose tokens are certain."""
        begin = max(self._read, len(self.text) - 8 * _LONG_WORD)
        places = [match.start() for match in _CERTAIN.finditer(self.text, begin)]
        return max([*places[-1:], len(self.text) - _LONG_WORD, self._read])

    def _take(self, certain: int | None) -> list[SentenceSpan]:
        """Read the tokens that end before a character (None: all) and return the sentences that they close."""
        known, start = len(self.token_ids), self._read
        ids, offsets = self._tokens()
        if certain is not None:
            count = next((i for i, (_, end) in enumerate(offsets) if end > certain), len(ids))
            ids, offsets = ids[:count], offsets[:count]
        if certain is None:
            read = len(self.text)
        else:
            read = offsets[-1][1] if offsets else start
        over = next((i for i, token in enumerate(ids) if token in self._ends), None)
        if over is not None:
            self.is_over = True
            first, last = offsets[over]
            read = first if first < last else read
            ids, offsets = ids[:over], offsets[:over]
            self.after_end, self.text = self.text[max(read, last) :].strip(), self.text[:read]
        if not ids:
            self._read = read if certain is None or self.is_over else start
            return []
        if self._in_window:
            self._check_room(len(ids))
        pieces = [self._detokenizer.push(token) for token in ids]
        spans = [span for piece in pieces for span in self._segmenter.push(piece)]
        before = len(self._positions)
        if not known and self._puts_a_space(pieces, read):
            return self._take_without_space(certain)
        decoded, given = self._segmenter.text[before:], self.text[start:read]
        new = [(a - before, b - before) for a, b in self._segmenter.char_spans[known:]]
        told = [(max(a - start, 0), b - start) for a, b in offsets] if self._tokenizer.is_fast else None
        positions = positions_in(given, decoded, new, told)
        self.token_ids += ids
        self._offsets += offsets
        self._positions += [start + place for place in positions[:-1]]
        self.char_spans += [(start + positions[a], start + positions[b]) for a, b in new]
        self._read = read
        return self._placed(spans)

    def _placed(self, spans: Sequence[SentenceSpan]) -> list[SentenceSpan]:
        self._positions.append(self._read)  # of the end
        placed = in_given(self.text, self._positions, spans)
        self._positions.pop()
        return placed

    def _puts_a_space(self, pieces: Sequence[str], read: int) -> bool:
        text = self.text[:read]
        return not self._skipped and text.startswith(" ") and "".join(pieces) == " " + text

    def _take_without_space(self, certain: int | None) -> list[SentenceSpan]:
        """Start again without the first space: Llama-2's tokenizer puts one before a text, and its answers have one."""
        self._skipped = 1
        self._detokenizer = Detokenizer(self._tokenizer, self._prompt.with_context_ids)
        self._segmenter = IncrementalSegmenter(self._monitor.config.segmenter)
        return self._take(certain)

    def _tokens(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the tokens after those that are known, and their characters."""
        known = self.token_ids
        overlap = self._offsets[-_OVERLAP][0] if self._tokenizer.is_fast and len(known) > _OVERLAP else None
        if overlap is not None:
            ids, offsets = self._tokenized(overlap)
            for i in range(_SAME, len(ids) + 1):
                if offsets[i - 1] == self._offsets[-1] and ids[i - _SAME : i] == known[-_SAME:]:
                    return ids[i:], offsets[i:]
        ids, offsets = self._tokenized(self._skipped)
        if ids[: len(known)] == known:
            return ids[len(known) :], offsets[len(known) :]
        first = next((i for i, (start, _) in enumerate(offsets) if start >= self._read), len(ids))
        return ids[first:], offsets[first:]

    def _tokenized(self, start: int) -> tuple[list[int], list[tuple[int, int]]]:
        fast = self._tokenizer.is_fast
        text = self.text[start:]
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=fast, verbose=False)
        ids: list[int] = encoded["input_ids"]
        if fast:
            return ids, [(a + start, b + start) for a, b in encoded["offset_mapping"]]
        detokenizer = Detokenizer(self._tokenizer, self._prompt.with_context_ids)
        stops, stop = [], start
        for token in ids:
            stop += len(detokenizer.push(token))
            stops.append(stop)
        return ids, list(zip([start, *stops], stops, strict=False))

    def _check_room(self, more: int) -> None:
        model, prompt, count = self._monitor.model, self._prompt, len(self.token_ids) + more
        check_window(model, len(prompt.with_context_ids) + count)
        check_response(model, prompt, count)
