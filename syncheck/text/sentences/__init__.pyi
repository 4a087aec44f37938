from .boundaries import BoundaryFinder as BoundaryFinder, SegmenterConfig as SegmenterConfig
from .rules import (
    ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS,
    Punkt as Punkt,
    SentenceCutter as SentenceCutter,
)
from .segmenter import (
    AnswerSegmenter as AnswerSegmenter,
    IncrementalSegmenter as IncrementalSegmenter,
    TextSegmenter as TextSegmenter,
    is_checkable as is_checkable,
    segment_given as segment_given,
    spans_of as spans_of,
)
from .tokens import (
    Detokenizer as Detokenizer,
    TextTokens as TextTokens,
    ends_of as ends_of,
    last_text_token as last_text_token,
)
