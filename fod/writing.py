"""An answer of FOD that is being written, in one search or in several under prompts that the caller has handed over."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import torch

from fod.config import FODConfig
from fod.drop_in import plan_within
from fod.events import Event, ReleaseEvent, RetractEvent
from fod.parts import Draft, continued
from fod.propose import SentenceProposer
from fod.release import Release
from fod.search import walk
from fod.trace import trace_of
from fod.types import Progress, SearchResult
from syncheck import DecodingPlan, Monitor, RagPrompt, Report, SentenceScore, TraceNode, check_reach

__all__ = ["Writing"]


class Writing:
    """An answer that is being written: its parts so far, and the prompt of the next.

    Parameters
    ----------
    monitor
        A trained monitor.
    prompt
        Of the first part.
    plan
        How ``generate`` would choose tokens of it.
    config
        The search's parameters.
    generator
        Source of randomness of stage 2.

    Attributes
    ----------
    prompt : RagPrompt
        Of the last part; set another for the next. The limits on tokens and sentences hold for all parts together.
    draft : Draft
        What is written.
    parts : int
        Searches so far.
    response_ids : list of int
        What is written, with the end-of-text token that ended it.
    sampled_tokens : int
        Tokens decoded, thrown away or not.
    dropped, rejected : sequence of SentenceScore
        What stage 1 has taken back, and what did not pass in the last round.
    marked : list of int
        Indices of sentences that did not pass and were kept.
    trace : list of TraceNode
        The searches as trees, one after another.
    """

    def __init__(
        self,
        monitor: Monitor,
        prompt: RagPrompt,
        plan: DecodingPlan,
        config: FODConfig,
        generator: torch.Generator,
    ) -> None:
        self._monitor = monitor
        self._config = config
        self._plan = plan
        self._room = plan.config.max_length - len(prompt.with_context_ids)
        self._generator = generator
        self.prompt = prompt
        self.draft = Draft(prompt)
        self.parts = 0
        self.response_ids: list[int] = []
        self.sampled_tokens = 0
        self.dropped: list[SentenceScore] = []
        self.rejected: tuple[SentenceScore, ...] = ()
        self.marked: list[int] = []
        self.trace: list[TraceNode] = []

    def next_part(self, release: Release) -> Generator[Event, None, SearchResult]:
        """Search under the prompt, behind what is written."""
        started = time.perf_counter()
        draft, config = self.draft, self._config
        prompt = continued(self.prompt, draft.token_ids, draft.text)
        limit = len(self.prompt.with_context_ids) + self._room
        check_reach(self._monitor.model, [self.prompt], limit)
        left = replace(config, max_sentences=max(1, config.max_sentences - len(draft.sentences)))
        with self._monitor.session(prompt) as watched:
            propose = SentenceProposer(watched, plan_within(self._plan, limit), left, generator=self._generator)
            steps = walk(propose, left)
            while True:
                try:
                    progress = next(steps)
                except StopIteration as end:
                    result: SearchResult = end.value
                    break
                yield from self._placed(release(progress))
            yield from self._placed(release(Progress((result.beam,))))
            part = propose.report(result.beam, stop=result.stop, seconds=time.perf_counter() - started)
        self._take(result, part, propose)
        return result

    @property
    def is_full(self) -> bool:
        """Whether a limit on tokens or sentences leaves nothing more to write."""
        written = self.draft
        return len(written.token_ids) >= self._room or len(written.sentences) >= self._config.max_sentences

    def _take(self, result: SearchResult, part: Report, propose: SentenceProposer) -> None:
        draft, first = self.draft, len(self.draft.sentences)
        self.dropped += (draft.placed(sentence, part.prompt) for sentence in result.dropped)
        self.marked += (first + index for index in result.beam.marked)
        self.rejected = tuple(s for c in result.rounds[-1].candidates for s in c.sentences) if result.rounds else ()
        self.response_ids = [*draft.token_ids, *propose.response_ids(result.beam)]
        self.sampled_tokens += propose.sampled_tokens
        self.trace += trace_of(result, self._config)
        self.parts += 1
        draft.add(part)

    def _placed(self, events: Sequence[ReleaseEvent | RetractEvent]) -> Iterator[Event]:
        """Move the sentences of this part to where they are in the answer."""
        for event in events:
            if isinstance(event, ReleaseEvent):
                yield replace(event, sentence=self.draft.placed(event.sentence, self.prompt))
            else:
                yield RetractEvent(tuple(self.draft.placed(s, self.prompt) for s in event.sentences))
