"""Sessions: continuations with their token ids, branches, taps and sentence boundaries, whoever drives the model.

Every sentence is measured by the code of this module, whether it is decoded live, searched for, observed or given. The
simplest session is here too: responses that are given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from syncheck.base.errors import NotReadyError
from syncheck.decoding.rows import Part, Row, Scoped, Transcript, measure_tokens
from syncheck.results.types import RagPrompt, SentenceSignals, SentenceSpan
from syncheck.signals import Branch, LidReferences, Taps, check_same_encoding, check_window, window_of
from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


HELD_TOKENS = 64
"""Tokens after which the finished sentences of a batch are measured although a row's sentence is still open."""


class Columns:
    """Logits, ids and states of the tokens decoded since the last measured sentence, on the model's device.

    Columns are counted from the first one that all rows have; the columns of a row's head are negative.

    ``logits[j]`` (B, V) predicted ``ids[j]`` (B,), and so did ``contrast[j]`` without the context; each of the two has
    one entry more than its branch has read. ``next_logits`` is None if the first logits are still to come, ``contrast``
    is None if there is no branch without the context, and ``heads`` are the beginnings of the rows. ``draft`` is what
    was read ahead of ``ids`` in ``drafted_row``; ``fed`` columns, the draft included, were read with the context.
    """

    def __init__(
        self, layers: int, next_logits: Tensor | None, contrast: Tensor | None, heads: Sequence[Part] | None = None
    ) -> None:
        self._heads = heads
        self.ids: list[Tensor] = []
        self.logits = [] if next_logits is None else [next_logits]
        self.contrast = [] if contrast is None else [contrast]
        self._states: list[list[Tensor]] = [[] for _ in range(layers)]  # per layer (B, H) for each column that was fed
        self.fed = 0
        self.draft: list[int] = []
        self.drafted_row = 0

    @property
    def contrasted(self) -> int:
        """Number of columns that the branch without the context has read, those of the draft included."""
        return max(len(self.contrast) - 1, 0)

    def was_fed(self, logits: Tensor, states: Sequence[Tensor], *, rows: Sequence[int] | None = None) -> None:
        """Add the logits (B, n, V), and the states (B, n, H) of each layer, that follow the next n columns.

        ``rows`` are the rows that these belong to, None for all; the others get zeros, which must not be used.
        """
        if rows is not None:
            logits, *states = (_spread(values, rows, len(self.ids[0])) for values in (logits, *states))
        self.logits += logits.unbind(1)
        for kept, new in zip(self._states, states, strict=True):
            kept += new.unbind(1)
        self.fed += logits.shape[1]

    def was_contrasted(self, logits: Tensor, *, rows: Sequence[int] | None = None) -> None:
        """Add the logits (B, n, V) that follow the next columns without the context; ``rows`` as in :meth:`was_fed`."""
        if rows is not None:
            logits = _spread(logits, rows, len(self.ids[0]))
        self.contrast += logits.unbind(1)

    def unread(self, stop: int) -> Tensor:
        """Cut the ids (B, n) before ``stop`` that the branch without the context has not read."""
        return torch.stack(self.ids[self.contrasted : stop], dim=1)

    def add(self, token_ids: Tensor) -> None:
        """Append a column of ids (B,), which must not contradict the draft."""
        self.ids.append(token_ids)
        del self.draft[:1]

    def contradicts(self, token_ids: Sequence[int]) -> bool:
        """Tell whether the next ids, one for each row, differ from what was drafted."""
        return bool(self.draft) and token_ids[self.drafted_row] != self.draft[0]

    def forget_draft(self) -> None:
        """Drop what was read ahead."""
        self.draft, self.fed = [], len(self.ids)
        for kept in (self.logits, self.contrast):
            del kept[self.fed + 1 :]
        for layer in self._states:
            del layer[self.fed :]

    def part(self, row: int, stop: int, *, start: int | None = None) -> Part:
        """Cut a row's values from column ``start`` (None: from its head) to ``stop``, without copying."""
        known = self._heads[row] if self._heads else None
        first = start if start is not None else -len(known or ())

        def cut(columns: list[Tensor], before: list[Tensor]) -> list[Tensor]:
            of_head = before[len(before) + first : len(before) + min(stop, 0)] if first < 0 else []
            return [*of_head, *(column[row] for column in columns[max(first, 0) : max(stop, 0)])]

        return Part(
            cut(self.ids, known.ids if known else []),
            cut(self.logits, known.logits if known else []),
            cut(self.contrast, known.contrast if known else []),
            [cut(layer, known.states[i] if known else []) for i, layer in enumerate(self._states)],
        )

    def after(self, row: int, stop: int) -> tuple[Tensor, Tensor | None]:
        """Look up the logits (V,) of the token after the columns before ``stop``, with and without the context."""
        if stop >= 0:
            return self.logits[stop][row], self.contrast[stop][row] if self.contrast else None
        assert self._heads is not None
        known = self._heads[row]
        return known.logits[stop], known.contrast[stop] if known.contrast else None

    def drop(self, count: int) -> None:
        """Forget the first columns."""
        del self.ids[:count], self.logits[:count], self.contrast[:count]
        for layer in self._states:
            del layer[:count]
        self.fed -= count


