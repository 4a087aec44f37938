from .abstain import AbstainGenerator as AbstainGenerator
from .backtrack import BacktrackGenerator as BacktrackGenerator
from .best_of_n import BestOfNGenerator as BestOfNGenerator, BestOfNOutput as BestOfNOutput
from .cad import CADGenerator as CADGenerator
from .flare import (
    FLAREGenerator as FLAREGenerator,
    FLAREOutput as FLAREOutput,
    FLAREQuery as FLAREQuery,
    PassageIndex as PassageIndex,
    Retrieval as Retrieval,
)
from .rerank import RerankGenerator as RerankGenerator
