from .abstain import AbstainGenerator as AbstainGenerator
from .best_of_n import (
    BestOfNGenerator as BestOfNGenerator,
    BestOfNOutput as BestOfNOutput,
    RerankGenerator as RerankGenerator,
)
from .cad import CADGenerator as CADGenerator
from .flare import (
    FLAREGenerator as FLAREGenerator,
    FLAREOutput as FLAREOutput,
    FLAREQuery as FLAREQuery,
    PassageIndex as PassageIndex,
    Retrieval as Retrieval,
)
