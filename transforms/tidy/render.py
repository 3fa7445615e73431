"""Syntax trees as text: one style, lines that fit."""

from __future__ import annotations

import ast
from collections.abc import Sequence

LINE = 110


def function_text(node: ast.stmt, indent: int = 0) -> str:
    """The source of a definition, long lines broken at their arguments."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return "\n".join(wrapped(line, indent) for line in text.splitlines())


def wrapped(line: str, indent: int = 0) -> str:
    """A line of source, broken after the brackets of its outermost call if it is too long."""
    margin = " " * indent
    if len(line) + indent <= LINE:
        return margin + line if line else line
    depth = len(line) - len(line.lstrip())
    if line.lstrip().startswith("def "):
        return _wrapped_head(line, margin + " " * depth)
    try:
        (statement,) = ast.parse(line.strip()).body
    except SyntaxError:  # the head of a compound statement
        return margin + line
    call = getattr(statement, "value", None)
    if not isinstance(call, ast.Call):
        return margin + line
    head = line.strip()[: call.func.end_col_offset]
    pad = margin + " " * depth
    arguments = [ast.unparse(argument) for argument in call.args]
    arguments += [ast.unparse(keyword) for keyword in call.keywords]
    joined = ", ".join(arguments)
    if len(pad) + 4 + len(joined) <= LINE:
        inner = [f"{pad}    {joined}"]
    else:
        inner = [f"{pad}    {argument}," for argument in arguments]
    return "\n".join([f"{pad}{head}(", *inner, f"{pad})"])


def _wrapped_head(line: str, pad: str) -> str:
    """The first line of a function, its arguments on lines of their own."""
    (function,) = ast.parse(line.strip() + " ...").body
    assert isinstance(function, ast.FunctionDef)
    inner = ast.unparse(function.args)
    if len(pad) + 4 + len(inner) > LINE:
        separated = f"{inner},"
        inner = separated.replace(", ", f",\n{pad}    ")
    return f"{pad}def {function.name}(\n{pad}    {inner}\n{pad}):"


def file_text(imports: Sequence[str], definitions: Sequence[str]) -> str:
    """A module: its imports, then definitions two lines apart."""
    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(text.strip("\n") for text in definitions) + "\n"
