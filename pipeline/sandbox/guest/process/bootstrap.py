"""Script that starts a warm process, before torch is imported.

Of the project, a guest can import `sandbox/guest` and the modules that it shares with the host. The rest is hidden: a
mined source must not import `kernelquarry.transforms`, and no guest may run the host's code.
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_SANDBOX = "kernelquarry.pipeline.sandbox"
_ROOMS = ("guest", "jobs", "protocol", "layers", "cuda", "operator_kinds", "tensor_map", "timing_inputs")
_SHARED = tuple(f"{_SANDBOX}.{name}" for name in _ROOMS)


class _GuestFinder(MetaPathFinder):
    """Finds the modules of `kernelquarry`, before any other finder does."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "kernelquarry":
            return None
        if any(name == shared or name.startswith(f"{shared}.") for shared in _SHARED):
            return PathFinder.find_spec(name, path, target)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _hide_project() -> None:
    folder = str(Path(__file__).resolve().parents[2])
    for name, path in (("kernelquarry", []), ("kernelquarry.pipeline", []), (_SANDBOX, [folder])):
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package
    sys.meta_path.insert(0, _GuestFinder())


if __name__ == "__main__":
    _hide_project()
    zygote = importlib.import_module(f"{_SANDBOX}.guest.process.fork_server")
    zygote.main(socket.socket(fileno=int(sys.argv[1])))
