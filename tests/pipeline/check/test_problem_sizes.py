"""Smaller and other sizes of a problem, by the integers in its source."""

from __future__ import annotations

from kernelquarry.pipeline.sandbox.guest.probing.problem_sizes import (
    Cost,
    Sizes,
    shrink,
    sizes_of,
    variations,
    with_sizes,
)
from kernelquarry.pipeline.sandbox.jobs.describe_problem import SizeLimits

CODE = '''"""Größen: ein Beispiel mit 7 Zeichen."""
rows, columns = 4096, 512 * 2


class Model:
    groups = 9


def helper():
    return 11


def get_inputs():
    return [rand(rows, columns), rand(64), rand(64, 1), "é" * 3]
'''


def test_sizes_are_integers_of_statements_and_of_the_two_functions() -> None:
    assert sorted(sizes_of(CODE).values()) == [2, 3, 64, 512, 4096]


def test_equal_integers_of_the_functions_are_one_size() -> None:
    (size,) = (size for size, n in sizes_of(CODE).items() if n == 64)
    changed = with_sizes(CODE, {size: 5})
    assert "rand(5), rand(5, 1)" in changed
    assert changed.replace("rand(5), rand(5, 1)", "rand(64), rand(64, 1)") == CODE


def test_places_count_bytes_and_several_sizes_of_one_line_change() -> None:
    sizes = {size: 10 * n for size, n in sizes_of(CODE).items()}
    changed = with_sizes(CODE, sizes)
    assert "rows, columns = 40960, 5120 * 20" in changed
    assert '"é" * 30]' in changed
    assert "groups = 9" in changed and "return 11" in changed and "mit 7 Zeichen" in changed


def named(**values: int) -> tuple[Sizes, dict[str, tuple[tuple[int, int, int], ...]]]:
    places = {name: ((place, 0, 1),) for place, name in enumerate(values)}
    return {places[name]: n for name, n in values.items()}, places


def test_the_largest_sizes_shrink_first_and_no_more_than_needed() -> None:
    sizes, at = named(rows=4096, columns=256, kernel=3)

    def cost(each: Sizes) -> Cost:
        return Cost(0, each[at["rows"]] * each[at["columns"]], 0)

    found = shrink(sizes, cost, SizeLimits(0, 1 << 15, 0))
    assert found == {at["rows"]: 128, at["columns"]: 256, at["kernel"]: 3}


def test_sizes_that_must_be_equal_shrink_together() -> None:
    sizes, at = named(rows=1024, targets=1024)

    def cost(each: Sizes) -> Cost | None:
        return Cost(0, each[at["rows"]], 0) if each[at["rows"]] == each[at["targets"]] else None

    assert set(shrink(sizes, cost, SizeLimits(0, 100, 0)).values()) == {64}


def test_a_size_that_a_module_needs_stays() -> None:
    sizes, at = named(rows=64, heads=64)

    def cost(each: Sizes) -> Cost | None:
        return Cost(0, each[at["rows"]], 0) if each[at["heads"]] == 64 else None

    assert shrink(sizes, cost, SizeLimits(0, 10, 0)) == {at["rows"]: 8, at["heads"]: 64}


def test_sizes_that_differ_stay_different() -> None:
    sizes, at = named(inner=480, outer=240)

    def cost(each: Sizes) -> Cost:
        return Cost(each[at["inner"]] * each[at["outer"]], 0, 0)

    assert shrink(sizes, cost, SizeLimits(3600, 0, 0)) == {at["inner"]: 60, at["outer"]: 30}


def test_sizes_that_must_not_be_halved_again_are_doubled_to_differ() -> None:
    sizes, at = named(inner=64, outer=32)

    def cost(each: Sizes) -> Cost | None:
        return Cost(each[at["inner"]], 0, 0) if each[at["outer"]] >= 16 else None

    assert shrink(sizes, cost, SizeLimits(16, 0, 0)) == {at["inner"]: 16, at["outer"]: 32}


def test_a_size_stays_above_the_least() -> None:
    sizes, at = named(rows=4096, columns=256)

    def cost(each: Sizes) -> Cost:
        return Cost(each[at["rows"]] * each[at["columns"]], 0, 0)

    found = shrink(sizes, cost, SizeLimits(1 << 14, 0, 0), {at["rows"]: 1025})
    assert found == {at["rows"]: 2048, at["columns"]: 8}


def test_variations_change_each_free_size_and_differ_from_each_other() -> None:
    sizes, at = named(rows=64, columns=64, channels=16, left=5, right=5)

    def runs(each: Sizes) -> bool:
        return each[at["channels"]] == 16 and each[at["left"]] == each[at["right"]]

    found = variations(sizes, runs, 2)
    assert len(found) == 2 and all(map(runs, found))
    for name in ("rows", "columns", "left"):
        assert len({each[at[name]] for each in (sizes, *found)}) == 3, name
    assert all(each[at["rows"]] != each[at["columns"]] for each in found)  # the file has the same number for both


def test_a_size_that_must_be_a_multiple_is_varied_to_one() -> None:
    sizes, at = named(rows=32)
    found = variations(sizes, lambda each: each[at["rows"]] % 16 == 0, 2)
    assert [each[at["rows"]] for each in found] == [16, 64]
