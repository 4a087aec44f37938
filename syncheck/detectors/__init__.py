"""Span detectors: what finds the wrong characters of a response, and the shared task's files and tables."""

from syncheck.detectors.asked_source import AskedSource
from syncheck.detectors.crossval import SpanFolds, held_out_folds, held_out_labels, question_of
from syncheck.detectors.detector import MarkAll, MarkNone, SpanDetector
from syncheck.detectors.encoders import CheckpointEncoder, LetterEncoder, SentenceEncoder
from syncheck.detectors.fava import FavaDetector, edited_text, removed_words
from syncheck.detectors.hallurag import (
    HalluRagDetector,
    asked_spans,
    far_sentences,
    joined_spans,
    listed_spans,
    unlikely_words,
)
from syncheck.detectors.kernel import KernelMachine
from syncheck.detectors.mushroom import (
    load_predictions,
    load_span_items,
    prediction_record,
    refused_predictions,
    span_item,
    write_predictions,
)
from syncheck.detectors.opened import OpenedSentence, opened
from syncheck.detectors.parts_of_speech import UNIVERSAL_TAGS, Tagger, TagSource, nltk_tags, spacy_tagger
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
from syncheck.detectors.retrieval import DEFAULT_RERANKER, ChunkRetriever, cached_reranker
from syncheck.detectors.scoring import LanguageScore, SpanScores, score_spans
from syncheck.detectors.signal_features import SIGNAL_COLUMNS, Measure, SignalSource, signal_features
from syncheck.detectors.token_classifier import ClassifierSource, TokenClassifierDetector
from syncheck.detectors.word_sources import WordSource, regression_features, regression_names

__all__ = [
    "AskedSource",
    "CheckpointEncoder",
    "ChunkRetriever",
    "ClassifierSource",
    "DEFAULT_RERANKER",
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
    "SignalSource",
    "SpanDetector",
    "SpanFolds",
    "SpanRegressor",
    "SpanScores",
    "TagSource",
    "Tagger",
    "Thresholds",
    "TokenClassifierDetector",
    "TokenReplay",
    "TooLong",
    "UNIVERSAL_TAGS",
    "WordSource",
    "asked_spans",
    "cached_reranker",
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
    "nltk_tags",
    "opened",
    "prediction_record",
    "question_of",
    "reads_signals",
    "refind_prompt",
    "refused_predictions",
    "regression_features",
    "regression_names",
    "removed_words",
    "score_spans",
    "signal_features",
    "spacy_tagger",
    "span_item",
    "unlikely_words",
    "write_predictions",
]
