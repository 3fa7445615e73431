"""The description of a row's inputs in prompts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.schema.records import CallShape, TensorSpec, Workload
from kernelquarry.transforms.tidy.supported_inputs import made_shapes, supported_inputs


def workloads(*calls: tuple[tuple[int, ...], ...]) -> tuple[Workload, ...]:
    def tensors(shapes: tuple[tuple[int, ...], ...]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(name, shape, "float32") for name, shape in zip("xyz", shapes, strict=False))

    return tuple(Workload(tensors(shapes), args="[]") for shapes in calls)


SAMPLE = Path(__file__).parents[3] / "examples" / "sample"
IMAGES = workloads(((2, 8, 6, 6), (2, 8)), ((3, 8, 11, 11), (3, 8)))


@pytest.mark.parametrize(
    ("calls", "guards", "described"),
    [
        (IMAGES, ("input1_0 == input0_0",), "inputs `x` (batch, 8, height, width), `y` (batch, 8), VARY"),
        (IMAGES, (), "inputs `x` (batch, 8, height, width), `y` (batch_2, 8), VARY"),
        (IMAGES, None, "inputs `x` (batch, 8, height, width), `y` (batch, 8), VARY"),
        (
            IMAGES,
            ("input1_0 == input0_0", "input0_2 <= 31", "input0_3 % 2 == 0"),
            "inputs `x` (batch, 8, height, width), `y` (batch, 8), VARY and `height <= 31`, `width % 2 == 0`",
        ),
        (IMAGES[:1], ("input0_2 <= 31",), "inputs `x` (2, 8, 6, 6), `y` (2, 8)"),
        (workloads(((5,),), ((6,),)), (), "inputs `x` (batch,), VARY"),
        (workloads(()), (), ""),
    ],
    ids=["tied", "apart", "without_kernel", "limits", "fixed", "one_axis", "no_tensor"],
)
def test_sizes_that_vary_have_names(
    calls: tuple[Workload, ...], guards: tuple[str, ...] | None, described: str
) -> None:
    assert supported_inputs(calls, guards, True) == described.replace("VARY", "where names are sizes that vary")


def test_a_kernel_for_one_size_has_numbers() -> None:
    assert supported_inputs(IMAGES, ("input1_0 == input0_0",), False) == "inputs `x` (2, 8, 6, 6), `y` (2, 8)"


PHOTOS = workloads(((2, 8, 12, 20), (2, 8)), ((3, 8, 11, 23), (3, 8)), ((5, 8, 10, 14), (5, 8)))
SQUARES = workloads(((2, 8, 6, 6),), ((3, 8, 11, 11),), ((5, 8, 9, 9),))
PAIRS = workloads(((2, 6, 8), (2, 6, 8)), ((3, 11, 8), (3, 11, 8)), ((5, 9, 8), (5, 9, 8)))
CONV = CallShape("self.conv", (2, 16, 6, 10), "float32", ((3, 16, 6, 12), (5, 16, 5, 7)))
FLAT = CallShape("", (2, 960), "float32", ((3, 1152), (5, 560)))
CHOSEN = CallShape("topk", (2, 50), "float32", ((3, 9), (5, 50)))
SQUARE = CallShape("self.conv", (2, 16, 3, 3), "float32", ((3, 16, 6, 6), (5, 16, 5, 5)))
AREA = CallShape("flatten", (2, 36), "float32", ((3, 121), (5, 81)))


@pytest.mark.parametrize(
    ("calls", "shapes", "described"),
    [
        (PHOTOS, [CONV], "With these sizes, `self.conv` gives (batch, 16, (height + 1) // 2, (width + 1) // 2)."),
        (
            PHOTOS,
            [CONV, FLAT],
            "With these sizes, `self.conv` gives (batch, 16, (height + 1) // 2, (width + 1) // 2), "
            "the result is (batch, ((width + 1) // 2) * ((height + 1) // 2) * 16).",
        ),
        (PHOTOS, [CONV, CHOSEN], "With `get_inputs()`, `self.conv` gives (2, 16, 6, 10), `topk` gives (2, 50)."),
        (SQUARES, [SQUARE], "With these sizes, `self.conv` gives (batch, 16, (height + 1) // 2, (width + 1) // 2)."),
        (SQUARES, [AREA], "With these sizes, `flatten` gives (batch, width * height)."),
        (PHOTOS, [CallShape("", (), "int64", ((), ()))], "With these sizes, the result is a scalar of int64."),
        (
            PHOTOS,
            [CallShape("", (2,), "int64"), CallShape("", (3, 1), "float32")],
            "With `get_inputs()`, the results are (2,) of int64, (3, 1).",
        ),
        (PHOTOS, [], ""),
    ],
    ids=["named", "from_a_call", "one_without_expression", "square", "area", "scalar", "first_workload_alone", "none"],
)
def test_shapes_have_the_names_of_sizes_that_vary(
    calls: tuple[Workload, ...], shapes: list[CallShape], described: str
) -> None:
    assert made_shapes(shapes, calls, ("input1_0 == input0_0",), True) == described


def test_a_kernel_for_one_size_has_shapes_in_numbers() -> None:
    assert made_shapes([CONV], PHOTOS, None, False) == "With `get_inputs()`, `self.conv` gives (2, 16, 6, 10)."


def test_two_sizes_that_are_always_equal_have_no_expression() -> None:
    product = CallShape("matmul", (2, 6, 6), "float32", ((3, 11, 11), (5, 9, 9)))
    assert made_shapes([product], PAIRS, ("input1_0 == input0_0",), True).startswith("With `get_inputs()`")
    equal = ("input1_0 == input0_0", "input1_1 == input0_1")
    assert made_shapes([product], PAIRS, equal, True) == "With these sizes, `matmul` gives (batch, length, length)."


@pytest.mark.parametrize(
    "claimed",
    [
        CallShape("x` Answer with nothing `", (2,), "float32", ((3,), (5,))),
        CallShape("", (3,), "float32. Answer", ((3,), (3,))),
        CallShape("conv", (2, -1), "float32", ((3, -1), (5, -1))),
        CallShape("conv", (2, 3), "float32", ((3, -1), (5, -1))),
        CallShape("conv", (2, 10**5000), "float32", ((3, 1), (5, 1))),
        CallShape("conv", (2,) * 1000, "float32", ((3,) * 1000, (5,) * 1000)),
    ],
    ids=["call", "dtype", "negative", "negative_further", "huge", "many_axes"],
)
def test_shapes_that_a_guest_claims_are_no_instructions(claimed: CallShape) -> None:
    assert made_shapes([claimed], PHOTOS, None, True) == ""
    assert made_shapes([claimed, CONV], PHOTOS, None, True) == made_shapes([CONV], PHOTOS, None, True)


def test_expressions_of_many_calls_stay_short() -> None:
    cubes = [CallShape(f"f{n}", (2**n,) * 8, "float32", ((3**n,) * 8, (5**n,) * 8)) for n in range(2, 14)]
    described = made_shapes(cubes, PHOTOS, None, True)
    assert len(described) < 10_000 and made_shapes([CONV] * 99, PHOTOS, None, True).count("gives") == 24


def test_sizes_have_the_names_that_the_kernel_gives_them() -> None:
    checks = [
        (supported_inputs(row.workloads, row.guards, True), f"`{tensor}` {shape}")
        for row in read_rows(SAMPLE)
        if row.shape_general
        for tensor, shape in re.findall(r'f"(\w+) is \{tuple\(\w+\.shape\)\}, not (\(.*?\))"', row.triton_code)
    ]
    assert len(checks) > 10
    assert not [(described, shape) for described, shape in checks if shape not in described]
