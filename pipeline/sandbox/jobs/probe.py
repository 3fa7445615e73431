"""The job `probe`: constructor arguments and workloads for a module.

The host's reply is a dict: `transforms/probe/probe_module.py` validates it against the types of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    code: str
    entry_point: str
    limits: dict[str, int]  # of parameters, and of one forward
    user: str = ""  # source of a module that constructs the class under `name`
    name: str = ""
    own_inputs: str = ""  # source with `get_inputs()` and `get_init_inputs()`: only its call is tried


PROBE = GuestKind("probe", ProbeRequest, dict[str, Any], "probe")
