"""How faithful and how informative decoders are: the evaluation of the paper's section 4.3.

Decoders answer the same prompts; each answer is cut into propositions, which a judge that the monitor does not use
compares with the context.
"""

from __future__ import annotations

from fod.evaluation.answers import DecodedAnswer, JudgedAnswer, JudgedProposition, Verdict
from fod.evaluation.decoders import (
    ABSTAIN,
    BACKTRACK,
    CAD,
    FOD,
    FOD_SHARED,
    GREEDY,
    RERANKINGS,
    Decode,
    DecodingLimits,
    candidates_for,
    compared_decoders,
    reranking,
    swept_decoders,
    swept_name,
)
from fod.evaluation.figures import DecoderFigures, Difference, Estimate, decoder_figures, difference
from fod.evaluation.judging import AnswerJudge
from fod.evaluation.log import AnswerLog
from fod.evaluation.plot import plot_sweep, plot_tradeoff
from fod.evaluation.propositions import InstructPropositioner, RuleBasedPropositioner, load_propositioner
from fod.evaluation.verified import UnverifiedSentenceError, require_verified
from fod.evaluation.withheld import ABSTAIN_MATCHED, withheld

__all__ = [
    "ABSTAIN",
    "ABSTAIN_MATCHED",
    "AnswerJudge",
    "AnswerLog",
    "BACKTRACK",
    "CAD",
    "Decode",
    "DecodedAnswer",
    "DecoderFigures",
    "DecodingLimits",
    "Difference",
    "Estimate",
    "FOD",
    "FOD_SHARED",
    "GREEDY",
    "InstructPropositioner",
    "JudgedAnswer",
    "JudgedProposition",
    "RERANKINGS",
    "RuleBasedPropositioner",
    "UnverifiedSentenceError",
    "Verdict",
    "candidates_for",
    "compared_decoders",
    "decoder_figures",
    "difference",
    "load_propositioner",
    "plot_sweep",
    "plot_tradeoff",
    "require_verified",
    "reranking",
    "swept_decoders",
    "swept_name",
    "withheld",
]
