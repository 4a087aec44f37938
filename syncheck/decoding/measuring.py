"""Measuring: signals of sentences from the logits and hidden states that a session keeps of each column of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syncheck.results.types import SentenceSignals, SentenceSpan
from syncheck.signals import LidReferences, token_statistics
from syncheck.text.sentences import last_text_token


@dataclass(frozen=True, slots=True)
class Transcript:
    """Text of a response, and the characters ``(start, stop)`` of each of its tokens, half-open."""

    text: str
    char_spans: Sequence[tuple[int, int]]
    after_end: str = ""
    """What was given after an end-of-text token: not part of the text, and not read."""


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A run of n tokens: ids (n,), the logits (n, V) that predicted them in both branches, states (n, H) per layer.

    ``start`` is the position of the first token in the response.
    """

    ids: Tensor
    logits: Tensor
    contrast: Tensor | None
    states: list[Tensor]
    start: int


def measure_tokens(
    tokens: TokenRun,
    spans: Sequence[SentenceSpan],
    transcript: Transcript,
    layers: Sequence[int],
    lid_references: LidReferences | None,
) -> list[SentenceSignals]:
    """Measure the sentences of a run, which begins with the first sentence's first token and ends with the last one's.

    ``spans`` count tokens of the whole response, and at least one has a token. ``layers`` are the decoder blocks of
    ``tokens.states``; without references, LID is not measured.
    """
    statistics = token_statistics(tokens.logits, tokens.contrast, tokens.ids)
    values = torch.stack(
        [statistics.log_prob, statistics.log_prob_without_context, statistics.entropy, statistics.kl]
    )  # (4, n)
    owning = [i for i, span in enumerate(spans) if span.token_end > span.token_start]
    last = [last_text_token(spans[i], transcript.char_spans) - tokens.start for i in owning]
    states = {layer: block[last] for layer, block in zip(layers, tokens.states, strict=True)}  # each (N, H)
    referenced = [layer for layer in layers if lid_references is not None and layer in lid_references.layers]
    lids = (
        [lid_references.lid_of_states({layer: states[layer] for layer in referenced})]
        if lid_references and referenced
        else []
    )  # (N, L)
    table, kept, measured = _transferred(values, list(states.values()), lids)
    ids = np.asarray(tokens.ids.tolist(), np.int64)
    sentences = []
    for i, span in enumerate(spans):
        activations, lid = {}, {}
        if i in owning:
            row = owning.index(i)
            activations = {layer: block[row] for layer, block in zip(layers, kept, strict=True)}
            lid = dict(zip(referenced, measured[0][row].tolist(), strict=True)) if measured else {}
        sentences.append(_sentence(span, transcript, ids, table, activations, lid, tokens.start))
    return sentences


