"""Reports on scored responses: dictionaries, tables, text for a terminal, and HTML pages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
