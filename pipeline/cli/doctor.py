"""Reports the versions and resources of this machine, and tests the layers of the sandbox."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import platform
import shutil
from dataclasses import dataclass

from rich.console import Group

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.isolation_check import ALLOWED, Layer, attempt_escapes, describe_layers

from .console import titled_table

_PACKAGES = ("torch", "triton", "apache-beam", "datasets", "pyarrow", "tree-sitter", "huggingface-hub")


@dataclass(frozen=True, slots=True)
class Examined:
    """The layers, the escape attempts and the GPUs of this machine."""

    layers: tuple[Layer, ...]
    attempts: dict[str, str]  # forbidden act -> name of the error that stopped it, or "allowed"
    gpus: tuple[str, ...]  # names

    @property
    def allowed(self) -> list[str]:
        """The forbidden acts that a guest could do."""
        return [act for act, result in self.attempts.items() if result == ALLOWED]

    @property
    def conclusion(self) -> str:
        """One line: can this machine build, and does the sandbox hold?"""
        if self.allowed:
            return f"NOT SAFE: a guest could {', '.join(self.allowed)}: use a throw-away container without credentials"
        active = sum(layer.active for layer in self.layers)
        kernels = "run on the GPU" if self.gpus else "run in Triton's interpreter, since there is no GPU"
        return (
            f"READY: all {len(self.attempts)} escape attempts were stopped, {active} of {len(self.layers)} layers are "
            f"active; kernels {kernels}"
        )


def examine() -> Examined:
    """Start a sandbox, list its layers, and let a guest try to escape."""
    import torch

    with Sandbox() as sandbox:
        layers, attempts = describe_layers(sandbox), attempt_escapes(sandbox)
    names = tuple(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return Examined(layers, attempts, names)


def render_doctor(examined: Examined) -> Group:
    """Tables of the machine, of the layers, and of the attempts to escape."""
    gpus = ", ".join(examined.gpus) or "none that torch can use"
    return Group(
        titled_table("machine", [*_machine(), ("gpu", gpus), *((name, _version(name)) for name in _PACKAGES)]),
        titled_table("sandbox layers", [(each.name, each.state, f"[dim]{each.covers}[/]") for each in examined.layers]),
        titled_table(
            "escape attempts of a guest, and what stopped them",
            [(act, _in_words(result)) for act, result in examined.attempts.items()],
        ),
        "",
    )


def _in_words(result: str) -> str:
    """`no such process (ESRCH)`: the name of an error with the system's words for it."""
    number = getattr(errno, result, None)
    return result if number is None else f"{os.strerror(number).lower()} ({result})"


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
