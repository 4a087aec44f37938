"""Answers on their way to a reader: the events that carry them, and text that is checked as it arrives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
