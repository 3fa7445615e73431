"""Distill: models are asked for kernels that a compiler would not write, and told what was wrong with them."""

from .batch import BatchWriter, Imported, import_batch
from .client import Client
from .distill_module import TeacherSession, distill
from .selection import mark
from .teachers import DistillConfig, load_distill_config

__all__ = [
    "BatchWriter",
    "Client",
    "DistillConfig",
    "Imported",
    "TeacherSession",
    "distill",
    "import_batch",
    "load_distill_config",
    "mark",
]
