"""What a candidate's Python asks of its GPU, answered the same in every guest that calls it; there is none.

Kernels' wrappers size a grid by the number of processors, make a tensor's device current around a launch, or insist
on a tensor that is on a GPU. All of them must go the way here that they go on a GPU: what is verified is then what
will run, and a candidate that asks in order to behave otherwise where it is checked gets no other answer.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch

PROPERTIES = {
    "name": "NVIDIA H100 80GB HBM3",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "warp_size": 32,
    "total_memory": 80 * 2**30,
    "max_threads_per_multi_processor": 2048,
    "regs_per_multiprocessor": 65536,
    "shared_memory_per_block": 49152,
    "shared_memory_per_block_optin": 232448,
    "shared_memory_per_multiprocessor": 233472,
}


def pretend() -> None:
    """Answer for one GPU, for good: a guest runs one candidate and ends."""
    properties = SimpleNamespace(**PROPERTIES)
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": properties,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_name": properties.name,
        "synchronize": None,
        "set_device": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))
    for name in ("device", "device_of"):  # context managers, on the device of a tensor that is on the CPU here
        setattr(torch.cuda, name, _always(contextlib.nullcontext()))
    torch.Tensor.is_cuda = property(lambda tensor: True)  # type: ignore[assignment]


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer
