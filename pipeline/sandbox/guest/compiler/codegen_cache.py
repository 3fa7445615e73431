"""Stages of Triton's compiler that do nothing twice."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import wraps
from types import ModuleType
from typing import Any

Stage = Callable[[Any, str, MutableMapping[str, Any], Any, int], Any]


# From this capability on, Triton asks for what one architecture alone has (`sm_90a`).
_OWN = 90
# Options that say which GPU it is, and what the front end lets kernels for it do; what that did stands in the source.
_OF_THE_GPU = ("arch", "supported_fp8_dtypes", "deprecated_fp8_dot_operand_dtypes", "max_num_imprecise_acc_default")


def once(stage: Stage) -> Stage:
    """`stage(backend, source, metadata, options, capability)` for stages whose source is text: to PTX, and to binaries.

    Triton compiles a kernel anew for sizes that 16 divides and for sizes that it does not, and for one code in four
    that makes no difference to what LLVM is given in the end. Nor does the GPU, for nine in ten. PTX that asks for
    nothing that one architecture alone has is PTX for all later GPUs, and NVIDIA's assembler takes it for them: what
    was made of a source for `sm_80` stands for what would be made of it for `sm_90` and `sm_100`.
    """
    known: dict[Any, dict[int, tuple[Any, dict[str, Any]]]] = {}

    @wraps(stage)
    def run(backend: Any, source: str, metadata: MutableMapping[str, Any], options: Any, capability: int) -> Any:
        told = frozenset(item for item in vars(options).items() if item[0] not in _OF_THE_GPU)
        made = known.setdefault((source, told), {})
        like = next((other for other in made if other == capability or other < min(capability, _OWN)), None)
        if like is None:
            written, like = dict(metadata), capability
            result = stage(backend, source, written, options, capability)
            made[like] = result, {name: value for name, value in written.items() if metadata.get(name) != value}
        result, added = made[like]
        metadata.update(added)
        return result

    return run


class Optimizer:
    """Stands where a backend of Triton has LLVM, and links and optimises equal modules once.

    The backend for NVIDIA tells neither the optimiser nor the linker its target, and what it gives them for `sm_80`,
    `sm_90` and `sm_100` is the same for nine kernels in ten.
    """

    def __init__(self, llvm: ModuleType) -> None:
        self._llvm = llvm
        self._known: dict[Any, str] = {}
        self._libraries: tuple[str, ...] = ()
        self._text = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llvm, name)

    def link_extern_libs(self, module: Any, paths: list[str]) -> None:
        """Waits until the module is optimised, as all are."""
        self._libraries = tuple(paths)

    def optimize_module(self, module: Any, *options: Any) -> None:
        """Of a module that is known, `module` stays as it is; `taken` has the result."""
        libraries, self._libraries = self._libraries, ()
        key = str(module), libraries, tuple(map(str, options))
        if key not in self._known:
            if libraries:
                self._llvm.link_extern_libs(module, list(libraries))
            self._llvm.optimize_module(module, *options)
            self._known[key] = str(module)
        self._text = self._known[key]

    def taken(self, stage: Callable[..., str]) -> Callable[..., str]:
        """`stage`, which gives the text of the one module that it optimises."""

        @wraps(stage)
        def run(*args: Any, **kwargs: Any) -> str:
            stage(*args, **kwargs)
            return self._text

        return run
