"""What this machine offers a run: versions, cores, memory, and the layers of the sandbox."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil

from rich.console import Group
from rich.table import Table

from .sandbox import Sandbox

_PACKAGES = ("torch", "triton", "apache-beam", "datasets", "pyarrow", "tree-sitter", "huggingface-hub")


def render_doctor() -> Group:
    """Starts a sandbox and says what it found, layer by layer."""
    machine = Table(title="machine", title_justify="left", box=None, show_header=False)
    machine.add_row("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    machine.add_row("python", platform.python_version())
    machine.add_row("cores", str(os.cpu_count()))
    machine.add_row("free disk", f"{shutil.disk_usage('.').free / 2**30:.1f} GiB here")
    for package in _PACKAGES:
        machine.add_row(package, importlib.metadata.version(package))
    layers = Table(title="sandbox", title_justify="left", box=None, show_header=False)
    with Sandbox() as sandbox:
        for layer, state in sandbox.layers.items():
            layers.add_row(layer, state)
    return Group(machine, "", layers)
