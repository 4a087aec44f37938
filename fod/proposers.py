"""Proposals of the next sentence, greedy or sampled, from a monitored session, and the choice of a token."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from fod.config import DecoderConfig, FODConfig, RepairConfig, may_claim
from fod.guards import BESIDE, Guards, altered_names, hidden_noun_pronoun, is_beside, is_echo
from fod.search import Beam, Candidate, CandidateStop, Handle
from syncheck import Report, closest_evidence
from syncheck.decoding import Adjust, GenerationSetup, PromptLookup, ScoredAnswer, ScoredSession, Transcript, take_step
from syncheck.results.types import Query, SentenceSignals

_FIRST_LOOK = 256
"""Number of most likely tokens that are searched first for the nucleus, which is rarely wider."""
LIKELY = 0.5
"""Relevance from which a part of the passages is likely to answer the question."""


def nucleus(scores: Tensor, *, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Find the most likely tokens that together reach ``top_p``.

    Parameters
    ----------
    scores
        (B, V) float32, not normalised; -inf for tokens that are not allowed.
    temperature
        Divides the scores; above 0.
    top_p
        Probability, in (0, 1], that the tokens together reach.

    Returns
    -------
    probabilities : Tensor of shape (B, n), float32
        In descending order, 0 after the nucleus. They are not normalised: the sum of a row is the probability of its
        nucleus, at least ``top_p``.
    token_ids : Tensor of shape (B, n), int64

    Notes
    -----
    A token is in the nucleus if the tokens more likely than it do not reach ``top_p`` together, as with
    ``TemperatureLogitsWarper`` and then ``TopPLogitsWarper`` of transformers.
    """
    scaled = scores / temperature
    total = scaled.logsumexp(-1, keepdim=True)
    size = min(_FIRST_LOOK, scaled.shape[-1])
    while True:
        values, token_ids = scaled.topk(size, dim=-1)  # (B, n)
        probabilities = (values - total).exp()
        before = probabilities.cumsum(-1) - probabilities
        is_complete = size == scaled.shape[-1] or bool((before[:, -1] >= top_p).all())
        if is_complete:
            return probabilities.masked_fill(before >= top_p, 0.0), token_ids
        size = scaled.shape[-1]


def sample_nucleus(
    scores: Tensor, *, temperature: float, top_p: float, generator: torch.Generator | None = None
) -> Tensor:
    """Draw a token (B,), int64, from the nucleus of each row, with one uniform number each; see :func:`nucleus`."""
    probabilities, token_ids = nucleus(scores, temperature=temperature, top_p=top_p)
    share = probabilities.cumsum(-1)  # (B, n)
    drawn = torch.rand(len(scores), 1, generator=generator, device=scores.device) * share[:, -1:]
    # The last token of the nucleus where rounding leaves nothing above what was drawn.
    places = torch.searchsorted(share, drawn, right=True).minimum((probabilities > 0).sum(-1, keepdim=True) - 1)
    return token_ids.gather(-1, places)[:, 0]


def contrast_scores(
    with_context: Tensor, without_context: Tensor, *, alpha: float, plausibility: float = 0.0
) -> Tensor:
    """Compute the scores from whose softmax context-aware decoding samples.

    Parameters
    ----------
    with_context, without_context
        Raw logits (B, V).
    alpha
        Strength, at least 0, with which the context's influence is amplified; 0 gives ``with_context``.
    plausibility
        Share, in [0, 1], of the likeliest token's probability with the context; tokens below it get -inf.

    Returns
    -------
    Tensor of shape (B, V), float32

    Notes
    -----
    ``(1 + alpha) * logits(y | c, x) - alpha * logits(y | x)`` (Shi et al., 2024, equation 2); the plausibility
    constraint is that of contrastive decoding (Li et al., 2023). Tokens with -inf with the context keep it.
    """
    known, other = with_context.float(), without_context.float()
    scores = (1 + alpha) * known - alpha * other if alpha else known
    least = known.amax(-1, keepdim=True) + math.log(plausibility) if plausibility else torch.tensor(-math.inf)
    return scores.masked_fill((known < least.to(known.device)) | known.isneginf(), -math.inf)


def contrasted(
    with_context: Tensor, without_context: Callable[[], Tensor], *, alpha: float, plausibility: float
) -> Tensor:
    """Compute :func:`contrast_scores`, asking for the logits (B, V) without the context only if they can decide.

    They cannot if each row has only one plausible token, as at most steps of a model that copies. A branch that is not
    asked reads those tokens later, several in one pass.
    """
    alone = contrast_scores(with_context, with_context, alpha=0.0, plausibility=plausibility)
    is_decided = bool(((alone > -math.inf).sum(-1) == 1).all())
    if is_decided or not alpha:
        return alone
    scores = contrast_scores(with_context, without_context(), alpha=alpha)
    return scores.masked_fill_(alone.isneginf(), -math.inf)


