"""Faithfulness and informativeness of decoders: the evaluation of the paper's section 4.3.

Decoders answer the same prompts; each answer is cut into propositions, which a judge that the monitor does not use
compares with the context.
"""

from __future__ import annotations

from decoding.answers import DecodedAnswer, EvaluatedAnswer, JudgedProposition, Verdict
from decoding.decoders import (
    ABSTAIN,
    BACKTRACK,
    CAD,
    FOD,
    FOD_BRANCH,
    GREEDY,
    RERANKINGS,
    Decode,
    DecodingLimits,
    branching_key,
    branching_name,
    branching_over_thresholds,
    candidates_for,
    compared_decoders,
    reranking,
    swept_decoders,
    swept_name,
)
from decoding.figures import DecoderFigures, Difference, Estimate, decoder_figures, difference
from decoding.judging import AnswerJudge
from decoding.log import AnswerLog
from decoding.plot import Curve, plot_curves, plot_sweep, plot_tradeoff
from decoding.verified import UnverifiedSentenceError, require_verified
from decoding.withheld import ABSTAIN_AS_BRANCH, ABSTAIN_MATCHED, CAD_PASSING, passing, withheld, withheld_below

__all__ = [
    "ABSTAIN",
    "ABSTAIN_AS_BRANCH",
    "ABSTAIN_MATCHED",
    "AnswerJudge",
    "AnswerLog",
    "BACKTRACK",
    "CAD",
    "CAD_PASSING",
    "Curve",
    "Decode",
    "DecodedAnswer",
    "DecoderFigures",
    "DecodingLimits",
    "Difference",
    "Estimate",
    "EvaluatedAnswer",
    "FOD",
    "FOD_BRANCH",
    "GREEDY",
    "JudgedProposition",
    "RERANKINGS",
    "UnverifiedSentenceError",
    "Verdict",
    "branching_key",
    "branching_name",
    "branching_over_thresholds",
    "candidates_for",
    "compared_decoders",
    "decoder_figures",
    "difference",
    "passing",
    "plot_curves",
    "plot_sweep",
    "plot_tradeoff",
    "require_verified",
    "reranking",
    "swept_decoders",
    "swept_name",
    "withheld",
    "withheld_below",
]
