"""Which words are wrong: data, labels, metrics and methods of span detection."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
