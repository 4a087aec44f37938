"""Faithfulness-oriented decoding on top of a :class:`syncheck.Monitor`."""

from __future__ import annotations

from fod.config import FODConfig
from fod.generator import FODGenerator, FODOutput
from fod.propose import SentenceProposer
from fod.search import Propose, search
from fod.types import Beam, Candidate, Round, SearchResult

__all__ = [
    "Beam",
    "Candidate",
    "FODConfig",
    "FODGenerator",
    "FODOutput",
    "Propose",
    "Round",
    "SearchResult",
    "SentenceProposer",
    "search",
]
