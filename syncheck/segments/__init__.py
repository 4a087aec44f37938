"""Sentences of a response while it grows: ids to text, text to sentences, tokens to sentences.

Without options the sentences are those of NLTK's untrained Punkt, which the paper labels with;
:class:`IncrementalSegmenter` says when a boundary is certain before the rest of the text is known.
"""

from syncheck.segments.abbreviations import ENGLISH_ABBREVIATIONS
from syncheck.segments.assignment import last_text_token
from syncheck.segments.detokenizer import Detokenizer
from syncheck.segments.positions import in_given, positions_in
from syncheck.segments.segmenter import IncrementalSegmenter
from syncheck.segments.whole import is_checkable, segment_given

__all__ = [
    "Detokenizer",
    "ENGLISH_ABBREVIATIONS",
    "IncrementalSegmenter",
    "in_given",
    "is_checkable",
    "last_text_token",
    "positions_in",
    "segment_given",
]
