"""Watches a retrieval-augmented language model while it generates, and scores every sentence for faithfulness."""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
