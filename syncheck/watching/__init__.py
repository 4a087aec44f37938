"""Streams: the events that carry answers to a reader, and text that is scored as it arrives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
