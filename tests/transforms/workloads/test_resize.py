"""Free sizes of a row's workloads, and calls at other sizes."""

from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.workloads.resize import (
    at_numbers,
    count_elements,
    crowded,
    each_as_in,
    enlarged,
    exceed_numel,
    free_sizes,
    in_blocks,
    in_largest_blocks,
    large,
    lengthened,
    multiplied,
    non_square,
    oblong,
    one_long_row,
    paired,
    resized,
    rounded,
    set_each,
    square,
    unpredictable,
    wide,
)


def of_shapes(*shapes: tuple[int, ...]) -> Workload:
    return Workload(tuple(TensorSpec(f"x{i}", shape, "float32") for i, shape in enumerate(shapes)), "[]")


WORKLOADS = [of_shapes((4, 8, 16), (4, 16)), of_shapes((3, 8, 17), (3, 17)), of_shapes((7, 8, 5), (7, 5))]


def test_sizes_that_differ_between_workloads_are_free():
    assert free_sizes(WORKLOADS) == [(4, 3, 7), (16, 17, 5)]


def test_a_single_workload_has_no_free_size():
    assert free_sizes(WORKLOADS[:1]) == []


def test_dimensions_that_are_equal_in_all_workloads_stay_equal():
    assert resized(WORKLOADS, {(4, 3, 7): 2, (16, 17, 5): 99}) == of_shapes((2, 8, 99), (2, 99))


def test_sizes_outside_the_setting_stay():
    assert resized(WORKLOADS, {(4, 3, 7): 2}) == of_shapes((2, 8, 16), (2, 16))


def test_axes_are_counted_from_either_end_where_the_rank_differs():
    rows = [of_shapes((13, 21), (21,)), of_shapes((5, 7, 21), (21,))]
    assert free_sizes(rows) == [(13, 5)], "rows of one length"
    assert resized(rows, {(13, 5): 9}) == of_shapes((9, 21), (21,))
    assert free_sizes([of_shapes((13, 21)), of_shapes((5, 7, 9))]) == [(13, 5), (21, 9)]
    assert free_sizes([of_shapes((4, 8, 10)), of_shapes((2, 8, 5, 7))]) == [(4, 2), (10, 7)], "channels are equal"
    assert free_sizes([of_shapes((2, 3, 4)), of_shapes((5,))]) == [(2, 5), (4, 5)]


def test_enlarged_sizes_exceed_the_next_power_of_two():
    assert enlarged(WORKLOADS) == [of_shapes((17, 8, 33), (17, 33))]


def test_sizes_that_do_not_fit_together_are_enlarged_in_turn():
    wide = [of_shapes((2, 32, 12, 20)), of_shapes((3, 32, 11, 23)), of_shapes((5, 32, 10, 14))]
    assert enlarged(wide) == [of_shapes((5, 32, 17, 33)), of_shapes((17, 32, 10, 14))]


def longer(workloads: list[Workload], share: float = 0.0, most: int | None = None) -> list[Workload]:
    return list(lengthened(workloads, share, most).values())


def test_lengthened_makes_one_size_a_call_long():
    two = [of_shapes((4, 16)), of_shapes((3, 17))]
    assert longer(two) == [of_shapes((3, 1031)), of_shapes((1031, 16))], "the last axis first"


def test_lengthened_leaves_out_sizes_that_do_not_fit():
    assert longer([of_shapes((2, 20)), of_shapes((3, 190))]) == [of_shapes((2, 1031)), of_shapes((1031, 20))]
    assert longer([of_shapes((1, 20)), of_shapes((3, 190))]) == [of_shapes((3, 1031)), of_shapes((1031, 20))]
    assert longer([of_shapes((2, 1 << 18)), of_shapes((3, 1 << 18))]) == []
    many = [of_shapes((70, 5)), of_shapes((90, 7))]
    assert longer(many) == [of_shapes((70, 1031)), of_shapes((1031, 5))]
    assert longer(many, 0.0, 3) == [of_shapes((3, 1031)), of_shapes((1031, 3))]


def test_lengthened_is_shorter_where_sizes_are_not_free():
    next_to_channels = [of_shapes((2, 256, 9)), of_shapes((3, 256, 8))]
    few, many = (longer(next_to_channels, share, 1)[-1] for share in (0.0, 0.999))
    assert [call.tensors[0].shape for call in (few, many)] == [(1031, 256, 1), (1287, 256, 1)]


