"""Ways to watch an answer, all on the same scripted tokens; each is a function of subject, job and ``between``.

They return what they measured: for each row (4, n) float32, log-probability, the same without the context, entropy
and KL of its tokens, in nats. All return the same, up to rounding.

``between(n)`` is called before token n of the answer is chosen, with 0 when the first logits are there; the way that
begins anew for every sentence calls it between them. The baselines find no sentence ends, LID or support, as the
monitor does: what they cost is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel
from transformers.generation import LogitsProcessor, LogitsProcessorList
from workload import Job, Script, Subject

from syncheck import EndEvent, Monitor, RagPrompt, Report, Watch
from syncheck.signals import TokenStatistics, decoder_blocks, token_statistics

Between = Callable[[int], None]
Measured = list[NDArray[np.float32]]
Way = Callable[[Subject, Job, Between], Measured]


def plain(subject: Subject, job: Job, between: Between) -> Measured:
    """Generate with transformers and its own cache, and measure nothing."""
    _stock(subject, job, [Script(job.answers, before=between)])
    return []


def signals_only(subject: Subject, job: Job, between: Between) -> Measured:
    """``monitor.generate``: all signals, LID included, without aligner and aggregator."""
    return _monitored(subject.signals, job, between)


def with_aligner(subject: Subject, job: Job, between: Between) -> Measured:
    """``monitor.generate`` with aligner and aggregator: every sentence is scored."""
    return _monitored(subject.full, job, between)


def _monitored(monitor: Monitor, job: Job, between: Between) -> Measured:
    script = Script(job.answers, before=between)
    processors = LogitsProcessorList([script])
    reports = monitor.generate(  # without drafts: scripted tokens seldom copy, and the others take none
        _prompts(job), do_sample=False, max_new_tokens=job.tokens, lookup=0, logits_processor=processors
    )
    return _of_reports(reports if isinstance(reports, list) else [reports])


def attached(subject: Subject, job: Job, between: Between) -> Measured:
    """``monitor.attach`` around transformers' ``generate`` with its own cache, signals only."""
    return _attached(subject, subject.signals, job, between)


def attached_with_aligner(subject: Subject, job: Job, between: Between) -> Measured:
    """``monitor.attach`` as above, with aligner and aggregator."""
    return _attached(subject, subject.full, job, between)


def _attached(subject: Subject, monitor: Monitor, job: Job, between: Between) -> Measured:
    with monitor.attach(_prompts(job)) as watch:
        out = _stock(subject, job, [*watch.processors, Script(job.answers, before=between)])
    return _of_reports([watch.report(out)] if isinstance(watch, Watch) else watch.reports(out))


def streamed(subject: Subject, job: Job, between: Between) -> Measured:
    """``monitor.stream``, for one row, with aligner and aggregator."""
    script = LogitsProcessorList([Script(job.answers, before=between)])
    (prompt,) = job.prompts
    options = {"do_sample": False, "max_new_tokens": job.tokens, "lookup": 0, "logits_processor": script}
    *_, end = subject.full.stream(prompt, **options)
    assert isinstance(end, EndEvent)
    return _of_reports([end.report])


def _prompts(job: Job) -> RagPrompt | list[RagPrompt]:
    return job.prompts[0] if len(job.prompts) == 1 else list(job.prompts)


def _of_reports(reports: Sequence[Report]) -> Measured:
    tokens = [report.tokens for report in reports]
    return [np.stack([t.log_prob, t.log_prob_without_context, t.entropy, t.kl]) for t in tokens]


def per_step(subject: Subject, job: Job, between: Between) -> Measured:
    """Run a second forward at every step, in the way of ``UnbatchedClassifierFreeGuidanceLogitsProcessor``."""
    paired = PairedSignals(subject.model, [p.without_context_ids for p in job.prompts], subject.full.config.layers)
    with paired.tapping():
        out = _stock(subject, job, [paired, Script(job.answers, before=between)])
    paired.measure(out[:, -1])
    return list(torch.stack(paired.statistics, dim=-1).transpose(0, 1).cpu().numpy())


def _stock(subject: Subject, job: Job, processors: Sequence[LogitsProcessor]) -> Tensor:
    ids, mask = left_padded([p.with_context_ids for p in job.prompts], subject.model.device)
    out: Tensor = subject.model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=job.tokens,
        logits_processor=LogitsProcessorList(processors),
    )
    return out


