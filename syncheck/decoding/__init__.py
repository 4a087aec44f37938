"""Answers being decoded: choosing tokens, keeping their text, and measuring their sentences."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