likeliest = partial(torch.argmax, dim=-1)
"""Finds the likeliest token (B,) of each row of scores (B, V)."""

C = TypeVar("C", bound=DecoderConfig)


@dataclass(frozen=True, slots=True)
class Written:
    """Candidate as it was measured, with the text of it alone or of the whole answer up to its end."""

    signals: Sequence[SentenceSignals]
    transcript: Transcript
    token_ids: tuple[int, ...]
    end_token: int | None

    def without_last(self) -> Written:
        """Copy it without its last sentence and the text after the one before."""
        *signals, last = self.signals
        spans = list(self.transcript.char_spans[: len(self.token_ids) - len(last.token_ids)])
        text = self.transcript.text[: spans[-1][1] - spans[0][0]] if spans else ""
        return Written(signals, Transcript(text, spans), self.token_ids[: len(spans)], self.end_token)


class Proposer(ABC, Generic[C]):
    """Base of proposers, whoever writes the sentences; ``reader`` reads them for guards."""

    def __init__(self, reader: Any, query: Query, config: C) -> None:  # noqa: ANN401 - a Reader of fod.guards
        self._reader = reader
        self._sources = (query.question, *query.passages)
        self._config = config
        self._round = 0
        self._greedy: Candidate | None = None  # the last one, which others may replace

    @abstractmethod
    def _text_of(self, handle: Handle) -> str:
        """Look up the text of a part of a beam."""

    def _guards(self, beam: Beam) -> Guards:
        """Read what comes before the candidates that replace the last greedy one."""
        replaced = () if self._greedy is None else self._greedy.sentences
        return Guards(self._reader, earlier=beam.sentences, replaced=replaced, config=self._config)

    def _checked(self, candidate: Candidate, beam: Beam, guards: Guards | None, *, is_cut_off: bool) -> Candidate:
        """Complete a candidate with its altered names and loose pronoun, and with what guards find."""
        text, sources, config, loose = candidate.text, self._sources, self._config, None
        altered = tuple(altered_names(text, sources)) if config.exact_names else ()
        if isinstance(config, RepairConfig) and config.clear_pronouns:
            replaced = None if self._greedy is None else self._greedy.text
            loose = hidden_noun_pronoun(text, beam, self._text_of, replaced=replaced, sources=sources)
        candidate = replace(candidate, altered=altered, loose=loose)
        if isinstance(config, RepairConfig) and config.guards:
            if is_echo(text, sources[0]):
                return replace(candidate, flaw="it repeats the question")
            if guards is None and self._has_answer and not any(map(may_claim, beam.sentences)):
                relevance = self._guards(beam).relevance(candidate.sentences)
                flaw = BESIDE if is_beside(text, relevance, config.opening_relevance) else ""
                return replace(candidate, flaw=flaw, relevance=relevance)
        return candidate if guards is None else guards.judged(candidate, is_cut_off=is_cut_off)

    @cached_property
    def _has_answer(self) -> bool:
        """Tell whether some part of the passages is likely to answer the question."""
        question, *passages = self._sources
        evidence = closest_evidence(question, passages)
        return evidence is not None and evidence.score >= LIKELY


class SessionProposer(Proposer[C]):
    """Base of proposers that write with a monitored session; :class:`SentenceProposer` documents the parameters."""

    def __init__(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        config: C,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(watched, watched.scorer.query, config)
        self._watched = watched
        self._decoding = watched.decoding
        self._plan = plan
        self._generator = generator
        self._lookup = PromptLookup(watched.scorer.prompt.with_context_ids, longest=config.lookup)
        self._stops: list[CandidateStop | None] = []
        self._written: dict[Handle, Written] = {}
        self.sampled_tokens = 0

    def response_ids(self, beam: Beam) -> list[int]:
        """Collect the tokens of an answer, with the end-of-text token that ended it."""
        end = self._written[beam.handles[-1]].end_token if beam.handles else None
        return [*beam.token_ids, *(() if end is None else (end,))]

    def _step(
        self,
        choose: Callable[[Tensor], Tensor],
        *,
        one_sentence: bool,
        adjust: Adjust | None = None,
    ) -> None:
        running = self._decoding.running
        if len(running) == 1:
            self._lookup.read_ahead(self._decoding, running[0], max_length=self._plan.config.max_length)
        step = take_step(self._decoding, self._plan, choose, rows=running, one_sentence=one_sentence, adjust=adjust)
        for index in running:
            stop, row = step.stops[index], self._decoding.rows[index]
            if stop is not None:
                self._stops[index] = "length" if stop == "criteria" or stop == "window" else stop
            self.sampled_tokens += stop != "end_of_text" and not (one_sentence and stop is None and row.closed)

    def _sampled(self, scores: Tensor) -> Tensor:
        config = self._config
        return sample_nucleus(scores, temperature=config.temperature, top_p=config.top_p, generator=self._generator)

    def _new_tokens(self, index: int) -> tuple[int, ...]:
        row = self._decoding.rows[index]
        return tuple(row.token_ids[row.start : row.start + row.measured_tokens])

    def _text_of(self, handle: Handle) -> str:
        return self._written[handle].transcript.text

    def _is_cut_off(self, index: int) -> bool:
        """Tell whether the limit on tokens, or the model's window, has ended a row within a sentence."""
        room, length = self._decoding.room, self._decoding.sequences(index).shape[1]
        is_full = length >= self._plan.config.max_length or (room is not None and room <= 0)
        return self._stops[index] == "length" and is_full and self._decoding.rows[index].breaks_off


class SentenceProposer(SessionProposer[FODConfig]):
    """Continues beams sentence by sentence in a monitored session; the ``propose`` of :func:`fod.search`.

    ``watched`` is an open session with one row, in which nothing has been decoded. Greedy proposals follow ``plan``,
    the arguments of ``generate``, and ``config`` has the parameters of the sampling in stage 2. ``generator`` is the
    source of randomness; None uses torch's global one. ``sampled_tokens`` counts the tokens decoded so far, including
    those that were discarded.
    """

    def __call__(self, beams: Sequence[Beam], *, samples: int | None, waiting: Sequence[Beam] = ()) -> list[Candidate]:
        """Propose sentences; see :class:`fod.Propose`."""
        self._written = {handle: self._written[handle] for beam in (*beams, *waiting) for handle in beam.handles}
        self._go_to(beams, samples)
        each = samples or 1
        choose = likeliest if samples is None and not self._config.sample_first else self._sampled
        while not self._decoding.complete():
            self._step(choose, one_sentence=samples is not None)
        since = time.perf_counter()
        measured = self._decoding.measure()
        distinct = {
            (row // each, self._new_tokens(row), self._stops[row]): row for row in reversed(range(len(measured)))
        }
        rows = sorted(distinct.values())
        scored = self._watched.scorer.answers(
            [measured[row] for row in rows], earlier=[beams[row // each].sentences for row in rows], since=since
        )
        guards = None if samples is None or not self._config.guards else [self._guards(beam) for beam in beams]
        candidates = []
        for row, sentences in zip(rows, scored, strict=True):
            handle = (self._round, row)
            state, parent = self._decoding.rows[row], row // each
            transcript = state.transcript(state.start + state.measured_tokens)
            tokens, text = self._new_tokens(row), transcript.text[len(beams[parent].text) :]
            self._written[handle] = Written(measured[row], transcript, tokens, state.end_token)
            candidate = Candidate(parent, tuple(sentences), tokens, self._stops[row], handle, text)
            guard, is_cut_off = None if guards is None else guards[parent], self._is_cut_off(row)
            candidates.append(self._checked(candidate, beams[parent], guard, is_cut_off=is_cut_off))
        if samples is None:
            self._greedy = candidates[0]
        return candidates

    def report(self, beam: Beam, *, stop: str, seconds: float) -> Report:
        """Build the report of a beam of the last call, from the signals kept when its sentences were scored."""
        written = [self._written[handle] for handle in beam.handles]
        signals = [sentence for part in written for sentence in part.signals]
        transcript = written[-1].transcript if written else Transcript("", ())
        answer = ScoredAnswer(self._watched.scorer, list(beam.sentences), signals)
        return answer.report(transcript, stop=stop, seconds=seconds)

    def _go_to(self, beams: Sequence[Beam], samples: int | None) -> None:
        """Bring the session's rows to the ends of the beams."""
        current = [beam.handles[-1] for beam in beams if beam.handles and beam.handles[-1][0] == self._round]
        if self._round and samples is None:
            self._decoding.advance()
        elif self._round:
            each = range(samples or 1)
            if current:
                self._decoding.select([row for _, row in current for _ in each])
            else:  # nothing of the last round is kept: backtrack to where it began
                self._decoding.select([0 for _ in each], keep_sentences=False)
        self._round += 1
        self._stops = [None] * len(self._decoding.rows)
