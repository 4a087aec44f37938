"""Classifier aligner: contexts of any length, scored by a checkpoint for pairs (premise, claim)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from syncheck.aligners.pair_scorers import PairScorer, load_minicheck, load_scorer
from syncheck.aligners.protocol import check_asked, weights_of
from syncheck.reading.evidence import Chunk, EvidenceIndex, split_passages, split_to_fit
from syncheck.results.types import Evidence, Support

CLAIM_SHARE = 0.5
"""Largest share of the window that a claim may take; a longer one is cut into parts."""
BUDGET_STEP = 32
BATCH = 16


@dataclass(frozen=True, slots=True)
class _Premise:
    """Neighbouring chunks of the context that are read together with a claim, and their text."""

    chunks: tuple[Chunk, ...]
    text: str

    @classmethod
    def of(cls, *chunks: Chunk) -> _Premise:
        return cls(chunks, " ".join(chunk.text for chunk in chunks))


class ClassifierAligner:
    """Scores claims with an NLI, fact-checking or MiniCheck checkpoint.

    Parameters
    ----------
    scorer
        Scores pairs that fit its window.
    name, options
        Stored with a monitor, for :func:`~syncheck.aligners.load_aligner` to load it again.

    Notes
    -----
    The sentences of the context are packed, in order, into premises that fit the window together with the claim; all
    premises are scored. A claim that would take more than half of the window is cut into parts. The score of a part is
    the highest over the premises; that of the claim is the lowest over its parts, each of which needs support. The
    evidence is the sentence of the deciding premise that shares most with the deciding part
    (:meth:`EvidenceIndex.best`).
    """

    def __init__(
        self, scorer: PairScorer, *, name: str = "classifier", options: Mapping[str, str | int] | None = None
    ) -> None:
        self.name = name
        self.options = dict(options or {})
        self._scorer = scorer

    @classmethod
    def load(
        cls, path: Path | str, *, entailment: int | None = None, device: str | torch.device = "cpu"
    ) -> ClassifierAligner:
        """Load a checkpoint; see :func:`~syncheck.aligners.pair_scorers.load_scorer`."""
        options = {} if entailment is None else {"entailment": entailment}
        return cls(load_scorer(path, entailment=entailment, device=device), name=str(path), options=options)

    @classmethod
    def load_minicheck(cls, path: Path | str, *, device: str | torch.device = "cpu") -> ClassifierAligner:
        """Load a MiniCheck checkpoint; see :func:`~syncheck.aligners.pair_scorers.load_minicheck`."""
        return cls(load_minicheck(path, device=device), name=f"minicheck:{path}")

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0."""
        check_asked(passages, claims)
        chunks = split_passages(passages)
        if not chunks:
            return [Support(0.0, None) for _ in claims]
        rows, most = [], int(self._scorer.window * CLAIM_SHARE)
        packed: dict[int, list[_Premise]] = {}
        for i, claim in enumerate(claims):
            for part in split_to_fit(claim, lambda part: self._scorer.length("", part) <= most):
                # In steps, so that claims of about one length share their premises.
                taken = -(-self._scorer.length("", part) // BUDGET_STEP) * BUDGET_STEP
                budget = self._scorer.window - min(taken, most)
                if budget not in packed:
                    packed[budget] = list(self._premises(chunks, budget))
                rows += [(i, part, premise) for premise in packed[budget]]
        scores = self._score([(premise.text, part) for _, part, premise in rows])
        best: list[dict[str, tuple[float, _Premise]]] = [{} for _ in claims]
        for (i, part, premise), score in zip(rows, scores, strict=True):
            if part not in best[i] or score > best[i][part][0]:
                best[i][part] = (score, premise)
        return [_support(passages, found) for found in best]

    def weights_sha256(self) -> str | None:
        """Compute a digest that identifies the weights; see :class:`~syncheck.aligners.protocol.KnowsWeights`."""
        return weights_of(self._scorer)

    def _premises(self, chunks: Sequence[Chunk], budget: int) -> Iterator[_Premise]:
        """Join neighbouring chunks into premises that fit the budget."""

        def fits(text: str) -> bool:
            return self._scorer.length(text, "") <= budget

        pending: _Premise | None = None
        for chunk in chunks:
            if pending and fits((joined := _Premise.of(*pending.chunks, chunk)).text):
                pending = joined
                continue
            if pending:
                yield pending
            *whole, pending = (_Premise.of(replace(chunk, text=text)) for text in split_to_fit(chunk.text, fits))
            yield from whole
        if pending:
            yield pending

    def _score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Score pairs in batches of similar length; the order of ``pairs`` is kept."""
        order = sorted(range(len(pairs)), key=lambda i: sum(map(len, pairs[i])))
        scores = [0.0] * len(pairs)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            for row, score in zip(rows, self._scorer.score([pairs[row] for row in rows]), strict=True):
                scores[row] = score
        return scores


def _support(passages: Sequence[str], found: Mapping[str, tuple[float, _Premise]]) -> Support:
    """Take the lowest score over the parts of a claim, and the chunk that shares the most words with that part."""
    part, (score, premise) = min(found.items(), key=lambda item: item[1][0])
    (best,) = EvidenceIndex.of_chunks(premise.chunks).best(part, 1)
    chunk = premise.chunks[best]
    return Support(score, Evidence(chunk.passage, chunk.quoted_from(passages), score))
