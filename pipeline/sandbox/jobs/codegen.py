"""The job `codegen`: binaries of kernels from the text of their Triton IR. It runs no candidate's code."""

from __future__ import annotations

from dataclasses import dataclass

from .kind import GuestKind


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Everything that decides a binary, except for the version of Triton."""

    target: str  # "sm_90", "gfx942"
    text: str  # Triton IR without locations; the kernel's name is `ENTRY`, so that renamed kernels are equal
    options: dict[str, bool | int | float | str]  # of Triton's compiler, those that differ from the defaults


ENTRY = "kernel"  # name of each kernel in its text and in its binary


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel's binary is the tensor `binary.<number of the source>`."""

    error: str = ""  # of the compiler; then nothing else is set
    warps: int = 0
    shared: int = 0  # bytes of dynamic shared memory
    scratch: tuple[int, int] = (0, 0)  # bytes of global memory for each block: for the kernel, for its profile


@dataclass(frozen=True, slots=True)
class CodegenRequest:
    sources: tuple[KernelSource, ...]


@dataclass(frozen=True, slots=True)
class CodegenReply:
    triton: str  # version
    kernels: tuple[Compiled, ...]  # one for each source


CODEGEN = GuestKind("codegen", CodegenRequest, CodegenReply, "codegen")
