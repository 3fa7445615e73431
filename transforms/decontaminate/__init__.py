"""Decontaminate: what overlaps a benchmark's problem is taken out of the data, found rung by rung of a ladder."""

from .controls import ControlError
from .fingerprint import Fingerprint, Problem, fingerprint_of
from .index import IndexFile, read_index, shipped, write_index
from .ladder import DEFAULT, Hit, Ladder, Rung, Thresholds, parse_hits, render_hits

__all__ = [
    "DEFAULT",
    "ControlError",
    "Fingerprint",
    "Hit",
    "IndexFile",
    "Ladder",
    "Problem",
    "Rung",
    "Thresholds",
    "fingerprint_of",
    "parse_hits",
    "read_index",
    "render_hits",
    "shipped",
    "write_index",
]
