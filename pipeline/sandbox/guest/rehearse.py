"""Guest: what a candidate's forward does where no trial looks, at other sizes and after many calls.

No kernel runs or is compiled, so a rehearsal costs little at any size: memory that nobody writes to is not even there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime.jit import JITFunction

from .trees import fill
from .verifying import gpu, subject, tuning, watch
from .verifying.layout import zeros
from .verifying.session import Launched, bind, session, sizes

Path = list[str]
_THREADS, _SEED = 2, 1  # 1 and 0 elsewhere
_MESSAGE = 200  # characters


def warm() -> None:
    watch.warm()
    tuning.install(_unseen)


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The path of `code`'s entry point on each of `calls`, made twice, then `repeats` times on the first of them again.

    A path names the operators that forward ran, views and allocations excepted, and its launches. Replies with `paths`,
    where None stands for a call that raised; with `told`, the launches of each with all that they were given; with
    `raised`, why there is no path; and with `later`, the paths of the repetitions that are no path of the first call,
    launches with what they were given.

    What a check need not have in common with a use is otherwise here than in the other guests, so that who asks for it
    goes another way: the number of threads, the module's name, the seed, and whether gradients are recorded.
    """
    torch.set_num_threads(_THREADS)
    JITFunction.run = _note
    with gpu.pretend():
        module = subject.construct(request["code"], "rehearsed", request["entry_point"], request["init_args"])
        torch.manual_seed(_SEED)
        nn.Module.to(module, gpu.DEVICE)
        first = request["calls"][0]
        # A tuner resets what it timed in the first call of a size, so of two calls the second counts.
        calls = [[_path(module, call), _path(module, call)][1] for call in request["calls"]]
        again = [_path(module, first, recorded=bool(number % 2)) for number in range(request["repeats"])]
    paths, told, raised = (list(each) for each in zip(*calls, strict=True))
    later = [call for call in again if call != calls[0]]
    return {"paths": paths, "told": told, "raised": raised, "later": later[:1]}, {}


@contextmanager
def _unseen() -> Iterator[None]:
    """What a tuner runs is no part of a path."""
    noted = len(_Noted.path)
    yield
    del _Noted.path[noted:]


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
        bound = bind(self.fn, args, options)
        session.tell(self.__name__, sizes(grid, bound), bound, options)
    return Launched()


def _path(module: nn.Module, call: Mapping[str, Any], recorded: bool = False) -> tuple[Path | None, list[str], str]:
    """With what it was told of its launches, and why there is none; gradients are `recorded` or not."""
    inputs = zeros(call["inputs"], gpu.DEVICE)
    args, kwargs = fill(json.loads(call["args"]), inputs), fill(json.loads(call["kwargs"]), inputs)
    _Noted.path, session.trial = [], call["trial"]
    session.begin(module, inputs)
    try:
        with torch.set_grad_enabled(recorded), _Noted():
            module(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  what a candidate refuses, it does not get wrong
        return None, [], f"{type(error).__name__}: {error}"[:_MESSAGE]
    return _Noted.path, session.told, ""