def test_lengthened_has_the_more_rows_if_no_other_size_is_free():
    for columns, least in ((256, 1800), (512, 1300)):
        alone = [of_shapes((2, columns)), of_shapes((3, columns))]
        ((rows, _),) = (call.tensors[0].shape for call in longer(alone))
        ((fewer, _),) = (call.tensors[0].shape for call in lengthened(alone, elements=1 << 18).values())
        assert rows > least > (1 << 18) // columns >= fewer


def test_lengthened_counts_the_pixels_of_images_whose_channels_are_fixed():
    images = [of_shapes((2, 32, 28, 28)), of_shapes((3, 32, 37, 37))]
    call = longer(images, 0.0, 4)[0]
    assert call.tensors[0].shape[2] ** 2 > 64 * 64 and count_elements(call) <= 1 << 19


def test_lengthened_interpolates_by_share():
    two = [of_shapes((4, 16)), of_shapes((3, 17))]
    (_, columns), (rows, _) = (call.tensors[0].shape for call in longer(two, 0.999))
    assert (1 << 16) * 0.98 < rows * 16 <= 1 << 16 and (1 << 14) * 0.98 < columns <= 1 << 14
    assert 1031 < longer(two, 0.5)[1].tensors[0].shape[0] < 0.6 * rows


def test_lengthened_sets_the_others():
    assert list(lengthened([of_shapes((70, 5)), of_shapes((90, 7))], 0.0, others=16).values()) == [
        of_shapes((16, 1031)), of_shapes((1031, 16))
    ]  # fmt: skip


def test_in_blocks_is_three_times_the_largest_power_that_fits():
    two, channels = [of_shapes((70, 5)), of_shapes((90, 7))], [of_shapes((2, 64, 5)), of_shapes((3, 64, 7))]
    assert in_blocks(two, 16) == [of_shapes((16, 3072)), of_shapes((3072, 16))]
    assert in_blocks(channels, 4) == [of_shapes((4, 64, 192)), of_shapes((192, 64, 4))]
    assert in_blocks([of_shapes((2, 1 << 16)), of_shapes((3, 1 << 16))], 4) == []


def test_the_largest_blocks_are_along_the_last_axis():
    def largest(*shapes: tuple[int, ...], fewest: int = 2) -> list[Workload]:
        return [*in_largest_blocks([of_shapes(shape) for shape in shapes], 9 << 15, fewest).values()]

    assert largest((70, 5), (90, 7)) == [of_shapes((2, 3 << 14))]
    assert largest((70, 5), (90, 5)) == [], "its size is fixed"
    assert largest((2, 64, 5), (3, 64, 7)) == [of_shapes((2, 64, 1536))]
    assert largest((2, 64, 5), (3, 64, 7), fewest=1) == [of_shapes((1, 64, 3072))]
    images = (2, 8, 5, 5), (3, 8, 7, 7)
    assert largest(*images) == [] and largest(*images, fewest=1) == [of_shapes((1, 8, 192, 192))]


def test_oblong_images_are_wide_and_tall():
    images = [of_shapes((2, 8, 28, 28)), of_shapes((3, 8, 37, 37))]
    ((wide, tall),) = oblong(images, 0.0).values()
    assert wide == of_shapes((1, 8, 4, 2063)) and tall == of_shapes((1, 8, 1031, 4))
    assert [*oblong([of_shapes((2, 28, 28)), of_shapes((3, 37, 37))], 0.0)] == [], "a matrix may have to be square"
    assert [*oblong([of_shapes((2, 8, 28, 20)), of_shapes((3, 8, 37, 30))], 0.0)] == [], "both sizes are free"
    assert oblong([of_shapes((2, 999, 8, 8)), of_shapes((3, 999, 9, 9))], 0.0) == {(8, 9): []}, "too many channels"


def test_paired_sizes_exceed_blocks_together():
    (call,) = paired([of_shapes((70, 5)), of_shapes((90, 7))], 0.0, 4)
    assert sorted(call.tensors[0].shape) == [521, 577]
    three = paired([of_shapes((2, 3, 5)), of_shapes((4, 6, 7))], 0.5, 4)
    assert len(three) == 0, "each has four times as many elements as fit"
    assert paired([of_shapes((2, 64)), of_shapes((3, 64))], 0.5, 4) == []


