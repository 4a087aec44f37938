"""Signals and scores from an inference server: no weights here, only its log-probabilities over HTTP."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
