"""Replay of given responses on an inference server: scores from exact measurements, bounds on scores otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators import score_bounds
from syncheck.base.checks import check_share
from syncheck.base.errors import InputError, MismatchError, NotReadyError
from syncheck.decoding import ScoredAnswer
from syncheck.decoding.scored import scored_answers
from syncheck.endpoints.servers import KnownTokens, ReplayServer
from syncheck.features.schemas import LID, beyond_endpoints, needs_signals, signal_features
from syncheck.monitor_base import scorers_of
from syncheck.replay import GivenResponse, read_responses
from syncheck.results import Report
from syncheck.results.types import Bounds, Floats, RagPrompt, SentenceScore, SentenceSignals, Status
from syncheck.scoring import SentenceScorer
from syncheck.signals import entropy_bounds, kl_bounds

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor

TOP = 20  # likeliest tokens that servers report by default (vLLM's ``max_logprobs``)
PARITY_NATS = 2e-4
"""Largest difference, in nats, between log-probabilities of a server and of transformers; vLLM's was 9.2e-5."""
_Branches = tuple[KnownTokens | None, KnownTokens | None]  # what is known with the context, and without


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedScore:
    """Bounds of a sentence's score; they contain the score of exact signals, whatever the server did not report."""

    text: str
    start: int
    end: int
    """Its characters in the response, half-open."""
    status: Status
    """Only ``scored`` has bounds."""
    reason: str | None
    """Why there are no bounds."""
    features: Bounds
    """Bounds (F,) of the features, with columns as in the monitor's schema."""
    low: float | None
    high: float | None
    """``low <= score <= high``, in [0, 1]; equal if every feature is exact."""

    def reaches(self, threshold: float) -> bool | None:
        """Tell whether the score reaches a threshold; None if the bounds do not decide.

        A threshold outside [0, 1] raises InputError.
        """
        check_share(threshold, "threshold")
        if self.low is None or self.high is None or self.low < threshold <= self.high:
            return None
        return self.low >= threshold


