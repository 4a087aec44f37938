"""Sentences of a response while it grows: ids to text, text to sentences, tokens to sentences.

Without options the sentences are those of NLTK's untrained Punkt, which the paper labels with;
:class:`IncrementalSegmenter` says when a boundary is certain before the rest of the text is known.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