def test_each_as_in_a_call_changes_one_size_a_call():
    two = [of_shapes((70, 5)), of_shapes((90, 7))]
    assert each_as_in(two, of_shapes((4096, 8192)), 4) == [of_shapes((4096, 4)), of_shapes((4, 8192))]
    assert each_as_in(two, of_shapes((70, 1 << 20)), 4) == [], "one is a workload's, and one is too large"
    assert each_as_in(two, of_shapes((4096,)), 4) == [of_shapes((4096, 4))], "a call with fewer axes"


def test_crowded_sizes_need_more_programs_than_a_cap_allows():
    (other, columns), (rows, two) = (
        call.tensors[0].shape for call in crowded([of_shapes((4, 16)), of_shapes((3, 17))])
    )
    assert min(rows, columns) > 1.005 * (1 << 16) and (two, other) == (2, 2)
    assert not crowded([of_shapes((4, 32)), of_shapes((3, 32))]), "with 32 columns the call is too large"


def test_one_long_row_is_of_the_last_axis_alone():
    (call,) = one_long_row([of_shapes((70, 5)), of_shapes((90, 7))], 3 << 16).values()
    assert call == of_shapes((1, 3 << 16))
    assert not one_long_row([of_shapes((70, 5)), of_shapes((90, 5))], 3 << 16), "its size is fixed"
    assert not one_long_row([of_shapes((4, 8, 5)), of_shapes((3, 8, 7))], 3 << 16), "the call is too large"
    assert not one_long_row([Workload((), "[]")], 3 << 16)


def test_set_each_changes_one_size_a_call():
    assert set_each(WORKLOADS) == [of_shapes((1, 8, 5), (1, 5)), of_shapes((7, 8, 1), (7, 1))]
    assert set_each(WORKLOADS, 3)[0] == of_shapes((3, 8, 5), (3, 5))


def test_unpredictable_sizes():
    uneven, even, alike = unpredictable(WORKLOADS, (0.5, 0.0))
    assert (uneven, even) == (of_shapes((64, 8, 4), (64, 4)), of_shapes((256, 8, 5), (256, 5)))
    assert alike == of_shapes((64, 8, 64), (64, 64))
    shapes = [call.tensors[0].shape for call in unpredictable(WORKLOADS, (0.99, 0.99))]
    assert shapes == [(975, 8, 5), (512, 8, 5), (64, 8, 64)]
    assert unpredictable(WORKLOADS[:1], ()) == []


