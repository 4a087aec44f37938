from .boundaries import (
    AnswerSegmenter as AnswerSegmenter,
    BoundaryFinder as BoundaryFinder,
    SegmenterConfig as SegmenterConfig,
    TextSegmenter as TextSegmenter,
    is_checkable as is_checkable,
    spans_of as spans_of,
)
from .rules import ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS, Punkt as Punkt, SentenceCutter as SentenceCutter
from .tokens import (
    Detokenizer as Detokenizer,
    IncrementalSegmenter as IncrementalSegmenter,
    TextTokens as TextTokens,
    ends_of as ends_of,
    last_text_token as last_text_token,
    segment_given as segment_given,
)
