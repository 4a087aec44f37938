"""Answers being decoded: how tokens are chosen, what is held of them, and how their sentences are measured."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
