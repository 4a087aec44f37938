"""Proposals of the next sentence, greedy or sampled, from a monitored session, and the choice of a token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from fod.config import DecoderConfig, FODConfig, RepairConfig, may_claim
from fod.guards import (
    BESIDE,
    Guards,
    altered_names,
    hidden_noun_pronoun,
    is_beside,
    is_echo,
    is_label_of_passage,
)
from fod.search import Beam, Candidate, CandidateStop, Handle
from syncheck import Report, SentenceScore, closest_evidence
from syncheck.decoding import (
    Adjust,
    GenerationSetup,
    PromptLookup,
    ScoredAnswer,
    ScoredSession,
    SearchSession,
    Transcript,
    take_step,
)
from syncheck.results import HiddenSpan
from syncheck.results.types import Query, SentenceSignals

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FIRST_LOOK = 256
"""Number of most likely tokens that are searched first for the nucleus, which is rarely wider."""
LIKELY = 0.5
"""Relevance from which a part of the passages is likely to answer the question."""


def nucleus(scores: Tensor, *, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Find the most likely tokens that together reach a probability ``top_p`` in (0, 1].

    ``scores`` (B, V), float32, are not normalised, -inf for tokens that are not allowed, and divided by a
    ``temperature`` above 0. A token is in the nucleus if the tokens more likely than it do not reach ``top_p``
    together, as with ``TemperatureLogitsWarper`` and then ``TopPLogitsWarper`` of transformers.

    Returns
    -------
    probabilities : Tensor of shape (B, n), float32
        In descending order, 0 after the nucleus; not normalised, so that a row's sum is that of its nucleus.
    token_ids : Tensor of shape (B, n), int64
    """
    scaled = scores / temperature
    total = scaled.logsumexp(-1, keepdim=True)
    for size in (min(_FIRST_LOOK, scaled.shape[-1]), scaled.shape[-1]):
        values, token_ids = scaled.topk(size, dim=-1)  # (B, n)
        probabilities = (values - total).exp()
        before = probabilities.cumsum(-1) - probabilities
        if bool((before[:, -1] >= top_p).all()):
            break
    return probabilities.masked_fill(before >= top_p, 0.0), token_ids


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
    """Compute the scores (B, V), float32, from whose softmax context-aware decoding samples, of raw logits (B, V).

    ``alpha``, at least 0, is the strength with which the context's influence is amplified; 0 gives ``with_context``.
    Tokens below ``plausibility``, a share in [0, 1] of the likeliest token's probability with the context, get -inf.

    Notes
    -----
    ``(1 + alpha) * logits(y | c, x) - alpha * logits(y | x)`` (Shi et al., 2024, equation 2); the plausibility
    constraint is that of contrastive decoding (Li et al., 2023). Tokens with -inf with the context keep it.
    """
    known, other = with_context.float(), without_context.float()
    scores = (1 + alpha) * known - alpha * other if alpha else known
    least = known.amax(-1, keepdim=True) + math.log(plausibility) if plausibility else torch.tensor(-math.inf)
    return scores.masked_fill((known < least.to(known.device)) | known.isneginf(), -math.inf)


def contrasting(session: SearchSession, *, alpha: float, plausibility: float) -> Adjust:
    """Make what adjusts logits by :func:`contrast_scores`, reading those without the context only if they can decide.

    They cannot if each row has only one plausible token; the branch then reads several tokens later, in one pass.
    """

    def adjust(logits: Tensor, rows: Sequence[int]) -> Tensor:
        alone = contrast_scores(logits, logits, alpha=0.0, plausibility=plausibility)
        if not alpha or bool(((alone > -math.inf).sum(-1) == 1).all()):
            return alone
        scores = contrast_scores(logits, session.contrast_logits[list(rows)], alpha=alpha)
        return scores.masked_fill_(alone.isneginf(), -math.inf)

    return adjust


