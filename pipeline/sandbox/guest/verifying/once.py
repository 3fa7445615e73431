"""A stage of Triton's compiler that does nothing twice."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import wraps
from typing import Any

Stage = Callable[[Any, str, MutableMapping[str, Any], Any, int], Any]


def once(stage: Stage) -> Stage:
    """`stage(backend, source, metadata, options, capability)` for stages whose source is text.

    Triton compiles a kernel anew for sizes that 16 divides and for sizes that it does not, and for one code in four
    that makes no difference to what LLVM is given in the end.
    """
    known: dict[Any, tuple[Any, dict[str, Any]]] = {}

    @wraps(stage)
    def run(backend: Any, source: str, metadata: MutableMapping[str, Any], options: Any, capability: int) -> Any:
        key = backend.target, source, options.hash(), capability
        if key not in known:
            written = dict(metadata)
            result = stage(backend, source, written, options, capability)
            known[key] = result, {name: value for name, value in written.items() if metadata.get(name) != value}
        result, added = known[key]
        metadata.update(added)
        return result

    return run