@dataclass(frozen=True, eq=False)
class EndpointReplay:
    """Measures and scores given responses as :meth:`Monitor.replay` does, with the log-probabilities of a server.

    The server must run the monitor's model. The monitor's own model only provides its window and vocabulary, so it may
    be without weights (on torch's device ``meta``). ``top`` or ``workers`` below 1, or ``error`` below 0, raises
    InputError.

    Examples
    --------
    >>> replay = EndpointReplay(monitor, SglangServer(Connection("http://localhost:30000")))  # doctest: +SKIP
    >>> replay.score(prompt, "He was born in 1952.").sentences[0].score  # doctest: +SKIP
    0.93
    """

    monitor: ModelMonitor
    """For exact scores, trained on ``endpoint.v1`` or another schema that a server can measure."""
    server: ReplayServer
    """A :class:`~syncheck.endpoints.VllmServer`, a :class:`~syncheck.endpoints.SglangServer`, or your own
    :class:`~syncheck.endpoints.ReplayServer`."""
    _: KW_ONLY
    top: int = TOP
    """Number of likeliest tokens to ask for at each position, for bounds; scores need none."""
    workers: int = 8
    """Number of concurrent requests."""
    error: float = PARITY_NATS
    """Error of a log-probability, in nats, that bounds allow for."""

    def __post_init__(self) -> None:
        if self.top < 1 or self.workers < 1 or self.error < 0:
            found = f"{self.top}, {self.workers}, {self.error}"
            raise InputError(f"top and workers must be at least 1, error at least 0; found {found}")

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
            If the monitor's schema has features that need the whole distribution or hidden states; see :meth:`certify`.
        EndpointError
            If the server cannot be reached, refuses, answers in an unexpected form, or reports what no distribution can
            have, such as NaN, a log-probability above 0, or probabilities above 1 together.
        InputError, PromptError, WrongTypeError
            As in :meth:`Monitor.score_batch`.
        """
        if beyond := beyond_endpoints(self.monitor.schema.names):
            raise MismatchError(
                f"schema {self.monitor.schema.version!r} has {', '.join(beyond)}, which no server reports exactly; "
                "compute bounds on the score (certify), or train a monitor on endpoint.v1"
            )
        if not needs_signals(self.monitor.config.schema):
            raise InputError(
                f"schema {self.monitor.schema.version!r} needs no signals, so there is nothing to ask a server; score "
                "the text with Monitor.score or a Verifier"
            )
        given = read_responses(self.monitor, prompts, responses, None, None)
        known = self._known(prompts, given, top=0)
        measured = [_sentences(g, branches) for g, branches in zip(given, known, strict=True)]
        return scored_answers(scorers_of(prompts, self.monitor.scorer), measured)

    def certify(
        self, prompts: Sequence[RagPrompt], responses: Sequence[str | GivenResponse]
    ) -> list[list[CertifiedScore]]:
        """Bound the scores of the sentences of many given responses; arguments as in :meth:`replay`.

        The bounds contain the score that the monitor would give if it measured every signal exactly, for every
        distribution that has the reported log-probabilities. They are wider where the server reports fewer likeliest
        tokens than it was asked for, since others may then be likelier. Nothing is known of LID, so bounds are narrower
        with a schema without it.

        Raises
        ------
        NotReadyError
            If the monitor has no aggregator.
        EndpointError, InputError, PromptError, WrongTypeError
            As in :meth:`replay`; InputError also if scores of the aggregator's kind cannot be bounded.
        """
        if self.monitor.aggregator is None:
            raise NotReadyError("the monitor has no aggregator, so there is no score to bound; train one")
        given = read_responses(self.monitor, prompts, responses, None, None)
        known = self._known(prompts, given, top=self.top)
        ends = [self._ends(g, branches) for g, branches in zip(given, known, strict=True)]
        make = partial(SentenceScorer, config=self.monitor.config, aggregator=None, aligner=self.monitor.aligner)
        answers = scored_answers(scorers_of(prompts, make), [least for least, _ in ends])
        certified = [
            [(sentence, self._features(sentence, most)) for sentence, most in zip(answer.sentences, highs, strict=True)]
            for answer, (_, highs) in zip(answers, ends, strict=True)
        ]
        rows = [features for answer in certified for sentence, features in answer if sentence.status == "no_aggregator"]
        bounds: Iterator[tuple[float, float]] = iter(())
        if rows:
            stacked = Bounds(np.stack([row.low for row in rows]), np.stack([row.high for row in rows]))
            scores = score_bounds(self.monitor.aggregator, stacked)
            bounds = zip(scores.low.tolist(), scores.high.tolist(), strict=True)

        def bounded(sentence: SentenceScore, features: Bounds) -> CertifiedScore:
            status: Status = "scored" if sentence.status == "no_aggregator" else sentence.status
            ends = next(bounds) if status == "scored" else (None, None)
            return CertifiedScore(sentence.text, sentence.start, sentence.end, status, sentence.reason, features, *ends)

        return [list(starmap(bounded, answer)) for answer in certified]

    def _known(self, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], *, top: int) -> list[_Branches]:
        """Ask the server about every response, with its context and, if there is one, without; None if not asked."""

        def ask(prompt_ids: tuple[int, ...] | None, token_ids: list[int]) -> KnownTokens | None:
            if prompt_ids is None or not token_ids:
                return None
            known = self.server.replay(prompt_ids, token_ids, top=top)
            known.check(token_ids, vocab_size=self._vocab_size, error=self.error, name=self.server.name)
            return known

        without = [prompt.without_context_ids if prompt.has_context else None for prompt in prompts]
        branches = chain.from_iterable(zip((prompt.with_context_ids for prompt in prompts), without, strict=True))
        with ThreadPoolExecutor(self.workers) as pool:
            known = list(pool.map(ask, branches, [g.token_ids for g in given for _ in range(2)]))
        return list(zip(known[::2], known[1::2], strict=True))

    def _ends(self, given: GivenResponse, branches: _Branches) -> tuple[list[SentenceSignals], list[SentenceSignals]]:
        """Build the sentences with the least and the largest values of entropy and KL."""
        known, without = branches
        entropy = kl = Bounds.exact(np.full(len(given.token_ids), np.nan))
        if known is not None:
            ids, log_prob = known.joined(given.token_ids)
            entropy = entropy_bounds(log_prob, self._vocab_size, largest_other=known.largest_other, error=self.error)
            if without is not None:
                kl = kl_bounds(log_prob, _at(ids, *without.joined(given.token_ids)), error=self.error)
        low = _sentences(given, branches, entropy.low, kl.low)
        return low, _sentences(given, branches, entropy.high, kl.high)

    @property
    def _vocab_size(self) -> int:
        size: int = self.monitor.model.get_input_embeddings().num_embeddings
        return size

    def _features(self, least: SentenceScore, most: SentenceSignals) -> Bounds:
        """Compute the bounds (F,) of a sentence's features, given its score at the least entropy and KL."""
        lower = np.array([np.nan if value is None else value for value in least.features.values()], np.float64)
        upper = lower.copy()
        if len(most.token_ids):
            largest = signal_features(most)
            for place, name in enumerate(self.monitor.schema.names):
                if name in largest:
                    upper[place] = largest[name]
                if name.startswith(LID.format(k="")) and self.monitor.lid_references is not None:
                    lower[place], upper[place] = -np.inf, np.inf
        return Bounds(np.minimum(lower, upper), np.maximum(lower, upper))


def _at(ids: NDArray[np.int64], other_ids: NDArray[np.int64], log_prob: Floats) -> Floats:
    """Look up the log-probabilities (T, K) of the other branch at these ids; NaN where it does not report them."""
    values_at = np.full(ids.shape, np.nan)
    for row, (wanted, others, values) in enumerate(zip(ids, other_ids, log_prob, strict=True)):
        told = ~np.isnan(values)
        _, here, there = np.intersect1d(wanted, others[told], return_indices=True)
        values_at[row, here] = values[told][there]
    return values_at


def _sentences(
    given: GivenResponse, known: _Branches, entropy: Floats | None = None, kl: Floats | None = None
) -> list[SentenceSignals]:
    """Build the sentences with their part of each column (T,); what is not given is NaN."""
    ids = np.asarray(given.token_ids, np.int64)
    nothing = np.full(len(ids), np.nan, np.float32)
    log_prob, other = (None if of is None else np.minimum(of.log_prob, 0.0) for of in known)
    columns = {"log_prob": log_prob, "log_prob_without_context": other, "entropy": entropy, "kl": kl}
    table: dict[str, Any] = {name: nothing if of is None else of.astype(np.float32) for name, of in columns.items()}
    return [
        SentenceSignals(
            text=given.transcript.text[span.start : span.end],
            span=span,
            token_ids=ids[span.token_start : span.token_end],
            **{name: values[span.token_start : span.token_end] for name, values in table.items()},
        )
        for span in given.spans
    ]
