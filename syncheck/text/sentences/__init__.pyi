from .config import SegmenterConfig as SegmenterConfig
from .boundaries import BoundaryFinder as BoundaryFinder
from .given_text import TextTokens as TextTokens, ends_of as ends_of
from .punkt import Punkt as Punkt
from .rules import ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS, SentenceCutter as SentenceCutter
from .segmenter import (
    IncrementalSegmenter as IncrementalSegmenter,
    is_checkable as is_checkable,
    segment_given as segment_given,
)
from .token_text import Detokenizer as Detokenizer, last_text_token as last_text_token
from .segmenter import TextSegmenter as TextSegmenter, spans_of as spans_of
