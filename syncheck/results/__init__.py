"""Results: data that hold what was measured, scored and decided, and the events in which it travels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
