"""Breaking long lines does not change the code's meaning."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.transforms.tidy.syntax import print_code
from kernelquarry.transforms.tidy.syntax.print_code import LINE, file_text, function_text, wrapped


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(print_code, "LINE", 40)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = 1", "x = 1"),
        (
            "a_kernel[lambda meta: (cdiv(rows, meta['ROWS']), batch)](x, out)",
            """
            a_kernel[
                lambda meta: (
                    cdiv(rows, meta['ROWS']), batch
                )
            ](
                x, out
            )
            """,
        ),
        (
            "@triton.autotune(configs=[first, second], key=['n_rows'])",
            """
            @triton.autotune(
                configs=[first, second],
                key=['n_rows'],
            )
            """,
        ),
        (
            "value = load(pointer, mask=row_mask & col_mask, other=0.0)",
            """
            value = load(
                pointer,
                mask=row_mask & col_mask,
                other=0.0,
            )
            """,
        ),
        (
            "value = (a - mean) * (rsqrt(var) * weight) + bias + more",
            """
            value = (
                (a - mean) * (rsqrt(var) * weight)
                + bias
                + more
            )
            """,
        ),
        (
            "value = first_value * (one == another) + (not a_third)",
            """
            value = (
                first_value * (one == another)
                + (not a_third)
            )
            """,
        ),
        (
            "load(pointer + (row * columns + column_of_it), mask)",
            """
            load(
                pointer
                + (row * columns + column_of_it),
                mask,
            )
            """,
        ),
        (
            "kernel[triton.cdiv(n, 32), triton.cdiv(m, 32)](a, b)",
            """
            kernel[
                (
                    triton.cdiv(n, 32),
                    triton.cdiv(m, 32),
                )
            ](
                a, b
            )
            """,
        ),
        (
            "if one_condition and another_one or a_third:",
            """
            if (
                (one_condition and another_one)
                or a_third
            ):
            """,
        ),
        (
            "    def forward(self, first, second=', ', *, third=(1, 2)):",
            """
                def forward(
                    self,
                    first,
                    second=', ',
                    *,
                    third=(1, 2),
                ):
            """,
        ),
    ],
)
@pytest.mark.usefixtures("narrow")
def test_wrapped(line: str, expected: str) -> None:
    lines = textwrap.dedent(expected).strip("\n")
    assert wrapped(line) == (textwrap.indent(lines, "    ") if line.startswith(" ") else lines)


EXPRESSIONS = st.recursive(
    st.sampled_from(["alpha", "beta", "-gamma", "3", "x[0]", "m[:, None]", "a.b", "'text'", "not_so_short_a_name"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+ - * / // % & | ^ << ** @".split()), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["<", "==", "in", "and", "or"]), inner),
        st.builds("f({}, {}, key={}, *a, **k)".format, inner, inner, inner),
        st.builds("k[{}, {}]({})".format, inner, inner, inner),
        st.builds("({}).to({})".format, inner, inner),
        st.builds("({})[:, None]".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({},)".format, inner),
        st.builds("{{'a': {}, **k}}".format, inner),
        st.builds("[{} for i in {} if {}]".format, inner, inner, inner),
        st.builds("(lambda: {})".format, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=10,
)
STATEMENTS = st.sampled_from(
    ["x = {}", "x += {}", "return {}", "{}", "if {}: pass", "while {}: pass", "for i in {}: pass", "assert {}, 'why'"]
)


@given(STATEMENTS, EXPRESSIONS)
def test_it_says_the_same(statement: str, expression: str) -> None:
    node = ast.parse(statement.format(expression))
    first, *rest = ast.unparse(node).splitlines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(print_code, "LINE", 30)
        text = "\n".join([wrapped(first), *rest])
    assert ast.dump(ast.parse(text)) == ast.dump(node)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_functions_and_files() -> None:
    function = ast.parse(f"def f(a, b):\n    return {' + '.join(['a * b'] * 30)}").body[0]
    text = function_text(function)
    assert max(map(len, text.splitlines())) <= LINE
    assert file_text(["import a", "import b"], [text, "class C:\n    pass"]) == (
        f"import a\nimport b\n\n\n{text}\n\n\nclass C:\n    pass\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = f('a', \"b\")", 'x = f("a", "b")'),
        ("x = 'say \"so\"'", "x = 'say \"so\"'"),
        (r"x = 'a\n'", r"x = 'a\n'"),
        ("x = f'{y}' + 'é' + 'b'", 'x = f\'{y}\' + "é" + "b"'),
    ],
)
def test_strings_have_one_kind_of_quotes(line: str, expected: str) -> None:
    assert file_text(["import torch"], [line]).splitlines()[-1] == expected