likeliest = partial(torch.argmax, dim=-1)
"""Finds the likeliest token (B,) of each row of scores (B, V)."""

C = TypeVar("C", bound=DecoderConfig)


@dataclass(frozen=True, slots=True)
class Written:
    """A part of an answer as it was measured, normally one sentence."""

    signals: Sequence[SentenceSignals]
    transcript: Transcript
    token_ids: tuple[int, ...]
    end_token: int | None
    stop: CandidateStop | None
    is_cut_off: bool
    is_cut: bool
    gap: str = ""
    """White space with which its text begins: that at the end of the hidden sentence before it, to which its tokens
    belong."""

    @property
    def own(self) -> str:
        """The text of this part."""
        return self.transcript.text

    @property
    def log_prob(self) -> float:
        """Log-probability of its sentences' tokens with the context, in nats."""
        return sum(float(signals.log_prob.sum()) for signals in self.signals)

    def without_last(self) -> Written:
        """Leave out the last sentence, and the text after the one before."""
        *signals, last = self.signals
        spans = list(self.transcript.char_spans[: len(self.token_ids) - len(last.token_ids)])
        text = self.own[: len(self.gap) + spans[-1][1] - spans[0][0]] if spans else ""
        gap = self.gap if spans else ""
        return replace(
            self, signals=signals, transcript=Transcript(text, spans), token_ids=self.token_ids[: len(spans)], gap=gap
        )


class Proposer(Generic[C]):
    """Base of proposers, whoever writes the sentences; ``reader`` reads them for guards."""

    def __init__(self, reader: Any, query: Query, config: C) -> None:  # noqa: ANN401 - a Reader of fod.guards
        self._reader = reader
        self._sources = (query.question, *query.passages)
        self._config = config
        self._round = 0
        self._greedy: Candidate | None = None  # the last one, which others may replace
        self._written: dict[Handle, Any] = {}  # parts of beams

    def _text_of(self, handle: Handle) -> str:
        return str(self._written[handle].own)

    def _candidates(
        self,
        beams: Sequence[Beam],
        written: Sequence[tuple[int, int, Any]],
        scored: Sequence[list[SentenceScore]],
        *,
        guards: bool,
    ) -> list[Candidate]:
        """Make candidates of scored parts, each given with its row and the index of the beam that it continues."""
        repair = self._config if isinstance(self._config, RepairConfig) else None
        read = [self._guards(beam) if guards else None for beam in beams]
        candidates = []
        for (row, parent, part), sentences in zip(written, scored, strict=True):
            unfinished: tuple[SentenceScore, ...] = ()
            if repair and repair.guards and sentences and part.is_cut_off:
                unfinished, part = (replace(sentences.pop(), truncated=True),), part.without_last()
            handle = (self._round, row)
            self._written[handle] = part
            candidate = Candidate(
                parent,
                tuple(sentences),
                part.token_ids,
                part.stop,
                handle,
                part.own,
                log_prob=part.log_prob if repair else 0.0,
                is_cut=part.is_cut,
                unfinished=unfinished,
            )
            is_cut_off = not sentences if unfinished else part.is_cut_off
            candidates.append(self._checked(candidate, beams[parent], read[parent], is_cut_off=is_cut_off))
        return candidates

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
            if is_label_of_passage(text):
                return replace(candidate, flaw="it is the label of a passage")
            if guards is None and self._has_answer and not any(map(may_claim, beam.sentences)):
                relevance = self._guards(beam).relevance(candidate.sentences)
                flaw = BESIDE if is_beside(text, relevance, config.opening_relevance) else ""
                return replace(candidate, flaw=flaw, relevance=relevance)
        return candidate if guards is None else guards.judged(candidate, is_cut_off=is_cut_off)

    @cached_property
    def _has_answer(self) -> bool:
        """Tell whether some part of the passages is likely to answer the question."""
        question, *passages = self._sources
        return any(evidence.score >= LIKELY for evidence in closest_evidence(question, passages))


