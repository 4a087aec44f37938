"""Proposals for repair: the next greedy sentence, and branches from its least certain tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from fod.config import RepairConfig
from fod.proposers import SessionProposer, Written, contrasted, likeliest
from fod.search import Beam, Candidate
from syncheck import Report, SentenceScore
from syncheck.decoding import GenerationSetup, ScoredAnswer, ScoredSession, Transcript
from syncheck.results import HiddenSpan
from syncheck.results.types import SentenceSignals

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LONGEST_BRANCH, LONGEST_REST = 72, 40
"""Limits, in tokens, after which a branch is given up: in all, and after the replaced token."""

SHORTEST_CUT, LEAST_CUT = 6, 3
"""Least numbers of tokens that a sentence that is cut short keeps, and that are cut from it."""


class BranchProposer(SessionProposer[RepairConfig]):
    """Continues one answer sentence by sentence in a monitored session; see :class:`fod.ProposeBranches`.

    The parameters are those of :class:`fod.SentenceProposer`, where ``sample_first`` alone needs the source of
    randomness and the processors of ``generate`` are applied to the contrast of the logits. ``full_stop`` is the token
    of a full stop, with which a sentence is cut short; None turns cuts off.
    """

    def __init__(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        config: RepairConfig,
        *,
        full_stop: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(watched, plan, config, generator=generator)
        self._full_stop = full_stop
        self._is_forked = False
        # Of each token since the round began: the likeliest other one (), its score minus the token's (), and so for a
        # full stop.
        self._looks: list[tuple[Tensor, Tensor, Tensor]] = []
        self._cuts: set[int] = set()  # rows of branches that cut it short

    def greedy(self, beam: Beam) -> Candidate:
        """Continue the answer with the likeliest sentence under the contrast."""
        if self._is_forked:
            self._decoding.select([beam.handles[-1][1]])
            self._looks = []
        elif self._round:
            count = self._decoding.rows[0].measured_tokens
            self._decoding.advance()
            del self._looks[:count]
        self._round += 1
        self._is_forked = False
        self._stops = [None]
        while not self._decoding.complete():
            self._step(self._chosen, one_sentence=False, adjust=self._contrasted)
        self._greedy, self._cuts = None, set()
        (self._greedy,) = self._candidates(beam, [0])
        return self._greedy

    def branches(self, beam: Beam) -> list[Candidate]:
        """Rewrite the last sentence from its first and its least certain tokens on, or cut it short."""
        looks = self._looks[: self._decoding.rows[0].measured_tokens]
        if self._stops[0] == "not_finite" or not looks:
            return []
        runner_ups, behind, stop_behind = zip(*looks, strict=True)
        differences, of_stops = (list(map(float, values)) for values in (behind, stop_behind))
        chosen = branch_places(
            list(map(int, runner_ups)), differences, of_stops, self._config, full_stop=self._full_stop
        )
        if not chosen:
            return []
        places, tokens = [place for place, _ in chosen], [token for _, token in chosen]
        self._cuts = {row for row, token in enumerate(tokens, 1) if token == self._full_stop}
        replaced = torch.tensor(tokens, device=self._looks[0][0].device)
        self._decoding.fork([0] * (len(places) + 1), [None, *places])
        self._is_forked = True
        self._stops = [self._stops[0], *[None] * len(places)]
        limits = [0, *map(longest_branch, places)]
        given_up: set[int] = set()
        taking = self._decoding.running
        if taking:
            self._step(lambda _: replaced[[row - 1 for row in taking]], one_sentence=True, adjust=self._contrasted)
        while not self._decoding.complete():
            for index in self._decoding.running:
                row = self._decoding.rows[index]
                if len(row.token_ids) - row.start >= limits[index]:
                    row.end()
                    given_up.add(index)
            if not self._decoding.complete():
                self._step(likeliest, one_sentence=True, adjust=self._contrasted)
        return self._candidates(beam, [row for row in range(1, len(places) + 1) if row not in given_up])

    def report(self, beam: Beam, *, stop: str, seconds: float) -> Report:
        """Build the report of an answer, from the signals kept when its sentences were scored."""
        shown: list[Written] = []
        hidden: list[HiddenSpan] = []
        for handle in beam.handles:
            written = self._written[handle]
            if handle in beam.skipped:
                hidden.append(HiddenSpan(*_size(shown), written.transcript.text, written.token_ids))
            else:
                shown.append(written)
        signals = [sentence for part in shown for sentence in part.signals]
        answer = ScoredAnswer(self._watched.scorer, list(beam.sentences), signals)
        parts = [part.transcript for part in shown]
        transcript = Transcript("".join(part.text for part in parts), [s for part in parts for s in part.char_spans])
        return replace(answer.report(transcript, stop=stop, seconds=seconds), hidden=tuple(hidden))

    def _contrasted(self, logits: Tensor, rows: Sequence[int]) -> Tensor:
        return contrasted(
            logits,
            lambda: self._decoding.contrast_logits[list(rows)],
            alpha=self._config.alpha,
            plausibility=self._config.plausibility,
        )

    def _chosen(self, scores: Tensor) -> Tensor:
        """Choose a token (1,), normally the likeliest, and note the likeliest other one that does not end the text."""
        best, chosen = scores.max(-1)
        if self._config.sample_first:
            chosen = self._sampled(scores)
            best = scores.gather(-1, chosen[:, None])[:, 0]
        others = scores.scatter(-1, chosen[:, None], -torch.inf)
        others[:, [token for token in self._plan.end_tokens if token < scores.shape[-1]]] = -torch.inf
        second, runner_up = others.max(-1)
        stop = others.new_tensor(-torch.inf) if self._full_stop is None else others[0, self._full_stop]
        self._looks.append((runner_up[0], (second - best)[0], stop - best[0]))
        return chosen

    def _candidates(self, beam: Beam, rows: Sequence[int]) -> list[Candidate]:
        """Measure and score the sentences that these rows have written, each text once."""
        since = time.perf_counter()
        texts = {self._new_tokens(row): row for row in reversed(rows)}
        rows = sorted(texts.values())
        measured = self._decoding.measure(rows)
        written = {row: self._placed(row, measured[row], beam) for row in rows}
        scored = self._watched.scorer.answers(
            [written[row].signals for row in rows], earlier=[beam.sentences] * len(rows), since=since
        )
        guards = None if self._greedy is None or not self._config.guards else self._guards(beam)
        candidates = []
        for row, sentences in zip(rows, scored, strict=True):
            handle = (self._round, row)
            unfinished: tuple[SentenceScore, ...] = ()
            if self._config.guards and sentences and self._is_cut_off(row):
                written[row] = written[row].without_last()
                unfinished = (replace(sentences.pop(), truncated=True),)
            self._written[handle] = written[row]
            log_prob = sum(float(signals.log_prob.sum()) for signals in written[row].signals)
            ids, text = written[row].token_ids, written[row].transcript.text
            made = Candidate(0, tuple(sentences), ids, self._stops[row], handle, text, log_prob)
            candidate = replace(made, is_cut=row in self._cuts, unfinished=unfinished)
            is_cut_off = bool(unfinished) and not sentences
            candidates.append(self._checked(candidate, beam, guards, is_cut_off=is_cut_off))
        return candidates

    def _placed(self, index: int, measured: Sequence[SentenceSignals], beam: Beam) -> Written:
        """Move a row's sentences to their positions in the answer, which leaves out hidden ones."""
        row = self._decoding.rows[index]
        shown = [self._written[handle] for handle in beam.handles if handle not in beam.skipped]
        ids = self._new_tokens(index)
        spans = row.char_spans[row.start : row.start + len(ids)]
        start, stop = (spans[0][0], spans[-1][1]) if spans else (len(row.text), len(row.text))
        shown_characters, shown_tokens = _size(shown)
        characters, tokens = start - shown_characters, row.start - shown_tokens
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
        moved = [(first - characters, last - characters) for first, last in spans]
        return Written(signals, Transcript(row.text[start:stop], moved), ids, row.end_token)


