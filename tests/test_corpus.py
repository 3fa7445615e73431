"""The corpora as a whole: the evil one has the size that the documents claim, and every header is complete."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus import GROUPS, Case, load_cases

EVIL = load_cases("evil") + load_cases("evil", needs="gpu")


def test_every_group_has_cases() -> None:
    assert len(EVIL) > 220
    sizes = Counter(case.group for case in EVIL)
    assert sizes.keys() == set(GROUPS)
    assert min(sizes.values()) >= 4
    assert sum(case.needs == "gpu" for case in EVIL) <= 10


@pytest.mark.parametrize("case", EVIL, ids=lambda case: case.name)
def test_an_evil_case_names_its_trick_and_what_catches_it(case: Case) -> None:
    assert case.candidate.triton_code.startswith('"""')
    assert case.source and case.reasons and case.caught_by


def test_an_honest_case_names_the_style_that_it_shows() -> None:
    assert [case.name for case in load_cases("honest") if not case.shows or case.reasons] == []


def test_no_two_cases_have_one_name() -> None:
    names = Counter(case.name for case in [*EVIL, *load_cases("honest")])
    assert {name: count for name, count in names.items() if count > 1} == {}
