"""Description of the machine that reaches a verdict."""

from __future__ import annotations

import platform
from importlib.metadata import version

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.layers import OFF
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.provenance import Environment


def environment(sandbox: Sandbox) -> Environment:
    """Versions, device and sandbox layers of this machine.

    A layer that is off is "off", without its reason, which may name the machine's folders.
    """
    gpu = sandbox.gpus.description if sandbox.gpus else None
    return Environment(
        python=platform.python_version(),
        torch=version("torch"),
        triton=version("triton"),
        device=gpu.name if gpu else "cpu-interpreter",
        driver=gpu.driver if gpu else "",
        sandbox=canonical({name: "off" if state.startswith(OFF) else state for name, state in sandbox.layers.items()}),
    )
