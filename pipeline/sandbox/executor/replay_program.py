"""Replay of a traced program on given values. Only the program's kernels, fills and copies change values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.cuda import Argument, Fault
from kernelquarry.pipeline.sandbox.observation import expect
from kernelquarry.pipeline.sandbox.tensor_map import MAP

from .guarded_buffers import Arena
from .program import Copy, Descriptor, Fill, Kernel, Launch, Number, Pointer, Program, read_kernels, read_program


class Device(Protocol):
    """A GPU, or a simulated one in a test."""

    memory: torch.device

    def load(self, kernels: Sequence[Kernel], binaries: Mapping[str, Tensor]) -> None:
        """Replace the loaded kernels by `kernels`; `binaries` maps sha256 to bytes. Raises `Fault`."""

    def prepare(self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[Argument]) -> Callable[[], None]:
        """A function that launches the kernel with these arguments. Both calls raise `Fault`."""

    def synchronize(self) -> None:
        """Wait for all launches. Raises `Fault`."""

    def exclusive_use(self) -> AbstractContextManager[None]:
        """Lock the device against other measurements."""


def load(
    device: Device, request: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[tuple[Kernel, ...], list[Program]]:
    """Load the kernels of a request, whose binaries come as `binary.<sha256>`, and read its programs.

    Raises:
        Fault: a binary cannot be loaded.
        MalformedReply: the programs do not have the tracer's form.
    """
    kernels = read_kernels(request["kernels"])
    programs = [read_program(claim, len(kernels)) for claim in expect(request["programs"], list)]
    device.load(kernels, {name.removeprefix("binary."): t for name, t in tensors.items() if name.startswith("binary.")})
    return kernels, programs


def replay(
    program: Program,
    kernels: Sequence[Kernel],
    device: Device,
    arena: Arena,
    values: Mapping[str, Tensor],
    constants: Mapping[int, Tensor],
    poison: str = "nan",
    launching: bool = True,
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Run the program once. Returns the outputs and the entries of `values` that changed, as copies on the host.

    Args:
        values: one for each name in `program.named`; not modified.
        constants: bytes by storage.
        poison: contents of memory that no step wrote, a key of `guarded_buffers.POISONS`.
        launching: False for a ghost replay, whose launches do nothing.

    Raises:
        Fault: a launch failed, or a kernel wrote outside of its buffers.
        ValueError: a value or a constant has another size than in the program.
    """
    fill(program, arena, values, constants, poison)
    # Two names may share memory, as tied weights do: the last value written counts, as when a state is loaded.
    before = {name: arena.view(view).clone() for name, view in program.named.items()}
    for step in steps(program, kernels, device, arena, launching):
        step()
    device.synchronize()
    if broken := arena.overrun():
        raise Fault(broken)
    changed = {
        name: _to_host(arena.view(view))
        for name, view in program.named.items()
        if not _equal(arena.view(view), before[name])
    }
    return [_to_host(arena.view(view)) for view in program.outputs], changed


def fill(
    program: Program, arena: Arena, values: Mapping[str, Tensor], constants: Mapping[int, Tensor], poison: str = "nan"
) -> None:
    """Initialise the arena for a run. Raises `ValueError`, see `replay`."""
    arena.reset(poison)
    for storage in program.constants:
        arena.write(storage, constants[storage])
    for name, view in program.named.items():
        if values[name].shape != view.shape or values[name].dtype != view.dtype:
            raise ValueError(f"{name} is another tensor than the program was traced with")
        arena.view(view).copy_(values[name])


def steps(
    program: Program, kernels: Sequence[Kernel], device: Device, arena: Arena, launching: bool = True
) -> list[Callable[[], Any]]:
    """The calls that make up a run, in order. Calls that fail, and launches that cannot be prepared, raise `Fault`."""
    made: list[Callable[[], Any]] = []
    for step in program.steps:
        match step:
            case Fill(target, value):
                made.append(partial(arena.view(target).fill_, value))
            case Copy(target, source):
                made.append(partial(arena.view(target).copy_, arena.view(source)))
            case Launch(kernel, grid, _) if launching and all(grid):
                arguments = [_resolve(argument, arena) for argument in step.arguments]
                made.append(device.prepare(kernels[kernel], grid, arguments))
    return made


def _resolve(argument: Pointer | Descriptor | Number, arena: Arena) -> Argument:
    match argument:
        case Pointer():
            return "*", arena.address(argument)
        case Descriptor(base, tiling):
            return MAP, (arena.address(base), tiling)
        case Number(kind, value):
            return kind, value


def _to_host(tensor: Tensor) -> Tensor:
    """A copy of the values on the host, also if the arena lies there."""
    return tensor.to("cpu", copy=True).contiguous()


def _equal(left: Tensor, right: Tensor) -> bool:
    """True if all values are equal; NaN equals NaN."""
    return bool(((left == right) | ((left != left) & (right != right))).all())
