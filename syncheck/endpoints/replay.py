"""Replay of given responses on an inference server: scores from its log-probabilities."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from syncheck.base.errors import EndpointError, InputError, MismatchError
from syncheck.decoding import ScoredAnswer
from syncheck.decoding.scored import scored_answers
from syncheck.endpoints.servers import ReplayServer
from syncheck.features.schemas import beyond_endpoints, needs_signals
from syncheck.monitor_base import scorers_of
from syncheck.replay import GivenResponse, read_responses
from syncheck.results import Report
from syncheck.results.types import Floats, RagPrompt, SentenceSignals

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor

PARITY_NATS = 2e-4
"""Accepted difference, in nats, between log-probabilities of a server and of transformers; vLLM's was 4.2e-5."""
_Branches = tuple[Floats | None, Floats | None]  # log-probabilities (T,) with the context, and without


@dataclass(frozen=True, eq=False)
class EndpointReplay:
    """Measures and scores given responses as :meth:`Monitor.replay` does, with the log-probabilities of a server.

    The server must run the monitor's model. The monitor's own model only provides its window and vocabulary, so it may
    be without weights (on torch's device ``meta``). ``workers`` below 1 raises InputError.

    Examples
    --------
    >>> replay = EndpointReplay(monitor, SglangServer(Connection("http://localhost:30000")))  # doctest: +SKIP
    >>> replay.score(prompt, "He was born in 1952.").sentences[0].score  # doctest: +SKIP
    0.93
    """

    monitor: ModelMonitor
    """Trained on ``endpoint.v1`` or another schema that a server can measure."""
    server: ReplayServer
    """A :class:`~syncheck.endpoints.VllmServer`, a :class:`~syncheck.endpoints.SglangServer`, or your own
    :class:`~syncheck.endpoints.ReplayServer`."""
    _: KW_ONLY
    workers: int = 8
    """Number of concurrent requests."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers must be at least 1; found {self.workers}")

    def score(self, prompt: RagPrompt, response: str | GivenResponse) -> Report:
        """Score a given response, a string or the result of :meth:`Monitor.read`; errors as in :meth:`replay`."""
        started = time.perf_counter()
        given = read_responses(self.monitor, [prompt], [response], None, None)
        (answer,) = self.replay([prompt], given)
        return answer.report(given[0].transcript, stop=None, seconds=time.perf_counter() - started)

    def replay(self, prompts: Sequence[RagPrompt], responses: Sequence[str | GivenResponse]) -> list[ScoredAnswer]:
        """Measure and score many given responses, strings or results of :meth:`Monitor.read`, one for each prompt.

        Entropy, KL and LID, which a server does not report, are NaN.

        Raises
        ------
        MismatchError
            If the monitor's schema has features that need the whole distribution or hidden states.
        EndpointError
            If the server cannot be reached, refuses, answers in an unexpected form, or reports NaN or a log-probability
            above 0.
        InputError, PromptError, WrongTypeError
            As in :meth:`Monitor.score_batch`.
        """
        if beyond := beyond_endpoints(self.monitor.schema.names):
            raise MismatchError(
                f"schema {self.monitor.schema.version!r} has {', '.join(beyond)}, which no server reports; "
                "train a monitor on endpoint.v1"
            )
        if not needs_signals(self.monitor.config.schema):
            raise InputError(
                f"schema {self.monitor.schema.version!r} needs no signals, so there is nothing to ask a server; score "
                "the text with Monitor.score or a Verifier"
            )
        given = read_responses(self.monitor, prompts, responses, None, None)
        known = self._known(prompts, given)
        measured = [_sentences(g, branches) for g, branches in zip(given, known, strict=True)]
        return scored_answers(scorers_of(prompts, self.monitor.scorer), measured)

    def _known(self, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse]) -> list[_Branches]:
        """Ask the server about every response, with its context and, if there is one, without; None if not asked."""

        def ask(prompt_ids: tuple[int, ...] | None, token_ids: list[int]) -> Floats | None:
            if prompt_ids is None or not token_ids:
                return None
            log_prob = self.server.replay(prompt_ids, token_ids)
            _check(log_prob, len(token_ids), name=self.server.name)
            return log_prob

        without = [prompt.without_context_ids if prompt.has_context else None for prompt in prompts]
        branches = chain.from_iterable(zip((prompt.with_context_ids for prompt in prompts), without, strict=True))
        with ThreadPoolExecutor(self.workers) as pool:
            known = list(pool.map(ask, branches, [g.token_ids for g in given for _ in range(2)]))
        return list(zip(known[::2], known[1::2], strict=True))


def _check(log_prob: Floats, count: int, *, name: str) -> None:
    """Refuse, with an EndpointError, what are no log-probabilities of ``count`` tokens; ``name`` is the server's."""
    if log_prob.shape != (count,):
        raise EndpointError(
            f"expected log-probabilities of {count} tokens from {name}; found the shape {log_prob.shape}", status=None
        )
    for fault, where in {"NaN": np.isnan(log_prob), "a log-probability above 0": log_prob > PARITY_NATS}.items():
        if where.any():
            raise EndpointError(
                f"expected log-probabilities from {name}; found {fault} at token {where.argmax() + 1} of {count}. "
                "Check the server, and that it runs the monitor's model",
                status=200,
            )


def _sentences(given: GivenResponse, known: _Branches) -> list[SentenceSignals]:
    """Build the sentences with their part of each column (T,); what is not known is NaN."""
    ids = np.asarray(given.token_ids, np.int64)
    nothing = np.full(len(ids), np.nan, np.float32)
    log_prob, without = (nothing if of is None else np.minimum(of, 0.0).astype(np.float32) for of in known)
    columns: dict[str, Any] = {
        "log_prob": log_prob,
        "log_prob_without_context": without,
        "entropy": nothing,
        "kl": nothing,
    }
    return [
        SentenceSignals(
            text=given.transcript.text[span.start : span.end],
            span=span,
            token_ids=ids[span.token_start : span.token_end],
            **{name: values[span.token_start : span.token_end] for name, values in columns.items()},
        )
        for span in given.spans
    ]