def test_exceed_numel_has_a_quarter_more_elements_than_a_number():
    assert exceed_numel(WORKLOADS, [1 << 20, 1 << 16, 8], 2) == [of_shapes((32770, 8, 5), (32770, 5))]
    assert exceed_numel(WORKLOADS, [1 << 40, 1 << 100], 2) == [] == exceed_numel(WORKLOADS[:1], [1 << 20], 2)
    fixed_first = [of_shapes((4,), (3, 5)), of_shapes((4,), (2, 5))]
    assert exceed_numel(fixed_first, [1 << 20, 1 << 21, 1 << 22], 2) == [
        of_shapes((4,), (n // 4 + 2, 5)) for n in (1 << 20, 1 << 21)
    ]


def test_exceed_numel_counts_axes_that_are_equal():
    squares = [of_shapes((4, 4)), of_shapes((5, 5))]
    assert exceed_numel(squares, [1 << 20], 2) == [of_shapes((1146, 1146))]


def test_square_sets_all_free_sizes_equal():
    assert square(WORKLOADS) == of_shapes((1023, 8, 1023), (1023, 1023))
    assert square([of_shapes((4, 8)), of_shapes((3, 8))]) is None


def test_rounded_gives_multiples():
    assert rounded(WORKLOADS, of_shapes((65, 8, 3), (65, 3)), 64) == of_shapes((128, 8, 64), (128, 64))
    assert rounded(WORKLOADS, of_shapes((65_000, 8, 3), (65_000, 3)), 64) is None
    assert {size % 64 for call in large(WORKLOADS, 1 << 25, 64) for size in call.tensors[1].shape} == {0}


def test_non_square_images():
    square = [of_shapes((2, 3, 9, 9), (2, 3)), of_shapes((1, 3, 12, 12), (1, 3))]
    assert non_square(square, square[1], upright=False) == of_shapes((1, 3, 12, 16), (1, 3))
    assert non_square(square, square[1], upright=True) == of_shapes((1, 3, 16, 12), (1, 3))
    assert non_square([of_shapes((2, 3, 9, 9)), of_shapes((1, 3, 12, 11))], square[1], upright=False) is None
    assert non_square([of_shapes((2, 9, 9)), of_shapes((1, 12, 12))], of_shapes((1, 12, 12)), upright=False) is None
    assert non_square([of_shapes((2, 3, 9, 9)), of_shapes((1, 3, 9, 9))], square[0], upright=False) is None


def test_non_square_volumes():
    cubes = [of_shapes((2, 3, 9, 9, 9)), of_shapes((1, 3, 6, 6, 6))]
    assert non_square(cubes, cubes[0], upright=False) == of_shapes((2, 3, 9, 12, 15))
    assert non_square(cubes, cubes[1], upright=True) == of_shapes((1, 3, 10, 8, 6))


def test_lengthened_leaves_out_sizes_that_are_long_already():
    assert longer([of_shapes((2, 3)), of_shapes((2000, 3))]) == []


def test_enlarged_leaves_out_sizes_that_do_not_fit():
    assert enlarged([of_shapes((2, 10_000)), of_shapes((3, 10_000))]) == []


def test_enlarged_gives_nothing_without_a_free_size():
    assert enlarged(WORKLOADS[:1]) == []


def test_multiplied_quadruples_one_size_a_call():
    assert multiplied(WORKLOADS) == [of_shapes((28, 8, 5), (28, 5)), of_shapes((7, 8, 20), (7, 20))]


def test_large_reaches_the_elements_by_one_size_a_call():
    by_rows, by_length = large(WORKLOADS, 1 << 25)
    rows, channels, length = by_rows.tensors[0].shape
    assert (channels, length) == (8, 5) and 1 << 25 < rows * 9 * 5 < 1.1 * (1 << 25)
    assert by_length.tensors[0].shape[:2] == (7, 8) and by_length.tensors[0].shape[2] * 9 * 7 > 1 << 25


def test_wide_grows_all_sizes_by_one_factor():
    call = wide(WORKLOADS)
    assert call is not None
    rows, _, length = call.tensors[0].shape
    assert rows % 2 == length % 2 == 1 and rows * 8 * length >= 1 << 23 and 1 < rows / length < 2


def test_large_grows_no_further_than_needed_where_axes_are_tied():
    (call,) = large([of_shapes((2, 9, 9, 9)), of_shapes((2, 5, 5, 5))], 1 << 30)
    assert call == of_shapes((2, 813, 813, 813))


def test_large_and_wide_need_a_free_size():
    assert (large(WORKLOADS[:1], 1 << 25), wide(WORKLOADS[:1])) == ([], None)


def shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [spec.shape for spec in workload.tensors]


def test_at_numbers_gives_each_size_each_number():
    calls = [shapes(call)[0] for call in at_numbers(WORKLOADS, [20, 30], 9, 2)]
    assert calls == [(20, 8, 20), (30, 8, 30)]


def test_at_numbers_splits_sizes_that_do_not_fit_together():
    calls = [shapes(call)[0] for call in at_numbers(WORKLOADS, [500], 9, 2)]
    assert calls == [(500, 8, 5), (3, 8, 500)]
    assert len(at_numbers(WORKLOADS, [500], 1, 2)) == 1


def test_at_numbers_caps_the_other_sizes_for_a_large_number():
    assert [shapes(call)[0] for call in at_numbers(WORKLOADS, [3000], 1, 2)] == [(3000, 8, 2)]


def test_at_numbers_allows_limits_twice_the_size():
    wide = [of_shapes((4, 192)), of_shapes((5, 192))]
    (call,) = at_numbers(wide, [4097], 2, 2, limits=[4097])
    assert shapes(call) == [(4097, 192)] and not at_numbers(wide, [4097], 2, 2)


def test_at_numbers_leaves_out_known_and_too_large_numbers():
    assert [shapes(call)[0] for call in at_numbers(WORKLOADS, [17, 100_000], 9, 2)] == [(17, 8, 5)]
    assert at_numbers(WORKLOADS[:1], [20], 9, 2) == []


def test_the_bound_of_integers_changes_with_its_size():
    def scores_and_labels(rows: int, classes: int) -> Workload:
        scores = TensorSpec("x", (rows, classes), "float32")
        return Workload((scores, TensorSpec("y", (rows,), "int64", 0, classes)), "[]")

    longer = resized([scores_and_labels(4, 11), scores_and_labels(6, 7)], {(11, 7): 1031})
    assert longer == scores_and_labels(4, 1031)
