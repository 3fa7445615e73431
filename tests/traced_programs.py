"""A program as a guest writes it: `out = 2 * (x + weight)`, with an intermediate buffer."""

from __future__ import annotations

from typing import Any

SIZE = 6


def view(storage: int, shape: list[int], offset: int = 0, strides: list[int] | None = None) -> dict[str, Any]:
    strides = strides if strides is not None else [1] * len(shape)
    return {"storage": storage, "dtype": "float32", "shape": shape, "strides": strides, "offset": offset}


def kernel(name: str) -> dict[str, Any]:
    return {"name": name, "symbol": name, "sha256": f"hash of {name}", "warps": 4, "shared": 0, "scratch": [0, 0]}


def doubled_sum() -> dict[str, Any]:
    size = 4 * SIZE
    return {
        "storages": [
            {"bytes": size, "origin": "state.weight"},
            {"bytes": size, "origin": "input.0"},
            {"bytes": size, "origin": ""},
            {"bytes": size, "origin": ""},
        ],
        "named": {"state.weight": view(0, [SIZE]), "input.0": view(1, [SIZE])},
        "steps": [
            {"launch": 0, "grid": [1, 1, 1], "arguments": [["*", 1, 0], ["*", 0, 0], ["*", 2, 0], ["i32", SIZE]]},
            {
                "launch": 1,
                "grid": [1, 1, 1],
                "arguments": [["*", 2, 0], ["*", 3, 0], ["i32", SIZE], ["fp32", "0x1p+1"]],
            },
        ],
        "tree": {"tensor": 0},
        "outputs": [view(3, [SIZE])],
    }