def _transferred(
    values: Tensor, states: Sequence[Tensor], lids: Sequence[Tensor]
) -> tuple[NDArray[np.float32], list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Copy all values that are kept to the CPU at once."""
    tensors = [values, *states, *lids]
    flat = torch.cat([tensor.to(values.device, torch.float32).flatten() for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    parts = [part.reshape(tuple(t.shape)) for part, t in zip(np.split(flat, ends[:-1]), tensors, strict=True)]
    return parts[0], parts[1 : 1 + len(states)], parts[1 + len(states) :]


def tokenless(span: SentenceSpan, transcript: Transcript) -> SentenceSignals:
    """Make empty signals, for a sentence that lies within a token of another sentence."""
    return _sentence(span, transcript, np.empty(0, np.int64), np.empty((4, 0), np.float32), {}, {}, span.token_start)


def _sentence(
    span: SentenceSpan,
    transcript: Transcript,
    ids: NDArray[np.int64],
    table: NDArray[np.float32],
    activations: dict[int, NDArray[np.float32]],
    lid: dict[int, float],
    start: int,
) -> SentenceSignals:
    columns = slice(span.token_start - start, span.token_end - start)
    return SentenceSignals(
        text=transcript.text[span.start : span.end],
        span=span,
        token_ids=ids[columns],
        log_prob=table[0, columns],
        log_prob_without_context=table[1, columns],
        entropy=table[2, columns],
        kl=table[3, columns],
        activations=activations,
        lid=lid,
    )


@dataclass(frozen=True, slots=True)
class Head:
    """Open sentence of a row that was cut within it: for each token its id (), logits (V,) and states (H,)."""

    ids: list[Tensor]
    logits: list[Tensor]
    contrast: list[Tensor]
    states: list[list[Tensor]]

    def __len__(self) -> int:
        return len(self.ids)


class Columns:
    """Logits, ids and states of the tokens decoded since the last measured sentence, on the model's device.

    Columns are counted from the first one that all rows have; the columns of a row's head are negative.

    ``logits[j]`` (B, V) predicted ``ids[j]`` (B,), and so did ``contrast[j]`` without the context; each of the two has
    one entry more than its branch has read. ``next_logits`` is None if the first logits are still to come, ``contrast``
    is None if there is no branch without the context, and ``heads`` are the beginnings of the rows.
    """

    def __init__(
        self, layers: int, next_logits: Tensor | None, contrast: Tensor | None, heads: Sequence[Head] | None = None
    ) -> None:
        self._heads = heads
        self.ids: list[Tensor] = []
        self.logits = [] if next_logits is None else [next_logits]
        self.contrast = [] if contrast is None else [contrast]
        self._states: list[list[Tensor]] = [[] for _ in range(layers)]  # per layer (B, H) for each column that was fed
        self._fed = 0
        self._draft: list[int] = []
        self._drafted_row = 0

    @property
    def fed(self) -> int:
        """Number of columns that the branch with the context has read, those of the draft included."""
        return self._fed

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
        self._fed += logits.shape[1]

    def was_contrasted(self, logits: Tensor, *, rows: Sequence[int] | None = None) -> None:
        """Add the logits (B, n, V) that follow the next columns without the context; ``rows`` as in :meth:`was_fed`."""
        if rows is not None:
            logits = _spread(logits, rows, len(self.ids[0]))
        self.contrast += logits.unbind(1)

    def unread(self, stop: int) -> Tensor:
        """Cut the ids (B, n) before ``stop`` that the branch without the context has not read."""
        return torch.stack(self.ids[self.contrasted : stop], dim=1)

    @property
    def draft(self) -> list[int]:
        """Tokens of one row that the branch with the context has read ahead of :attr:`ids`."""
        return self._draft

    def read_ahead(self, draft: list[int], *, row: int) -> None:
        """Keep the draft of a row's next tokens, which are about to be fed along with the last column."""
        self._draft, self._drafted_row = draft, row

    def add(self, token_ids: Tensor) -> None:
        """Append a column of ids (B,), which must not contradict the draft."""
        self.ids.append(token_ids)
        del self._draft[:1]

    def contradicts(self, token_ids: Sequence[int]) -> bool:
        """Tell whether the next ids, one for each row, differ from what was drafted."""
        return bool(self._draft) and token_ids[self._drafted_row] != self._draft[0]

    def forget_draft(self) -> None:
        """Drop what was read ahead."""
        self._draft, self._fed = [], len(self.ids)
        for kept in (self.logits, self.contrast):
            del kept[self._fed + 1 :]
        for layer in self._states:
            del layer[self._fed :]

    def run(self, row: int, start: int, stop: int, *, first: int, with_contrast: bool) -> TokenRun:
        """Cut columns ``start`` to ``stop`` of one row, at least one; ``first`` is the first token's position."""
        head = self.head(row, stop, start=start)
        return TokenRun(
            ids=torch.stack(head.ids),
            logits=torch.stack(head.logits),
            contrast=torch.stack(head.contrast) if with_contrast else None,
            states=[torch.stack(layer) for layer in head.states],
            start=first,
        )

    def head(self, row: int, stop: int, *, start: int | None = None) -> Head:
        """Cut a row's values from column ``start`` (None: from its head) to ``stop``, without copying."""
        known = self._heads[row] if self._heads else None
        first = start if start is not None else -len(known or ())

        def cut(columns: list[Tensor], before: list[Tensor]) -> list[Tensor]:
            of_head = before[len(before) + first : len(before) + min(stop, 0)] if first < 0 else []
            return [*of_head, *(column[row] for column in columns[max(first, 0) : max(stop, 0)])]

        return Head(
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
        self._fed -= count


def _spread(values: Tensor, rows: Sequence[int], count: int) -> Tensor:
    """Put (b, n, W) values of some rows in their places among ``count``; zeros elsewhere."""
    spread = values.new_zeros((count, *values.shape[1:]))
    spread[list(rows)] = values
    return spread
