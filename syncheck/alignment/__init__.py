"""Alignment: how well the context supports a sentence.

Aligners follow one protocol, :class:`Aligner`; :func:`load_aligner` finds one by name or folder.
"""

from __future__ import annotations

from syncheck.alignment.alignscore import AlignScoreAligner
from syncheck.alignment.alignscore_checkpoint import convert_alignscore
from syncheck.alignment.asked import AskedAligner, Unaligned
from syncheck.alignment.bundled import BundledAligner
from syncheck.alignment.classifier import ClassifierAligner
from syncheck.alignment.critic import CriticAligner
from syncheck.alignment.evaluators import EndpointEvaluator, Evaluator, LocalEvaluator
from syncheck.alignment.evidence import Chunk, EvidenceIndex, split_passages
from syncheck.alignment.loading import ALIGNER_OPTIONS, load_aligner
from syncheck.alignment.protocol import Aligner, ConfiguredAligner, QuestionAligner, identity_of, options_of
from syncheck.alignment.spans_asked import SpanAligner
from syncheck.alignment.weights import KnowsWeights, is_same_aligner, weights_of

__all__ = [
    "ALIGNER_OPTIONS",
    "AlignScoreAligner",
    "Aligner",
    "AskedAligner",
    "BundledAligner",
    "Chunk",
    "ClassifierAligner",
    "ConfiguredAligner",
    "CriticAligner",
    "EndpointEvaluator",
    "Evaluator",
    "EvidenceIndex",
    "KnowsWeights",
    "LocalEvaluator",
    "QuestionAligner",
    "SpanAligner",
    "Unaligned",
    "convert_alignscore",
    "identity_of",
    "is_same_aligner",
    "load_aligner",
    "options_of",
    "split_passages",
    "weights_of",
]
