"""Watches around a generation loop of the caller: ``model.generate`` or one written by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache, QuantizedCache, StaticCache
from transformers.generation import LogitsProcessorList, StoppingCriteriaList

from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.base.printable import counted
from syncheck.decoding import StopReason, end_tokens_of
from syncheck.decoding.observed import ObservedSession, OverheardStops
from syncheck.decoding.rows import Scoped, Sequences
from syncheck.decoding.scored import ScoredRounds
from syncheck.results import Report
from syncheck.results.types import RagPrompt, SentenceScore
from syncheck.scoring import SentenceScorer, check_stop_below, first_below
from syncheck.signals import ForwardArguments, check_one_encoding, is_rewindable, let_grow

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_NONE: Mapping[str, Any] = MappingProxyType({})
"""Keyword arguments of a hook that is removed while another thread runs the model; torch then passes none."""


class BatchWatch(Scoped):
    """Scores sentences while another loop generates; made by ``Monitor.attach`` with a list of prompts, one per row.

    As :class:`Watch`, but sentences are scored once every row has one, or after 64 tokens. Rows are padded on the left
    and keep their places; beam search, which moves text between rows, is refused. ``processors``, a LogitsProcessorList
    for ``generate(logits_processor=...)``, change no score, but check the ids.

    A row is over when a stopping criterion of ``generate`` says so, whatever fills it afterwards. In a loop written by
    hand, it is over at an end-of-text token of the model or its tokenizer, or where :meth:`end` says.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompts: Sequence[RagPrompt],
        *,
        scorers: Sequence[SentenceScorer],
        **measuring: Any,  # noqa: ANN401 - as Session takes them
    ) -> None:
        self._model = model
        self._arguments = ForwardArguments(model)
        self._own_ends = tuple(end_tokens_of(model, tokenizer))
        self._stops = OverheardStops(model, len(prompts))
        self._prompts = list(prompts)
        self._width = max(len(prompt.with_context_ids) for prompt in prompts)  # columns of the padded prompts
        self._session = ObservedSession(model, tokenizer, prompts, **measuring)
        self._watched = ScoredRounds(self._session, scorers)
        self._seen: list[list[int]] = [[] for _ in prompts]  # what was fed, padding included
        self._cache: Any = None
        self._new = 0
        self._busy = False
        self._attached = False
        self._stop_below: float | None = None
        self._started = time.perf_counter()
        self.processors = LogitsProcessorList([self._follow])

    @property
    def rows(self) -> tuple[tuple[SentenceScore, ...], ...]:
        """The sentences of each row that are scored so far."""
        return tuple(tuple(answer.sentences) for answer in self._watched.answers)

    def stop_below(self, threshold: float) -> StoppingCriteriaList:
        """Make the stopping criterion that ends a row once one of its sentences scores below a threshold in [0, 1].

        A sentence that makes a claim and has no score counts as below. Pass the criterion to
        ``generate(stopping_criteria=...)``, or call it in a loop of your own: given the ids, it returns (B,) bool, True
        for rows that are over. A sentence is scored once the next one has begun, so the ids continue for a token or
        two; the report ends with the sentence, and its ``stop`` is ``below_threshold``. A threshold outside
        [0, 1] raises InputError, and a monitor without an aggregator NotReadyError, since no sentence then has a score.
        """
        check_stop_below(threshold, has_scores=self._watched.answers[0].scorer.has_scores)
        self._stop_below = threshold

        def falls_below(input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 - as transformers has it
            is_below = [first_below(sentences, threshold) is not None for sentences in self.rows]
            return torch.tensor(is_below, device=input_ids.device)

        return StoppingCriteriaList([falls_below])

    def _follow(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Refuse, with an InputError, ids that were not fed to the model: of another prompt, or moved between rows."""
        if input_ids.tolist() != self._seen:
            raise InputError(
                "the ids in the loop are not those that the watched model was fed; generate from prompt.inputs() of "
                "the prompt that was attached, without beam search, and in the thread that entered the with block"
            )
        return scores

    def end(self, row: int = 0, *, tokens: int) -> None:
        """Declare that a row of a loop written by hand is over; what the loop feeds to it afterwards is not text.

        ``row`` counts from 0, and ``tokens`` is the length of its response. If there is no such row, or more tokens of
        the response were fed, InputError is raised; if either is no whole number, WrongTypeError.
        """
        for name, value in (("row", row), ("tokens", tokens)):
            if not isinstance(value, Integral):
                raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
        if not 0 <= row < len(self._seen):
            last = len(self._seen) - 1
            raise InputError(f"row must be {f'from 0 to {last}' if last else '0'}, a row of the loop; found {row}")
        fed = max(len(self._seen[row]) - self._width, 0)
        if tokens < fed:
            raise InputError(f"row {row} cannot end after {tokens} tokens: {fed} were fed; call end() before that")
        self._stops.over[row] = self._width + tokens
        self._end_rows()

    def reports(self, output_ids: Any) -> list[Report]:  # noqa: ANN401 - a tensor, a list or what generate returns
        """Finish and return the report of each row; call inside the ``with`` block or after it.

        ``output_ids`` are the final ids, prompt and padding included, as ``generate`` returns them, or its output
        object. Tokens that the loop has not fed, such as the last one of ``generate``, are fed now.

        Raises
        ------
        InputError
            If the ids do not continue the watched ones or lack some of them, differ in length, or are not all in the
            vocabulary.
        NotReadyError
            If another thread is inside the ``with`` block.
        WrongTypeError
            If the ids are neither a tensor nor lists of integers.
        """
        ids = _ids_of(output_ids)
        n = len(self._seen[0])
        if len(ids) != len(self._seen):
            attached, given = counted(len(self._seen), "prompt"), counted(len(ids), "sequence")
            raise InputError(f"expected one sequence for each prompt; attached: {attached}; found: {given}")
        if any(row[:n] != seen[: len(row)] for row, seen in zip(ids, self._seen, strict=True)) or any(
            tuple(row[self._width - len(p.with_context_ids) : self._width]) != p.with_context_ids
            for row, p in zip(ids, self._prompts, strict=True)
        ):
            raise InputError("the final ids do not continue the sequence that was watched; pass what the loop returned")
        missing = max(len(row.token_ids) for row in self._session.rows) - (len(ids[0]) - self._width)
        if missing > 0:
            raise InputError(
                f"the final ids lack the last {counted(missing, 'token')} of the text that was watched; pass what the "
                "loop returned, or score shorter ids with Monitor.score(prompt, response_token_ids=...)"
            )
        size = self._model.get_input_embeddings().num_embeddings
        if outside := [token for row in ids for token in row if not 0 <= token < size]:
            raise InputError(f"final ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
        lengths, reasons = zip(*(self._end_of(row, response) for row, response in enumerate(ids)), strict=True)
        self._feed_rest([row[: max(lengths)] for row in ids])
        for row in self._session.rows:
            row.end()
        self._score_closed(is_last=True)
        self._watched.cut_below(self._stop_below)
        return self._watched.reports(stops=reasons, seconds=time.perf_counter() - self._started)

    @property
    def _end_tokens(self) -> tuple[int, ...]:
        """End tokens of ``generate``; in a loop written by hand, those of the model and its tokenizer."""
        return self._own_ends if self._stops.end_tokens is None else self._stops.end_tokens

    def _end_of(self, row: int, ids: Sequence[int]) -> tuple[int, StopReason]:
        """Find the column up to which the final ids have text, and why the text ends there."""
        over, limit = self._stops.over[row], self._stops.limit
        for column in range(self._width, len(ids) if over is None else min(over, len(ids))):
            if ids[column] in self._end_tokens:
                return column, "end_of_text"
        if over is None:
            return len(ids), "criteria"
        reached: StopReason = "criteria" if limit is None or over < limit else "length"
        return min(over, len(ids)), "stop_string" if row in self._stops.by_string else reached

    def _end_rows(self) -> None:
        """End the rows that are over with the tokens fed so far."""
        for row, seen, over in zip(self._session.rows, self._seen, self._stops.over, strict=True):
            if over is not None and over <= len(seen):
                row.end()

    def _enter(self, scope: ExitStack) -> None:
        scope.enter_context(self._watched)
        scope.enter_context(self._stops.listening())
        before = self._model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        scope.callback(before.remove)
        after = self._model.register_forward_hook(self._after_forward)
        scope.callback(after.remove)
        self._recorded = scope.enter_context(self._session.recording())
        scope.callback(setattr, self, "_attached", False)
        self._attached = True

    def _feed_rest(self, wanted: Sequence[Sequence[int]]) -> None:
        stop = len(wanted[0])
        if len(self._seen[0]) >= stop:
            return
        padded = Sequences([prompt.with_context_ids for prompt in self._prompts], self._model.device)
        ids = torch.tensor(wanted, device=self._model.device)
        with ExitStack() as hooks, torch.inference_mode():
            if not self._attached:
                hooks.enter_context(self)
            elif not self._session.is_recording:
                raise NotReadyError(
                    "another thread is inside the with block of this watch; call report(out) there, or after the block"
                )
            if not self._seen[0]:  # another loop made the ids: all of them are fed now
                self._cache = DynamicCache(config=self._model.config)
            while (seen := len(self._seen[0])) < stop:
                begin = 0 if self._cache is None else seen
                end = max(seen + 1, self._width)
                mask, positions = padded.mask_and_positions(end)
                arguments = self._arguments.of(mask, positions[:, begin:], self._cache, 1, is_first=begin == 0)
                self._model(input_ids=ids[:, begin:end], **arguments)

    def _before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] = _NONE) -> None:
        if self._busy or not self._session.is_recording:
            return
        input_ids = kwargs.get("input_ids", args[0] if args else None)
        if not isinstance(input_ids, Tensor):
            raise WrongTypeError("a watched loop must feed input_ids; it fed embeddings or nothing")
        if input_ids.shape[0] != len(self._prompts):
            raise InputError(
                f"the loop feeds {input_ids.shape[0]} sequences, but {len(self._prompts)} prompts are attached; attach "
                "a list with the prompt of every row"
            )
        past = self._past(kwargs.get(self._arguments.cache), input_ids.shape[1])
        self._new = 0
        for row, fed in enumerate(input_ids.tolist()):
            known = self._seen[row][past : past + len(fed)]
            if past > len(self._seen[row]) or fed[: len(known)] != known:
                raise InputError("the watched model was fed another sequence; run other prompts outside the with block")
            self._new = len(fed) - len(known)
        if self._new:
            self._append(input_ids[:, -self._new :])
        for layer in self._recorded:
            layer.clear()

    def _past(self, cache: Any, width: int) -> int:  # noqa: ANN401 - any cache of transformers
        """Count the columns that the loop has fed before and does not feed again."""
        if cache is None:
            return 0
        if isinstance(cache, QuantizedCache):
            raise InputError(
                "a quantised cache changes the logits, so that the loop and a replay would give different signals; "
                "leave cache_implementation out"
            )
        if is_rewindable(self._model):
            return int(cache.get_seq_length())
        return len(self._seen[0]) if width == 1 else 0  # a recurrent state has no length

    def _append(self, token_ids: Tensor) -> None:
        before = len(self._seen[0])
        for seen, new in zip(self._seen, token_ids.tolist(), strict=True):
            seen += new
        if before < self._width:
            for seen, prompt in zip(self._seen, self._prompts, strict=True):
                pad = self._width - len(prompt.with_context_ids)
                own = list(prompt.with_context_ids[: max(len(seen) - pad, 0)])
                if seen[pad : self._width] != own:
                    raise InputError("the loop feeds another prompt than the one attached; use prompt.inputs()")
        if len(self._seen[0]) <= self._width:
            return
        if before < self._width or self._new != 1:
            raise InputError(f"a watched loop must feed one token per step; it fed {self._new}")
        check_one_encoding(self._model, self._width, len(self._seen[0]))
        self._session.push(token_ids[:, 0], end_tokens=self._end_tokens)
        self._score_closed()

    def _after_forward(self, module: nn.Module, args: object, output: Any) -> None:  # noqa: ANN401
        if self._busy or not self._session.is_recording or not self._new or len(self._seen[0]) < self._width:
            return
        cache = getattr(output, self._arguments.cache, None)
        # A static cache of generate has no room for the last token, which is then fed with all before it.
        if cache is not self._cache:
            let_grow(cache)
        self._cache = None if isinstance(cache, StaticCache) else cache
        states = [layer[-1][:, -1:] for layer in self._recorded]
        self._session.observe(output.logits[:, -1:].detach(), states)
        self._end_rows()

    def _score_closed(self, *, is_last: bool = False) -> None:
        if self._watched.is_due() or (is_last and any(row.closed for row in self._session.rows)):
            self._busy = True  # the no-context branch runs through the same model
            try:
                self._watched.score_round()
            finally:
                self._busy = False


class Watch(BatchWatch):
    """Scores sentences while another loop generates; made by ``Monitor.attach``, used as a context manager.

    Forward hooks read the raw logits, the hidden states and the ids that are fed, however the loop chooses its tokens.
    A sentence is scored when the first token after it is fed, before the next token can be chosen. The hooks are
    removed on exit. Signals equal those of ``Monitor.generate`` and ``Monitor.score`` on the same ids.
    """

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """The sentences scored so far, by which a loop written by hand can stop or take text back."""
        return self.rows[0]

    def report(self, output_ids: Any) -> Report:  # noqa: ANN401 - a tensor, a list or what generate returns
        """Finish and return the report; arguments and errors as in :meth:`BatchWatch.reports`."""
        return self.reports(output_ids)[0]


def _ids_of(output: Any) -> list[list[int]]:  # noqa: ANN401
    ids = getattr(output, "sequences", output)
    if isinstance(ids, Tensor):
        ids = ids.tolist()
    if isinstance(ids, list) and all(isinstance(i, int) for i in ids):
        ids = [ids]
    rows: list[list[int]] = ids if isinstance(ids, list) else []
    if not rows or not all(isinstance(row, list) and all(isinstance(i, int) for i in row) for row in rows):
        raise WrongTypeError(f"final ids must be a tensor or a list of integers; found {type(output).__name__}")
    if len(lengths := {len(row) for row in rows}) > 1:
        raise InputError(f"final ids must be rows of one length, padded on the right; found lengths {sorted(lengths)}")
    return rows
