"""Watching a generation loop that is not ours: ``model.generate`` or one written by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import LogitsProcessor, LogitsProcessorList

from syncheck.config import SegmenterConfig
from syncheck.decoding import end_tokens_of
from syncheck.errors import InputError, NotReadyError, WrongTypeError
from syncheck.judging import MonitoredSession, SentenceJudge
from syncheck.report import Report
from syncheck.session import DecodingSession
from syncheck.signals import Branch
from syncheck.types import RagPrompt, SentenceScore

__all__ = ["Watch"]


class _ObservedSession(DecodingSession):
    """A session whose main branch is run by somebody else and only looked at."""

    def recording(self) -> AbstractContextManager[list[list[Tensor]]]:
        """Collect what the tapped blocks put out in the loop's own forwards, one list per layer."""
        return self._taps.recording()

    def observe(self, logits: Tensor, states: Sequence[Tensor]) -> None:
        """Take the logits (1, V) and states (1, H) of the token that was fed last; the first call is the prompt's."""
        if self._logits:
            self._fed += 1
            for kept, new in zip(self._states, states, strict=True):
                kept.append(new)
        self._logits.append(logits)

    def _prefill(self, prompt: RagPrompt) -> Branch | None:
        return None

    def _feed_pending(self) -> None:
        if self._fed < len(self._ids):
            raise NotReadyError("the last token was not fed to the model yet; call report(out) with the final ids")


class _FollowIds(LogitsProcessor):  # type: ignore[misc]
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self._watch.check_sequence(input_ids)
        return scores


