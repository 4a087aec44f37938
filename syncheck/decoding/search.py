"""Search sessions: rows that run the model, take drafts, and are copied, cut back and continued by the sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncheck.base.errors import InputError, NotReadyError
from syncheck.decoding.rows import Part, Row, Sequences
from syncheck.decoding.session import RoundSession
from syncheck.signals import Branch
from syncheck.signals import require_rewindable as require_rewindable

CLEAR_LEAD = 2
"""Lead, in recent forward passes, of those after which the logits without the context were asked for over the others;
from this lead on, both branches read a token in one forward pass."""


class SearchSession(RoundSession):
    """Rows that are decoded in lockstep, copied, cut back and continued; parameters as of :class:`Session`.

    The logits may be read, and tokens drafted, at any time.

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

    def _open(self) -> Tensor:
        self._own = Branch(self._model, [row.prompt.with_context_ids for row in self.rows])
        self._is_joined: bool | None = None  # once tried
        self._is_asked = False  # for logits of the branch without the context, since the other was fed
        self._lead = 0  # recent passes after which it was asked for, minus the others
        self._draft: list[int] = []  # may follow the token that is fed next
        return self._own.next_logits

    @property
    def next_logits(self) -> Tensor:
        """Raw logits (B, V) of the next token; feeds the last token if it has not been fed yet."""
        self._feed_pending()
        return self._columns.logits[len(self._columns.ids)]

    @property
    def contrast_logits(self) -> Tensor:
        """Raw logits (B, V) of the next token without the context; NotReadyError if no prompt has a context."""
        if self._contrast is None:
            raise NotReadyError("without a context there is nothing to contrast; pass passages that are not empty")
        self._is_asked = True
        self._contrast_to(len(self._columns.ids), is_asked=True)
        return self._columns.contrast[len(self._columns.ids)]

    @property
    def room(self) -> int | None:
        """Number of tokens that still fit the model's window; None if the model states no limit."""
        if self._window is None:
            return None
        return self._window - self._own.width - (len(self._columns.ids) - self._columns.fed)

    def sequences(self, row: int | None = None) -> Tensor:
        """View the ids so far, prompt included, which must not be written to; int64.

        With the index of a ``row``, these are its ids (1, n) without padding. None gives those (B, n) of all rows:
        shorter rows begin with repeats of their own first token, and rows that are over continue with what was pushed
        to them since.
        """
        return self._sequences.padded() if row is None else self._sequences.of_row(row)

    def draft(self, token_ids: Sequence[int]) -> None:
        """Suggest tokens that may follow the last one, so that both are fed in one forward pass.

        Those that are then pushed need no forward pass of their own. The others are taken back, and change nothing;
        those beyond the window are ignored. Drafts have no effect once the logits have been read, if several rows are
        fed, or if the model's state cannot be rewound.
        """
        self._draft = list(token_ids)

    def push(self, token_ids: Tensor, *, end_tokens: Sequence[int] = (), one_sentence: bool = False) -> list[str]:
        """Append one token to every row, as :meth:`RoundSession.push`, and return the text that each completed.

        With ``one_sentence``, tokens are also dropped for rows that have closed a sentence in this round, for a search
        that takes one sentence from each. Such rows leave the batch, which runs on without them, and return with
        :meth:`select`.
        """
        if self._one_sentence and not one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select() first")
        if not self._is_measured:
            self._feed_pending()
            self._one_sentence = one_sentence
        return super().push(token_ids, end_tokens=end_tokens)

    def advance(self) -> None:
        """Begin the next round after the measured sentences, keeping the tokens decoded since."""
        if self._one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select()")
        super().advance()

    def select(self, rows: Sequence[int], *, keep_sentences: bool = True) -> None:
        """Begin the next round with copies of some rows, after their measured sentences or where the round began.

        ``rows`` has the row to copy for each new row; a row may occur several times or not at all. ``keep_sentences``
        continues after the measured sentences; False, where the round began. No token is encoded again: caches are
        cropped and saved logits are reused. Taking tokens back from a model whose state cannot be rewound raises
        UnsupportedModelError.
        """
        kept = [self._closed_columns(r) if keep_sentences else self.rows[r].start - self._firsts[r] for r in rows]
        self._check_measured(keep_sentences and any(self.rows[r].closed for r in rows))
        next_logits = self._cut_branches(rows, kept)
        self.rows = [self.rows[r].fork(keep_closed=keep_sentences) for r in rows]
        self._begin(next_logits)

    def fork(self, rows: Sequence[int], tokens: Sequence[int | None]) -> None:
        """Begin a round with copies of some rows, each cut within its measured sentences or kept with them.

        ``rows`` are as in :meth:`select`; ``tokens`` is the number of the round's tokens that
        each new row keeps, or None for its measured sentences as they are. A row that is kept whole takes no tokens in
        the round: it waits to be selected. No token is encoded again, and open sentences are later measured from their
        first token on. Errors are as in :meth:`select`; keeping more tokens than a row has measured raises
        InputError.
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
        ids = [[*row.prompt.with_context_ids, *row.token_ids] for row in self.rows]
        self._sequences = Sequences(ids, self._model.device)
        self._one_sentence = heads is not None

    def _is_over(self, row: Row) -> bool:
        return row.ended or (self._one_sentence and bool(row.closed))

    def _add(self, token_ids: Tensor, pushed: Sequence[int]) -> None:
        self._draft = []
        if self._columns.contradicts(pushed):
            self._take_draft_back()
        super()._add(token_ids, pushed)
        self._sequences.append(token_ids)

    def _narrow(self, branch: Branch, read: int) -> None:
        """Leave out rows whose closed sentence a branch, which has read ``read`` columns, has read whole."""
        if self._one_sentence:
            unfinished = [
                index
                for index, row in enumerate(self.rows)
                if not (row.closed or row.ended) or self._closed_columns(index) > read
            ]
            branch.narrow(unfinished or branch.fed)

    def _feed_pending(self) -> None:
        columns = self._columns
        if columns.fed >= len(columns.ids):
            return
        own, ids = self._own, columns.ids[columns.fed]
        other = self._read_along()
        for branch in (own, other):
            if branch is not None:
                self._narrow(branch, columns.fed)
        fed = own.fed if len(own.fed) < len(self.rows) else None
        tokens = (ids if fed is None else ids[fed])[:, None]
        if self._draft and len(tokens) == 1:
            columns.draft, columns.drafted_row = own.fitting(self._draft, after=1), own.fed[0]
            tokens = torch.cat([tokens, tokens.new_tensor([columns.draft])], dim=1)
        with self._taps.recording() as recorded:
            if other is not None and other.fed == own.fed:
                logits, contrast = own.feed_with(other, tokens)
                columns.was_contrasted(contrast, rows=fed)
            else:
                logits = own.feed(tokens)
        # A tree has them in one row, and after them those of the other branch.
        states = [layer[0].flatten(0, 1)[: tokens.numel()].reshape(*tokens.shape, -1) for layer in recorded]
        columns.was_fed(logits, states, rows=fed)

    def _take_draft_back(self) -> None:
        """Let both branches forget the tokens that they have read ahead of those that were pushed."""
        columns = self._columns
        ahead, contrasted_ahead = (read - len(columns.ids) for read in (columns.fed, columns.contrasted))
        columns.forget_draft()
        self._own.take_back(ahead, columns.logits[-1][self._own.fed])
        if self._contrast is not None and contrasted_ahead > 0:
            self._contrast.take_back(contrasted_ahead, columns.contrast[-1][self._contrast.fed])

    def _read_along(self) -> Branch | None:
        """Choose the branch without the context if it should read the next token in the other branch's forward pass.

        That costs less if each step asks for its logits, and more if it could read many tokens at a time.
        """
        self._lead = min(max(self._lead + (1 if self._is_asked else -1), 0), 2 * CLEAR_LEAD)
        self._is_asked = False
        if self._contrast is None or self._lead < CLEAR_LEAD or self._columns.contrasted != self._columns.fed:
            return None
        if self._is_joined is None:
            self._is_joined = self._own.join(self._contrast)
        return self._contrast if self._is_joined else None

    def _contrast_to(self, stop: int, *, is_asked: bool = False) -> None:
        branch, columns = self._contrast, self._columns
        if branch is None or columns.contrasted >= stop:
            return
        if is_asked or len(branch.fed) < branch.rows:
            self._narrow(branch, columns.contrasted)
        fed = branch.fed if len(branch.fed) < len(self.rows) else None
        unread = columns.unread(stop) if fed is None else columns.unread(stop)[fed]
        if columns.draft and stop == len(columns.ids) and branch.fed == self._own.fed:
            draft = branch.fitting(columns.draft, after=unread.shape[1])
            unread = torch.cat([unread, unread.new_tensor([draft])], dim=1)
        columns.was_contrasted(branch.feed(unread), rows=fed)

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