class PairedSignals(LogitsProcessor):  # type: ignore[misc]
    """Log-probability, entropy and KL of each token from two forwards a step, hidden states by hooks.

    Unlike transformers' processor it asks for the last logits of the prompt only and gives padded rows their own
    positions.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], layers: Sequence[int]) -> None:
        self._model = model
        self._ids, self._mask = left_padded(prompts, model.device)
        self._cache = DynamicCache(config=model.config)
        self._blocks = [decoder_blocks(model)[k] for k in layers]
        self._pair: tuple[Tensor, Tensor] | None = None
        self._second = False
        self.statistics: list[Tensor] = []
        self.states: list[Tensor] = []

    @contextmanager
    def tapping(self) -> Iterator[None]:
        """Keep the last position's hidden states of every forward with the context."""
        handles = [block.register_forward_hook(self._keep) for block in self._blocks]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Measure the token that was chosen last and run the prompt without the context up to it."""
        if self._pair is None:
            fed, positions = self._ids, (self._mask.cumsum(-1) - 1).clamp_min(0)
        else:
            self.measure(input_ids[:, -1])
            fed, positions = input_ids[:, -1:], self._mask.sum(-1, keepdim=True)
            self._mask = torch.cat([self._mask, torch.ones_like(fed)], dim=1)
        self._second = True
        output = self._model(
            input_ids=fed,
            attention_mask=self._mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._second = False
        self._pair = (scores, output.logits[:, -1])
        return scores

    def measure(self, token_ids: Tensor) -> None:
        """Keep the statistics of the tokens (B,) that the last pair of logits was for."""
        assert self._pair is not None
        self.statistics.append(_stacked(token_statistics(*self._pair, token_ids)))  # (4, B)

    def _keep(self, module: nn.Module, args: object, output: Tensor) -> None:
        if not self._second:
            self.states.append(output[:, -1].clone())


def re_prefill(subject: Subject, job: Job, between: Between) -> Measured:
    """Encode the prompt and the text so far anew for every sentence, as the published code does, or a little faster.

    For each sentence: one ``generate`` from all the text so far, up to the longest sentence of the batch; one pass over
    the prompt without the context and all the text for the other distribution; one over the prompt with it and all
    the text, with ``output_hidden_states``. The published code also generates 65 tokens whatever the sentence's
    length, unpacks the distributions into dictionaries and makes the ids anew from text; this does not. A round gives
    every row of a batch one sentence.
    """
    found: list[Measured] = []
    for index in range(min(len(ends) for ends in job.sentences)):
        starts = [ends[index - 1] if index else 0 for ends in job.sentences]
        if index:
            between(starts[0])
        stops = [ends[index] for ends in job.sentences]
        found.append(_sentence(subject, job, starts, stops, between if not index else None))
    return [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]


def _sentence(subject: Subject, job: Job, starts: list[int], stops: list[int], between: Between | None) -> Measured:
    model = subject.model
    longest = max(stop - start for start, stop in zip(starts, stops, strict=True))
    parts = [answer[start:stop] for answer, start, stop in zip(job.answers, starts, stops, strict=True)]
    before = [[*p.with_context_ids, *job.answers[i][: starts[i]]] for i, p in enumerate(job.prompts)]
    ids, mask = left_padded(before, model.device)

    def first(token: int) -> None:
        if between is not None and token == 0:
            between(0)

    out = model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=longest,
        logits_processor=LogitsProcessorList([Script(parts, before=first)]),
        output_logits=True,
        return_dict_in_generate=True,
    )
    logits = torch.stack(out.logits, dim=1)  # (B, n, V)
    with torch.inference_mode():
        without = [[*p.without_context_ids, *job.answers[i][: stops[i]]] for i, p in enumerate(job.prompts)]
        other = _full_pass(model, without, keep=longest + 1).logits[:, :-1]
        known = [[*p.with_context_ids, *job.answers[i][: stops[i]]] for i, p in enumerate(job.prompts)]
        states = _full_pass(model, known, keep=1, output_hidden_states=True).hidden_states
        for layer in subject.full.config.layers:
            states[layer + 1][:, -1].float().cpu()
        measured = [
            token_statistics(
                logits[row, : len(part)], other[row, -len(part) :], torch.tensor(part, device=model.device)
            )
            for row, part in enumerate(parts)
        ]
    return [_stacked(statistics).cpu().numpy() for statistics in measured]


def _stacked(found: TokenStatistics) -> Tensor:
    return torch.stack([found.log_prob, found.log_prob_without_context, found.entropy, found.kl])


def _full_pass(model: PreTrainedModel, rows: Sequence[Sequence[int]], *, keep: int, **kwargs: bool):  # noqa: ANN202
    ids, mask = left_padded(rows, model.device)
    positions = (mask.cumsum(-1) - 1).clamp_min(0)
    return model(
        input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=keep, **kwargs
    )


def left_padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids and mask (B, width) of rows that all end in the last column."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
