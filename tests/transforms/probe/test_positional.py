"""Keyword-only parameters become positional, and nothing else changes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kernelquarry.transforms.probe.positional import positional

# signature of __init__ -> what becomes of it
SIGNATURES = {
    "(self, *, dim)": "(self, dim)",
    "(self, dim, *, heads=4)": "(self, dim, heads=4)",
    "(self, dim=8, *, heads)": "(self, heads, dim=8)",
    "(self, a, b=1, *, c, d=2, e)": "(self, a, c, e, b=1, d=2)",
    "(self, *, dim: int, bias: bool = True, **options: int)": "(self, dim: int, bias: bool = True, **options: int)",
    "(self, *, é='ü', b)": "(self, b, é='ü')",
    "(self, *, dim,)": "(self, dim,)",
    "(\n    self,\n    *,  # by name\n    dim,  # width\n    heads=4,  # of attention\n  )": (
        "(\n    self, dim, heads=4,  # of attention\n  )"
    ),
    "(self, dim)": "(self, dim)",
    "(self, dim, *rest, bias)": "(self, dim, *rest, bias)",
    "(self, /, *, bias)": "(self, /, *, bias)",
    "(*, bias)": "(*, bias)",
    "(self, *, bias=(1 + 2))": "(self, *, bias=(1 + 2))",  # the end of the signature is not found: left alone
}


@pytest.mark.parametrize("before", SIGNATURES)
def test_signature(before: str) -> None:
    code = "class Model:\n  def __init__{}:\n    self.value = 1\n"
    assert positional(code.format(before)) == code.format(SIGNATURES[before])


def test_long_signatures_have_one_parameter_a_line() -> None:
    names = [f"a_rather_long_name_{i}" for i in range(8)]
    before = f"class Model:\n    def __init__(self, *, {', '.join(names)}):\n        pass\n"
    lines = "".join(f"        {name},\n" for name in ["self", *names])
    assert positional(before) == f"class Model:\n    def __init__(\n{lines[:-2]}\n    ):\n        pass\n"


def test_calls_by_keyword_keep_their_meaning() -> None:
    code = '''
class Base:
    def __init__(self, *, width, scale=2.0):
        self.total = width * scale


class Model(Base):
    def __init__(self, first=1, *, width, table={"a": (1, 2)}, text="""x,
*"""):
        super().__init__(scale=3.0, width=width)
        self.found = [first, width, table, text]

    def forward(self, x, *, mask=None, y):
        return x + y
'''
    changed = run(positional(code))
    original = run(code)
    assert names(changed.__mro__[1].__init__) == ["self", "width", "scale"]
    assert names(changed.__init__) == ["self", "width", "first", "table", "text"]
    assert names(changed.forward) == ["self", "x", "y", "mask"]
    assert vars(changed(5, 7)) == vars(original(7, width=5))
    assert changed(5).forward(1, 2) == original(width=5).forward(1, y=2)


def names(method: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters."""
    parameters = inspect.signature(method).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]


def run(code: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace["Model"]


@pytest.mark.parametrize(
    "code",
    [
        "class Other:\n    def __init__(self, *, dim): ...\n",  # not the entry class nor a base of it
        "@register\nclass Model:\n    def __init__(self, *, dim): ...\n",
        "class Model:\n    def helper(self, *, dim): ...\n",
        # the constructor of a base may be called by position, so its order stays
        "class Base:\n    def __init__(self, a=1, *, b): ...\n\n\nclass Model(Base):\n    pass\n",
        "class Model:\n    def __init__(self, *, dim",  # no Python
        f"x = {'-' * 100_000}1",  # too deep for the parser
    ],
)
def test_code_that_stays_as_it_is(code: str) -> None:
    assert positional(code) == code


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\u2028", "\x85"])
def test_characters_that_end_a_line_for_splitlines_alone(mark: str) -> None:
    code = f"text = '''{mark}'''\n\n\nclass Model:\n    def __init__(self, *, dim): ...\n"
    assert positional(code) == code.replace("*, ", "")


def test_windows_line_ends_stay() -> None:
    code = "class Model:\r\n    def __init__(self, *, dim):\r\n        pass\r\n"
    assert positional(code) == code.replace("*, ", "")
    ast.parse(positional(code))
