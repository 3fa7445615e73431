"""Check a kernel against a module, both in KernelBench's form: the library behind `kernelquarry check`.

Imported by `pipeline.api`, `pipeline.cli` and `recipes`.
"""

from .checker import Checker, check, check_async
from .verdict import CheckVerdict, Status

__all__ = ["CheckVerdict", "Checker", "Status", "check", "check_async"]