class SessionProposer(Proposer[C]):
    """Base of proposers that write with a monitored session; :class:`SentenceProposer` documents the parameters."""

    def __init__(self, watched: ScoredSession, plan: GenerationSetup, config: C) -> None:
        super().__init__(watched, watched.scorer.query, config)
        self._watched = watched
        self._decoding = watched.decoding
        self._plan = plan
        self._lookup = PromptLookup(watched.scorer.prompt.with_context_ids, longest=config.lookup)
        self._stops: list[CandidateStop | None] = []
        self._cuts: set[int] = set()  # rows of branches that cut the sentence short
        self.sampled_tokens = 0

    def response_ids(self, beam: Beam, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], int | None]:
        """Collect the tokens of an answer's text, and the end-of-text token that ended it, if one did."""
        ids = list[int]()
        for part in (self._written[handle] for handle in beam.handles if handle not in beam.skipped):
            ids += tokenizer(part.gap, add_special_tokens=False)["input_ids"] if part.gap else ()
            ids += part.token_ids
        return ids, self._written[beam.handles[-1]].end_token if beam.handles else None

    def report(self, beam: Beam, *, stop: str, seconds: float) -> Report:
        """Build the report of an answer, from the signals kept when its sentences were scored."""
        shown: list[Written] = []
        hidden: list[HiddenSpan] = []
        for handle in beam.handles:
            part = self._written[handle]
            if handle in beam.skipped:
                hidden += [HiddenSpan(*_size(shown), part.own, part.token_ids)] if part.own else []
                continue
            if part.gap:
                hidden[-1] = replace(hidden[-1], text=hidden[-1].text.removesuffix(part.gap))
            shown.append(part)
        signals = [sentence for part in shown for sentence in part.signals]
        spans = [span for part in shown for span in part.transcript.char_spans]
        answer = ScoredAnswer(self._watched.scorer, list(beam.sentences), signals)
        report = answer.report(Transcript("".join(part.own for part in shown), spans), stop=stop, seconds=seconds)
        return replace(report, hidden=tuple(hidden))

    def _step(self, choose: Callable[[Tensor], Tensor], *, one_sentence: bool, adjust: Adjust | None = None) -> None:
        running = self._decoding.running
        if len(running) == 1:
            self._lookup.read_ahead(self._decoding, running[0], max_length=self._plan.config.max_length)
        step = take_step(self._decoding, self._plan, choose, rows=running, one_sentence=one_sentence, adjust=adjust)
        for index in running:
            stop, row = step.stops[index], self._decoding.rows[index]
            if stop is not None:
                self._stops[index] = "length" if stop == "window" else stop
            self.sampled_tokens += stop != "end_of_text" and not (one_sentence and stop is None and row.closed)

    def _new_tokens(self, index: int) -> tuple[int, ...]:
        row = self._decoding.rows[index]
        return tuple(row.token_ids[row.start : row.start + row.measured_tokens])

    def _scored(self, beams: Sequence[Beam], parents: Mapping[int, int], *, guards: bool) -> list[Candidate]:
        """Measure and score what rows have written; ``parents`` has the index of each row's beam."""
        since = time.perf_counter()
        measured = self._decoding.measure(list(parents))
        written = [(row, parent, self._part(row, measured[row], beams[parent])) for row, parent in parents.items()]
        earlier = [beams[parent].sentences for parent in parents.values()]
        scored = self._watched.scorer.answers([part.signals for *_, part in written], earlier=earlier, since=since)
        return self._candidates(beams, written, scored, guards=guards)

    def _part(self, index: int, measured: Sequence[SentenceSignals], beam: Beam) -> Written:
        """Move a row's sentences to their positions in the answer, which leaves out hidden ones."""
        row, ids = self._decoding.rows[index], self._new_tokens(index)
        shown = _size([self._written[handle] for handle in beam.handles if handle not in beam.skipped])
        spans = row.char_spans[row.start : row.start + len(ids)]
        start, stop = (spans[0][0], spans[-1][1]) if spans else (len(row.text), len(row.text))
        gap = _gap(beam, row.text, start) if spans else ""
        start -= len(gap)
        characters, tokens = start - shown[0], row.start - shown[1]
        signals = [
            replace(
                each,
                span=replace(
                    each.span,
                    index=each.span.index - row.sentences + len(beam.sentences),
                    start=each.span.start - characters,
                    end=each.span.end - characters,
                    token_start=each.span.token_start - tokens,
                    token_end=each.span.token_end - tokens,
                ),
            )
            for each in measured
        ]
        transcript = Transcript(row.text[start:stop], [(a - characters, b - characters) for a, b in spans])
        cut = self._is_cut_off(index), index in self._cuts
        return Written(signals, transcript, ids, row.end_token, self._stops[index], *cut, gap)

    def _is_cut_off(self, index: int) -> bool:
        """Tell whether the limit on tokens, or the model's window, has ended a row within a sentence."""
        room, length = self._decoding.room, self._decoding.sequences(index).shape[1]
        is_full = length >= self._plan.config.max_length or (room is not None and room <= 0)
        return self._stops[index] == "length" and is_full and self._decoding.rows[index].breaks_off


