"""The job `slice`: the calls of PyTorch that a module's forward makes, with the shapes of every value.

The host's reply is a dict: `transforms/slice/traced_graph.py` validates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import GuestKind
from .probe import PROBE


@dataclass(frozen=True, slots=True)
class SliceRequest:
    code: str  # source with `Model` and `get_init_inputs`
    workloads: tuple[dict[str, Any], ...]  # `tensors`, each a TensorSpec's fields, and `args`: a JSON list
    most_nodes: int  # of one forward; larger ones are refused


SLICE = GuestKind("slice", SliceRequest, dict[str, Any], "slice", PROBE.environment, shares=PROBE.name)