class Watch:
    """Scores sentences while another loop generates; made by ``Monitor.attach``, used as a context manager.

    Forward hooks read the raw logits, the hidden states and the ids that are fed, so it makes no difference who
    chooses the tokens or how. A sentence is scored when the first token behind it is fed, before that token's own
    successor can be chosen. The hooks go on exit.

    Attributes
    ----------
    processors : LogitsProcessorList
        For ``generate(logits_processor=...)``: changes no score, but checks that the ids are those that were seen.

    Notes
    -----
    Signals equal those of ``Monitor.generate`` and ``Monitor.score`` on the same ids. One sequence at a time.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompt: RagPrompt,
        *,
        judge: SentenceJudge,
        layers: Sequence[int],
        segmenter: SegmenterConfig,
    ) -> None:
        self._model = model
        self._ends = tuple(end_tokens_of(model, tokenizer))
        self._prompt = prompt
        self._session = _ObservedSession(model, tokenizer, prompt, layers=layers, segmenter=segmenter)
        self._watched = MonitoredSession(self._session, judge)
        self._sequence: list[int] = []
        self._cache: Any = None
        self._expected = 0
        self._busy = False
        self._attached = False
        self._exit = ExitStack()
        self._started = time.perf_counter()
        self.processors = LogitsProcessorList([_FollowIds(self)])

    def __enter__(self) -> Watch:
        self._exit.enter_context(self._watched)
        before = self._model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        self._exit.callback(before.remove)
        after = self._model.register_forward_hook(self._after_forward, with_kwargs=True)
        self._exit.callback(after.remove)
        self._recorded = self._exit.enter_context(self._session.recording())
        self._exit.callback(setattr, self, "_attached", False)
        self._attached = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """Sentences scored so far; useful inside a hand-written loop, to stop or to take back."""
        return tuple(self._watched.sentences)

    def check_sequence(self, input_ids: Tensor) -> None:
        """Refuse ids that are not those that were fed.

        Raises
        ------
        InputError
            If they differ: the loop runs another prompt.
        """
        if input_ids[0].tolist() != self._sequence:
            raise InputError(
                "the ids in the loop are not those the watched model was fed; generate from prompt.inputs() of the "
                "prompt that was attached"
            )

    def report(self, output_ids: Any) -> Report:  # noqa: ANN401 - a tensor, a list or what generate returns
        """Finish and return the report.

        Parameters
        ----------
        output_ids
            The final ids, prompt included, as ``generate`` returns them (or its output object). ``generate`` never
            feeds the last token, so it is fed now, which needs the hooks: call inside the ``with`` block or after it.

        Raises
        ------
        InputError
            If the ids do not continue what was watched.
        """
        ids = _ids_of(output_ids)
        n = len(self._prompt.with_context_ids)
        response = ids[n:]
        stop = next((i for i, token in enumerate(response) if token in self._ends), len(response))
        wanted = ids[: n + stop]
        if ids[: len(self._sequence)] != self._sequence[: len(ids)] or ids[:n] != list(self._prompt.with_context_ids):
            raise InputError("the final ids do not continue the sequence that was watched; pass what the loop returned")
        self._feed_rest(wanted)
        row = self._session.rows[0]
        row.end()
        self._judge_closed()
        seconds = time.perf_counter() - self._started
        return self._watched.report(stop="end_of_text" if stop < len(response) else "criteria", seconds=seconds)

    def _feed_rest(self, wanted: Sequence[int]) -> None:
        rest = list(wanted[len(self._sequence) :])
        if not rest:
            return
        with ExitStack() as hooks, torch.inference_mode():
            if not self._attached:
                hooks.enter_context(self)
            for token in rest:
                if self._cache is None:
                    ids = torch.tensor([[*self._sequence, token]], device=self._model.device)
                    self._model(input_ids=ids, use_cache=False)
                else:
                    ids = torch.tensor([[token]], device=self._model.device)
                    self._model(input_ids=ids, past_key_values=self._cache, use_cache=True)

    def _before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self._busy:
            return
        input_ids = kwargs.get("input_ids", args[0] if args else None)
        if not isinstance(input_ids, Tensor):
            raise WrongTypeError("a watched loop must feed input_ids; it fed embeddings or nothing")
        if input_ids.shape[0] != 1:
            raise InputError(f"one sequence can be watched at a time; the loop fed {input_ids.shape[0]}")
        cache = kwargs.get("past_key_values")
        past = int(cache.get_seq_length()) if cache is not None else 0
        fed = input_ids[0].tolist()
        known = self._sequence[past : past + len(fed)]
        if past > len(self._sequence) or fed[: len(known)] != known:
            raise InputError("the watched model was fed another sequence; run other prompts outside the with block")
        self._expected = len(fed) - len(known)
        for token in fed[len(known) :]:
            self._append(token)
        for layer in self._recorded:
            layer.clear()

    def _append(self, token: int) -> None:
        n = len(self._prompt.with_context_ids)
        if len(self._sequence) < n:
            if token != self._prompt.with_context_ids[len(self._sequence)]:
                raise InputError("the loop feeds another prompt than the one attached; use prompt.inputs()")
            self._sequence.append(token)
            return
        if self._expected != 1:
            raise InputError(f"a watched loop must feed one token a step; it fed {self._expected}")
        self._sequence.append(token)
        self._session.push(torch.tensor([token], device=self._model.device), end_tokens=self._ends)
        self._judge_closed()

    def _after_forward(self, module: nn.Module, args: object, kwargs: object, output: Any) -> None:  # noqa: ANN401
        if self._busy or not self._expected or len(self._sequence) < len(self._prompt.with_context_ids):
            return
        self._cache = getattr(output, "past_key_values", None)
        states = [layer[-1][:, -1] for layer in self._recorded]
        self._session.observe(output.logits[:, -1], states)

    def _judge_closed(self) -> None:
        if self._session.rows[0].closed:
            self._busy = True  # the no-context branch runs through the same model
            try:
                self._watched.judge_round()
            finally:
                self._busy = False


def _ids_of(output: Any) -> list[int]:  # noqa: ANN401
    ids = getattr(output, "sequences", output)
    if isinstance(ids, Tensor):
        ids = ids.tolist()
    if isinstance(ids, list) and ids and isinstance(ids[0], list):
        if len(ids) != 1:
            raise InputError(f"one sequence can be watched at a time; the output holds {len(ids)}")
        ids = ids[0]
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise WrongTypeError(f"final ids must be a tensor or a list of integers; found {type(output).__name__}")
    return ids
