"""Trees of arguments and results as JSON, with their tensors in a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import SymInt, Tensor


def fill(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """The arguments that a workload's tree describes: `{"tensor": i}` stands for `tensors[i]`."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            return tensors[tree["tensor"]]
        return {key: fill(value, tensors) for key, value in tree.items()}
    if isinstance(tree, list):
        return [fill(value, tensors) for value in tree]
    return tree


def flatten(value: Any, tensors: list[Tensor]) -> Any:
    """The tree of a result: `{"tensor": i}`, `{"tuple": [...]}`, `{"list": [...]}`, `{"dict": [[key, value], ...]}` or
    `{"value": plain}`. Its tensors, and the symbolic sizes of a trace, are added to `tensors`.

    Raises:
        TypeError: the result holds another type.
    """
    if isinstance(value, Tensor | SymInt):
        tensors.append(value)  # type: ignore[arg-type]  # traces have symbolic sizes
        return {"tensor": len(tensors) - 1}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [flatten(item, tensors) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), flatten(item, tensors)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"a result of type {type(value).__name__}")


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors in arguments or in a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))
