"""Print syntax trees in one style, with lines of at most `LINE` characters."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from typing import TypeGuard

from kernelquarry.pipeline.schema.parse_python import parse

LINE = 110
_Operation = ast.BinOp | ast.BoolOp | ast.IfExp
_PRECEDENCE = (
    (ast.BitOr,),
    (ast.BitXor,),
    (ast.BitAnd,),
    (ast.LShift, ast.RShift),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult),
)


def function_text(node: ast.stmt, indent: int = 0) -> str:
    """The source of a definition with long lines broken."""
    text = re.sub(r"^(class .*:)\n\n", r"\1\n", ast.unparse(ast.fix_missing_locations(node)))
    return "\n".join(_comment(line, indent) or wrapped(line, indent) for line in text.splitlines())


def _comment(line: str, indent: int) -> str:
    """The comment that a statement stands for, see `kernel/comments.py`; "" for any other statement."""
    text = line.strip()
    if not re.fullmatch(r"""(['"])# .*\1""", text):
        return ""
    return " " * (indent + len(line) - len(line.lstrip())) + ast.literal_eval(text)


def wrapped(line: str, indent: int = 0) -> str:
    """Indent a line of source; if it is too long, break its call, sum or list, and long parts of that in turn."""
    margin = " " * indent
    if len(line) + indent <= LINE:
        return margin + line if line else line
    text = line.strip()
    pad = margin + " " * (len(line) - len(line.lstrip()))
    if text.startswith("def "):
        return _wrapped_head(text, pad)
    start = "el" if text.startswith("elif ") else "@" if text.startswith("@") else ""  # the rest is a statement
    code = text.removeprefix(start)
    try:
        (statement,) = parse(f"{code} pass" if code.endswith(":") else code).body
    except SyntaxError:  # a line inside a string
        return margin + line
    values = [getattr(statement, field, None) for field in ("value", "test", "iter", "exc")]
    value = next((value for value in values if isinstance(value, ast.expr)), None)
    if value is None:
        return margin + line
    before, after = code.encode()[: value.col_offset], code.encode()[value.end_col_offset :]
    return "\n".join(_broken(value, pad, start + before.decode(), after.decode()))


def _broken(node: ast.expr, pad: str, before: str, after: str) -> list[str]:
    """The lines of `node` between two pieces of text."""
    text = ast.unparse(node)
    if len(pad) + len(before) + len(text) + len(after) <= LINE:
        return [f"{pad}{before}{text}{after}"]
    match node:
        case ast.Call(func=function, args=args, keywords=keywords):
            opening = [f"{pad}{before}{_callee(function)}("]
            if len(opening[0]) > LINE and isinstance(function, ast.Subscript):
                opening = _broken(function, pad, before, "(")
            if len(opening[0]) > LINE and isinstance(function, ast.Attribute):
                return _primary(function.value, text, pad, before, after)
            named = [(f"{keyword.arg}=" if keyword.arg else "**", keyword.value) for keyword in keywords]
            return [*opening, *_items([("", arg) for arg in args] + named, pad), f"{pad}){after}"]
        case ast.Subscript(value=value, slice=index) if any(isinstance(part, ast.Slice) for part in ast.walk(index)):
            return _primary(value, text, pad, before, after)
        case ast.Subscript(value=value, slice=index):
            return [f"{pad}{before}{ast.unparse(value)}[", *_broken(index, f"{pad}    ", "", ""), f"{pad}]{after}"]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            left, right = "()" if isinstance(node, ast.Tuple) else "[]"
            items = [("", element) for element in elements]
            return [f"{pad}{before}{left}", *_items(items, pad, always_comma=True), f"{pad}{right}{after}"]
        case ast.Dict(keys=keys, values=values):
            pairs = [(f"{ast.unparse(k)}: " if k else "**", v) for k, v in zip(keys, values, strict=True)]
            return [f"{pad}{before}{{", *_items(pairs, pad), f"{pad}}}{after}"]
        case ast.Starred(value=value):
            return _broken(value, pad, f"{before}*", after)
        case ast.Lambda(args=parameters, body=body):
            return _broken(body, pad, f"{before}lambda {ast.unparse(parameters)}: ", after)
        case ast.ListComp(elt=element):
            inner = f"{pad}    "
            loops = text[1:-1].removeprefix(ast.unparse(element)).strip()
            return [f"{pad}{before}[", *_broken(element, inner, "", ""), f"{inner}{loops}", f"{pad}]{after}"]
        case ast.BinOp() | ast.BoolOp() | ast.IfExp() if _has_operands(node):
            return _in_parentheses(node, pad, before, after)
    return [f"{pad}{before}{text}{after}"]


def _callee(function: ast.expr) -> str:
    """The text of a called function; the grid of a launch keeps its parentheses."""
    match function:
        case ast.Subscript(value=value, slice=ast.Tuple() as grid) if "Slice(" not in ast.dump(grid):
            return f"{ast.unparse(value)}[{ast.unparse(grid)}]"
    return ast.unparse(function)


def _primary(node: ast.expr, text: str, pad: str, before: str, after: str) -> list[str]:
    """The lines of `node` followed by the subscript or method call that `text` has after it."""
    owner = ast.unparse(node)
    rest = text.removeprefix(owner if text.startswith(owner) else f"({owner})") + after
    if _has_operands(node):
        return _in_parentheses(node, pad, before, rest)
    if isinstance(node, ast.Call | ast.Subscript | ast.Name | ast.Attribute):
        return _broken(node, pad, before, rest)
    return [f"{pad}{before}({owner}){rest}"]


def _has_operands(node: ast.expr) -> TypeGuard[_Operation]:
    """True if the node can be broken before its operators; a power binds to the right and stays whole."""
    return isinstance(node, _Operation) and not isinstance(getattr(node, "op", None), ast.Pow)


def _in_parentheses(node: _Operation, pad: str, before: str, after: str) -> list[str]:
    """The lines of an operation, one operand a line."""
    inner = [line for sign, operand in _operands(node) for line in _operand(operand, node, sign, f"{pad}    ")]
    return [f"{pad}{before}(", *inner, f"{pad}){after}"]


def _items(items: Sequence[tuple[str, ast.expr]], pad: str, always_comma: bool = False) -> list[str]:
    """The lines between brackets: one line if the items fit, else one item a line."""
    inner = f"{pad}    "
    joined = ", ".join(f"{name}{ast.unparse(value)}" for name, value in items)
    if len(inner) + len(joined) <= LINE and not (always_comma and len(items) == 1):
        return [inner + joined] if items else []
    return [line for name, value in items for line in _item(value, inner, name)]


def _item(node: ast.expr, pad: str, name: str) -> list[str]:
    """The lines of one item of a list and its comma; a sum needs no parentheses of its own there."""
    lines = _broken(node, pad, name, ",")
    if lines[0].strip() == "(" and _has_operands(node):
        *inner, last = [line[4:] for line in lines[1:-1]]
        return [*inner, f"{last},"]
    return lines


def _operands(node: _Operation) -> list[tuple[str, ast.expr]]:
    """The terms of a sum or the factors of a product, each with the operator before it ("" for the first)."""
    if isinstance(node, ast.IfExp):
        return [("", node.body), ("if ", node.test), ("else ", node.orelse)]
    if isinstance(node, ast.BoolOp):
        word = "and " if isinstance(node.op, ast.And) else "or "
        return [("", node.values[0]), *((word, value) for value in node.values[1:])]
    sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))).removeprefix("a ").removesuffix("b")
    if isinstance(node.left, ast.BinOp) and _precedence(node.left) == _precedence(node):
        return [*_operands(node.left), (sign, node.right)]
    return [("", node.left), (sign, node.right)]


