"""A part of a stage's records, for one of several machines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import UserError


@dataclass(frozen=True, slots=True)
class Part:
    """One of `of` parts; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Of "2/4". Raises: UserError."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UserError(f"{text!r} is no part: give a number and how many there are, such as 2/4")
        return cls(int(found[1]), int(found[2]))

    def holds(self, number: int) -> bool:
        """Whether what has this number belongs to this part."""
        return number % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}-of-{self.of}"
