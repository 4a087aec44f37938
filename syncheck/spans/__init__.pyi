from .mushroom import (
    SpanScores as SpanScores,
    load_predictions as load_predictions,
    load_span_items as load_span_items,
    prediction_record as prediction_record,
    refused_predictions as refused_predictions,
    score_spans as score_spans,
    span_correlation as span_correlation,
    span_iou as span_iou,
    span_item as span_item,
)
from .hallurag import (
    HalluRagDetector as HalluRagDetector,
    far_sentences as far_sentences,
    joined_spans as joined_spans,
    listed_spans as listed_spans,
    unlikely_words as unlikely_words,
)
from .mikani import (
    SpanRegressor as SpanRegressor,
    load_span_regressor as load_span_regressor,
    merged_risk as merged_risk,
)
from .refind import (
    CheckpointEncoder as CheckpointEncoder,
    LetterEncoder as LetterEncoder,
    Measure as Measure,
    RefindDetector as RefindDetector,
    TokenReplay as TokenReplay,
    marked_from as marked_from,
    refind_prompt as refind_prompt,
)
from .words import (
    SpanSchema as SpanSchema,
    Word as Word,
    cluster_borders as cluster_borders,
    normalised as normalised,
    reading_direction as reading_direction,
    span_feature_names as span_feature_names,
    token_char_spans as token_char_spans,
    word_features as word_features,
    word_rarity as word_rarity,
    words_of as words_of,
)
