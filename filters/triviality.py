"""Filter of rows whose module computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection

# aten operators that create, view or copy tensors. Operators that compute indices (cat, pad, roll, gather, ...) are not
# listed: their kernels are useful for training.
MOVEMENT = frozenset(
    {
        "_reshape_alias", "_shape_as_tensor", "_to_copy", "_unsafe_view", "alias", "arange", "as_strided",
        "broadcast_to", "chunk", "clone", "contiguous", "convert_element_type", "copy", "copy_", "detach",
        "diagonal", "empty", "empty_like", "empty_strided", "expand", "expand_as", "fill", "fill_", "flatten",
        "full", "full_like", "lift_fresh", "lift_fresh_copy", "movedim", "narrow", "new_empty",
        "new_empty_strided", "new_full", "new_ones", "new_zeros", "numpy_T", "ones", "ones_like", "permute",
        "ravel", "reshape", "scalar_tensor", "select", "size", "slice", "split", "split_with_sizes", "squeeze",
        "stride", "sym_numel", "sym_size", "sym_stride", "t", "to", "transpose", "transpose_", "unbind",
        "unflatten", "unsafe_chunk", "unsafe_split", "unsqueeze", "unsqueeze_", "view", "view_as", "zero_",
        "zeros", "zeros_like",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Triviality:
    """Drops modules that run fewer computing operators than `at_least`."""

    at_least: int = 1

    def __call__(self, row: Row) -> Objection | None:
        if (computing := self.measure(row)) >= self.at_least:
            return None
        return Objection(Reason.TRIVIAL, f"{computing} computing operators of {', '.join(row.operators)}")

    def measure(self, row: Row) -> int:
        """Number of distinct operators that compute."""
        return sum(base_name(operator) not in MOVEMENT for operator in row.operators)


def base_name(operator: str) -> str:
    """Name of an operator without namespace and overload: `add` for `aten.add.Tensor` and `aten::add`."""
    namespace, _, rest = operator.replace("::", ".").partition(".")
    return (rest if namespace in ("aten", "prims") else operator).partition(".")[0]
