"""Names of sizes, by the usual meaning of an axis: "batch", "channels", "height"."""

from __future__ import annotations

IMAGE_AXES = {4: {1: "channels", 2: "height", 3: "width"}, 5: {1: "channels", 2: "depth", 3: "height", 4: "width"}}


def axis_word(rank: int, dim: int) -> str:
    """A name for an axis of a tensor of this rank."""
    if dim == 0:
        return "batch"
    default = "length" if (rank == 3 and dim == 2) or (dim == 1 and rank in (2, 3)) else f"dim{dim}"
    return IMAGE_AXES.get(rank, {}).get(dim, default)
