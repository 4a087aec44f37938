"""Rows of a session: their ids, text and sentences, and the signals that are measured of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syncheck.results.types import RagPrompt, SentenceSignals, SentenceSpan
from syncheck.signals import LidReferences, token_statistics
from syncheck.text.sentences import Detokenizer, IncrementalSegmenter, last_text_token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Scoped(ABC):
    """Context manager that exits the parts it has entered in reverse order, even if entering fails midway."""

    _scope: ExitStack

    def __enter__(self) -> Self:
        with ExitStack() as scope:
            self._enter(scope)
            self._scope = scope.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.close()

    @abstractmethod
    def _enter(self, scope: ExitStack) -> None:
        """Enter the parts, and register their exits."""


_SPARE_COLUMNS = 64


class Sequences:
    """Token ids (B, n) int64 that grow by a column without being copied; shorter rows are padded on the left.

    Padding repeats the row's own first token, so that a processor which counts tokens sees no new one. No row may be
    empty.
    """

    def __init__(self, rows: Sequence[Sequence[int]], device: torch.device) -> None:
        self._width = max(map(len, rows))
        self._pads = [self._width - len(row) for row in rows]
        filled = [[*[row[0]] * pad, *row] for row, pad in zip(rows, self._pads, strict=True)]
        self._buffer = self._widened(torch.tensor(filled, device=device))

    def append(self, token_ids: Tensor) -> None:
        """Add a column of ids (B,)."""
        if self._width == self._buffer.shape[1]:
            self._buffer = self._widened(self._buffer)
        self._buffer[:, self._width] = token_ids
        self._width += 1

    def padded(self) -> Tensor:
        """View the ids (B, n) of all rows."""
        return self._buffer[:, : self._width]

    def mask(self, columns: int | None = None) -> Tensor:
        """Build the attention mask (B, n) int64 of the first columns, None for all: 0 for padding, 1 elsewhere."""
        pads = torch.tensor(self._pads, device=self._buffer.device)
        return (torch.arange(columns or self._width, device=pads.device) >= pads[:, None]).long()

    def mask_and_positions(self, columns: int) -> tuple[Tensor | None, Tensor]:
        """Build the mask of a forward pass over this many columns, None if nothing is padded, and the positions."""
        mask = self.mask(columns)
        return mask if any(self._pads) else None, (mask.cumsum(-1) - 1).clamp_min(0)

    def of_row(self, row: int) -> Tensor:
        """View the ids (1, n) of one row without its padding."""
        return self._buffer[row : row + 1, self._pads[row] : self._width]

    @staticmethod
    def _widened(ids: Tensor) -> Tensor:
        spare = ids.new_zeros(ids.shape[0], ids.shape[1] // 2 + _SPARE_COLUMNS)
        return torch.cat([ids, spare], dim=1)


@dataclass(frozen=True, slots=True)
class Transcript:
    """Text of a response, and the characters ``(start, stop)`` of each of its tokens, half-open."""

    text: str
    char_spans: Sequence[tuple[int, int]]
    after_end: str = ""
    """What was given after an end-of-text token: not part of the text, and not read."""


class Row:
    """The text of one continuation: its tokens and where its sentences end.

    ``token_ids`` are those of the response so far, without the end-of-text token ``end_token`` that ended it, if one
    did; ``ended`` is True once the continuation is over. ``start`` and ``sentences`` are the numbers of tokens and of
    sentences in the response when the round began, and ``closed`` are the sentences that were closed in this round.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt: RagPrompt,
        segmenter: IncrementalSegmenter,
        token_ids: Sequence[int] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self.prompt = prompt
        self._detokenizer = Detokenizer(tokenizer, [*prompt.with_context_ids, *token_ids])
        self._segmenter = segmenter
        self.token_ids = list(token_ids)
        self.start = len(self.token_ids)
        self.sentences = 0
        self.ended = False
        self.end_token: int | None = None
        self.closed: list[SentenceSpan] = []

    @property
    def text(self) -> str:
        """The response so far."""
        return self._segmenter.text

    @property
    def char_spans(self) -> list[tuple[int, int]]:
        """The characters ``(start, stop)`` of each token, half-open."""
        return self._segmenter.char_spans

    def transcript(self, tokens: int | None = None) -> Transcript:
        """Take the first tokens of the response, None for all, with their text."""
        spans = self.char_spans[:tokens]
        return Transcript(self.text if tokens is None else self.text[: spans[-1][1]] if spans else "", spans)

    @property
    def measured_tokens(self) -> int:
        """Number of tokens of the sentences closed since the session last advanced."""
        return self.closed[-1].token_end - self.start if self.closed else 0

    @property
    def breaks_off(self) -> bool:
        """True if the continuation is over and its text ends before the end of its last sentence."""
        return self.ended and self._segmenter.breaks_off

    def push(self, token_id: int) -> str:
        """Append a token and return the text that it completed."""
        text = self._detokenizer.push(token_id)
        self.token_ids.append(token_id)
        self.closed += self._segmenter.push(text)
        return text

    def end(self, end_token: int | None = None) -> None:
        """Close the open sentence and end the continuation, with an end-of-text token if one is given."""
        if not self.ended:
            self.ended = True
            self.end_token = end_token
            self.closed += self._segmenter.finish(self._detokenizer.flush())

    def advance(self) -> None:
        """Continue after the closed sentences, keeping the tokens that came after them."""
        self.start += self.measured_tokens
        self.sentences += len(self.closed)
        self.closed = []

    def stop_after(self, *, tokens: int, sentences: int) -> None:
        """End this row after its first tokens and sentences, and forget the rest."""
        self._segmenter = self._segmenter.rewound(tokens, sentences=sentences)
        del self.token_ids[tokens:]
        self.start, self.sentences, self.closed = tokens, sentences, []
        self.ended, self.end_token = True, None

    def fork(self, *, keep_closed: bool) -> Row:
        """Copy this row, cut back to the end of its closed sentences or to their start."""
        tokens = self.start + (self.measured_tokens if keep_closed else 0)
        sentences = self.sentences + (len(self.closed) if keep_closed else 0)
        segmenter = self._segmenter.rewound(tokens, sentences=sentences)
        row = Row(self._tokenizer, self.prompt, segmenter, self.token_ids[:tokens])
        row.sentences = sentences
        row.ended = self.ended and keep_closed
        row.end_token = self.end_token if keep_closed else None
        return row

    def cut(self, tokens: int) -> Row:
        """Copy this row with only the first tokens of this round; sentences that they close are closed."""
        end = self.start + tokens
        segmenter = self._segmenter.rewound(self.start, sentences=self.sentences)
        row = Row(self._tokenizer, self.prompt, segmenter, self.token_ids[:end])
        row.start, row.sentences = self.start, self.sentences
        for start, stop in self.char_spans[self.start : end]:
            row.closed += segmenter.push(self.text[start:stop])
        return row

    def kept(self) -> Row:
        """Copy this row with its closed sentences, which stay closed in this round."""
        row = self.fork(keep_closed=True)
        row.start, row.sentences, row.closed = self.start, self.sentences, list(self.closed)
        return row


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a row, such as the open sentence of one that was cut within it: of each token what belongs to it.

    That is its id (), the logits (V,) that predicted it in both branches, and its states (H,) by layer.
    """

    ids: list[Tensor]
    logits: list[Tensor]
    contrast: list[Tensor]
    states: list[list[Tensor]]

    def __len__(self) -> int:
        return len(self.ids)


def measure_tokens(
    tokens: Part,
    spans: Sequence[SentenceSpan],
    transcript: Transcript,
    layers: Sequence[int],
    lid_references: LidReferences | None,
    *,
    with_contrast: bool,
) -> list[SentenceSignals]:
    """Measure sentences, of which the first begins with the first of these tokens, and the last ends with the last.

    ``spans`` count tokens of the whole response; a sentence that lies within a token of another one has none.
    ``layers`` are the decoder blocks of ``tokens.states``; without references, LID is not measured.
    """
    start = spans[0].token_start
    owning = [i for i, span in enumerate(spans) if span.token_end > span.token_start]
    ids, table = np.empty(0, np.int64), np.empty((4, 0), np.float32)
    activations: dict[int, NDArray[np.float32]] = {}  # each (N, H)
    lids: list[NDArray[np.float32]] = []  # at most one, (N, L), of the known layers
    known: dict[int, Tensor] = {}
    if tokens:
        token_ids = torch.stack(tokens.ids)
        contrast = torch.stack(tokens.contrast) if with_contrast else None
        measured = token_statistics(torch.stack(tokens.logits), contrast, token_ids)
        values = torch.stack(
            [measured.log_prob, measured.log_prob_without_context, measured.entropy, measured.kl]
        )  # (4, n)
        last = [last_text_token(spans[i], transcript.char_spans) - start for i in owning]
        states = {layer: torch.stack(block)[last] for layer, block in zip(layers, tokens.states, strict=True)}
        if lid_references is not None:
            known = {layer: block for layer, block in states.items() if layer in lid_references.layers}
        found = [lid_references.lid_of_states(known)] if lid_references and known else []
        table, *kept = _transferred([values, *states.values(), *found])
        activations, lids = dict(zip(states, kept, strict=False)), kept[len(states) :]
        ids = np.asarray(token_ids.tolist(), np.int64)
    sentences = []
    for i, span in enumerate(spans):
        columns = slice(span.token_start - start, span.token_end - start)
        row = owning.index(i) if i in owning else None
        sentences.append(
            SentenceSignals(
                text=transcript.text[span.start : span.end],
                span=span,
                token_ids=ids[columns],
                log_prob=table[0, columns],
                log_prob_without_context=table[1, columns],
                entropy=table[2, columns],
                kl=table[3, columns],
                activations={} if row is None else {layer: block[row] for layer, block in activations.items()},
                lid={} if row is None or not lids else dict(zip(known, lids[0][row].tolist(), strict=True)),
            )
        )
    return sentences


def _transferred(tensors: Sequence[Tensor]) -> list[NDArray[np.float32]]:
    """Copy all values that are kept to the CPU at once, by way of the first tensor's device."""
    flat = torch.cat([tensor.to(tensors[0].device, torch.float32).flatten() for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    return [part.reshape(tuple(t.shape)) for part, t in zip(np.split(flat, ends[:-1]), tensors, strict=True)]
