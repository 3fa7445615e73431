"""The module that is recorded as the user of another module."""

from __future__ import annotations

from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.mine import mine_tree
from tests.transforms.mine.golden import make_file

PARTS = """
from torch import nn

class Part(nn.Module):
    def forward(self, x):
        return x * 2

class Derived(Part):
    def forward(self, x):
        return x * 3
"""
WHOLE = """
from torch import nn
from .parts import Part

class Whole(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return self.part(x) + 1

class Larger(nn.Module):
    def __init__(self):
        super().__init__()
        self.whole, self.part = Whole(channels=32), Part()

    def forward(self, x):
        return self.part(self.whole(x)) + 1
"""


def users(*texts: tuple[str, str]) -> dict[str, str]:
    files = [make_file(path, text) for path, text in texts]
    outcomes = mine_tree(files).classes
    return {outcome.record.name: outcome.record.user for outcome in outcomes if isinstance(outcome, Kept)}


def test_the_shortest_user_is_chosen() -> None:
    found = users(("pkg/parts.py", PARTS), ("pkg/whole.py", WHOLE), ("pkg/__init__.py", ""))
    assert found["Larger"] == found["Derived"] == ""
    assert "Part()" in found["Part"] and "Whole(" not in found["Part"] and "class Model" in found["Part"]
    assert "Whole(channels=32)" in found["Whole"]


def test_a_subclass_is_not_a_user() -> None:
    assert users(("pkg/parts.py", PARTS))["Part"] == ""


def test_the_order_of_the_files_does_not_matter() -> None:
    texts = (("pkg/parts.py", PARTS), ("pkg/whole.py", WHOLE), ("pkg/__init__.py", ""))
    assert users(*texts) == users(*texts[::-1])


def test_a_long_user_is_ignored() -> None:
    long = WHOLE.replace("return self.part(x) + 1", "return self.part(x) + 1\n" + "        # and so on\n" * 2000)
    assert "Larger" in users(("pkg/parts.py", PARTS), ("pkg/whole.py", long), ("pkg/__init__.py", ""))
    assert users(("pkg/parts.py", PARTS), ("pkg/whole.py", long), ("pkg/__init__.py", ""))["Part"] == ""
