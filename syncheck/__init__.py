"""Watch a retrieval-augmented language model while it generates, and score every sentence for faithfulness."""

from __future__ import annotations

from syncheck.aggregators import Aggregator, ReleaseThreshold
from syncheck.alignment import Aligner, Evaluator, LocalEvaluator, is_same_aligner, load_aligner
from syncheck.config import MonitorConfig, SegmenterConfig
from syncheck.decoding import (
    DecodingPlan,
    DecodingSession,
    Row,
    Step,
    Transcript,
    check_reach,
    decode,
    plan_of,
    prepare,
)
from syncheck.errors import (
    CheckpointError,
    EvaluatorError,
    InputError,
    InsufficientDataError,
    LeftOutWarning,
    MismatchError,
    MissingExtraError,
    NotReadyError,
    PromptError,
    RecordError,
    SyncheckError,
    UnsupportedModelError,
    WrongTypeError,
)
from syncheck.events import EndEvent, SentenceEvent, TokenEvent
from syncheck.judging import SentenceJudge
from syncheck.monitor import Monitor
from syncheck.monitored import JudgedAnswer, MonitoredSession
from syncheck.prompts import build_prompt, prompt_from_texts
from syncheck.report import Report, TraceNode
from syncheck.schemas import feature_schema
from syncheck.segments import ENGLISH_ABBREVIATIONS
from syncheck.signals import ReferenceBank, require_rewindable, token_statistics
from syncheck.training.auroc import Draws, interval
from syncheck.training.propositions import Propositioner, SequencePropositioner
from syncheck.types import (
    Evidence,
    FeatureSchema,
    RagPrompt,
    SentenceFeatures,
    SentenceScore,
    SentenceSignals,
    SentenceSpan,
    Support,
    TokenSignals,
)
from syncheck.watch import BatchWatch, Watch

__version__ = "0.1.0"

__all__ = [
    "Aggregator",
    "Aligner",
    "BatchWatch",
    "CheckpointError",
    "DecodingPlan",
    "DecodingSession",
    "Draws",
    "ENGLISH_ABBREVIATIONS",
    "EndEvent",
    "Evaluator",
    "EvaluatorError",
    "Evidence",
    "FeatureSchema",
    "InputError",
    "InsufficientDataError",
    "JudgedAnswer",
    "LeftOutWarning",
    "LocalEvaluator",
    "MismatchError",
    "MissingExtraError",
    "Monitor",
    "MonitorConfig",
    "MonitoredSession",
    "NotReadyError",
    "PromptError",
    "Propositioner",
    "RagPrompt",
    "RecordError",
    "ReferenceBank",
    "ReleaseThreshold",
    "Report",
    "Row",
    "SegmenterConfig",
    "SentenceEvent",
    "SentenceFeatures",
    "SentenceJudge",
    "SentenceScore",
    "SentenceSignals",
    "SentenceSpan",
    "SequencePropositioner",
    "Step",
    "Support",
    "SyncheckError",
    "TokenEvent",
    "TokenSignals",
    "TraceNode",
    "Transcript",
    "UnsupportedModelError",
    "Watch",
    "WrongTypeError",
    "__version__",
    "build_prompt",
    "check_reach",
    "decode",
    "feature_schema",
    "interval",
    "is_same_aligner",
    "load_aligner",
    "plan_of",
    "prepare",
    "prompt_from_texts",
    "require_rewindable",
    "token_statistics",
]
