"""One prompt being continued: owns the token ids, both branches, the taps and the sentence boundaries.

Live decoding, search and replay all go through here, so that a sentence is measured by the same code
however its tokens came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck.config import SegmenterConfig
from syncheck.errors import NotReadyError
from syncheck.measuring import TokenRun, Transcript, fed_together, measure_tokens
from syncheck.rows import Row
from syncheck.segments import IncrementalSegmenter
from syncheck.signals import Branch, Taps, check_window
from syncheck.types import RagPrompt, SentenceSignals, SentenceSpan

__all__ = ["DecodingSession"]


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
        for group in fed_together(spans):
            start, stop = group[0].token_start, group[-1].token_stop
            ids = torch.tensor([token_ids[start:stop]], device=self._prompt_ids.device)
            with self._taps.recording() as recorded:
                logits = self._own.teacher_forced(ids)[0, :-1]  # (T, V)
            contrast = None if self._contrast is None else self._contrast.teacher_forced(ids)[0, :-1]
            states = [layer[0][0] for layer in recorded]  # per layer (T, H)
            tokens = TokenRun(ids[0], logits, contrast, states, start)
            yield from measure_tokens(tokens, group, transcript, self._taps.layers)

    def _prefill(self, prompt: RagPrompt) -> Branch | None:
        return Branch(self._model, prompt.with_context_ids)

    @property
    def _own(self) -> Branch:
        if self._main is None:
            raise NotReadyError("only a loop that is watched feeds this branch; it cannot be fed or rewound from here")
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
        tokens = TokenRun(ids[:n], logits, contrast, states, row.start)
        return measure_tokens(tokens, row.closed, Transcript(row.text, row.char_spans), self._taps.layers)


def _cut(branch: Branch, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
    """Select rows; where they stay as they are, rewind, which costs no copy."""
    if list(rows) == list(range(branch.rows)) and len(set(dropped)) == 1:
        branch.rewind(dropped[0], next_logits)
    else:
        branch.select(rows, dropped, next_logits)
