"""Reading: the passages of a query, read once for all sentences of its answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
