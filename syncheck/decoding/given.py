"""Given sessions: responses that exist already, read by teacher forcing several tokens at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from syncheck.decoding.measuring import Transcript
from syncheck.decoding.session import Session
from syncheck.results.types import SentenceSignals, SentenceSpan
from syncheck.signals import Branch

REPLAYED_BYTES = 64 * 2**20
"""Size of the logits that a branch computes at once; fewer passes make a replay cheaper."""

FEWEST_REPLAYED, MOST_REPLAYED = 16, 256
"""Tokens of each row that are fed at once, whatever the size of the logits."""


class GivenSession(Session):
    """Rows whose responses are given: all of them at once, or one that grows; parameters as of :class:`Session`."""

    def _open(self) -> Tensor:
        self._main = Branch(self._model, [row.prompt.with_context_ids for row in self.rows])
        self._is_stacked: bool | None = None  # once tried
        return self._main.next_logits

    def replay(
        self,
        token_ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[SentenceSpan]],
        transcripts: Sequence[Transcript],
    ) -> Iterator[tuple[int, list[SentenceSignals]]]:
        """Measure a given response for each row by teacher forcing; yield a row with its next sentences, in order.

        The responses have no end-of-text tokens, and ``spans`` are their sentences, which partition the tokens.
        """
        longest = max(map(len, token_ids))
        if not longest:
            return
        padded = [[*row, *[0] * (longest - len(row))] for row in token_ids]
        left = [deque(row) for row in spans]
        dropped = 0
        for _ in self._fed(padded):
            stop = dropped + len(self._columns.ids)
            for row, waiting in enumerate(left):
                due = []
                while waiting and waiting[0].token_end <= stop:
                    due.append(waiting.popleft())
                if due:
                    yield row, self._measure(row, due, transcripts[row], dropped)
            keep = min((waiting[0].token_start for waiting in left if waiting), default=stop)
            self._columns.drop(keep - dropped)
            dropped = keep

    def extend(
        self, token_ids: Sequence[int], spans: Sequence[SentenceSpan], transcript: Transcript
    ) -> list[SentenceSignals]:
        """Feed the next tokens of one given response, which may still grow, and measure the sentences they close.

        The tokens are those after the last sentence that was measured, up to the end of these sentences. Each call has
        few, for which the model's weights cost more than its attention: where the model can read both branches as a
        batch, it runs once for both.
        """
        if self._is_stacked is None:
            self._is_stacked = self._contrast is not None and self._main.stack(self._contrast)
        for _ in self._fed([list(token_ids)]):
            pass
        measured = self._measure(0, spans, transcript, self._firsts[0])
        self._columns.drop(len(token_ids))
        self._firsts[0] += len(token_ids)
        return measured

    def _fed(self, token_ids: Sequence[Sequence[int]]) -> Iterator[None]:
        """Feed the next tokens (B, n) to both branches, and pause after every few."""
        ids = torch.tensor(token_ids, dtype=torch.long, device=self._model.device)
        for chunk in torch.split(ids, _tokens_at_once(self._columns.logits[0]), dim=1) if ids.numel() else ():
            self._feed(chunk)
            yield

    def _feed(self, ids: Tensor) -> None:
        """Feed tokens (B, n) to both branches."""
        rows = len(ids)
        with self._taps.recording() as recorded:
            logits = self._main.feed(ids.repeat(2, 1) if self._is_stacked else ids)
        self._columns.ids += ids.unbind(1)
        states = [torch.cat(layer, dim=1)[:rows] for layer in recorded]  # no tree: nothing is forked
        self._columns.was_fed(logits[:rows], states)
        if self._is_stacked:
            self._columns.was_contrasted(logits[rows:])
        else:
            self._contrast_to(len(self._columns.ids))


def _tokens_at_once(logits: Tensor) -> int:
    """Compute how many tokens a replay feeds at once, from the size of one token's logits (B, V)."""
    fitting = REPLAYED_BYTES // (logits.numel() * logits.element_size())
    return min(max(fitting, FEWEST_REPLAYED), MOST_REPLAYED)
