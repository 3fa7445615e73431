"""Decontaminate: what overlaps a benchmark's problem is taken out of the data, found rung by rung of a ladder."""

from .benchmark_index import IndexFile, read_index, shipped, write_index
from .controls import ControlError
from .ladder import DEFAULT, Hit, Ladder, Rung, Thresholds, parse_hits, render_hits
from .module_fingerprint import Fingerprint, Problem, fingerprint_of

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
