"""Signals and scores from an inference server's log-probabilities over HTTP, without weights in this process."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
