"""Guest: what a candidate's forward does where no trial looks, at other sizes and after many calls.

No kernel runs or is compiled, so a rehearsal costs little at any size: memory that nobody writes to is not even there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime.jit import JITFunction

from .trees import fill
from .verifying import gpu, subject, watch
from .verifying.layout import zeros
from .verifying.session import Launched

Path = list[str]


def warm() -> None:
    watch.warm()


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The path of `code`'s entry point on each of `calls`, then `repeats` times on the first of them again.

    A path names the operators that forward ran, views and allocations excepted, and its launches. Replies with
    `paths`, where None stands for a call that raised, and with `later`, the paths of the repetitions that are no path
    of the first call.
    """
    torch.set_num_threads(1)
    JITFunction.run = _note
    with gpu.pretend():
        module = subject.construct(request["code"], "candidate", request["entry_point"], request["init_args"])
        nn.Module.to(module, gpu.DEVICE)
        paths = [_path(module, call) for call in request["calls"]]
        again = [_path(module, request["calls"][0]) for _ in range(request["repeats"])]
    return {"paths": paths, "later": [path for path in again if path != paths[0]]}, {}


class _Noted(TorchDispatchMode):
    path: Path = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name not in watch.VIEW | watch.ALLOCATE:
            self.path.append(name)
        return func(*args, **(kwargs or {}))


def _note(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Launched:
    if not warmup:
        _Noted.path.append(f"launch {self.__name__}")
    return Launched()


def _path(module: nn.Module, call: Mapping[str, Any]) -> Path | None:
    inputs = zeros(call["inputs"], gpu.DEVICE)
    args, kwargs = fill(json.loads(call["args"]), inputs), fill(json.loads(call["kwargs"]), inputs)
    _Noted.path = []
    try:
        with torch.no_grad(), _Noted():
            module(*args, **kwargs)
    except Exception:  # noqa: BLE001  what a candidate refuses, it does not get wrong
        return None
    return _Noted.path