class SentenceProposer(SessionProposer[FODConfig]):
    """Continues beams sentence by sentence in a monitored session; the ``propose`` of :func:`fod.search`.

    ``watched`` is an open session with one row, in which nothing has been decoded. ``plan`` has the arguments of
    ``generate``, which greedy proposals follow, and ``config`` those of the sampling. ``generator`` is the source of
    randomness; None uses torch's global one. ``sampled_tokens`` counts the tokens decoded so far, discarded ones too.
    """

    def __init__(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        config: FODConfig,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(watched, plan, config)
        self._sampled = partial(sample_nucleus, temperature=config.temperature, top_p=config.top_p, generator=generator)

    def __call__(self, beams: Sequence[Beam], *, samples: int | None, waiting: Sequence[Beam] = ()) -> list[Candidate]:
        """Propose sentences; see :class:`fod.Propose`."""
        self._written = {handle: self._written[handle] for beam in (*beams, *waiting) for handle in beam.handles}
        current = [row for beam in beams for round_, row in beam.handles[-1:] if round_ == self._round]
        each = samples or 1
        if self._round and samples is None:
            self._decoding.advance()
        elif self._round:  # if nothing of the last round is kept, backtrack to where it began
            rows = [row for row in current or [0] for _ in range(each)]
            self._decoding.select(rows, keep_sentences=bool(current))
        self._round += 1
        self._stops = [None] * len(self._decoding.rows)
        choose = likeliest if samples is None else self._sampled
        while not self._decoding.complete():
            self._step(choose, one_sentence=samples is not None)
        distinct = {
            (row // each, self._new_tokens(row), self._stops[row]): row
            for row in reversed(range(len(self._decoding.rows)))
        }
        parents = {row: row // each for row in sorted(distinct.values())}
        candidates = self._scored(beams, parents, guards=samples is not None and self._config.guards)
        if samples is None:
            self._greedy = candidates[0]
        return candidates


def _gap(beam: Beam, text: str, start: int) -> str:
    """Find the white space that must come before a part of a text, so that it does not touch the end of the answer."""
    is_after_hidden = beam.text and beam.handles[-1] in beam.skipped
    if not is_after_hidden or beam.text[-1].isspace() or text[start].isspace():
        return ""
    return text[len(text[:start].rstrip()) : start]


def _size(parts: Sequence[Written]) -> tuple[int, int]:
    """Count the characters and tokens of some parts."""
    return sum(len(part.own) for part in parts), sum(len(part.token_ids) for part in parts)
