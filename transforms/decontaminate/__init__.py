"""Decontaminate: drop the modules that overlap a problem of a benchmark.

A ladder of checks, its rungs, compares each module with the fingerprints of the problems. Runs, the CLI and the
dataset's table of contaminated rows import it.
"""

from .benchmark_index import IndexFile, Origin, read_index, shipped, write_index
from .controls import ControlError
from .ladder import DEFAULT, Hit, Ladder, Rung, Thresholds, parse_hits, render_hits
from .module_fingerprint import Fingerprint, Problem, fingerprint_of, problems_of

__all__ = [
    "DEFAULT",
    "ControlError",
    "Fingerprint",
    "Hit",
    "IndexFile",
    "Ladder",
    "Origin",
    "Problem",
    "Rung",
    "Thresholds",
    "fingerprint_of",
    "parse_hits",
    "problems_of",
    "read_index",
    "render_hits",
    "shipped",
    "write_index",
]
