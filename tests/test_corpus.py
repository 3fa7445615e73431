"""The evil corpus as a whole: it is as large as the documents say, and each case says what it is."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus import GROUPS, Case, load_cases

EVIL = load_cases("evil") + load_cases("evil", needs="gpu")


def test_every_group_has_its_share() -> None:
    assert len(EVIL) > 220
    sizes = Counter(case.group for case in EVIL)
    assert sizes.keys() == set(GROUPS)
    assert min(sizes.values()) >= 4
    assert sum(case.needs == "gpu" for case in EVIL) <= 10


@pytest.mark.parametrize("case", EVIL, ids=lambda case: case.name)
def test_a_case_says_what_it_tries_and_what_must_reject_it(case: Case) -> None:
    assert case.candidate.triton_code.startswith('"""')
    assert case.source and case.reasons
