"""Compose: new modules, of operators and of mined modules, seeded and typed by shape. A source as any other."""

from .compose import NAME, Composition, compose
from .compositions_corpus import PACKAGE, Compositions, is_composed, open_compositions, parse_compositions

__all__ = [
    "NAME",
    "PACKAGE",
    "Composition",
    "Compositions",
    "compose",
    "is_composed",
    "open_compositions",
    "parse_compositions",
]