def _operand(node: ast.expr, parent: _Operation, sign: str, pad: str) -> list[str]:
    """The lines of one operand, in parentheses where precedence requires them."""
    if not _is_loose(node, parent, is_first=not sign):
        return _broken(node, pad, sign, "")
    text = f"{pad}{sign}({ast.unparse(node)})"
    if len(text) > LINE and _has_operands(node):
        return _in_parentheses(node, pad, sign, "")
    return [text]


def _is_loose(node: ast.expr, parent: _Operation, is_first: bool) -> bool:
    """True if an operand needs parentheses."""
    if isinstance(node, ast.BinOp) and isinstance(parent, ast.BinOp):
        inner, outer = _precedence(node), _precedence(parent)
        return inner < outer or (inner == outer and not is_first)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return isinstance(parent, ast.BinOp)
    return isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda)


def _precedence(node: ast.BinOp) -> int:
    """The precedence of an operation's operator; a power, which is not in the table, binds most tightly."""
    levels = (level for level, operators in enumerate(_PRECEDENCE) if isinstance(node.op, operators))
    return next(levels, len(_PRECEDENCE))


def _wrapped_head(line: str, pad: str) -> str:
    """The head of a function with its arguments on lines of their own."""
    (function,) = parse(line + " ...").body
    assert isinstance(function, ast.FunctionDef)
    inner = ast.unparse(function.args)
    if len(pad) + 4 + len(inner) > LINE:
        inner = f",\n{pad}    ".join(_split(inner)) + ","
    return f"{pad}def {function.name}(\n{pad}    {inner}\n{pad}):"


def _split(text: str) -> list[str]:
    """Split `text` at its outermost commas."""
    parts, start, depth = [], 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if token.string == "," and depth == 0:
            parts.append(text[start : token.start[1]].strip())
            start = token.end[1]
    return [*parts, text[start:].strip()]


def file_text(imports: Sequence[str], definitions: Sequence[str]) -> str:
    """The source of a module: imports, then definitions separated by two blank lines."""
    parts = ["\n".join(imports), *(text.strip("\n") for text in definitions)]
    return _double_quoted("\n\n\n".join(parts) + "\n")


def _double_quoted(text: str) -> str:
    """Put strings in double quotes where that needs no escape; f-strings stay as they are."""
    lines, inside = text.splitlines(keepends=True), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        inside += (kind == "FSTRING_START") - (kind == "FSTRING_END")  # since Python 3.12, with tokens in between
        old = token.string
        if kind == "STRING" and not inside and old[0] == "'" and old[:3] != "'''" and not {'"', "\\"} & set(old):
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = f'{line[:column]}"{old[1:-1]}"{line[column + len(old) :]}'
    return "".join(lines)
