"""Free sizes of a row's workloads, and the same call at others."""

from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.workloads.resize import (
    at_numbers,
    enlarged,
    exceed_numel,
    free_sizes,
    large,
    lengthened,
    multiplied,
    non_square,
    resized,
    rounded,
    single,
    square,
    unforeseen,
    wide,
)


def of_shapes(*shapes: tuple[int, ...]) -> Workload:
    return Workload(tuple(TensorSpec(f"x{i}", shape, "float32") for i, shape in enumerate(shapes)), "[]")


WORKLOADS = [of_shapes((4, 8, 16), (4, 16)), of_shapes((3, 8, 17), (3, 17)), of_shapes((7, 8, 5), (7, 5))]


def test_sizes_that_differ_between_workloads_are_free():
    assert free_sizes(WORKLOADS) == [(4, 3, 7), (16, 17, 5)]


def test_no_size_of_a_single_workload_is_free():
    assert free_sizes(WORKLOADS[:1]) == []


def test_dimensions_that_are_alike_in_all_workloads_stay_alike():
    assert resized(WORKLOADS, {(4, 3, 7): 2, (16, 17, 5): 99}) == of_shapes((2, 8, 99), (2, 99))


def test_sizes_that_are_not_named_stay():
    assert resized(WORKLOADS, {(4, 3, 7): 2}) == of_shapes((2, 8, 16), (2, 16))


def test_axes_of_another_rank_elsewhere_are_counted_from_either_end():
    rows = [of_shapes((13, 21), (21,)), of_shapes((5, 7, 21), (21,))]
    assert free_sizes(rows) == [(13, 5)], "rows of one length"
    assert resized(rows, {(13, 5): 9}) == of_shapes((9, 21), (21,))
    assert free_sizes([of_shapes((13, 21)), of_shapes((5, 7, 9))]) == [(13, 5), (21, 9)]
    assert free_sizes([of_shapes((4, 8, 10)), of_shapes((2, 8, 5, 7))]) == [(4, 2), (10, 7)], "channels are alike"
    assert free_sizes([of_shapes((2, 3, 4)), of_shapes((5,))]) == [(2, 5), (4, 5)]


def test_enlarged_sizes_are_more_than_a_block_of_any_workload():
    assert enlarged(WORKLOADS) == [of_shapes((17, 8, 33), (17, 33))]


def test_sizes_that_are_too_much_together_are_enlarged_in_turn():
    wide = [of_shapes((2, 32, 12, 20)), of_shapes((3, 32, 11, 23)), of_shapes((5, 32, 10, 14))]
    assert enlarged(wide) == [of_shapes((5, 32, 17, 33)), of_shapes((17, 32, 10, 14))]


def longer(workloads: list[Workload], share: float = 0.0, most: int | None = None) -> list[Workload]:
    return list(lengthened(workloads, share, most).values())


def test_one_size_after_the_other_is_over_a_thousand():
    two = [of_shapes((4, 16)), of_shapes((3, 17))]
    assert longer(two) == [of_shapes((1031, 16)), of_shapes((3, 1031))]


def test_what_would_be_too_much_with_the_least_others_is_not_long():
    assert longer([of_shapes((2, 20)), of_shapes((3, 190))]) == [of_shapes((1031, 20)), of_shapes((2, 1031))]
    assert longer([of_shapes((1, 20)), of_shapes((3, 190))]) == [of_shapes((1031, 20)), of_shapes((3, 1031))]
    assert longer([of_shapes((2, 256)), of_shapes((3, 256))]) == []
    many = [of_shapes((70, 5)), of_shapes((90, 7))]
    assert longer(many) == [of_shapes((1031, 5))]
    assert longer(many, 0.0, 3) == [of_shapes((3, 1031)), of_shapes((1031, 3))]


def test_a_share_of_the_way_to_the_longest_call_is_gone():
    two = [of_shapes((4, 16)), of_shapes((3, 17))]
    (rows, _), (_, columns) = (call.tensors[0].shape for call in longer(two, 0.999))
    assert (1 << 16) * 0.98 < rows * 16 <= 1 << 16 and (1 << 16) * 0.98 < columns * 3 <= 1 << 16
    assert 1031 < longer(two, 0.5)[0].tensors[0].shape[0] < 0.6 * rows


def test_each_size_is_one_in_one_call():
    assert single(WORKLOADS) == [of_shapes((1, 8, 5), (1, 5)), of_shapes((7, 8, 1), (7, 1))]
    assert single(WORKLOADS, 3)[0] == of_shapes((3, 8, 5), (3, 5))


def test_sizes_that_nobody_knows_before_are_uneven_and_even():
    uneven, even, alike = unforeseen(WORKLOADS, (0.5, 0.0))
    assert (uneven, even) == (of_shapes((64, 8, 4), (64, 4)), of_shapes((256, 8, 5), (256, 5)))
    assert alike == of_shapes((64, 8, 64), (64, 64))
    shapes = [call.tensors[0].shape for call in unforeseen(WORKLOADS, (0.99, 0.99))]
    assert shapes == [(975, 8, 5), (512, 8, 5), (64, 8, 64)]
    assert unforeseen(WORKLOADS[:1], ()) == []