def _spread(values: Tensor, rows: Sequence[int], count: int) -> Tensor:
    """Put (b, n, W) values of some rows in their places among ``count``; zeros elsewhere."""
    spread = values.new_zeros((count, *values.shape[1:]))
    spread[list(rows)] = values
    return spread


class Session(Scoped, ABC):
    """B continuations, measured sentence by sentence; the base of all sessions.

    Use as a context manager: hidden-state hooks are attached inside and removed on exit. There is a pair of prompts for
    each row; without a context there is no second branch, and KL is NaN. The activations of ``layers`` are kept at each
    sentence's last token; without ``lid_references``, LID is not measured. A model whose state cannot be rewound is fed
    token by token in both branches.

    A prompt that does not fit the model's window raises PromptError, prompts of which the model encodes some in another
    way because they are longer InputError, a model that keeps its state outside its cache UnsupportedModelError.
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
    ) -> None:
        prompts = [prompts] if isinstance(prompts, RagPrompt) else list(prompts)
        lengths = [len(prompt.with_context_ids) for prompt in prompts]
        check_window(model, max(lengths) + 1)
        check_same_encoding(model, lengths)
        self._model = model
        self._window = window_of(model)
        self._taps = Taps(model, layers)
        self._lid_references = lid_references
        self.rows = [Row(tokenizer, prompt, IncrementalSegmenter(segmenter)) for prompt in prompts]
        first_logits = self._open()
        self._contrast = (
            Branch(model, [prompt.without_context_ids for prompt in prompts])
            if any(prompt.has_context for prompt in prompts)
            else None
        )
        self._columns: Columns
        self._firsts: list[int]  # token of each row's response that column 0 holds
        self._begin(first_logits)

    @abstractmethod
    def _open(self) -> Tensor | None:
        """Prepare what feeds the branch with the context; return its first logits (B, V) if they are known."""

    def _begin(self, next_logits: Tensor | None, heads: Sequence[Part] | None = None) -> None:
        contrast = None if self._contrast is None else self._contrast.next_logits
        self._columns = Columns(len(self._taps.layers), next_logits, contrast, heads)
        self._firsts = [row.start if heads is None else len(row.token_ids) for row in self.rows]

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self._taps.attached())

    def _contrast_to(self, stop: int) -> None:
        """Let the branch without the context read the columns before ``stop``."""
        if self._contrast is not None and self._columns.contrasted < stop:
            self._columns.was_contrasted(self._contrast.feed(self._columns.unread(stop)))

    def _measure(
        self, index: int, spans: Sequence[SentenceSpan], transcript: Transcript, first: int
    ) -> list[SentenceSignals]:
        """Measure sentences of one row whose token ``first`` is in column 0."""
        tokens = self._columns.part(index, spans[-1].token_end - first, start=spans[0].token_start - first)
        with_contrast = self._contrast is not None and self.rows[index].prompt.has_context
        return measure_tokens(
            tokens, spans, transcript, self._taps.layers, self._lid_references, with_contrast=with_contrast
        )


class RoundSession(Session):
    """A session whose tokens are pushed one by one, round by round: a base of sessions.

    A round lasts from one :meth:`advance` to the next: tokens are pushed, then the sentences that they have closed are
    measured, once. A call out of turn raises NotReadyError.
    """

    _is_measured: bool

    @property
    def running(self) -> list[int]:
        """Indices of the rows that have closed no sentence in this round and are not over."""
        return [index for index, row in enumerate(self.rows) if not (row.closed or row.ended)]

    def push(self, token_ids: Tensor, *, end_tokens: Sequence[int] = ()) -> list[str]:
        """Append one token, (B,) int64, to every row and return the text that each completed.

        A token for a row that is over fills the column and is dropped. ``end_tokens`` end a continuation and are not
        part of its text.
        """
        if self._is_measured:
            raise NotReadyError("this round is measured; call advance() or select() before pushing again")
        self._feed_pending()
        pushed = token_ids.tolist()
        self._add(token_ids, pushed)
        texts = []
        for row, token_id in zip(self.rows, pushed, strict=True):
            if self._is_over(row):
                texts.append("")
            elif token_id in end_tokens:
                row.end(token_id)
                texts.append("")
            else:
                texts.append(row.push(token_id))
        return texts

    def complete(self) -> bool:
        """Tell whether every row has closed a sentence or is over."""
        return not self.running

    def due(self) -> bool:
        """Tell whether there is a sentence to measure, and either every row has one or 64 tokens are waiting."""
        return any(row.closed for row in self.rows) and (self.complete() or len(self._columns.ids) >= HELD_TOKENS)

    def measure(self, rows: Sequence[int] | None = None) -> list[list[SentenceSignals]]:
        """Measure the sentences closed in this round and return them, one list per row.

        Called once in a round. The branch without the context reads the sentences in one teacher-forced pass. ``rows``
        are the indices of the rows to measure, None for all; a search that drops the others, or knows their signals,
        leaves them out, and their lists are empty.
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
            self._measure(i, row.closed, row.transcript(), self._firsts[i]) if i in wanted else []
            for i, row in enumerate(self.rows)
        ]

    def advance(self) -> None:
        """Begin the next round after the measured sentences, keeping the tokens decoded since."""
        self._check_measured(any(row.closed for row in self.rows))
        for row in self.rows:
            row.advance()
        measured = [row.start - first for row, first in zip(self.rows, self._firsts, strict=True)]
        still_open = [count for row, count in zip(self.rows, measured, strict=True) if not row.ended]
        dropped = min(still_open, default=max(measured))
        self._columns.drop(dropped)
        self._firsts = [first + dropped for first in self._firsts]
        self._is_measured = False

    @abstractmethod
    def _feed_pending(self) -> None:
        """Feed the columns that the branch with the context has not read."""

    def _begin(self, next_logits: Tensor | None, heads: Sequence[Part] | None = None) -> None:
        super()._begin(next_logits, heads)
        self._is_measured = False

    def _add(self, token_ids: Tensor, pushed: Sequence[int]) -> None:
        """Append a column of ids (B,), also given as ``pushed``."""
        self._columns.add(token_ids)

    def _is_over(self, row: Row) -> bool:
        """Tell whether a row takes no token."""
        return row.ended

    def _closed_columns(self, row: int) -> int:
        """Count the columns up to the end of the row's closed sentences."""
        return self.rows[row].start + self.rows[row].measured_tokens - self._firsts[row]

    def _check_measured(self, is_needed: bool) -> None:
        if is_needed and not self._is_measured:
            raise NotReadyError("the sentences closed in this round are not measured yet; call measure() first")


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
    ) -> list[list[SentenceSignals]]:
        """Measure a given response for each row by teacher forcing.

        The responses have no end-of-text tokens, and ``spans`` are their sentences, which partition the tokens.
        """
        measured: list[list[SentenceSignals]] = [[] for _ in token_ids]
        longest = max(map(len, token_ids))
        left = [deque(row) for row in spans]
        dropped = 0
        for _ in self._fed([[*row, *[0] * (longest - len(row))] for row in token_ids]):
            stop = dropped + len(self._columns.ids)
            for row, waiting in enumerate(left):
                due = []
                while waiting and waiting[0].token_end <= stop:
                    due.append(waiting.popleft())
                if due:
                    measured[row] += self._measure(row, due, transcripts[row], dropped)
            keep = min((waiting[0].token_start for waiting in left if waiting), default=stop)
            self._columns.drop(keep - dropped)
            dropped = keep
        return measured

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
