"""Drafts: an answer while it is written, in parts, the search or repair that continues it, and what is shown of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import takewhile

import torch

from fod.branch_proposer import BranchProposer, full_stop_of
from fod.config import FODConfig, RepairConfig, Thresholds
from fod.drop_in import plan_within
from fod.proposers import SentenceProposer
from fod.repair import repair, repair_trace_of
from fod.search import Beam, Progress, Returning, SearchResult, best_of, trace_of, walk
from syncheck import Event, Monitor, RagPrompt, Report, RetractEvent, SentenceEvent, SentenceScore
from syncheck.decoding import GenerationSetup, ScoredSession, check_choice, check_reach
from syncheck.results import Reveal as RevealName
from syncheck.results import TraceNode
from syncheck.results.types import Query, TokenSignals


def continued(prompt: RagPrompt, token_ids: Sequence[int], text: str) -> RagPrompt:
    """Build a prompt from which an answer continues: the prompt's ids, then those that are written already."""
    return replace(
        prompt,
        with_context=prompt.with_context + text,
        without_context=prompt.without_context + text,
        with_context_ids=(*prompt.with_context_ids, *token_ids),
        without_context_ids=(*prompt.without_context_ids, *token_ids),
    )


class Draft:
    """Answer as written so far, in parts; its prompt has the passages of all parts, each once.

    The limit on tokens, which ``plan`` has for the first prompt, applies to all parts together.
    """

    def __init__(self, monitor: Monitor, prompt: RagPrompt, plan: GenerationSetup) -> None:
        self.prompt = prompt
        self.token_ids: list[int] = []  # of the response, without an end-of-text token
        self.response_ids: list[int] = []  # with the end-of-text token that ended it
        self.sampled_tokens = 0  # whether discarded or not
        self.room = plan.config.max_length - len(prompt.with_context_ids)
        self._monitor = monitor
        self._plan = plan
        self._parts: list[Report] = []

    def next_session(self, prompt: RagPrompt) -> tuple[ScoredSession, GenerationSetup]:
        """Make the session of the next part, after the text so far, under its own prompt, and the plan for it."""
        limit = len(prompt.with_context_ids) + self.room
        check_reach(self._monitor.model, [prompt], limit)
        return self._monitor.session(continued(prompt, self.token_ids, self.text)), plan_within(self._plan, limit)

    @property
    def text(self) -> str:
        """The response so far."""
        return "".join(part.response for part in self._parts)

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """The sentences so far."""
        return tuple(sentence for part in self._parts for sentence in part.sentences)

    def add(self, part: Report) -> None:
        """Append a part, given as the report under its own prompt, of all tokens that are kept."""
        passages = tuple(dict.fromkeys((*self.prompt.passages, *part.prompt.passages)))
        self.prompt = replace(self.prompt, passages=passages)
        moved = tuple(self.placed(sentence, part.prompt) for sentence in part.sentences)
        tokens = replace(part.tokens, char_spans=part.tokens.char_spans + len(self.text))
        hidden = tuple(
            replace(span, start=span.start + len(self.text), token_start=span.token_start + len(self.token_ids))
            for span in part.hidden
        )
        self._parts.append(replace(part, sentences=moved, tokens=tokens, hidden=hidden))
        self.token_ids += part.tokens.token_ids.tolist()

    def placed(self, sentence: SentenceScore, prompt: Query) -> SentenceScore:
        """Place the characters, tokens and evidence of a sentence of the next part in the whole answer."""
        if not self._parts and prompt.passages == self.prompt.passages:
            return sentence
        known = list(dict.fromkeys((*self.prompt.passages, *prompt.passages)))
        places, evidence = [known.index(passage) for passage in prompt.passages], sentence.evidence
        return replace(
            sentence.moved(characters=len(self.text), tokens=len(self.token_ids)),
            evidence=evidence and replace(evidence, passage=places[evidence.passage]),
            contrasts=tuple(replace(c, passage=places[c.passage]) for c in sentence.contrasts),
        )

    def placed_event(self, event: SentenceEvent, prompt: Query) -> SentenceEvent:
        """Place the event of a sentence of the next part in the whole answer."""
        before = self.text if event.sentence.start == len(event.lead) else ""
        lead = before[len(before.rstrip()) :] + event.lead
        return replace(event, sentence=self.placed(event.sentence, prompt), lead=lead)

    def report(self, *, stop: str | None, seconds: float | None) -> Report:
        """Build the report of all parts as one answer."""
        tokens = [part.tokens for part in self._parts]
        spans = [span for part in tokens for span in part.char_spans]
        return Report(
            prompt=self.prompt,
            response=self.text,
            sentences=self.sentences,
            tokens=TokenSignals.concatenate(tokens, text=self.text, char_spans=spans),
            stop=stop,
            seconds=seconds,
            monitor=self._parts[0].monitor if self._parts else None,
            answer_scale=self._parts[0].answer_scale if self._parts else None,
            hidden=tuple(span for part in self._parts for span in part.hidden),
        )


