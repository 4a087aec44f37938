"""Search sessions: rows that are copied, cut back and continued, one sentence at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncheck.base.errors import InputError, NotReadyError
from syncheck.decoding.live import LiveSession
from syncheck.decoding.rows import Part, Row
from syncheck.results.types import SentenceSignals
from syncheck.signals import Branch
from syncheck.signals import require_rewindable as require_rewindable


class SearchSession(LiveSession):
    """Rows of a search over sentences; parameters as of :class:`Session`.

    A round lasts from one :meth:`advance`, :meth:`select` or :meth:`fork` to the next. Any call that is not in this
    table raises ``NotReadyError``:

    ========  ================================  =============================================================
    state     may be called                     what follows
    ========  ================================  =============================================================
    writing   ``push``                          writing
    .         ``push(one_sentence=True)``       narrowed
    .         ``measure``                       measured; writing, if there is nothing to measure
    .         ``advance``, ``select``           writing; refused once a row has closed a sentence
    narrowed  ``push(one_sentence=True)``       narrowed: rows that have closed a sentence have left the batch
    .         ``measure``                       measured, and still narrowed
    measured  ``advance``, if not narrowed      writing: after the measured sentences, with the tokens since
    .         ``select``                        writing: copies of rows, cut back to their measured sentences
    .         ``fork``                          narrowed: copies of rows, cut anywhere in the measured sentences
    any       ``select(keep_sentences=False)``  writing: copies of rows, cut back to where the round began
    ========  ================================  =============================================================

    After ``fork``, rows that are kept whole have closed their sentence, and the round ends with ``select``.
    """

    _one_sentence: bool

    def push(self, token_ids: Tensor, *, end_tokens: Sequence[int] = (), one_sentence: bool = False) -> list[str]:
        """Append one token to every row and return the text that each completed.

        Parameters
        ----------
        token_ids, end_tokens
            As in :meth:`LiveSession.push`.
        one_sentence
            True also drops tokens for rows that have closed a sentence in this round, for a search that takes one
            sentence from each. Such rows leave the batch, which runs on without them, and return with :meth:`select`.
        """
        if self._one_sentence and not one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select() first")
        if not self._is_measured:
            self._feed_pending()
            self._one_sentence = one_sentence
        return super().push(token_ids, end_tokens=end_tokens)

    def measure(self, rows: Sequence[int] | None = None) -> list[list[SentenceSignals]]:
        """Measure the sentences closed in this round and return them, one list per row.

        Called once in a round. The branch without the context reads the sentences in one teacher-forced pass.

        Parameters
        ----------
        rows
            Indices of the rows that are measured, for a search that drops the others or knows their signals; their
            lists are empty. None for all.
        """
        return self._measure_round(range(len(self.rows)) if rows is None else rows)

    def advance(self) -> None:
        """Begin the next round after the measured sentences, keeping the tokens decoded since."""
        if self._one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select()")
        super().advance()

    def select(self, rows: Sequence[int], *, keep_sentences: bool = True) -> None:
        """Begin the next round with copies of some rows, after their measured sentences or where the round began.

        No token is encoded again: caches are cropped and saved logits are reused.

        Parameters
        ----------
        rows
            Row to copy for each new row; a row may occur several times or not at all.
        keep_sentences
            True continues after the measured sentences, False where the round began.

        Raises
        ------
        UnsupportedModelError
            If tokens are to be taken back from a model whose state cannot be rewound.
        """
        kept = [self._closed_columns(r) if keep_sentences else self.rows[r].start - self._firsts[r] for r in rows]
        self._check_measured(keep_sentences and any(self.rows[r].closed for r in rows))
        next_logits = self._cut_branches(rows, kept)
        self.rows = [self.rows[r].fork(keep_closed=keep_sentences) for r in rows]
        self._begin(next_logits)

    def fork(self, rows: Sequence[int], tokens: Sequence[int | None]) -> None:
        """Begin a round with copies of some rows, each cut within its measured sentences or kept with them.

        No token is encoded again, and open sentences are later measured from their first token on. A row that is kept
        whole takes no tokens in the round: it waits to be selected.

        Parameters
        ----------
        rows
            Row to copy for each new row.
        tokens
            Number of the round's tokens that each new row keeps; None keeps its measured sentences whole.

        Raises
        ------
        InputError
            If more tokens are to be kept than a row has measured.
        UnsupportedModelError
            If tokens are to be taken back from a model whose state cannot be rewound.
        """
        if not self._is_measured:
            raise NotReadyError("only measured sentences can be cut; call measure() first")
        for row, count in zip(rows, tokens, strict=True):
            if count is not None and not 0 <= count <= self.rows[row].measured_tokens:
                raise InputError(
                    f"tokens must be 0 to {self.rows[row].measured_tokens}, those measured of row {row}; found {count}"
                )
        forked = [
            self.rows[r].kept() if count is None else self.rows[r].cut(count)
            for r, count in zip(rows, tokens, strict=True)
        ]
        stops = [len(row.token_ids) - self._firsts[r] for r, row in zip(rows, forked, strict=True)]
        heads = [self._columns.part(r, stop) for r, stop in zip(rows, stops, strict=True)]
        next_logits = self._cut_branches(rows, stops)
        self.rows = forked
        self._begin(next_logits, heads)

    def _begin(self, next_logits: Tensor | None, heads: Sequence[Part] | None = None) -> None:
        super()._begin(next_logits, heads)
        self._one_sentence = heads is not None

    def _is_over(self, row: Row) -> bool:
        return row.ended or (self._one_sentence and bool(row.closed))

    def _narrow(self, branch: Branch, read: int) -> None:
        if self._one_sentence:
            branch.narrow(self._unfinished(read) or branch.fed)

    def _unfinished(self, read: int) -> list[int]:
        """Find the rows with no closed sentence, or with one that a branch of ``read`` columns has not read whole."""
        return [
            index
            for index, row in enumerate(self.rows)
            if not (row.closed or row.ended) or self._closed_columns(index) > read
        ]

    def _cut_branches(self, rows: Sequence[int], stops: Sequence[int]) -> Tensor:
        """Continue both branches with copies of rows, each up to its column, and return their next logits (B, V)."""
        columns = self._columns
        if self._contrast is not None:
            self._contrast_to(max(stops))
        after = [columns.after(r, stop) for r, stop in zip(rows, stops, strict=True)]
        next_logits = torch.stack([logits for logits, _ in after])
        _cut(self._own, rows, [columns.fed - stop for stop in stops], next_logits)
        if self._contrast is not None:
            without = torch.stack([logits for _, logits in after if logits is not None])
            _cut(self._contrast, rows, [columns.contrasted - stop for stop in stops], without)
        return next_logits


def _cut(branch: Branch, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
    """Select rows; rewind, which copies nothing, if they stay as they are."""
    if list(rows) == list(range(branch.rows)) == branch.fed and len(set(dropped)) == 1:
        branch.rewind(dropped[0], next_logits)
    else:
        branch.select(rows, dropped, next_logits)
