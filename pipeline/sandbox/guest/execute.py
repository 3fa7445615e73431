"""Guest: a candidate with a GPU of its own for a while, every launch and operator noticed.

For what a trace cannot say. The candidate's Python meets the GPU here, so a row that was verified so says it.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
from triton.backends.nvidia.driver import CudaDriver, CudaLauncher

from . import compile as compiling
from .verifying import trials, watch
from .verifying.session import session


def warm() -> None:
    """No context is made: the GPU is named, and met, in the guest."""
    compiling.warm()
    watch.warm()


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `verifying/trials.run`; `gpu` is the ordinal of the GPU. Nothing is computed in TF32 unasked."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(request["gpu"])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    driver = CudaDriver()
    driver.launcher_cls = _Launcher
    triton.runtime.driver.set_active(driver)
    return trials.run(request, tensors, torch.device("cuda"))


class _Launcher(CudaLauncher):
    """Triton's own, noticed, and left out for a ghost."""

    def __init__(self, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        self._name = metadata.name

    def __call__(self, x: int, y: int, z: int, *arguments: Any) -> None:
        try:
            if not session.skip:
                super().__call__(x, y, z, *arguments)
        except Exception as error:
            session.failed.append(f"{self._name}: {type(error).__name__}: {error}")
            raise
        session.launches.append((self._name, (x, y, z)))
