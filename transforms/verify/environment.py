"""What a verdict on a machine without a GPU was reached on."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.provenance import Environment


def environment(sandbox: Sandbox) -> Environment:
    return Environment(
        python=platform.python_version(),
        torch=_version("torch"),
        triton=_version("triton"),
        device="cpu-interpreter",
        driver="",
        sandbox=canonical(dict(sandbox.layers)),
    )


@cache
def _version(package: str) -> str:
    return version(package)
