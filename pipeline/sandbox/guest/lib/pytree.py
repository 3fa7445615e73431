"""Trees of arguments and results as JSON, with the tensors in a list beside them."""

from __future__ import annotations

from collections.abc import Sequence
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
    `{"value": plain}`; its tensors are added to `tensors`, and so are the sizes that a trace has symbols for.

    Raises:
        TypeError: it holds something else.
    """
    if isinstance(value, Tensor | SymInt):
        tensors.append(value)  # type: ignore[arg-type]  # whoever traces takes sizes too
        return {"tensor": len(tensors) - 1}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [flatten(item, tensors) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), flatten(item, tensors)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"a result of type {type(value).__name__}")