class Writing(Draft):
    """Answer that search or repair writes; the limit on sentences applies to all parts together too."""

    def __init__(
        self,
        monitor: Monitor,
        prompt: RagPrompt,
        plan: GenerationSetup,
        config: FODConfig | RepairConfig,
        thresholds: Thresholds,
        generator: torch.Generator,
    ) -> None:
        super().__init__(monitor, prompt, plan)
        self._config = config
        self._thresholds = thresholds
        self._generator = generator
        self.current = prompt  # of the last part; set another for the next
        self.parts = 0  # searches so far
        self.dropped: list[SentenceScore] = []  # what stage 1 has taken back
        self.rejected: tuple[SentenceScore, ...] = ()  # what did not pass in the last round
        self.marked: list[int] = []  # indices of sentences that did not pass and were kept
        self.trace: list[TraceNode] = []  # the searches as trees, one after another

    def next_part(self, reveal: Reveal) -> Generator[Event, None, SearchResult]:
        """Search for the next part under the current prompt, after the text written so far."""
        started = time.perf_counter()
        left = replace(self._config, max_sentences=max(1, self._config.max_sentences - len(self.sentences)))
        session, plan = self.next_session(self.current)
        with session as watched:
            propose: SentenceProposer | BranchProposer
            if isinstance(left, RepairConfig):
                propose = BranchProposer(
                    watched, plan, left, full_stop=full_stop_of(self._monitor.tokenizer), generator=self._generator
                )
                steps = Returning(repair(propose, left, self._thresholds))
            else:
                propose = SentenceProposer(watched, plan, left, generator=self._generator)
                steps = Returning(walk(propose, left, self._thresholds))
            for progress in steps:
                yield from map(self._placed, reveal(progress))
            result = steps.value
            yield from map(self._placed, reveal(Progress((result.beam,))))
            part = propose.report(result.beam, stop=result.stop, seconds=time.perf_counter() - started)
        first = len(self.sentences)
        self.dropped += (self.placed(sentence, part.prompt) for sentence in result.dropped)
        self.marked += (first + index for index in result.beam.marked)
        self.rejected = tuple(s for c in result.rounds[-1].candidates for s in c.sentences) if result.rounds else ()
        self.response_ids = [*self.token_ids, *propose.response_ids(result.beam)]
        self.sampled_tokens += propose.sampled_tokens
        self.trace += drawn(result, self._config, self._thresholds)
        self.parts += 1
        self.add(part)
        return result

    @property
    def is_full(self) -> bool:
        """True if a limit on tokens or sentences has been reached."""
        return len(self.token_ids) >= self.room or len(self.sentences) >= self._config.max_sentences

    def _placed(self, event: SentenceEvent | RetractEvent) -> Event:
        """Move the sentences of this part to their positions in the answer."""
        if isinstance(event, SentenceEvent):
            return self.placed_event(event, self.current)
        return replace(event, sentences=tuple(self.placed(s, self.current) for s in event.sentences))


def drawn(result: SearchResult, config: FODConfig | RepairConfig, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a search or a repair as a tree; see :func:`fod.trace_of` and :func:`fod.repair_trace_of`."""
    if isinstance(config, RepairConfig):
        return repair_trace_of(result, thresholds)
    return trace_of(result, config, thresholds)


Reveal = Callable[[Progress], list[SentenceEvent | RetractEvent]]
"""Function that returns the events for a reader after a step of a search; a new one is created for each search."""


class VerifiedReveal:
    """Shows the sentences that all beams share: after each step of a search, those that are now sure to be released."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, progress: Progress) -> list[SentenceEvent | RetractEvent]:
        """Make the events of the sentences that have become certain."""
        first = progress.beams[0]
        shared = min(_common(first.sentences, beam.sentences) for beam in progress.beams) - progress.waiting
        before, self._shown = self._shown, max(self._shown, shared)
        return list(_events(first, before, shared))


class ImmediateReveal:
    """Shows the best answer so far after each step of a search, and retracts what is no longer part of it."""

    def __init__(self) -> None:
        self._shown: tuple[SentenceScore, ...] = ()
        self._reason: str | None = None  # why the sentence shown is taken back, if it was only tried

    def __call__(self, progress: Progress) -> list[SentenceEvent | RetractEvent]:
        """Make the events that turn the answer that was shown into the best one."""
        events: list[SentenceEvent | RetractEvent] = []
        tried = () if progress.tried is None else (progress.tried,)
        for beam in (*tried, best_of(progress.beams)):
            kept = _common(self._shown, beam.sentences)
            if self._shown[kept:]:
                reason = self._reason or "another continuation has a higher score"
                events.append(RetractEvent(self._shown[kept:], reason))
            events += _events(beam, kept, len(beam.sentences))
            self._shown, self._reason = beam.sentences, progress.reason if beam is progress.tried else None
        return events


def reveal_of(name: RevealName) -> Callable[[], Reveal]:
    """Look up what makes the events for a reader; an unknown name raises InputError."""
    check_choice(name, "reveal", RevealName)
    return VerifiedReveal if name == "verified" else ImmediateReveal


def _events(beam: Beam, start: int, stop: int) -> list[SentenceEvent]:
    return [
        SentenceEvent.of(sentence, beam.token_ids, beam.text, marked=index in beam.marked)
        for index, sentence in enumerate(beam.sentences[start:stop], start)
    ]


def _common(one: Sequence[SentenceScore], other: Sequence[SentenceScore]) -> int:
    """Count the sentences that both begin with: the same objects, not only the same words."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))
