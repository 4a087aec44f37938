"""Views of a scored response: dictionaries, tables, text for a terminal and one HTML file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
