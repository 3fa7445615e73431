"""Repeated sizes of a function get a line and a name."""

from __future__ import annotations

from kernelquarry.transforms.tidy.forward.repeated_sizes import name_sizes


def test_a_size_is_named_after_its_axis() -> None:
    lines = [
        "# self.conv(x)",
        "conv = torch.empty((batch, 8, (height + 3) // 4, width // 2), device=x.device)",
        "conv_kernel[(triton.cdiv((height + 3) // 4 * (width // 2), 32),)](x, conv, (height + 3) // 4)",
        "return (conv, width // 2)",
    ]
    assert name_sizes(lines, {"conv_width"}) == [
        "conv_height = (height + 3) // 4",
        "conv_width_2 = width // 2",
        "# self.conv(x)",
        "conv = torch.empty((batch, 8, conv_height, conv_width_2), device=x.device)",
        "conv_kernel[(triton.cdiv(conv_height * conv_width_2, 32),)](x, conv, conv_height)",
        "return (conv, conv_width_2)",
    ]


def test_larger_sizes_are_computed_from_smaller_ones() -> None:
    lines = [f"k[n](height // 2, (height // 2 + 1) // 2, out_{number})" for number in range(3)]
    assert name_sizes(lines, set()) == [
        "size = height // 2",
        "size_2 = (size + 1) // 2",
        *(f"k[n](size, size_2, out_{number})" for number in range(3)),
    ]


def test_a_size_used_twice_stays() -> None:
    lines = ["a = torch.empty((height // 2,))", "k[n](a, height // 2)", "k[n](a, x[index // 2])"]
    assert name_sizes(lines, set()) == lines
