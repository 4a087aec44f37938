"""Jobs over a corpus: records in, rows out, stored as they are made in a folder that survives kills."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
