"""Decoding sessions: continuations with their token ids, both branches, taps and sentence boundaries.

Live decoding, search and replay all use a session, so that every sentence is measured by the same code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from syncheck.base.errors import InputError, NotReadyError
from syncheck.decoding.measuring import Columns, Head, Transcript, measure_tokens, tokenless
from syncheck.decoding.rows import Row, Scoped, Sequences
from syncheck.results.types import RagPrompt, SentenceSignals, SentenceSpan
from syncheck.signals import Branch, LidReferences, Taps, check_same_encoding, check_window, window_of
from syncheck.signals import require_rewindable as require_rewindable
from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.config import SegmenterConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HELD_TOKENS = 64
"""Tokens after which the finished sentences of a batch are measured although a row's sentence is still open."""

REPLAYED_BYTES = 64 * 2**20
"""Size of the logits of given responses that a branch computes at once; fewer passes make a replay cheaper."""

CLEAR_LEAD = 2
"""Lead of recent forward passes after which the logits without the context were asked for over the others, from which
both branches read a token in one forward pass."""

FEWEST_REPLAYED, MOST_REPLAYED = 16, 256
"""Tokens of each row that are fed at once, whatever the size of the logits."""


class DecodingSession(Scoped):
    """B continuations, decoded in lockstep and measured sentence by sentence.

    Use as a context manager: hidden-state hooks are attached inside and removed on exit. A round lasts from one
    :meth:`advance` or :meth:`select` to the next. Any call that is not in this table raises ``NotReadyError``:

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

    The logits may be read, and tokens drafted, in any state. After ``fork``, rows that are kept whole have closed their
    sentence, and the round ends with ``select``. A session that measures given responses is used with :meth:`replay` or
    :meth:`extend` alone. An observed session takes :meth:`observe` after the prompt and after each ``push``, and
    refuses ``select`` and ``replay``.

    Parameters
    ----------
    model
        A causal language model in evaluation mode.
    prompts
        The pair of prompts of each row, or a single pair for one row. Without a context there is no second branch, and
        KL is NaN.
    layers
        Decoder blocks, counted from 0, whose activations are kept at each sentence's last token.
    lid_references
        Reference activations that LID is measured against; None leaves it unmeasured.
    observed
        True if another loop runs the model with the context and passes its outputs to :meth:`observe`.

    Attributes
    ----------
    rows : list of Row

    Raises
    ------
    PromptError
        If a prompt does not fit the model's window.
    InputError
        If the model encodes some of the prompts in another way than the others, because they are longer.
    UnsupportedModelError
        If the model keeps its state outside its cache.

    Notes
    -----
    A model whose state cannot be rewound is fed token by token in both branches, and :meth:`select` refuses to take
    tokens back.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        layers: Sequence[int] = (),
        lid_references: LidReferences | None = None,
        segmenter: SegmenterConfig,
        observed: bool = False,
    ) -> None:
        prompts = [prompts] if isinstance(prompts, RagPrompt) else list(prompts)
        lengths = [len(prompt.with_context_ids) for prompt in prompts]
        check_window(model, max(lengths) + 1)
        check_same_encoding(model, lengths)
        self._model = model
        self._window = window_of(model)
        self._taps = Taps(model, layers)
        self._lid_references = lid_references
        self._main = None if observed else Branch(model, [prompt.with_context_ids for prompt in prompts])
        self._contrast = (
            Branch(model, [prompt.without_context_ids for prompt in prompts])
            if any(prompt.has_context for prompt in prompts)
            else None
        )
        self._is_joined: bool | None = None  # once tried
        self._is_stacked: bool | None = None  # once tried
        self._is_asked = False  # for logits of the branch without the context, since the other was fed
        self._lead = 0  # of the last passes those after which it was asked, less the others
        self._draft: list[int] = []  # may follow the token that is fed next
        self.rows = [Row(tokenizer, prompt, IncrementalSegmenter(segmenter)) for prompt in prompts]
        self._columns: Columns
        self._firsts: list[int]  # token of each row's response that column 0 holds
        self._sequences: Sequences
        self._is_measured: bool
        self._one_sentence: bool
        self._begin_round(None if self._main is None else self._main.next_logits)

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
        self._contrast_to(len(self._columns.ids), narrow=self._one_sentence)
        return self._columns.contrast[len(self._columns.ids)]

    @property
    def running(self) -> list[int]:
        """Indices of the rows that have closed no sentence in this round and are not over."""
        return [index for index, row in enumerate(self.rows) if not (row.closed or row.ended)]

    @property
    def room(self) -> int | None:
        """Number of tokens that still fit the model's window; None if the model states no limit."""
        if self._window is None:
            return None
        return self._window - self._own.width - (len(self._columns.ids) - self._columns.fed)

    def sequences(self, row: int | None = None) -> Tensor:
        """Return the ids so far, prompt included; a view that must not be written to.

        Parameters
        ----------
        row
            Index of a row, for its ids (1, n) without padding. None for the ids (B, n) of all rows: shorter rows begin
            with repeats of their own first token, and rows that are over continue with whatever was pushed to them
            since.

        Returns
        -------
        Tensor of shape (B, n) or (1, n), int64
        """
        return self._sequences.padded() if row is None else self._sequences.of_row(row)

    def draft(self, token_ids: Sequence[int]) -> None:
        """Suggest tokens that may follow the last one, so that both are fed in one forward pass.

        Those that are then pushed need no forward pass of their own. The others are taken back, and change nothing.

        Parameters
        ----------
        token_ids
            The next tokens of the row that is fed, used up to the end of the window. They have no effect once the
            logits have been read, if several rows are fed, or if the model's state cannot be rewound.
        """
        self._draft = list(token_ids)

    def push(self, token_ids: Tensor, *, end_tokens: Sequence[int] = (), one_sentence: bool = False) -> list[str]:
        """Append one token to every row and return the text that each completed.

        Parameters
        ----------
        token_ids
            (B,) int64. A token for a row that is over fills the column and is dropped.
        end_tokens
            Tokens that end a continuation; they are not part of its text.
        one_sentence
            True also drops tokens for rows that have closed a sentence in this round, for a search that takes one
            sentence from each. Such rows leave the batch, which runs on without them, and return with :meth:`select`.
        """
        if self._one_sentence and not one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select() first")
        if self._is_measured:
            raise NotReadyError("this round is measured; call advance() or select() before pushing again")
        self._feed_pending()
        self._one_sentence = one_sentence
        self._draft = []
        pushed = token_ids.tolist()
        if self._columns.contradicts(pushed):
            self._take_draft_back()
        self._columns.add(token_ids)
        self._sequences.append(token_ids)
        texts = []
        for row, token_id in zip(self.rows, pushed, strict=True):
            if row.ended or (one_sentence and row.closed):
                texts.append("")
            elif token_id in end_tokens:
                row.end(token_id)
                texts.append("")
            else:
                texts.append(row.push(token_id))
        return texts

    def observe(self, logits: Tensor, states: Sequence[Tensor]) -> None:
        """Take the logits (B, 1, V) and each layer's states (B, 1, H) of the token fed last; first those of the prompt.

        For observed sessions.
        """
        if self._columns.logits:
            self._columns.was_fed(logits, states)
        else:
            self._columns.logits.append(logits[:, 0])

    def recording(self) -> AbstractContextManager[list[list[Tensor]]]:
        """Return a context manager that collects the tapped blocks' outputs of an observed loop, one list per layer."""
        return self._taps.recording()

    @property
    def is_recording(self) -> bool:
        """True if a forward pass that runs in this thread or asyncio task is one of the observed loop."""
        return self._taps.is_recording

    def complete(self) -> bool:
        """Return True if every row has closed a sentence or is over."""
        return not self.running

    def due(self) -> bool:
        """Return True if there is a sentence to measure, and either every row has one or 64 tokens are held."""
        return any(row.closed for row in self.rows) and (self.complete() or len(self._columns.ids) >= HELD_TOKENS)

    def measure(self, rows: Sequence[int] | None = None) -> list[list[SentenceSignals]]:
        """Measure the sentences closed in this round and return them, one list per row.

        Called once in a round, before :meth:`advance` or :meth:`select`. The no-context branch reads the sentences in
        one teacher-forced pass.

        Parameters
        ----------
        rows
            Indices of the rows that are measured, for a search that drops the others or knows their signals; their
            lists are empty. None for all.
        """
        if self._is_measured:
            raise NotReadyError("this round is measured; call advance() or select() before measuring again")
        if not any(row.closed for row in self.rows):
            return [[] for _ in self.rows]
        wanted = [i for i, row in enumerate(self.rows) if row.closed and (rows is None or i in rows)]
        longest = max((self._closed_columns(index) for index in wanted), default=0)
        if self._columns.fed < longest:
            self._feed_pending()  # the last token's hidden state appears when it is fed
        self._contrast_to(longest)
        self._is_measured = True
        return [
            self._measure(i, row.closed, Transcript(row.text, row.char_spans), self._firsts[i]) if i in wanted else []
            for i, row in enumerate(self.rows)
        ]

    def advance(self) -> None:
        """Begin the next round after the measured sentences, keeping the tokens decoded since."""
        if self._one_sentence:
            raise NotReadyError("rows of this round have left the batch after a sentence; call select()")
        self._check_measured(any(row.closed for row in self.rows))
        for row in self.rows:
            row.advance()
        measured = [row.start - first for row, first in zip(self.rows, self._firsts, strict=True)]
        still_open = [count for row, count in zip(self.rows, measured, strict=True) if not row.ended]
        dropped = min(still_open, default=max(measured))
        self._columns.drop(dropped)
        self._firsts = [first + dropped for first in self._firsts]
        self._is_measured = False

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
        self._begin_round(next_logits)

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
        heads = [self._columns.head(r, stop) for r, stop in zip(rows, stops, strict=True)]
        next_logits = self._cut_branches(rows, stops)
        self.rows = forked
        self._begin_round(next_logits, heads)

    def replay(
        self,
        token_ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[SentenceSpan]],
        transcripts: Sequence[Transcript],
    ) -> Iterator[tuple[int, list[SentenceSignals]]]:
        """Measure a given response for each row by teacher forcing, some tokens at a time.

        Parameters
        ----------
        token_ids
            The responses, without end-of-text tokens.
        spans
            Their sentences, which partition the tokens.
        transcripts
            Their texts and the characters of each token.

        Yields
        ------
        row : int
        sentences : list of SentenceSignals
            The row's next sentences, in order.
        """
        longest = max(map(len, token_ids))
        if not longest:
            return
        device = self._sequences.padded().device
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in token_ids], device=device)  # (B, n)
        left = [deque(row) for row in spans]
        dropped = 0
        for chunk in torch.split(ids, _tokens_at_once(self._columns.logits[0]), dim=1):
            self._feed_given(chunk)
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

        Parameters
        ----------
        token_ids
            Tokens after those of the last sentence that was measured, up to the end of these sentences.

        Notes
        -----
        Each call has few tokens, for which the model's weights cost more than its attention: where the model can read
        both branches as a batch, it runs once for both.
        """
        if self._is_stacked is None:
            self._is_stacked = self._contrast is not None and self._own.stack(self._contrast)
        ids = torch.tensor([list(token_ids)], dtype=torch.long, device=self._sequences.padded().device)  # (1, n)
        for chunk in torch.split(ids, _tokens_at_once(self._columns.logits[0]), dim=1) if token_ids else ():
            self._feed_given(chunk)
        found = self._measure(0, spans, transcript, self._firsts[0])
        self._columns.drop(len(token_ids))
        self._firsts[0] += len(token_ids)
        return found

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self._taps.attached())

    @property
    def _own(self) -> Branch:
        if self._main is None:
            raise NotReadyError("only the watched loop feeds this branch; it cannot be fed or rewound from here")
        return self._main

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

    def _begin_round(self, next_logits: Tensor | None, heads: Sequence[Head] | None = None) -> None:
        contrast = None if self._contrast is None else self._contrast.next_logits
        self._columns = Columns(len(self._taps.layers), next_logits, contrast, heads)
        self._firsts = [row.start if heads is None else len(row.token_ids) for row in self.rows]
        ids = [[*row.prompt.with_context_ids, *row.token_ids] for row in self.rows]
        self._sequences = Sequences(ids, self._model.device)
        self._is_measured = False
        self._one_sentence = heads is not None

    def _closed_columns(self, row: int) -> int:
        """Return the number of columns up to the end of the row's closed sentences."""
        return self.rows[row].start + self.rows[row].measured_tokens - self._firsts[row]

    def _check_measured(self, is_needed: bool) -> None:
        if is_needed and not self._is_measured:
            raise NotReadyError("the sentences closed in this round are not measured yet; call measure() first")

    def _feed_pending(self) -> None:
        columns = self._columns
        if columns.fed >= len(columns.ids):
            return
        if self._main is None:
            raise NotReadyError("the last token was not fed to the model yet; call report(out) with the final ids")
        own, ids = self._main, columns.ids[columns.fed]
        other = self._read_along()
        if self._one_sentence:
            for branch in (own, other):
                if branch is not None:
                    branch.narrow(self._unfinished(columns.fed) or branch.fed)
        fed = own.fed if len(own.fed) < len(self.rows) else None
        tokens = (ids if fed is None else ids[fed])[:, None]
        if self._draft and len(tokens) == 1:
            columns.read_ahead(own.fitting(self._draft, after=1), row=own.fed[0])
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
        """Return the branch without the context if it should read the next token in the other branch's forward pass.

        That is cheaper if each step asks for its logits, and dearer if it could read many tokens at a time.
        """
        self._lead = min(max(self._lead + (1 if self._is_asked else -1), 0), 2 * CLEAR_LEAD)
        self._is_asked = False
        if self._contrast is None or self._lead < CLEAR_LEAD or self._columns.contrasted != self._columns.fed:
            return None
        if self._is_joined is None:
            self._is_joined = self._own.join(self._contrast)
        return self._contrast if self._is_joined else None

    def _feed_given(self, ids: Tensor) -> None:
        """Feed tokens (B, n) of given responses to both branches."""
        rows = len(ids)
        with self._taps.recording() as recorded:
            logits = self._own.feed(ids.repeat(2, 1) if self._is_stacked else ids)
        self._columns.ids += ids.unbind(1)
        states = [torch.cat(layer, dim=1)[:rows] for layer in recorded]  # no tree: nothing is forked
        self._columns.was_fed(logits[:rows], states)
        if self._is_stacked:
            self._columns.was_contrasted(logits[rows:])
        else:
            self._contrast_to(len(self._columns.ids))

    def _unfinished(self, read: int) -> list[int]:
        """Return the rows with no closed sentence, or with one that a branch of ``read`` columns has not read whole."""
        return [
            index
            for index, row in enumerate(self.rows)
            if not (row.closed or row.ended) or self._closed_columns(index) > read
        ]

    def _contrast_to(self, stop: int, *, narrow: bool = False) -> None:
        """Let the branch without the context read the columns before ``stop``, if asked only in rows that need it."""
        branch, columns = self._contrast, self._columns
        if branch is None or columns.contrasted >= stop:
            return
        if narrow or len(branch.fed) < branch.rows:
            branch.narrow(self._unfinished(columns.contrasted) or branch.fed)
        fed = branch.fed if len(branch.fed) < len(self.rows) else None
        unread = columns.unread(stop) if fed is None else columns.unread(stop)[fed]
        if columns.draft and stop == len(columns.ids) and branch.fed == self._own.fed:
            draft = branch.fitting(columns.draft, after=unread.shape[1])
            unread = torch.cat([unread, unread.new_tensor([draft])], dim=1)
        columns.was_contrasted(branch.feed(unread), rows=fed)

    def _measure(
        self, index: int, spans: Sequence[SentenceSpan], transcript: Transcript, first: int
    ) -> list[SentenceSignals]:
        """Measure sentences of one row whose token ``first`` is in column 0."""
        start, stop = spans[0].token_start, spans[-1].token_end
        if start == stop:
            return [tokenless(span, transcript) for span in spans]
        with_contrast = self._contrast is not None and self.rows[index].prompt.has_context
        tokens = self._columns.run(index, start - first, stop - first, first=start, with_contrast=with_contrast)
        return measure_tokens(tokens, spans, transcript, self._taps.layers, self._lid_references)


def _tokens_at_once(logits: Tensor) -> int:
    """Return how many tokens a replay feeds at once, from the size of one token's logits (B, V)."""
    fitting = REPLAYED_BYTES // (logits.numel() * logits.element_size())
    return min(max(fitting, FEWEST_REPLAYED), MOST_REPLAYED)


def _cut(branch: Branch, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
    """Select rows; rewind, which copies nothing, if they stay as they are."""
    if list(rows) == list(range(branch.rows)) == branch.fed and len(set(dropped)) == 1:
        branch.rewind(dropped[0], next_logits)
    else:
        branch.select(rows, dropped, next_logits)
