"""Parts of a stage's records, so that several machines can share one stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gcd

from .errors import UserError


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` of `of` equal parts; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Parse text such as "2/4". Raises: UserError."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UserError(f"{text!r} is not a part: give its number and the number of parts, such as 2/4")
        return cls(int(found[1]), int(found[2]))

    def holds(self, number: int) -> bool:
        """True if the item with this number belongs to this part."""
        return number % self.of == self.number - 1

    def meets(self, shard: int, shards: int) -> bool:
        """True if the shard of that index may hold items of this part; an item's number decides its shard too."""
        return (shard - self.number + 1) % gcd(shards, self.of) == 0

    def __str__(self) -> str:
        return f"{self.number}-of-{self.of}"
