"""A launch plan: one call of `forward` as data. The evaluator makes it, and nothing of the candidate runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelquarry.pipeline.sandbox.executor.program import Copy, Fill, View


@dataclass(frozen=True, slots=True)
class Storage:
    """The memory of tensors."""

    # "input 0", "state proj.weight", "constant" for other tensors of the module; "" if forward allocates it
    origin: str
    size_bytes: int
    start: int = 0  # offset in elements that counts as 0


@dataclass(frozen=True, slots=True)
class DescribedView:
    """A tensor descriptor of a launch."""

    base: View
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    texts: tuple[str, str, str]  # shape, strides and block as Python writes them


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch with the argument of each parameter: a view, a descriptor, a number, a text, or a tuple of them."""

    kernel: str
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]  # such as `num_warps`


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of PyTorch that computes."""

    name: str
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Clone(Copy):
    """A copy in new memory, such as `contiguous` makes unless the layout already fits."""


Step = Launch | Fill | Copy | Operator


@dataclass(slots=True)
class Iteration:
    """An iteration of a loop, or a call as a whole."""

    start: int  # number of the first step
    loops: list[LoopRun] = field(default_factory=list)  # that ran inside, in order


@dataclass(slots=True)
class LoopRun:
    """One run of a loop."""

    line: int
    iterations: list[Iteration] = field(default_factory=list)
    end: int = 0  # number of the first step after it


@dataclass(frozen=True, slots=True)
class Plan:
    """One call of `forward` on inputs of known shapes."""

    storages: tuple[Storage, ...]
    steps: tuple[Step, ...]
    tree: Any  # the result; {"tensor": i} stands for output i, see `guest/lib/pytree.py`
    outputs: tuple[View, ...]
    operators: tuple[str, ...]  # names of the operators that compute
    whole: Iteration = field(default_factory=lambda: Iteration(0), compare=False)  # the call, with its loops

    @property
    def launches(self) -> list[Launch]:
        return [step for step in self.steps if isinstance(step, Launch)]

    def launch_log(self) -> tuple[str, ...]:
        """The launches in the words of the guest's log (`guest/candidate/launch_log.py`)."""
        names = {number: each.origin for number, each in enumerate(self.storages) if _is_named(each)}
        return tuple(_logged(launch, names, self.storages) for launch in self.launches)

    def shares(self) -> tuple[str, ...]:
        """The state, input or earlier output that each output shares memory with; "" for none."""
        found: list[str] = []
        for index, view in enumerate(self.outputs):
            origin = self.storages[view.storage].origin if _is_named(self.storages[view.storage]) else ""
            earlier = (f"output {other}" for other in range(index) if view.overlaps(self.outputs[other]))
            found.append("" if view.is_empty else origin or next(earlier, ""))
        return tuple(found)


def _is_named(storage: Storage) -> bool:
    return storage.origin.startswith(("input ", "state "))


def _logged(launch: Launch, names: dict[int, str], storages: Sequence[Storage]) -> str:
    given = {**launch.arguments, **{key: value for key, value in launch.options.items() if key not in launch.arguments}}
    written = ", ".join(f"{key}={_written(value, names, storages)}" for key, value in given.items())
    return f"{launch.kernel}{[*launch.grid, 1, 1][:3]}({written})"


def _written(value: Any, names: dict[int, str], storages: Sequence[Storage]) -> str:
    if isinstance(value, View):
        name = names.setdefault(value.storage, str(len(names)))
        offset = value.offset - storages[value.storage].start
        layout = f"{list(value.shape)}, {list(value.strides)}, {offset}"
        return f"{str(value.dtype).removeprefix('torch.')}({name}, {layout})"
    if isinstance(value, DescribedView):
        return f"{_written(value.base, names, storages)} as {', '.join(value.texts)}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_written(each, names, storages) for each in value)}]"
    return str(value)
