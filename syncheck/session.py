"""One prompt being continued: owns the token ids, both branches, the taps and the sentence boundaries.

Live decoding, search and replay all go through here, so that a sentence is measured by the same code
however its tokens came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck.config import SegmenterConfig
from syncheck.errors import NotReadyError
from syncheck.segments import Detokenizer, IncrementalSegmenter, last_text_token
from syncheck.signals import Branch, Taps, check_window, token_statistics
from syncheck.types import RagPrompt, SentenceSignals, SentenceSpan

__all__ = ["DecodingSession", "Row", "Transcript"]


class Row:
    """The text of one continuation: its tokens and where its sentences end.

    Attributes
    ----------
    token_ids : list of int
        Tokens of the response so far, without an end-of-text token.
    ended : bool
        Whether the continuation is over.
    end_token : int or None
        The end-of-text token that ended it, if one did.
    start : int
        Tokens of the response when the round began.
    sentences : int
        Sentences of the response when the round began.
    closed : list of SentenceSpan
        Sentences closed in this round.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt_ids: Sequence[int],
        segmenter: IncrementalSegmenter,
        token_ids: Sequence[int] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._prompt_ids = prompt_ids
        self._detokenizer = Detokenizer(tokenizer, [*prompt_ids, *token_ids])
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
        """Characters of each token."""
        return self._segmenter.char_spans

    @property
    def measured_tokens(self) -> int:
        """Tokens of the sentences closed since the session last advanced."""
        return self.closed[-1].token_stop - self.start if self.closed else 0

    def push(self, token_id: int) -> str:
        """Append a token; returns the text that it completed."""
        text = self._detokenizer.push(token_id)
        self.token_ids.append(token_id)
        self.closed += self._segmenter.push(text)
        return text

    def end(self, end_token: int | None = None) -> None:
        """Close what is open: the continuation is over, by this token if one is given."""
        if not self.ended:
            self.ended = True
            self.end_token = end_token
            self.closed += self._segmenter.finish(self._detokenizer.flush())

    def advance(self) -> None:
        """Go on behind the closed sentences, keeping the tokens that came after them."""
        self.start += self.measured_tokens
        self.sentences += len(self.closed)
        self.closed = []

    def fork(self, *, keep_closed: bool) -> Row:
        """Copy this row cut back to the end of its closed sentences, or to their start."""
        tokens = self.start + (self.measured_tokens if keep_closed else 0)
        sentences = self.sentences + (len(self.closed) if keep_closed else 0)
        segmenter = self._segmenter.rewound(tokens, sentences=sentences)
        row = Row(self._tokenizer, self._prompt_ids, segmenter, self.token_ids[:tokens])
        row.sentences = sentences
        row.ended = self.ended and keep_closed
        row.end_token = self.end_token if keep_closed else None
        return row


