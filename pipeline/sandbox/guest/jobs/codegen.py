"""Guest job: binaries of kernels from the text of their Triton IR. It runs no candidate's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.compiler import compiler
from triton.runtime.autotuner import OutOfResources

from kernelquarry.pipeline.sandbox.jobs.codegen import CodegenReply, CodegenRequest, Compiled, KernelSource

from ..compiler.compile_only_driver import SHARED_BYTES, scratch_bytes, target
from . import compile as compiling

_TENSOR_MEMORY = 512  # columns of a Blackwell's tensor memory, the limit that Triton checks at launch


def warm() -> None:
    compiling.warm()


def run(request: CodegenRequest, tensors: dict[str, Tensor]) -> tuple[CodegenReply, dict[str, Tensor]]:
    """Compile each source for its target."""
    torch.set_num_threads(1)
    kernels, binaries = [], dict[str, Tensor]()
    for number, source in enumerate(request.sources):
        try:
            kernel = _compile(source, Path(f"{number}.ttir"))
        except Exception as error:  # noqa: BLE001  whatever the compiler says is the finding
            kernels.append(Compiled(compiling.describe(error)))
            continue
        found = kernel.metadata
        kernels.append(Compiled("", found.num_warps, found.shared, scratch_bytes(found)))
        binaries[f"binary.{number}"] = torch.frombuffer(bytearray(kernel.kernel), dtype=torch.uint8)
    return CodegenReply(triton.__version__, tuple(kernels)), binaries


def _compile(source: KernelSource, path: Path) -> Any:
    """Raises: OutOfResources: no launch of the kernel fits the target."""
    path.write_text(source.text)
    kernel = compiler.compile(str(path), target(source.target), dict(source.options))
    shared, columns = kernel.metadata.shared, getattr(kernel.metadata, "tmem_size", None) or 0
    if shared > (most := SHARED_BYTES[source.target]):
        raise OutOfResources(shared, most, "shared memory")
    if columns > _TENSOR_MEMORY:
        raise OutOfResources(columns, _TENSOR_MEMORY, "tensor memory")
    return kernel
