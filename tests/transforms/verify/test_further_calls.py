"""The plan of calls beyond the trials."""

from __future__ import annotations

from dataclasses import replace

from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS, ECHOED, ENDS, MASKED, PADDED
from kernelquarry.pipeline.sandbox.jobs.calls import CONSTRUCTOR
from kernelquarry.pipeline.schema.records import Purity, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.verify.further_calls import FurtherCall, further_calls
from kernelquarry.transforms.verify.task import FAR, FLIPPED, PlannedTrial, Task, exact_values
from kernelquarry.transforms.workloads.resize import count_elements


def workload(*shapes: tuple[int, ...]) -> Workload:
    specs = tuple(TensorSpec(f"x{at}", shape, "float32") for at, shape in enumerate(shapes))
    return Workload(specs, "[" + ", ".join(f'{{"tensor":{at}}}' for at in range(len(shapes))) + "]")


TASK = Task(
    id="mod_x", python_code="F.softmax(x, -1)", triton_code="one", init_args="[]",
    workloads=(workload((4, 8)), workload((5, 9)), workload((7, 16))),
    state=(StateSpec("weight", "parameter", (8,), "float32", 0.0, 1.0, -1.0),),
    kernels=(), purity=Purity.PURE, extern_ops=(), shape_general=True, by_model=True,
)  # fmt: skip


def shape(call: FurtherCall) -> tuple[int, ...]:
    return call.workload.tensors[0].shape


def test_the_plan_crosses_kinds_of_values_with_kinds_of_sizes() -> None:
    calls = [call for call in further_calls(TASK) if call.resized]
    for axis in (0, 1):
        long = [call for call in calls if shape(call)[axis] > 1024]
        kinds = {"columns", "level", MASKED, "normal"}
        assert {call.distribution for call in long} == kinds | ({"assorted", "ending"} if axis else set()), (
            "not of many rows"
        )
        of_kinds = [shape(call) for call in long if call.distribution in ("assorted", "level")]
        lengths = {sizes[axis] for sizes in of_kinds if sizes[1 - axis] >= 13}
        assert any(n % 2 for n in lengths)
        assert 3 * 1024 in lengths, "three blocks of any usual size"
        assert any(shape(call)[axis] > (65_536, 200_000)[axis] for call in long)
    assert any(min(shape(call)) > 512 for call in calls)
    assert {(1, 3 << 16), (1, (1 << 12) + 1)} <= {*map(shape, calls)}
    plain = [
        call for call in further_calls(replace(TASK, python_code="x + 1")) if max(shape(call)) in (3 << 12, 3 << 14)
    ]
    assert {call.distribution for call in plain} == {"normal"}
    assert {"normal", "small", ECHOED, "columns", "assorted", "level", "ending", MASKED} == {
        call.distribution for call in calls
    }
    assert all(call.distribution in DISTRIBUTIONS for call in calls)


def test_each_size_of_the_files_own_call_is_tried_with_few_others() -> None:
    shapes = {shape(call) for call in further_calls(replace(TASK, given=workload((60_000, 8192))))}
    assert {(60_000, 4), (4, 8192)} <= shapes


def test_an_axis_next_to_fixed_ones_is_long_too() -> None:
    wide = replace(TASK, workloads=(workload((2, 64, 100)), workload((3, 64, 90))))
    assert max(shape(call)[2] for call in further_calls(wide)) > 1024


def test_programs_run_in_each_order_and_masked_loads_give_zeros() -> None:
    conditions = {name for call in further_calls(TASK) if call.resized for name in call.perturbations}
    assert conditions == {"reverse", "random", "zero_masked"}


def test_the_first_workload_is_called_with_other_weights() -> None:
    weights = [call.weights for call in further_calls(TASK) if call.workload == TASK.workloads[0]]
    assert weights == ["", CONSTRUCTOR, FAR, FLIPPED]
    assert {call.distribution for call in further_calls(TASK) if call.weights == FLIPPED} == {"assorted"}
    assert {call.weights for call in further_calls(replace(TASK, state=()))} == {""}


def test_a_candidate_of_one_shape_is_called_in_no_other() -> None:
    calls = further_calls(replace(TASK, shape_general=False))
    assert {call.workload for call in calls} == {TASK.workloads[0]} and not any(call.resized for call in calls)


