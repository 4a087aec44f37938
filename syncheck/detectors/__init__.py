"""Span detectors: what finds the wrong characters of a response, and the shared task's files and tables."""

from syncheck.detectors.crossval import SpanFolds, held_out_folds, held_out_labels, question_of
from syncheck.detectors.detector import MarkAll, MarkNone, SpanDetector
from syncheck.detectors.kernel import KernelMachine
from syncheck.detectors.mushroom import (
    load_predictions,
    load_span_items,
    prediction_record,
    span_item,
    write_predictions,
)
from syncheck.detectors.regressor import RegressorKind, SpanRegressor, load_span_regressor
from syncheck.detectors.scoring import LanguageScore, SpanScores, score_spans

__all__ = [
    "KernelMachine",
    "LanguageScore",
    "MarkAll",
    "MarkNone",
    "RegressorKind",
    "SpanDetector",
    "SpanFolds",
    "SpanRegressor",
    "SpanScores",
    "held_out_folds",
    "held_out_labels",
    "load_predictions",
    "load_span_items",
    "load_span_regressor",
    "prediction_record",
    "question_of",
    "score_spans",
    "span_item",
    "write_predictions",
]
