"""Distillation: asking language models for kernels and explanations, and verifying what they answer.

Imported by `pipeline.run`, `pipeline.cli` and `recipes.generate`, which reuses the endpoint client.
"""

from .batch import BatchImport, BatchWriter, import_batch
from .client import Client
from .distill_module import TeacherSession, distill
from .selection import annotate_variants
from .teachers import DistillConfig, load_distill_config

__all__ = [
    "BatchImport",
    "BatchWriter",
    "Client",
    "DistillConfig",
    "TeacherSession",
    "annotate_variants",
    "distill",
    "import_batch",
    "load_distill_config",
]
