"""Reports the versions and resources of this machine, and tests the layers of the sandbox."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil

from rich.console import Group

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.isolation_check import attempt_escapes, describe_layers

from .console import titled_table

_PACKAGES = ("torch", "triton", "apache-beam", "datasets", "pyarrow", "tree-sitter", "huggingface-hub")


def render_doctor() -> Group:
    """Start a sandbox, list its active layers, and show how they stopped a guest's attempts to escape."""
    with Sandbox() as sandbox:
        layers, attempts = describe_layers(sandbox), attempt_escapes(sandbox)
    return Group(
        titled_table("machine", [*_machine(), *((name, _version(name)) for name in _PACKAGES)]),
        titled_table("sandbox layers", [(layer.name, layer.state, f"[dim]{layer.covers}[/]") for layer in layers]),
        titled_table("escape attempts of a guest, and their results", list(attempts.items())),
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> list[tuple[str, str]]:
    return [
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("python", platform.python_version()),
        ("cores", str(os.cpu_count())),
        ("free disk here", f"{shutil.disk_usage('.').free / 2**30:.1f} GiB"),
    ]
