"""Runs a traced program on given values. What it does to values is done by the program's kernels, or is a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.cuda import Argument, Fault
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.sandbox.tensor_map import MAP

from .guarded_buffers import Arena
from .program import Copy, Descriptor, Fill, Kernel, Launch, Number, Pointer, Program, read_kernels, read_program


class Device(Protocol):
    """What executes launches: a GPU, or its double in a test."""

    memory: torch.device

    def load(self, kernels: Sequence[Kernel], binaries: Mapping[str, Tensor]) -> None:
        """Make `kernels` launchable, in place of those before; `binaries`: sha256 -> bytes. Raises `Fault`."""

    def prepare(self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[Argument]) -> Callable[[], None]:
        """What starts it whenever it is called. Both raise `Fault`."""

    def synchronize(self) -> None:
        """Wait for all launches. Raises `Fault`."""

    def turn(self) -> AbstractContextManager[None]:
        """Be the only one that measures on it."""


def load(
    device: Device, request: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[tuple[Kernel, ...], list[Program]]:
    """The kernels of a request, made launchable, and its programs. Binaries come as `binary.<sha256>`.

    Raises:
        Fault: a binary cannot be loaded.
        MalformedReply: the programs are not as a guest of ours writes them.
    """
    kernels = read_kernels(request["kernels"])
    programs = [read_program(claim, len(kernels)) for claim in expect(request["programs"], list)]
    device.load(kernels, {name.removeprefix("binary."): t for name, t in tensors.items() if name.startswith("binary.")})
    return kernels, programs


def needed(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """Raises `MalformedReply`: there is no such tensor."""
    if name not in tensors:
        raise MalformedReply(f"no tensor {name}")
    return tensors[name]


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
    """One run: the outputs, and what the run changed of `values`, both on the host.

    Args:
        values: for each name in `program.named`; they stay as they are.
        constants: storage -> bytes.
        poison: what memory that no step wrote holds, see `memory.POISONS`.
        launching: False for a ghost, whose launches do nothing.

    Raises:
        Fault: a launch failed, or a kernel wrote outside of its buffers.
        ValueError: a value or a constant has another size than the program says.
    """
    fill(program, arena, values, constants, poison)
    # Two names may share memory, as tied weights do: the last one stays, as when a state is loaded.
    given = {name: arena.view(view).clone() for name, view in program.named.items()}
    for step in steps(program, kernels, device, arena, launching):
        step()
    device.synchronize()
    if broken := arena.overrun():
        raise Fault(broken)
    changed = {
        name: _taken(arena.view(view))
        for name, view in program.named.items()
        if not _same(arena.view(view), given[name])
    }
    return [_taken(arena.view(view)) for view in program.outputs], changed


def fill(
    program: Program, arena: Arena, values: Mapping[str, Tensor], constants: Mapping[int, Tensor], poison: str = "nan"
) -> None:
    """Make the arena what it is before a run. Raises `ValueError`, see `replay`."""
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
    """What a run does, in order; each call raises `Fault` if it fails. Raises `Fault`: a launch is impossible."""
    made: list[Callable[[], Any]] = []
    for step in program.steps:
        match step:
            case Fill(target, value):
                made.append(partial(arena.view(target).fill_, value))
            case Copy(target, source):
                made.append(partial(arena.view(target).copy_, arena.view(source)))
            case Launch(kernel, grid, _) if launching and all(grid):
                arguments = [_given(argument, arena) for argument in step.arguments]
                made.append(device.prepare(kernels[kernel], grid, arguments))
    return made


def _given(argument: Pointer | Descriptor | Number, arena: Arena) -> Argument:
    match argument:
        case Pointer():
            return "*", arena.address(argument)
        case Descriptor(base, tiling):
            return MAP, (arena.address(base), tiling)
        case Number(kind, value):
            return kind, value


def _taken(tensor: Tensor) -> Tensor:
    """Its values on the host, also where the arena lies there."""
    return tensor.to("cpu", copy=True).contiguous()


def _same(left: Tensor, right: Tensor) -> bool:
    """Equal values, NaN equal to NaN."""
    return bool(((left == right) | ((left != left) & (right != right))).all())
