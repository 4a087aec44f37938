"""Span detection: which words of a response are wrong, by which method, and how well."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