def test_inputs_of_one_shape_are_one_tensor_in_one_call() -> None:
    both = replace(TASK, workloads=(workload((4, 8), (4, 8)), workload((5, 9), (5, 9))))
    assert [call.one_tensor for call in further_calls(both)].count(True) == 1
    assert not any(call.one_tensor for call in further_calls(TASK))


def test_masks_are_for_modules_that_name_one() -> None:
    distributions = {
        text: {call.distribution for call in further_calls(replace(TASK, python_code=text))} & {MASKED, PADDED}
        for text in ("F.gelu(x)", "F.softmax(x, -1)", "F.softmax(x + mask, -1)", "F.gelu(x)  # no softmax")
    }
    assert [*distributions.values()] == [set(), {MASKED}, {PADDED}, set()]


def test_numbers_beyond_int32_are_for_modules_that_round() -> None:
    drawn = [
        "beyond" in {call.distribution for call in further_calls(replace(TASK, python_code=text))}
        for text in ("torch.floor(x)", "torch.remainder(x, 3.0)", "x % 1.0", "x", "torch.floor(x).long()")
    ]
    assert drawn == [True, True, True, False, False]


def test_ends_of_a_range_are_tried_where_there_is_one() -> None:
    ranged = replace(TASK.workloads[0], tensors=(TensorSpec("x0", (4, 8), "float32", 0, 1),))
    tasks = TASK, replace(TASK, workloads=(ranged, *TASK.workloads[1:]))
    assert [ENDS in {call.distribution for call in further_calls(task)} for task in tasks] == [False, True]
    end = PlannedTrial(0, 0, ENDS)
    assert [sorted(exact_values(task, end)) for task in tasks] == [[0], [0, 1]]


def test_huge_numbers_are_for_half_types() -> None:
    halves = [replace(each, tensors=(replace(each.tensors[0], dtype="float16"),)) for each in TASK.workloads]
    half = replace(TASK, workloads=tuple(halves))
    assert ["huge" in {call.distribution for call in further_calls(task)} for task in (TASK, half)] == [False, True]


def test_calls_exceed_what_loops_and_grids_of_a_fixed_length_cover() -> None:
    persistent = replace(TASK, triton_code="for k in range(8):\n    kernel[(132,)](x, BLOCK=1024)")
    counts = {count_elements(call.workload) for call in further_calls(persistent)}
    assert any(0 < count - 5 * 8 * 132 * 1024 // 4 < 100 for count in counts)


def test_calls_exceed_what_one_block_of_a_second_kernel_combines() -> None:
    kernels = "".join(f"@triton.jit\ndef {name}(x, out, BLOCK):\n    pass\n" for name in ("partial", "finish"))
    one = replace(TASK, triton_code=f"import triton\n{kernels}partial[(n,)](x, part, BLOCK=1024)")
    two = replace(one, triton_code=f"{one.triton_code}\nfinish[(1,)](part, out, BLOCK=512)")
    largest = [max(count_elements(call.workload) for call in further_calls(task)) for task in (one, two)]
    assert largest[0] < 1024 * 512 < 1024 * 1024 < largest[1]


def test_a_size_with_which_a_kernel_compares_is_exceeded_next_to_a_fixed_one() -> None:
    capped = replace(TASK, triton_code="row < 4096", workloads=(workload((4, 192)), workload((5, 192))))
    assert 4097 in {shape(call)[0] for call in further_calls(capped)}
    unlimited = replace(capped, triton_code="4097")
    assert 4097 not in {shape(call)[0] for call in further_calls(unlimited)}


def test_a_size_of_one_requires_that_the_reference_accepts_another() -> None:
    ones = [call for call in further_calls(TASK) if 1 in shape(call)]
    assert len(ones) == 4 and all(call.requires is not None for call in ones)


def test_a_state_that_is_not_drawn_has_no_other_weights() -> None:
    mask = StateSpec("mask", "buffer", (8, 8), "float32", 0.5, 0.5, 0.0)
    assert not any(call.weights for call in further_calls(replace(TASK, state=(mask,))))
    assert {CONSTRUCTOR, FAR} <= {call.weights for call in further_calls(replace(TASK, state=(mask, *TASK.state)))}