def test_calls_have_just_more_elements_than_a_number_that_is_too_many_elsewhere():
    assert exceed_numel(WORKLOADS, [1 << 20, 1 << 16, 8], 2) == [of_shapes((26216, 8, 5), (26216, 5))]
    assert exceed_numel(WORKLOADS, [1 << 40], 2) == [] == exceed_numel(WORKLOADS[:1], [1 << 20], 2)
    fixed_first = [of_shapes((4,), (3, 5)), of_shapes((4,), (2, 5))]
    assert exceed_numel(fixed_first, [1 << 20, 1 << 21, 1 << 22], 2) == [
        of_shapes((4,), (n // 5 + 2, 5)) for n in (1 << 20, 1 << 21)
    ]


def test_a_large_call_has_all_sizes_alike():
    assert square(WORKLOADS) == of_shapes((1023, 8, 1023), (1023, 1023))
    assert square([of_shapes((4, 8)), of_shapes((3, 8))]) is None


def test_a_call_is_rounded_up_to_multiples():
    assert rounded(WORKLOADS, of_shapes((65, 8, 3), (65, 3)), 64) == of_shapes((128, 8, 64), (128, 64))
    assert rounded(WORKLOADS, of_shapes((65_000, 8, 3), (65_000, 3)), 64) is None
    assert {size % 64 for call in large(WORKLOADS, 1 << 25, 64) for size in call.tensors[1].shape} == {0}


def test_an_image_is_oblong_where_all_are_square():
    square = [of_shapes((2, 3, 9, 9), (2, 3)), of_shapes((1, 3, 12, 12), (1, 3))]
    assert non_square(square, square[1], upright=False) == of_shapes((1, 3, 12, 16), (1, 3))
    assert non_square(square, square[1], upright=True) == of_shapes((1, 3, 16, 12), (1, 3))
    assert non_square([of_shapes((2, 3, 9, 9)), of_shapes((1, 3, 12, 11))], square[1], upright=False) is None
    assert non_square([of_shapes((2, 9, 9)), of_shapes((1, 12, 12))], of_shapes((1, 12, 12)), upright=False) is None
    assert non_square([of_shapes((2, 3, 9, 9)), of_shapes((1, 3, 9, 9))], square[0], upright=False) is None


def test_no_two_axes_of_a_volume_are_alike():
    cubes = [of_shapes((2, 3, 9, 9, 9)), of_shapes((1, 3, 6, 6, 6))]
    assert non_square(cubes, cubes[0], upright=False) == of_shapes((2, 3, 9, 12, 15))
    assert non_square(cubes, cubes[1], upright=True) == of_shapes((1, 3, 10, 8, 6))


def test_what_is_long_is_not_longer():
    assert longer([of_shapes((2, 3)), of_shapes((2000, 3))]) == []


def test_what_is_too_much_alone_is_left_out():
    assert enlarged([of_shapes((2, 10_000)), of_shapes((3, 10_000))]) == []


def test_nothing_is_enlarged_where_no_size_is_free():
    assert enlarged(WORKLOADS[:1]) == []


def test_each_size_alone_can_be_multiplied():
    assert multiplied(WORKLOADS) == [of_shapes((28, 8, 5), (28, 5)), of_shapes((7, 8, 20), (7, 20))]


def test_a_large_call_has_one_large_size():
    by_rows, by_length = large(WORKLOADS, 1 << 25)
    rows, channels, length = by_rows.tensors[0].shape
    assert (channels, length) == (8, 5) and 1 << 25 < rows * 9 * 5 < 1.1 * (1 << 25)
    assert by_length.tensors[0].shape[:2] == (7, 8) and by_length.tensors[0].shape[2] * 9 * 7 > 1 << 25


def test_a_wide_call_has_odd_sizes_that_grew_alike():
    call = wide(WORKLOADS)
    assert call is not None
    rows, _, length = call.tensors[0].shape
    assert rows % 2 == length % 2 == 1 and rows * 8 * length >= 1 << 23 and 1 < rows / length < 2


def test_where_no_size_is_free_nothing_is_large():
    assert (large(WORKLOADS[:1], 1 << 25), wide(WORKLOADS[:1])) == ([], None)


def shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [spec.shape for spec in workload.tensors]


def test_each_free_size_is_each_number_in_one_call():
    calls = [shapes(call)[0] for call in at_numbers(WORKLOADS, [20, 30], 9, 2)]
    assert calls == [(20, 8, 20), (30, 8, 30)]


def test_numbers_that_are_too_much_together_are_called_one_by_one():
    calls = [shapes(call)[0] for call in at_numbers(WORKLOADS, [500], 9, 2)]
    assert calls == [(500, 8, 5), (3, 8, 500)]
    assert len(at_numbers(WORKLOADS, [500], 1, 2)) == 1


def test_few_others_stand_beside_a_number_that_is_too_much_with_more():
    assert [shapes(call)[0] for call in at_numbers(WORKLOADS, [3000], 1, 2)] == [(3000, 8, 2)]


def test_numbers_that_a_workload_has_or_that_are_too_much_are_not_called():
    assert [shapes(call)[0] for call in at_numbers(WORKLOADS, [17, 100_000], 9, 2)] == [(17, 8, 5)]
    assert at_numbers(WORKLOADS[:1], [20], 9, 2) == []


def test_integers_stay_below_the_size_that_they_are_below():
    def scores_and_labels(rows: int, classes: int) -> Workload:
        scores = TensorSpec("x", (rows, classes), "float32")
        return Workload((scores, TensorSpec("y", (rows,), "int64", 0, classes)), "[]")

    longer = resized([scores_and_labels(4, 11), scores_and_labels(6, 7)], {(11, 7): 1031})
    assert longer == scores_and_labels(4, 1031)
