"""Faithfulness-oriented decoding (FOD) with a :class:`syncheck.Monitor`, and the baselines it is compared with."""

from __future__ import annotations

from fod.baselines import AbstainGenerator, BestOfNGenerator, BestOfNOutput, CADGenerator
from fod.branch_proposer import BranchProposer
from fod.config import FODConfig, OnExhausted, RepairConfig, Thresholds
from fod.drop_in import AnswerGenerator, GeneratorOutput
from fod.flare import FLAREGenerator, FLAREOutput, FLAREQuery, PassageIndex, Retrieval
from fod.generator import BacktrackGenerator, FODGenerator, FODOutput
from fod.guards import altered_names, is_near_repeat, loose_pronoun
from fod.proposers import SentenceProposer, contrast_scores, nucleus, sample_nucleus
from fod.repair import ProposeBranches, repair, repair_trace_of
from fod.reveal import VerifiedReveal
from fod.search import Beam, Candidate, Progress, Propose, Round, SearchResult, search, trace_of, walk
from fod.texts import Budget, Spent
from fod.upstream import ContinueFrom, RepairPolicy, UpstreamFOD, UpstreamOutput

__all__ = [
    "AbstainGenerator",
    "AnswerGenerator",
    "BacktrackGenerator",
    "Beam",
    "BestOfNGenerator",
    "BestOfNOutput",
    "BranchProposer",
    "Budget",
    "CADGenerator",
    "Candidate",
    "ContinueFrom",
    "FLAREGenerator",
    "FLAREOutput",
    "FLAREQuery",
    "FODConfig",
    "FODGenerator",
    "FODOutput",
    "GeneratorOutput",
    "OnExhausted",
    "PassageIndex",
    "Progress",
    "Propose",
    "ProposeBranches",
    "RepairConfig",
    "RepairPolicy",
    "Retrieval",
    "Round",
    "SearchResult",
    "SentenceProposer",
    "Spent",
    "Thresholds",
    "UpstreamFOD",
    "UpstreamOutput",
    "VerifiedReveal",
    "altered_names",
    "contrast_scores",
    "is_near_repeat",
    "loose_pronoun",
    "nucleus",
    "repair",
    "repair_trace_of",
    "sample_nucleus",
    "search",
    "trace_of",
    "walk",
]
