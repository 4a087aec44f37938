"""From features to P(faithful): three kinds of classifier, two of them as one, or one signal; saved without pickle."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
