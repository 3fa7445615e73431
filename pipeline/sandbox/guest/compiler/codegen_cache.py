"""Cache of the stages of Triton's compiler."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import wraps
from types import ModuleType
from typing import Any

Stage = Callable[[Any, str, MutableMapping[str, Any], Any, int], Any]

# Options of the GPU and of the front end, whose effects are in the source.
_OF_THE_GPU = ("arch", "supported_fp8_dtypes", "deprecated_fp8_dot_operand_dtypes", "max_num_imprecise_acc_default")


def once(stage: Stage) -> Stage:
    """Cache a stage `stage(backend, source, metadata, options, capability)` whose source is text.

    Triton compiles a kernel separately for sizes that are divisible by 16 and for others; one kernel in four gives LLVM
    the same module for both. Each GPU has results of its own: a binary for `sm_80` does not run on `sm_90`.
    """
    known: dict[Any, tuple[Any, dict[str, Any]]] = {}

    @wraps(stage)
    def run(backend: Any, source: str, metadata: MutableMapping[str, Any], options: Any, capability: int) -> Any:
        key = source, capability, frozenset(item for item in vars(options).items() if item[0] not in _OF_THE_GPU)
        if key not in known:
            written = dict(metadata)
            result = stage(backend, source, written, options, capability)
            known[key] = result, {name: value for name, value in written.items() if metadata.get(name) != value}
        result, added = known[key]
        metadata.update(added)
        return result

    return run


class Optimizer:
    """Replaces LLVM in a backend of Triton; links and optimises equal modules once.

    The backend for NVIDIA passes no target to the optimiser and the linker, and its modules for `sm_80`, `sm_90` and
    `sm_100` are equal for nine kernels in ten.
    """

    def __init__(self, llvm: ModuleType) -> None:
        self._llvm = llvm
        self._known: dict[Any, str] = {}
        self._libraries: tuple[str, ...] = ()
        self._text = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llvm, name)

    def link_extern_libs(self, module: Any, paths: list[str]) -> None:
        """Remember the libraries until `optimize_module`, which follows for all modules."""
        self._libraries = tuple(paths)

    def optimize_module(self, module: Any, *options: Any) -> None:
        """Optimise a module, or look up the result, which `taken` returns; then `module` is not changed."""
        libraries, self._libraries = self._libraries, ()
        key = str(module), libraries, tuple(map(str, options))
        if key not in self._known:
            if libraries:
                self._llvm.link_extern_libs(module, list(libraries))
            self._llvm.optimize_module(module, *options)
            self._known[key] = str(module)
        self._text = self._known[key]

    def taken(self, stage: Callable[..., str]) -> Callable[..., str]:
        """Wrap `stage` to return the text of the module that it optimises."""

        @wraps(stage)
        def run(*args: Any, **kwargs: Any) -> str:
            stage(*args, **kwargs)
            return self._text

        return run
