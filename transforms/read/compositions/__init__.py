"""A corpus of generated modules, composed from operators and mined modules with a seed.

`read.corpora` opens it; the stage `mine` and `recipes` import its names to recognise composed modules.
"""

from .compose import NAME, compose
from .compositions_corpus import PACKAGE, is_composed, open_compositions, parse_compositions

__all__ = ["NAME", "PACKAGE", "compose", "is_composed", "open_compositions", "parse_compositions"]
