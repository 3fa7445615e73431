"""Plan the calls of a candidate from its source, a snapshot of its module, and the shapes of the inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.sandbox.guest.lib.pytree import fill, tensors_of

from .evaluator import Evaluator
from .launch_plan import DescribedView, Iteration, Launch, Plan
from .module_state import Snapshot
from .recording import Recording, is_on_host
from .values import Descriptor, Function, Kernel, Raised, Record, Unsupported


class Shaped(Protocol):
    """An input: a spec of a workload or of a request."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to plan."""

    args: str  # JSON; {"tensor": i} stands for input i
    kwargs: str
    inputs: tuple[Shaped, ...]
    strided: bool = False  # the inputs are not contiguous, as in `guest/candidate/input_layouts.py`
    trial: int = 0  # number of the configuration that tuners select
    alone: bool = False  # the call is the first of a module of its own, so tuners have selected nothing


class Planner:
    """Plans calls of one candidate, in the order in which they are made."""

    def __init__(self, source: Source, snapshot: Any) -> None:
        """Raises: MalformedReply, Raised, Unsupported."""
        self.evaluator = Evaluator(source)
        self.snapshot = snapshot
        self._snapshot = Snapshot(snapshot, self.evaluator)
        self.plans: dict[PlannedCall, Plan] = {}  # all so far

    def plan(self, call: PlannedCall) -> Plan:
        """The plan of a call, made once. Raises: Raised, Unsupported."""
        if call not in self.plans:
            self.plans[call] = self._plan(call)
        return self.plans[call]

    def _plan(self, call: PlannedCall) -> Plan:
        inputs = [_input(each, call.strided) for each in call.inputs]
        recording = Recording()
        for number, tensor in enumerate(inputs):
            recording.name(tensor, f"input {number}", int(tensor.storage_offset()))
        for name, tensor in self._snapshot.entries.items():
            recording.name(tensor, f"state {name}")
        for tensor in self._snapshot.tensors:
            recording.name(tensor, "constant")
        launches = _Launches(recording)
        evaluator = self.evaluator
        evaluator.launch, evaluator.trial = launches.add, call.trial
        evaluator.iteration = whole = Iteration(0)
        evaluator.position = lambda: len(recording.steps)
        if call.alone:
            evaluator.forget_selections()
        args, kwargs = (fill(json.loads(tree), inputs) for tree in (call.args, call.kwargs))
        outputs: list[Tensor] = []
        try:
            with torch.no_grad(), recording:
                result = evaluator.run(self._snapshot.root, args, kwargs)
            tree = _flatten(result, outputs)
        except RecursionError as error:
            raise Unsupported("values or expressions that are nested too deeply") from error
        views = tuple(map(recording.view, outputs))
        operators = tuple(sorted(recording.operators))
        return Plan(tuple(recording.storages), tuple(recording.steps), tree, views, operators, whole)


class _Launches:
    """Adds launches to a recording, with arguments as data."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, kernel: Kernel, grid: tuple[int, ...], bound: dict[str, Any], options: dict[str, Any]) -> None:
        given = [each.base if isinstance(each, Descriptor) else each for each in _flat([*bound.values()])]
        if any(map(is_on_host, tensors_of(given))):
            raise Raised("ValueError: a kernel was given a tensor that is on the CPU")
        arguments = {name: self._described(value) for name, value in bound.items()}
        extra = {name: self._described(value) for name, value in options.items()}
        self._recording.steps.append(Launch(kernel.name, grid, arguments, extra))

    def _described(self, value: Any) -> Any:
        match value:
            case Tensor():
                return self._recording.view(value)
            case Descriptor():
                texts = str(value.shape), str(value.strides), str(value.block_shape)
                sizes = [tuple(each) for each in (value.shape, value.strides, value.block_shape)]
                return DescribedView(self._recording.view(value.base), sizes[0], sizes[1], sizes[2], texts)
            case Record() if not value.is_tuple:
                return value.kind.name
            case tuple() | list() | Record():
                return tuple(map(self._described, value))
            case Kernel() | Function():
                return value.name
            case None | bool() | int() | float() | str():
                return value
        if isinstance(value, torch.dtype) or type(value).__module__.startswith("triton.language"):
            return str(value)
        raise Unsupported(f"a kernel takes a {type(value).__name__}")


def _flat(values: list[Any]) -> list[Any]:
    found = []
    for value in values:
        is_tuple = isinstance(value, Record) and value.is_tuple
        found += _flat(list(value)) if isinstance(value, tuple | list) or is_tuple else [value]
    return found


def _input(spec: Shaped, strided: bool) -> Tensor:
    shape, dtype = tuple(spec.shape), getattr(torch, spec.dtype)
    if not strided:
        return torch.empty(shape, dtype=dtype, device="meta")
    sizes = shape[:-2] + shape[-2:][::-1]
    buffer = torch.empty([size + 1 for size in sizes] or [2], dtype=dtype, device="meta")
    view = buffer[tuple(slice(1, None) for _ in sizes)] if sizes else buffer[1]
    return view.mT if len(sizes) > 1 else view


def _flatten(value: Any, tensors: list[Tensor]) -> Any:
    """The tree of a result as `guest/lib/pytree.py` makes it, its tensors added to `tensors`. Raises: Raised."""
    if isinstance(value, Tensor):
        if is_on_host(value) and value.ndim:
            raise Raised("TypeError: an output is on the CPU")
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, tuple | list) or (isinstance(value, Record) and value.is_tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_flatten(item, tensors) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), _flatten(item, tensors)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise Raised(f"TypeError: a result of type {type(value).__name__}")
