"""Kinds of aten operators that compute nothing, by name without the namespace. Host and guest share them."""

from __future__ import annotations

# Operators that compute nothing. All others are reported, so a missing one errs on the safe side.
ALLOCATE = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"},
)
INITIALISE = frozenset(
    {"zeros", "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}
    | {"fill_", "scalar_tensor"},
)
VIEW = frozenset(
    {"alias", "as_strided", "detach", "diagonal", "expand", "lift_fresh", "permute", "reshape", "select", "slice"}
    | {"split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as"}
    | {"detach_", "view_as_complex", "view_as_real", "_reshape_alias", "_unsafe_view", "unsafe_split"},
)
COPY = frozenset({"clone", "copy_", "contiguous"})
ASK = frozenset({"can_cast", "is_same_size", "promote_types"})  # queries of dtypes and shapes
FREE = ALLOCATE | INITIALISE | VIEW | COPY | ASK
