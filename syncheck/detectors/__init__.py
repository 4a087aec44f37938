"""Span detectors: what finds the wrong characters of a response, and the shared task's files and tables."""

from syncheck.detectors.crossval import SpanFolds, held_out_folds, held_out_labels, question_of
from syncheck.detectors.detector import MarkAll, MarkNone, SpanDetector
from syncheck.detectors.encoders import CheckpointEncoder, LetterEncoder, SentenceEncoder
from syncheck.detectors.fava import FavaDetector, edited_text, removed_words
from syncheck.detectors.hallurag import HalluRagDetector, far_sentences, joined_spans, listed_spans, unlikely_words
from syncheck.detectors.kernel import KernelMachine
from syncheck.detectors.mushroom import (
    load_predictions,
    load_span_items,
    prediction_record,
    span_item,
    write_predictions,
)
from syncheck.detectors.opened import OpenedSentence, opened
from syncheck.detectors.refind import (
    RefindDetector,
    RefindForm,
    Thresholds,
    choose_thresholds,
    given_log_prob,
    marked_from,
)
from syncheck.detectors.regressor import MAX_WORDS, RegressorKind, SpanRegressor, load_span_regressor, reads_signals
from syncheck.detectors.replayed import TokenReplay, TooLong, refind_prompt
from syncheck.detectors.retrieval import ChunkRetriever
from syncheck.detectors.scoring import LanguageScore, SpanScores, score_spans
from syncheck.detectors.signal_features import (
    SIGNAL_COLUMNS,
    Measure,
    regression_features,
    regression_names,
    signal_features,
)
from syncheck.detectors.token_classifier import TokenClassifierDetector

__all__ = [
    "CheckpointEncoder",
    "ChunkRetriever",
    "FavaDetector",
    "HalluRagDetector",
    "KernelMachine",
    "LanguageScore",
    "LetterEncoder",
    "MAX_WORDS",
    "MarkAll",
    "MarkNone",
    "Measure",
    "OpenedSentence",
    "RefindDetector",
    "RefindForm",
    "RegressorKind",
    "SIGNAL_COLUMNS",
    "SentenceEncoder",
    "SpanDetector",
    "SpanFolds",
    "SpanRegressor",
    "SpanScores",
    "Thresholds",
    "TokenClassifierDetector",
    "TokenReplay",
    "TooLong",
    "choose_thresholds",
    "edited_text",
    "far_sentences",
    "given_log_prob",
    "held_out_folds",
    "held_out_labels",
    "joined_spans",
    "listed_spans",
    "load_predictions",
    "load_span_items",
    "load_span_regressor",
    "marked_from",
    "opened",
    "prediction_record",
    "question_of",
    "reads_signals",
    "refind_prompt",
    "regression_features",
    "regression_names",
    "removed_words",
    "score_spans",
    "signal_features",
    "span_item",
    "unlikely_words",
    "write_predictions",
]
