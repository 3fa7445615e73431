"""Where a warm process starts: a script, run by path with `python -I`, before torch is imported.

It makes one part of the project importable, this folder and what it shares with the host, and hides the
rest: a mined source must not get `kernelquarry.transforms`, and nothing here may run code of the host's.
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
_ROOMS = ("guest", "jobs", "protocol", "layers", "cuda", "tensor_map", "timing_inputs")
_SHARED = tuple(f"{_SANDBOX}.{name}" for name in _ROOMS)


class _GuestFinder(MetaPathFinder):
    """Answers for `kernelquarry` alone, before any other finder does."""

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
