"""Training: labelled responses are measured, and monitors fitted and calibrated on them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