class DecodingSession:
    """B continuations of one prompt, decoded in lockstep and measured sentence by sentence.

    Use as a context manager: hidden-state hooks are attached inside and removed on exit. All rows begin
    together; a round lasts from one :meth:`advance` or :meth:`select` to the next.

    Parameters
    ----------
    model
        A causal language model in evaluation mode.
    tokenizer
        Its tokenizer.
    prompt
        The pair of prompts. Without a context there is no second branch, and KL is NaN.
    layers
        Decoder blocks whose activations are kept at each sentence's last token.
    segmenter
        How sentences are found.

    Raises
    ------
    PromptError
        If the prompt does not fit the model's window.
    UnsupportedModelError
        If the model's state cannot be rewound.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompt: RagPrompt,
        *,
        layers: Sequence[int] = (),
        segmenter: SegmenterConfig,
    ) -> None:
        check_window(model, len(prompt.with_context_ids) + 1)
        self._model = model
        self._taps = Taps(model, layers)
        self._exit = ExitStack()
        self._main = self._prefill(prompt)
        self._contrast = Branch(model, prompt.without_context_ids) if prompt.has_context else None
        self.rows = [Row(tokenizer, prompt.with_context_ids, IncrementalSegmenter(segmenter))]
        self._prompt_ids = torch.tensor(prompt.with_context_ids, device=model.device)
        # Of the round: logits[j] (B, V) predicted token ids[j] (B,), which left states[layer][j] (B, H) when fed.
        self._logits: list[Tensor]
        self._ids: list[Tensor]
        self._states: list[list[Tensor]]
        self._fed: int
        self._measured: int
        self._contrast_logits: Tensor | None
        self._begin_round([] if self._main is None else [self._main.next_logits], [])

    def __enter__(self) -> DecodingSession:
        self._exit.enter_context(self._taps.attached())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    @property
    def next_logits(self) -> Tensor:
        """(B, V) raw logits of the next token; feeds the token pushed last, if it is not yet fed."""
        self._feed_pending()
        return self._logits[-1]

    @property
    def room(self) -> int | None:
        """Tokens that still fit the model's window; None when it has none."""
        window = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        return None if window is None else window - self._own.width - (len(self._ids) - self._fed)

    def sequences(self) -> Tensor:
        """Return (B, prompt + response) ids; shorter rows begin with repeats of the prompt's first token.

        Rows that are over are filled with what was pushed to them since.
        """
        longest = max(row.start for row in self.rows)
        first = int(self._prompt_ids[0])
        fill = [[first] * (longest - row.start) for row in self.rows]
        rows = [
            [*pad, *self._prompt_ids.tolist(), *row.token_ids[: row.start]]
            for pad, row in zip(fill, self.rows, strict=True)
        ]
        return torch.cat([torch.tensor(rows, device=self._prompt_ids.device), *(i[:, None] for i in self._ids)], 1)

    def push(self, token_ids: Tensor, *, end_tokens: Sequence[int] = ()) -> list[str]:
        """Append one token to every row.

        Parameters
        ----------
        token_ids
            (B,) int64. What is pushed to a row that is over or has closed a sentence in a session of several
            rows fills the column and is dropped by :meth:`select`.
        end_tokens
            Tokens that end a continuation; they are not part of its text.

        Returns
        -------
        list of str
            The text each row's token completed.
        """
        self._feed_pending()
        self._ids.append(token_ids)
        texts = []
        for row, token_id in zip(self.rows, token_ids.tolist(), strict=True):
            if self._idle(row):
                texts.append("")
            elif token_id in end_tokens:
                row.end(token_id)
                texts.append("")
            else:
                texts.append(row.push(token_id))
        return texts

    def complete(self) -> bool:
        """Whether every row has closed a sentence or is over."""
        return all(row.closed or row.ended for row in self.rows)

    def measure(self) -> list[list[SentenceSignals]]:
        """Measure the sentences closed in this round, once, before :meth:`advance` or :meth:`select`.

        The no-context branch reads them in one teacher-forced pass.

        Returns
        -------
        list of list of SentenceSignals
            One list per row, empty where the row has closed no sentence.
        """
        if self._measured:
            raise NotReadyError("this round is measured; call advance() or select() before measuring again")
        longest = max(row.measured_tokens for row in self.rows)
        if not longest:
            return [[] for _ in self.rows]
        if self._fed < longest:
            self._feed_pending()  # the last token's hidden state appears when it is fed
        ids = torch.stack(self._ids[:longest], dim=1)  # (B, m)
        if self._contrast is not None:
            self._contrast_logits = self._contrast.teacher_forced(ids)  # (B, m + 1, V)
        self._measured = longest
        return [self._measure_row(index, row, ids[index]) for index, row in enumerate(self.rows)]

    def advance(self) -> None:
        """Begin the next round behind the measured sentences, keeping the tokens decoded since. One row only."""
        if len(self.rows) != 1:
            raise NotReadyError("advance() is for one row; use select() to go on with several")
        row = self.rows[0]
        n = row.measured_tokens
        self._check_measured(n)
        row.advance()
        ids, fed = self._ids[n:], self._fed - n
        states = [layer[n:] for layer in self._states]
        self._begin_round(self._logits[n:], ids)
        self._states, self._fed = states, fed

    def select(self, rows: Sequence[int], *, keep_sentences: bool = True) -> None:
        """Begin the next round with copies of some rows, behind their measured sentences or where the round began.

        No token is encoded again: caches are cropped and the saved logits are used.
        """
        kept = [self.rows[r].measured_tokens if keep_sentences else 0 for r in rows]
        self._check_measured(max(kept))
        next_logits = torch.stack([self._logits[n][r] for r, n in zip(rows, kept, strict=True)])
        _cut(self._own, rows, [self._fed - n for n in kept], next_logits)
        if self._contrast is not None and self._contrast_logits is not None:
            after = torch.stack([self._contrast_logits[r, n] for r, n in zip(rows, kept, strict=True)])
            _cut(self._contrast, rows, [self._measured - n for n in kept], after)
        elif self._contrast is not None:
            _cut(self._contrast, rows, [0] * len(rows), self._contrast.next_logits[list(rows)])
        self.rows = [self.rows[r].fork(keep_closed=keep_sentences) for r in rows]
        self._begin_round([next_logits], [])

    def replay(
        self, token_ids: Sequence[int], spans: Sequence[SentenceSpan], transcript: Transcript
    ) -> Iterator[SentenceSignals]:
        """Measure a given response by teacher forcing, one pass of each branch per sentence.

        Parameters
        ----------
        token_ids
            The response, without an end-of-text token.
        spans
            Its sentences, which partition the tokens.
        transcript
            Its text and the characters of each token.
        """
        for group in _fed_together(spans):
            start, stop = group[0].token_start, group[-1].token_stop
            ids = torch.tensor([token_ids[start:stop]], device=self._prompt_ids.device)
            with self._taps.recording() as recorded:
                logits = self._own.teacher_forced(ids)[0, :-1]  # (T, V)
            contrast = None if self._contrast is None else self._contrast.teacher_forced(ids)[0, :-1]
            states = [layer[0][0] for layer in recorded]  # per layer (T, H)
            tokens = _Tokens(ids[0], logits, contrast, states, start)
            yield from _measured(tokens, group, transcript, self._taps.layers)

    def _prefill(self, prompt: RagPrompt) -> Branch | None:
        return Branch(self._model, prompt.with_context_ids)

    @property
    def _own(self) -> Branch:
        if self._main is None:
            raise NotReadyError("this session observes a loop that is not ours; it cannot feed or select")
        return self._main

    def _check_measured(self, tokens: int) -> None:
        if tokens > self._measured:
            raise NotReadyError("the sentences closed in this round are not measured yet; call measure() first")

    def _idle(self, row: Row) -> bool:
        return row.ended or (len(self.rows) > 1 and bool(row.closed))

    def _begin_round(self, logits: list[Tensor], ids: list[Tensor]) -> None:
        self._logits = logits
        self._ids = ids
        self._states = [[] for _ in self._taps.layers]
        self._fed = 0
        self._measured = 0
        self._contrast_logits = None

    def _feed_pending(self) -> None:
        if self._fed == len(self._ids):
            return
        with self._taps.recording() as recorded:
            self._own.feed(self._ids[self._fed][:, None])
        for kept, new in zip(self._states, recorded, strict=True):
            kept.append(new[0][:, -1])
        self._logits.append(self._own.next_logits)
        self._fed += 1

    def _measure_row(self, index: int, row: Row, ids: Tensor) -> list[SentenceSignals]:
        n = row.measured_tokens
        if not n:
            return []
        logits = torch.stack([step[index] for step in self._logits[:n]])  # (n, V)
        contrast = None if self._contrast_logits is None else self._contrast_logits[index, :n]
        states = [torch.stack([step[index] for step in layer[:n]]) for layer in self._states]
        tokens = _Tokens(ids[:n], logits, contrast, states, row.start)
        return _measured(tokens, row.closed, Transcript(row.text, row.char_spans), self._taps.layers)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A response's text and the (start, stop) characters of each of its tokens."""

    text: str
    char_spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A stretch of n tokens: ids (n,), what predicted them (n, V) twice, states (n, H) per layer."""

    ids: Tensor
    logits: Tensor
    contrast: Tensor | None
    states: list[Tensor]
    start: int


def _fed_together(spans: Sequence[SentenceSpan]) -> list[list[SentenceSpan]]:
    """One sentence a group, but those that have no token of their own go with a neighbour."""
    groups: list[list[SentenceSpan]] = []
    for span in spans:
        if groups and (span.token_start == span.token_stop or groups[-1][0].token_start == span.token_start):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _measured(
    tokens: _Tokens, spans: Sequence[SentenceSpan], transcript: Transcript, layers: Sequence[int]
) -> list[SentenceSignals]:
    statistics = token_statistics(tokens.logits, tokens.contrast, tokens.ids)
    last = [last_text_token(span, transcript.char_spans) - tokens.start for span in spans]
    values = torch.stack(
        [statistics.log_prob, statistics.log_prob_without_context, statistics.entropy, statistics.kl]
    )  # (4, n)
    activations = [states[last].float().flatten() for states in tokens.states]
    # One transfer from the device for everything that is kept of the sentences.
    flat = torch.cat([values.flatten(), *activations]).cpu().numpy()
    n, width = len(tokens.ids), tokens.states[0].shape[1] if tokens.states else 0
    table = flat[: 4 * n].reshape(4, n)
    kept = flat[4 * n :].reshape(len(layers), len(spans), width)
    ids = np.asarray(tokens.ids.tolist(), np.int64)
    return [
        _sentence(span, transcript, ids, table, dict(zip(layers, kept[:, i], strict=True)), tokens.start)
        for i, span in enumerate(spans)
    ]


def _sentence(
    span: SentenceSpan,
    transcript: Transcript,
    ids: NDArray[np.int64],
    table: NDArray[np.float32],
    activations: dict[int, NDArray[np.float32]],
    start: int,
) -> SentenceSignals:
    columns = slice(span.token_start - start, span.token_stop - start)
    return SentenceSignals(
        text=transcript.text[span.char_start : span.char_stop],
        span=span,
        token_ids=ids[columns],
        log_prob=table[0, columns],
        log_prob_without_context=table[1, columns],
        entropy=table[2, columns],
        kl=table[3, columns],
        activations=activations,
    )


def _cut(branch: Branch, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
    """Select rows; where they stay as they are, rewind, which costs no copy."""
    if list(rows) == list(range(branch.rows)) and len(set(dropped)) == 1:
        branch.rewind(dropped[0], next_logits)
    else:
        branch.select(rows, dropped, next_logits)
