from .choice import MergeRule as MergeRule, likely_overlap as likely_overlap, merged_risk as merged_risk
from .crossval import (
    SpanFolds as SpanFolds,
    held_out_folds as held_out_folds,
    held_out_labels as held_out_labels,
    question_of as question_of,
)
from .detector import (
    MarkAll as MarkAll,
    MarkNone as MarkNone,
    OpenedSentence as OpenedSentence,
    opened as opened,
)
from .encoders import (
    CheckpointEncoder as CheckpointEncoder,
    LetterEncoder as LetterEncoder,
    SentenceEncoder as SentenceEncoder,
)
from .fava import FavaDetector as FavaDetector, edited_text as edited_text, removed_words as removed_words
from .features import SpanSchema as SpanSchema, span_feature_names as span_feature_names, word_features as word_features
from .hallurag import (
    AskedSource as AskedSource,
    HalluRagDetector as HalluRagDetector,
    asked_spans as asked_spans,
    far_sentences as far_sentences,
    joined_spans as joined_spans,
    listed_spans as listed_spans,
    unlikely_words as unlikely_words,
)
from .items import (
    SpanDetector as SpanDetector,
    SoftSpan as SoftSpan,
    SpanItem as SpanItem,
    SpanLabels as SpanLabels,
    hard_spans as hard_spans,
    label_dict as label_dict,
    labels_of as labels_of,
    risk_of as risk_of,
)
from .machines import KernelMachine as KernelMachine
from .metrics import (
    LanguageScore as LanguageScore,
    SpanScores as SpanScores,
    score_spans as score_spans,
    span_correlation as span_correlation,
    span_iou as span_iou,
)
from .mushroom import (
    load_predictions as load_predictions,
    load_span_items as load_span_items,
    prediction_record as prediction_record,
    refused_predictions as refused_predictions,
    span_item as span_item,
    write_predictions as write_predictions,
)
from .parts_of_speech import (
    TagSource as TagSource,
    Tagger as Tagger,
    UNIVERSAL_TAGS as UNIVERSAL_TAGS,
    nltk_tags as nltk_tags,
    spacy_tagger as spacy_tagger,
)
from .refind import (
    RefindDetector as RefindDetector,
    RefindForm as RefindForm,
    Thresholds as Thresholds,
    choose_thresholds as choose_thresholds,
    given_log_prob as given_log_prob,
    marked_from as marked_from,
)
from .regressor import (
    MAX_WORDS as MAX_WORDS,
    RegressorKind as RegressorKind,
    SpanRegressor as SpanRegressor,
    load_span_regressor as load_span_regressor,
    reads_signals as reads_signals,
)
from .replayed import TokenReplay as TokenReplay, TooLong as TooLong, refind_prompt as refind_prompt
from .retrieval import (
    ChunkRetriever as ChunkRetriever,
    DEFAULT_RERANKER as DEFAULT_RERANKER,
    cached_reranker as cached_reranker,
)
from .signal_features import (
    Measure as Measure,
    SIGNAL_COLUMNS as SIGNAL_COLUMNS,
    SignalSource as SignalSource,
    signal_features as signal_features,
)
from .token_classifier import ClassifierSource as ClassifierSource, TokenClassifierDetector as TokenClassifierDetector
from .tokens import token_char_spans as token_char_spans
from .word_sources import (
    WordSource as WordSource,
    regression_features as regression_features,
    regression_names as regression_names,
)
from .words import (
    Direction as Direction,
    Word as Word,
    cluster_borders as cluster_borders,
    normalised as normalised,
    reading_direction as reading_direction,
    word_rarity as word_rarity,
    words_of as words_of,
)
