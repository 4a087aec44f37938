"""Continuations that a server writes: their sentences, the tokens of these, and branches of a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fod.branch_proposer import branch_places, longest_branch
from fod.config import RepairConfig
from fod.search import CandidateStop
from syncheck.results import Piece, WrittenToken

LIKELIEST = 5
"""Number of likeliest tokens that are asked for at each place of a sentence; the completions API tells no more."""
_FULL_STOP = b"."
_SPECIAL = re.compile(r"<[|/]?[^\s<>]+>|\[/?[A-Z_]+\]")
"""Tokens that end a text or a turn, as their text shows them; within a chat they would be read as such."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A part of a continuation: its sentences, in the text that the model has written."""

    text: str
    start: int
    end: int
    spans: tuple[Any, ...]
    stop: CandidateStop | None = None
    is_cut_off: bool = False
    count: int = 0
    """Number of tokens that the server has written for it."""
    tokens: tuple[WrittenToken, ...] | None = ()
    """Its tokens, if they were asked for; None if those that came do not spell it."""
    is_cut: bool = False
    """True for a branch that cuts the sentence short."""

    @property
    def own(self) -> str:
        """The text of this part."""
        return self.text[self.start : self.end]

    @property
    def token_ids(self) -> tuple[int, ...]:
        """-1 for each of its known tokens, whose ids a server does not tell."""
        return (-1,) * len(self.tokens or ())

    @property
    def log_prob(self) -> float:
        """Log-probability of its tokens, in nats; 0 if they are not known."""
        return sum(token.log_prob for token in self.tokens or ())

    def without_last(self) -> WrittenText:
        """Leave out the last sentence, and the text after the one before."""
        *kept, _ = self.spans
        return replace(self, spans=tuple(kept), end=kept[-1].end if kept else self.start)


TextBranch = tuple[WrittenToken, ...]
"""Beginning of a branch: tokens of a sentence, and another one, perhaps a full stop, in the place of the next."""


def text_of(branch: TextBranch) -> str:
    """Decode the text of its tokens."""
    return b"".join(token.data for token in branch).decode()


class Continuation:
    """A continuation while it arrives; a ``branch`` is what it begins with."""

    def __init__(self, segmenter: Any, branch: TextBranch = ()) -> None:  # noqa: ANN401 - of Verifier
        self._segmenter = segmenter
        self._base = self._at = len(segmenter.text)  # where the text begins that was not taken yet
        self._closed: list[Any] = []  # sentences that what follows has closed
        self._last: tuple[Any, ...] = ()  # those that the end of the text closes
        self._count = self._taken = 0  # of tokens that have arrived, and of those that were taken
        self._tokens: list[WrittenToken] = []
        self._branch = branch
        self.stop: CandidateStop | None = None
        if branch:
            self.add(Piece(text_of(branch), tokens=branch), 0)

    def add(self, piece: Piece, count: int) -> None:
        """Add a piece, unless the text has ended; with it, so many tokens have come after the branch."""
        if self.stop is None:
            self._tokens += piece.tokens
            self._closed += self._segmenter.push(piece.text)
            self._count = count + len(self._branch)
            if piece.stop is not None:
                self.end(piece.stop)

    def end(self, stop: CandidateStop = "end_of_text") -> None:
        """End the text, unless it has ended."""
        if self.stop is None:
            self.stop, self._last = stop, tuple(self._segmenter.finish())

    @property
    def is_due(self) -> bool:
        """True if the next sentence is whole, or there is none."""
        return bool(self._closed) or self.stop is not None

    @property
    def is_too_long(self) -> bool:
        """True for a branch that is given up."""
        return bool(self._branch) and not self.is_due and self._count >= longest_branch(len(self._branch) - 1)

    @property
    def unfinished(self) -> str:
        """The text that was not taken."""
        return str(self._segmenter.text[self._at :]).strip()

    def take(self) -> WrittenText:
        """Take the next sentence; at the end of the text, all that it closes."""
        text, start, stop = self._segmenter.text, self._at, None
        if self._closed:
            spans: tuple[Any, ...] = (self._closed.pop(0),)
            self._at = spans[0].end
        else:
            spans, stop, self._at = self._last, self.stop, len(text)
        is_cut_off = stop == "length" and bool(spans) and self._segmenter.breaks_off
        count, self._taken = self._count - self._taken, self._count
        tokens = _spelled(self._tokens, text[self._base : start], text[start : self._at])
        is_cut = bool(self._branch) and self._branch[-1].data == _FULL_STOP
        return WrittenText(text, start, self._at, spans, stop, is_cut_off, count, tokens, is_cut)


def branches_of(tokens: Sequence[WrittenToken], config: RepairConfig) -> list[TextBranch]:
    """Branch a sentence at its first and its least certain tokens, and where it can be cut short.

    A token's place takes the likeliest other one that is text: whole characters, and no special token.
    """
    least = math.log(config.plausibility) if config.plausibility else -math.inf
    runner_ups: list[bytes] = []
    behind: list[float] = []
    stop_behind: list[float] = []
    for place, token in enumerate(tokens):
        best = max([token.log_prob, *(log_prob for _, log_prob in token.likeliest)])
        is_whole = _decoded(b"".join(token.data for token in tokens[:place])) is not None
        others = {
            data: log_prob
            for data, log_prob in token.likeliest
            if is_whole and data != token.data and log_prob >= best + least and _is_text(data)
        }
        runner_up = max(others, key=others.__getitem__, default=b"")
        runner_ups.append(runner_up)
        behind.append(others.get(runner_up, -math.inf) - token.log_prob)
        stop_behind.append(others.get(_FULL_STOP, -math.inf) - token.log_prob)
    chosen = branch_places(runner_ups, behind, stop_behind, config, full_stop=_FULL_STOP)
    return [(*tokens[:place], WrittenToken(data, dict(tokens[place].likeliest)[data])) for place, data in chosen]


def _decoded(data: bytes) -> str | None:
    """Decode whole characters; None for parts of one."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _is_text(data: bytes) -> bool:
    text = _decoded(data) or ""
    return text != "" and "\ufffd" not in text and _SPECIAL.fullmatch(text.strip()) is None


def _spelled(tokens: Sequence[WrittenToken], before: str, text: str) -> tuple[WrittenToken, ...] | None:
    """Find the tokens of a text after another one; None if the last tokens do not spell both.

    Tokens of reasoning may come before them. Of one that begins before the text, the part in it is left.
    """
    if not tokens:
        return ()
    data, start = (before + text).encode(), len(before.encode())
    starts = reversed(range(len(tokens)))
    return next((inside for first in starts if (inside := _inside(tokens[first:], data, start)) is not None), None)


def _inside(tokens: Sequence[WrittenToken], data: bytes, start: int) -> tuple[WrittenToken, ...] | None:
    """Find the tokens of ``data[start:]``; None if the first tokens do not spell the data."""
    inside, at = [], 0
    for token in tokens:
        if at >= len(data):
            break
        end = at + len(token.data)
        if token.data[: len(data) - at] != data[at:end]:
            return None
        if end > start:
            inside.append(token if at >= start else WrittenToken(data[start:end], 0.0))
        at = end
    return tuple(inside) if at >= len(data) else None
