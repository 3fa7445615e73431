"""Comments at the fields of a record are the meanings of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernelquarry.pipeline.dataset.columns import comments, meaning


@dataclass
class Plain:
    """A record. Its `low: int`  # is no field."""

    low: int = 0  # least value: "#"
    # two lines, of which the first
    # is not the last
    many: tuple[int, ...] = ()  # and a third
    nothing: str = ""
    id: str = ""

    def method(self) -> None:
        other: int = 1  # no field
        del other


@dataclass
class Derived(Plain):
    high: int = 0  # upper bound


class Kind(StrEnum):
    ONE = "one"  # the first


def test_comments_above_and_behind_a_field_are_its_meaning() -> None:
    assert comments(Plain) == {
        "low": 'least value: "#"',
        "many": "two lines, of which the first is not the last and a third",
    }
    assert comments(Kind) == {"ONE": "the first"}


def test_a_field_without_a_comment_has_the_meaning_of_its_base_or_of_pair() -> None:
    assert comments(Derived) == {"high": "upper bound"}
    assert meaning(Derived, "low") == 'least value: "#"'
    assert meaning(Derived, "id").startswith("`pair_` and 16 hex digits")
    assert meaning(Derived, "nothing") == ""
