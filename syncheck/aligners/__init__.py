"""Alignment: the support of a sentence by the context.

Aligners follow one protocol, :class:`Aligner`; :func:`load_aligner` finds one by name or folder.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
