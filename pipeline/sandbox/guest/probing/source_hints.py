"""Hints about a module's parameters from its syntax tree. Nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from .parameter_usage import Usage, UsageVisitor
from .syntax import parsed

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_DEPTH = 8  # nested calls through which a parameter is followed
_AXIS = re.compile(r"\([^)]*\)|[A-Za-z_]\w*|\d+")


class Source:
    """The functions and classes of one file, by name."""

    def __init__(self, code: str) -> None:
        tree, nodes = parsed(code)
        self._lines = code.splitlines()
        self.classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in tree.body if isinstance(node, Function)}
        self._usages: dict[tuple[int, str], Usage] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._mentioned: dict[int, frozenset[str]] = {}
        self._default_values: dict[str, list[ast.expr]] = {}  # parameter -> its defaults in all functions of the file
        for function in (node for node in nodes if isinstance(node, Function)):
            for name, value in _default_values(function):
                self._default_values.setdefault(name, []).append(value)

    def method(self, class_name: str, name: str) -> Function | None:
        """The method as defined by the class, or by its first base in this file."""
        seen: set[str] = set()
        queue = [class_name]
        while queue:
            current = queue.pop(0)
            if current in seen or current not in self.classes:
                continue
            seen.add(current)
            node = self.classes[current]
            for item in node.body:
                if isinstance(item, Function) and item.name == name:
                    return item
            queue += [base.id for base in node.bases if isinstance(base, ast.Name)]
        return None

    def unpacks_part(self, class_name: str) -> bool:
        """True if the class unpacks the result of one of its parts: `y, weights = self.attention(x)`."""
        for node in ast.walk(self.classes[class_name]) if class_name in self.classes else ():
            match node:
                case ast.Assign([ast.Tuple()], ast.Call(ast.Attribute(ast.Name("self")))):
                    return True
        return False

    def defaults(self, function: Function) -> dict[str, str]:
        """Parameter name -> source text of its default."""
        return {name: ast.unparse(value) for name, value in _default_values(function)}

    def examples(self, parameter: str) -> tuple[str, ...]:
        """The defaults of parameters of this name in all functions of the file."""
        return tuple(dict.fromkeys(map(ast.unparse, self._default_values.get(parameter, ()))))

    def documented(self, class_name: str, parameter: str) -> str:
        """The type of a parameter in the class's docstring, of numpy's or Google's style; "" if there is none."""
        node = self.classes.get(class_name)
        functions = [f for f in (node, self.method(class_name, "__init__")) if f is not None]
        for text in (ast.get_docstring(f) or "" for f in functions):
            if match := re.search(rf"^\s*{parameter} ?(?::|\() ?([\w\[\], ()|.]+)", text, re.MULTILINE):
                return match[1].partition(", default")[0].replace(" or ", "|").replace("(", "[").replace(")", "]")
        return ""

    def prose(self, class_name: str) -> str:
        """The docstrings of a class and its forward, and the comments in forward.

        A comment behind a name, as behind a parameter, becomes `name: comment`.
        """
        forward = self.method(class_name, "forward")
        texts = [ast.get_docstring(node) or "" for node in (forward, self.classes.get(class_name)) if node is not None]
        for line in self._lines[forward.lineno - 1 : forward.end_lineno] if forward is not None else ():
            before, hash_, comment = line.partition("#")
            if hash_:
                name = re.fullmatch(r"(\w+)\b[^()]*?,?", before.strip())
                texts.append(f"{name[1]}: {comment}" if name else comment)
        return "\n\n".join(texts)

    def usage(self, class_name: str, method: str, parameter: str) -> Usage:
        function = self.method(class_name, method)
        if function is None:
            return Usage()
        return self.followed(class_name, function, parameter, _MAX_DEPTH)

    def kept(self, class_name: str, attribute: str, depth: int) -> Usage:
        """How the methods other than the constructor use `self.<attribute>`."""
        usage = Usage()
        for method in self._methods(class_name):
            if method.name != "__init__" and attribute in self._mentions(method):
                usage.absorb(self.followed(class_name, method, f"self.{attribute}", depth))
        usage.called, usage.applied = False, usage.called
        return usage

    def names_in(self, statement: ast.stmt) -> frozenset[str]:
        """The names of all variables and attributes in the statement."""
        key = id(statement)
        if key not in self._names:
            nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Attribute)]
            self._names[key] = frozenset(node.id if isinstance(node, ast.Name) else node.attr for node in nodes)
        return self._names[key]

    def _mentions(self, function: Function) -> frozenset[str]:
        """The names of all attributes in the function."""
        key = id(function)
        if key not in self._mentioned:
            self._mentioned[key] = frozenset(n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute))
        return self._mentioned[key]

    def _methods(self, class_name: str) -> Iterator[Function]:
        """The methods of the class, of its bases, and of its direct subclasses."""
        bases = {name: {b.id for b in node.bases if isinstance(b, ast.Name)} for name, node in self.classes.items()}
        related = {class_name, *(name for name in bases if class_name in bases[name])}
        while more := {base for name in related for base in bases.get(name, ())} - related:
            related |= more
        for name in sorted(related & self.classes.keys()):
            yield from (item for item in self.classes[name].body if isinstance(item, Function))

    def followed(self, class_name: str, function: Function, parameter: str, depth: int) -> Usage:
        """How a function uses a parameter, including the functions of the file that it passes the parameter to."""
        key = (id(function), parameter)
        if key not in self._usages:
            self._usages[key] = Usage()  # a recursive call adds nothing
            visitor = UsageVisitor(self, class_name, parameter, depth, function.name == "__init__")
            visitor.follow(function.body)
            self._usages[key] = visitor.usage
            if depth and (visitor.constructs or parameter.startswith("self.")):
                self._follow_parts(class_name, function, parameter, depth - 1, visitor.usage)
        return self._usages[key]

    def _follow_parts(self, class_name: str, function: Function, parameter: str, depth: int, usage: Usage) -> None:
        """Add the uses of the parameter's attributes and items, for a parameter that is a configuration."""
        paths = {name: f"{parameter}.{name}" for name in sorted(usage.attributes & self._mentions(function))}
        paths |= {key: f"{parameter}[{key!r}]" for key in usage.keys}
        for name, path in paths.items():
            part = self.followed(class_name, function, path, depth)
            if part != Usage():
                usage.parts.setdefault(name, Usage()).absorb(part)

    def callee(self, class_name: str, call: ast.Call) -> tuple[str, Function, bool] | None:
        """(class, function, True if `self` comes first) of the callee, if this file defines it."""
        match call.func:
            case ast.Name(name) if name in self.functions:
                return class_name, self.functions[name], False
            case ast.Name(name) if name in self.classes:
                constructor = self.method(name, "__init__")
                return (name, constructor, True) if constructor else None
            case ast.Attribute(ast.Name("self"), name):
                method = self.method(class_name, name)
                return (class_name, method, True) if method else None
            case ast.Attribute(ast.Call(ast.Name("super")), name):
                for base in self.classes[class_name].bases if class_name in self.classes else ():
                    if isinstance(base, ast.Name) and (method := self.method(base.id, name)):
                        return base.id, method, True
        return None


def _default_values(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """(parameter, its default)"""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return ((arg.arg, value) for arg, value in pairs if value is not None)


def pattern_rank(side: str) -> int:
    """Number of axes of one side of a pattern: `"b (h p) w"` -> 3."""
    return len(_AXIS.findall(side))
