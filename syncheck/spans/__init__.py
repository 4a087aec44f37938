"""Which characters of a response are wrong: labels, metrics, words of any script and what is known of each."""

from syncheck.spans.choice import MergeRule, likely_overlap, merged_risk
from syncheck.spans.clusters import Direction, cluster_borders, reading_direction
from syncheck.spans.features import SpanSchema, span_feature_names, word_features
from syncheck.spans.item import SpanItem
from syncheck.spans.labels import SoftSpan, SpanLabels, hard_spans, label_dict, labels_of, risk_of
from syncheck.spans.metrics import span_correlation, span_iou
from syncheck.spans.rarity import word_rarity
from syncheck.spans.tokens import token_char_spans
from syncheck.spans.words import Word, normalised, words_of

__all__ = [
    "Direction",
    "MergeRule",
    "SoftSpan",
    "SpanItem",
    "SpanLabels",
    "SpanSchema",
    "Word",
    "cluster_borders",
    "hard_spans",
    "label_dict",
    "labels_of",
    "likely_overlap",
    "merged_risk",
    "normalised",
    "reading_direction",
    "risk_of",
    "span_correlation",
    "span_feature_names",
    "span_iou",
    "token_char_spans",
    "word_features",
    "word_rarity",
    "words_of",
]
