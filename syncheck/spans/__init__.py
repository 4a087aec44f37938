"""Span detection: finds the wrong words of a response by several methods, and scores predictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
