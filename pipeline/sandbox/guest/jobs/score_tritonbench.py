"""Guest job: functions of a file, called by a TritonBench test.

A test draws its inputs between its calls, so a function that draws random numbers would change the inputs of the next
one. Here each call has random numbers of its own, and the test's go on as if the function had drawn none.

The benchmark runs functions and test as one file, so the functions find the test's imports.
"""

from __future__ import annotations

import functools
import inspect
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.jobs.score_tritonbench import TritonbenchReply, TritonbenchRequest

from ..candidate.launch_log import session
from ..lib.load_source import load_source
from ..lib.pytree import flatten
from .run_trials import device
from .run_trials import warm as warm

_SEED = 42
_WARMING = 3
_TIMED = 20  # runs of the test, of which the median counts


def run(request: TritonbenchRequest, tensors: dict[str, Tensor]) -> tuple[TritonbenchReply, dict[str, Tensor]]:
    with device(request.gpu):
        return _run(request)


def _run(request: TritonbenchRequest) -> tuple[TritonbenchReply, dict[str, Tensor]]:
    functions = vars(load_source(request.code, "candidate"))
    test = vars(load_source("", "test_of_candidate"))
    count, changed = [0], list[Any]()
    for name, value in functions.items():
        own = inspect.isfunction(value) and value.__module__ == "candidate"
        test[name] = _apart(value, count, request.draws, changed) if own else value
    exec(compile(request.test, "<test>", "exec", dont_inherit=True), test)
    for name, value in test.items():
        functions.setdefault(name, value)
    tests = [value for name, value in list(test.items()) if name.startswith("test_") and inspect.isfunction(value)]

    def once() -> list[Any]:
        count[0] = 0
        changed.clear()
        torch.manual_seed(_SEED)
        random.seed(_SEED)
        np.random.seed(_SEED)
        return [each() for each in tests]

    found: list[Tensor] = []
    tree = flatten(_plain([once(), changed]), found)
    launches = len(session.launches)
    seconds = _median(once) if request.timed else 0.0
    return TritonbenchReply(tree, launches, seconds), {str(place): value for place, value in enumerate(found)}


def _apart(function: Callable[..., Any], count: list[int], draws: int, changed: list[Any]) -> Callable[..., Any]:
    """`function` with random numbers of its own. If it has no result, `changed` gets the tensors that it was given."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        with torch.random.fork_rng([0] if torch.cuda.is_initialized() else []):
            torch.manual_seed(1000 * draws + count[0])
            result = function(*args, **kwargs)
        if result is None:
            changed.append([_plain(given) for given in (*args, *kwargs.values()) if isinstance(given, Tensor)])
        return result

    return called


def _plain(value: Any) -> Any:
    """The value as a reply can hold it: tensors dense, real and contiguous, and the type name of other objects."""
    if isinstance(value, np.ndarray | np.number):
        value = torch.as_tensor(value)
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.to_dense() if value.layout is not torch.strided else value
        return torch.view_as_real(value).contiguous() if value.is_complex() else value.contiguous()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return torch.tensor(value) if isinstance(value, float) else type(value).__name__


def _median(once: Callable[[], Any]) -> float:
    times = []
    for _ in range(_WARMING + _TIMED):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        once()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return sorted(times[_WARMING:])[_TIMED // 2]
