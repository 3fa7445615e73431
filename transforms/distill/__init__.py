"""Distill: models are asked for kernels that a compiler would not write, and told what was wrong with them."""

from .batch import BatchWriter, Imported, import_batch
from .client import Client
from .distill_module import School, distill
from .selection import mark
from .teachers import Teaching, load_teaching

__all__ = [
    "BatchWriter",
    "Client",
    "Imported",
    "School",
    "Teaching",
    "distill",
    "import_batch",
    "load_teaching",
    "mark",
]
