"""What faithfulness-oriented decoding is compared with, each called as it is."""

from __future__ import annotations

from fod.baselines.abstain import AbstainGenerator
from fod.baselines.backtrack import BacktrackGenerator
from fod.baselines.best_of_n import BestOfNGenerator, BestOfNOutput
from fod.baselines.cad import CADGenerator, contrast_scores
from fod.baselines.flare import FLAREGenerator, FLAREOutput, FLAREQuery, Retrieval
from fod.baselines.passage_index import PassageIndex
from fod.baselines.rerank import RerankGenerator

__all__ = [
    "AbstainGenerator",
    "BacktrackGenerator",
    "BestOfNGenerator",
    "BestOfNOutput",
    "CADGenerator",
    "FLAREGenerator",
    "FLAREOutput",
    "FLAREQuery",
    "PassageIndex",
    "RerankGenerator",
    "Retrieval",
    "contrast_scores",
]
