"""Make keyword-only parameters of the entry class positional, because `get_init_inputs()` is a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import ENTRY_POINT

from .split_lines import lines_of

_WIDTH = 110


def positional(code: str) -> str:
    """`code` without `*` in the signatures of `__init__` and `forward` of `Model` and its bases.

    Calls by keyword keep their meaning. A required parameter after defaults moves before them, but only in the entry
    class, whose constructor nothing in the file calls. Code that does not parse, before or after, is returned as it is.
    """
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    changed = code
    for method in sorted(_methods(tree), key=lambda m: -m.lineno):  # from the end, so that earlier positions stay valid
        changed = _rewritten(changed, method)
    if changed == code:
        return code
    try:
        parse(changed)
    except SyntaxError:  # a default in parentheses of its own at the end of a signature
        return code
    return changed


def _methods(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The methods whose signatures must change."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    names = [ENTRY_POINT]
    for name in names:  # grows during the loop
        node = classes.pop(name, None)
        if node is None or node.decorator_list:  # a decorator may inspect the signature
            continue
        names += [base.id for base in node.bases if isinstance(base, ast.Name)]
        for method in node.body:
            if not isinstance(method, ast.FunctionDef) or method.name not in ("__init__", "forward"):
                continue
            args = method.args
            moves = bool(args.defaults) and None in args.kw_defaults
            plain = args.args and args.kwonlyargs and args.vararg is None and not args.posonlyargs
            if plain and (name == ENTRY_POINT or not moves):
                yield method


def _rewritten(code: str, method: ast.FunctionDef) -> str:
    args = method.args
    required = len(args.args) - len(args.defaults)
    named: list[tuple[ast.arg, ast.expr | None]] = [(arg, None) for arg in args.args[:required]]
    named += list(zip(args.args[required:], args.defaults, strict=True))
    named += list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    ordered = [pair for pair in named if pair[1] is None] + [pair for pair in named if pair[1] is not None]
    lines = lines_of(code)
    texts = [_parameter(lines, arg, default) for arg, default in ordered]
    if args.kwarg is not None:
        texts.append(f"**{_segment(lines, args.kwarg)}")
    first, last = args.args[0], _last(method)
    before = "".join(lines[: first.lineno - 1]) + _head(lines[first.lineno - 1], first.col_offset)
    after = _tail(lines[last.end_lineno - 1], last.end_col_offset) + "".join(lines[last.end_lineno :])  # type: ignore[operator,arg-type]
    indent = " " * method.col_offset
    joined = ", ".join(texts)
    if "\n" in joined or len(before.rsplit("\n", 1)[-1]) + len(joined) > _WIDTH:
        joined = "\n" + "".join(f"{indent}    {text},\n" for text in texts[:-1]) + f"{indent}    {texts[-1]}\n{indent}"
        before, after = before.rstrip(), after.lstrip(" \n,")
    return before + joined + after


def _last(method: ast.FunctionDef) -> ast.expr | ast.arg:
    """The last node in the list of parameters."""
    args = method.args
    nodes: list[ast.expr | ast.arg] = [*args.args, *args.kwonlyargs, *args.defaults]
    nodes += [node for node in args.kw_defaults if node is not None]
    nodes += [args.kwarg] if args.kwarg is not None else []
    return max(nodes, key=lambda node: (node.end_lineno, node.end_col_offset))


def _parameter(lines: Sequence[str], arg: ast.arg, default: ast.expr | None) -> str:
    text = _segment(lines, arg)
    if default is None:
        return text
    return f"{text}{' = ' if arg.annotation else '='}{_segment(lines, default)}"


def _segment(lines: Sequence[str], node: ast.expr | ast.arg) -> str:
    """The source of a node. `ast.get_source_segment` splits the whole file for each node."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    text = "".join(lines[first : last + 1])
    start, after = node.col_offset, len(lines[last].encode()) - (node.end_col_offset or 0)
    return text.encode()[start : len(text.encode()) - after].decode()


def _head(line: str, offset: int) -> str:
    return line.encode()[:offset].decode()


def _tail(line: str, offset: int) -> str:
    return line.encode()[offset:].decode()
