"""What a verdict was reached on."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.provenance import Environment


def environment(sandbox: Sandbox) -> Environment:
    """This machine, with the GPUs of the sandbox if it has any."""
    gpu = sandbox.gpus.description if sandbox.gpus else None
    return Environment(
        python=platform.python_version(),
        torch=_version("torch"),
        triton=_version("triton"),
        device=gpu.name if gpu else "cpu-interpreter",
        driver=gpu.driver if gpu else "",
        sandbox=canonical(dict(sandbox.layers)),
    )


@cache
def _version(package: str) -> str:
    return version(package)
