"""Segmentation of a growing response: ids to text, text to sentences, tokens to sentences.

Without options, sentences are those of NLTK's untrained Punkt, with which the paper labels;
:class:`IncrementalSegmenter` finds boundaries as soon as the rest of the text cannot change them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
