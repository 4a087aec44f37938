"""Proposals for repair: the next greedy sentence, and branches from its first and its least certain tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fod.config import RepairConfig
from fod.proposers import SessionProposer, contrasting, likeliest
from fod.search import Beam, Candidate
from syncheck.decoding import GenerationSetup, ScoredSession

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LONGEST_BRANCH, LONGEST_REST = 72, 40
"""Limits, in tokens, after which a branch is given up: in all, and after the replaced token."""

SHORTEST_CUT, LEAST_CUT = 6, 3
"""Least numbers of tokens that a sentence that is cut short keeps, and that are cut from it."""


class BranchProposer(SessionProposer[RepairConfig]):
    """Continues one answer sentence by sentence in a monitored session; see :class:`fod.ProposeBranches`.

    Parameters are as of :class:`fod.SentenceProposer`; the processors of ``generate`` are applied to the contrast of
    the logits. ``full_stop`` is the token with which a sentence is cut short; None turns cuts off.
    """

    def __init__(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        config: RepairConfig,
        *,
        full_stop: int | None = None,
    ) -> None:
        super().__init__(watched, plan, config)
        self._contrasted = contrasting(watched.decoding, alpha=config.alpha, plausibility=config.plausibility)
        self._full_stop = full_stop
        self._is_forked = False
        # Of each token of the round: the likeliest other one (), its score minus the token's (), and a full stop's.
        self._looks: list[tuple[Tensor, Tensor, Tensor]] = []

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
        (self._greedy,) = self._distinct(beam, [0])
        return self._greedy

    def branches(self, beam: Beam) -> list[Candidate]:
        """Rewrite the last sentence from its first and its least certain tokens on, or cut it short."""
        looks = self._looks[: self._decoding.rows[0].measured_tokens]
        if self._stops[0] == "not_finite" or not looks:
            return []
        runner_ups, behind, stop_behind = ([value.item() for value in values] for values in zip(*looks, strict=True))
        chosen = branch_places(runner_ups, behind, stop_behind, self._config, full_stop=self._full_stop)
        if not chosen:
            return []
        places, tokens = map(list, zip(*chosen, strict=True))
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
        return self._distinct(beam, [row for row in range(1, len(places) + 1) if row not in given_up])

    def _chosen(self, scores: Tensor) -> Tensor:
        """Choose the likeliest token (1,), and note the likeliest other one that does not end the text."""
        best, chosen = scores.max(-1)
        others = scores.scatter(-1, chosen[:, None], -torch.inf)
        others[:, [token for token in self._plan.end_tokens if token < scores.shape[-1]]] = -torch.inf
        second, runner_up = others.max(-1)
        stop = others.new_tensor(-torch.inf) if self._full_stop is None else others[0, self._full_stop]
        self._looks.append((runner_up[0], (second - best)[0], stop - best[0]))
        return chosen

    def _distinct(self, beam: Beam, rows: Sequence[int]) -> list[Candidate]:
        """Measure and score the sentences that these rows have written, each text once."""
        texts = {self._new_tokens(row): row for row in reversed(rows)}
        guards = self._greedy is not None and self._config.guards
        return self._scored([beam], dict.fromkeys(sorted(texts.values()), 0), guards=guards)


def full_stop_of(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Look up the id of the token for a full stop after a word; None if the tokenizer has no such token."""
    token = tokenizer("it.", add_special_tokens=False)["input_ids"][-1]
    return token if tokenizer.decode([token]).strip() == "." else None


def branch_places(
    runner_ups: Sequence[int],
    behind: Sequence[float],
    stop_behind: Sequence[float],
    config: RepairConfig,
    *,
    full_stop: int | None,
) -> list[tuple[int, int]]:
    """Choose the places at which a sentence is branched, each with the token that comes there.

    ``behind`` is the score of each token's runner-up minus the token's, and ``stop_behind`` that of a full stop; -inf
    if it is implausible. The least certain places come first, then the first place, then those of ``full_stop``.
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