def full_stop_of(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Look up the id of the token for a full stop after a word; None if the tokenizer has no such token."""
    token = tokenizer("it.", add_special_tokens=False)["input_ids"][-1]
    return token if tokenizer.decode([token]).strip() == "." else None


T = TypeVar("T")


def branch_places(
    runner_ups: Sequence[T],
    behind: Sequence[float],
    stop_behind: Sequence[float],
    config: RepairConfig,
    *,
    full_stop: T | None,
) -> list[tuple[int, T]]:
    """Choose the places at which a sentence is branched, each with the token that comes there.

    ``behind`` is the score of each token's runner-up minus the token's, and ``stop_behind`` that of a full stop; -inf
    if there is none, or it is implausible. Without a ``full_stop``, nothing is cut. The least certain places come
    first, then the first place, then those where the sentence is cut short.
    """
    places = _greatest(behind)
    opening = [0] if 0 in places[config.branches :] else []
    chosen = [(place, runner_ups[place]) for place in places[: config.branches] + opening]
    if full_stop is None:
        return chosen
    done = {place for place, token in chosen if token == full_stop}
    ends = [end for end in _greatest(stop_behind[:-LEAST_CUT]) if end >= SHORTEST_CUT and end not in done]
    return chosen + [(end, full_stop) for end in ends[: config.cuts]]


def longest_branch(place: int) -> int:
    """Compute the number of tokens after which a branch from a place of its sentence is given up."""
    return max(LONGEST_BRANCH, place + LONGEST_REST)


def _greatest(values: Sequence[float]) -> list[int]:
    """List the indices of the values that are not infinite, the greatest first."""
    return sorted((i for i, value in enumerate(values) if value > -torch.inf), key=lambda place: -values[place])


def _size(parts: Sequence[Written]) -> tuple[int, int]:
    """Count the characters and tokens of some parts."""
    return sum(len(part.transcript.text) for part in parts), sum(len(part.token_ids) for part in parts)
