"""Write the calls of PyTorch that a module makes as calls of functions of `library`, one for each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kernelquarry.transforms.slice.traced_graph import Node

from .calls import RENAMED, TABLE, Given, Handler, NotWritten, attribute, parameters_of

_LETTERS = (*"yzuvwabcdepqrst", *(f"{letter}{i}" for i in range(1, 9) for letter in "xyzuvw"))
_NAME = re.compile(r"[A-Za-z_]\w*")
_AXES = {
    2: ("batch", "width"), 3: ("batch", "length", "width"), 4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}  # fmt: skip
_STEP = 9  # a larger difference between sizes is mostly chance
_WIDTH = 60  # characters of a view that stands inside another call


@dataclass(frozen=True, slots=True)
class Forward:
    """The body of a forward, and the functions of the library that it calls."""

    lines: tuple[str, ...]
    functions: tuple[str, ...]


def write_forward(
    graph: Sequence[Node], result: Any, parameters: Sequence[str], statements: Mapping[int, str]
) -> Forward:
    """The forward of a graph whose leaves are parameters of `forward` and the state.

    Comments give the statement of the module, by its line, that the lines below compute.

    Raises:
        NotWritten: the library lacks a call.
    """
    return Writer(graph, result, parameters, statements).write()


class Writer:
    def __init__(
        self, graph: Sequence[Node], result: Any, parameters: Sequence[str], statements: Mapping[int, str]
    ) -> None:
        self.graph, self.result, self.statements = graph, result, statements
        self.statement = ""  # of the module, that the last lines compute
        self._given: tuple[Node | None, Given] = None, Given({})  # the arguments of the last node
        self.lines: list[str] = []
        self.functions: dict[str, None] = {}
        self.texts: dict[int, str] = {}
        self.axes: dict[tuple[int, int], str] = {}
        needed = set[int]()
        pending = list(_nodes(result))
        while pending:
            if (place := pending.pop()) not in needed:
                needed.add(place)
                pending += graph[place].takes
        self.order = sorted(needed)
        self.left = Counter(taken for place in self.order for taken in graph[place].takes)
        self.left.update(_nodes(result))
        self.taken = {*parameters, "self", "torch", "nn", "triton", "tl", "math"}
        self.inputs: list[int] = []
        for place in self.order:
            node = graph[place]
            if node.kind == "input":
                if node.name not in parameters:
                    raise NotWritten(f"an input {node.name} inside of an argument")
                self.texts[place] = node.name
                self.inputs.append(place)
            elif node.kind in ("parameter", "buffer"):
                self.texts[place] = attribute(node.name)
            elif node.is_leaf:
                raise NotWritten("a tensor that nothing of the module holds")

    def write(self) -> Forward:
        for place in self.order:
            if place not in self.texts:
                self._compute(place)
        outcome = self._returned(self.result)
        if not self.functions:
            raise NotWritten("no kernel")
        if clash := self.taken & self.functions.keys():
            raise NotWritten(f"a variable {min(clash)}")
        used = [
            ((p, a), name)
            for (p, a), name in self.axes.items()
            if any(_whole(name).search(t) for t in (*self.lines, outcome) if t[0] != "#")
        ]
        sizes = [f"{name} = {self.graph[place].name}.shape[{axis}]" for (place, axis), name in used]
        return Forward((*sizes, *self.lines, f"return {outcome}"), tuple(self.functions))

    def _returned(self, tree: Any) -> str:
        match tree:
            case {"tuple": list(items)}:
                return f"({', '.join(map(self._returned, items))}{',' * (len(items) == 1)})"
            case {"list": list(items)}:
                return f"[{', '.join(map(self._returned, items))}]"
            case {"dict": dict(items)}:
                return "{" + ", ".join(f"{key!r}: {self._returned(value)}" for key, value in items.items()) + "}"
            case {"node": place}:
                if not self.functions or self.graph[place].is_leaf:
                    return self.call("copied", self.texts[place])
                return self.texts[place]
            case {"value": None}:
                return "None"
        raise NotWritten(f"a result {str(tree)[:40]}")

    # Statements

    def _compute(self, place: int) -> None:
        node = self.graph[place]
        items = [p for p in self.order if self.graph[p].kind == "item" and self.graph[p].takes[0] == place]
        if items or not node.shapes:
            self._unpack(place, items)
            return
        text, is_call = self.expression(node)
        for taken in node.takes:
            self.left[taken] -= 1
        is_short_view = not is_call and self.left[place] == 1 and len(text) <= _WIDTH
        if is_short_view or _NAME.fullmatch(text):  # another name of the same value
            self.texts[place] = text
            return
        name = self._variable(node)
        self._emit(node, f"{name} = {text}")
        self.texts[place] = name

    def _unpack(self, place: int, items: Sequence[int]) -> None:
        node = self.graph[place]
        if node.operator == "MultiheadAttention" and all(self.graph[item].name == "0" for item in items):
            text, _ = self.expression(node)
            self.texts[items[0]] = self._free()
            self._emit(node, f"{self.texts[items[0]]} = {text}[0]")
            return
        if node.operator in ("max", "min", "topk", "sort", "median"):
            for item in items:
                text, name = self._item(node, self.graph[item].name), self._free()
                self._emit(node, f"{name} = {text}")
                self.texts[item] = name
            return
        text, _ = self.expression(node)
        for taken in node.takes:
            self.left[taken] -= 1
        count = sum(1 for other in self.graph if other.kind == "item" and other.takes[0] == place)
        names = ["_"] * max(count, *(int(self.graph[item].name) + 1 for item in items))
        for item in items:
            name = self._free()
            names[int(self.graph[item].name)] = name
            self.texts[item] = name
        if len(items) == 1 and len(names) > 1:
            self._emit(node, f"{self.texts[items[0]]} = {text}[{self.graph[items[0]].name}]")
        else:
            self._emit(node, f"{', '.join(names)}{',' * (len(names) == 1)} = {text}")

    def _item(self, node: Node, number: str) -> str:
        if node.operator not in ("max", "min"):
            raise NotWritten(f"items of {node.operator}")
        given = self.given(node)
        function = {"max0": "reduce_max", "max1": "index_of_max", "min0": "reduce_min", "min1": "index_of_min"}
        keep = ", keepdim=True" if self.constant(given.get("keepdim"), False) else ""
        return self.call(
            function[node.operator + number], f"{self.tensor(given['x'])}, {self.text(given['dim'])}{keep}"
        )

    def _emit(self, node: Node, line: str) -> None:
        statement = self.statements.get(node.line, "")
        if statement and statement != self.statement:
            self.lines.append(f"# {statement}")
        self.statement = statement
        self.lines.append(line)

    def _variable(self, node: Node) -> str:
        """The name of the first operand if nothing needs that any more, else a new name."""
        for taken in node.takes:
            text = self.texts[taken]
            if _NAME.fullmatch(text) and self.left[taken] == 0 and not self._holds(text, taken):
                return text
        return self._free()

    def _holds(self, name: str, place: int) -> bool:
        """True if another value that is needed has this name in its text."""
        whole = _whole(name)
        return any(p != place and self.left[p] > 0 and whole.search(t) for p, t in self.texts.items())

    def _free(self) -> str:
        for name in _LETTERS:
            if name not in self.taken:
                self.taken.add(name)
                return name
        raise NotWritten("more variables than names")

    # Expressions

    def expression(self, node: Node) -> tuple[str, bool]:
        """The text, and whether it calls the library."""
        self._called = False
        if node.kind == "unknown" and len(node.takes) == 1:  # passes on what it takes, see `without_identities`
            return self.texts[node.takes[0]], False
        key = (
            f"{node.kind}:{node.operator}"
            if node.kind in ("layer", "infix", "prefix", "index", "attribute")
            else node.operator
        )
        handler: Handler | None = TABLE.get(key)
        if handler is None:
            raise NotWritten(f"{node.kind} {node.name}")
        text = handler(self, node)
        if node.kind in ("function", "method", "layer") and (unread := self.given(node).unread):
            raise NotWritten(f"{min(unread)} of {node.operator}")
        return text, self._called

    def call(self, function: str, arguments: str) -> str:
        self.functions.setdefault(function)
        self._called = True
        return f"{function}({arguments})"

    def given(self, node: Node) -> Given:
        """Arguments by the names of parameters; of a layer, those of its call."""
        if self._given[0] is node:
            return self._given[1]
        names = parameters_of(node)
        if len(node.args) > len(names) and names[-1][0] != "*":
            raise NotWritten(f"arguments of {node.operator}")
        found: dict[str, Any] = {}
        for index, arg in enumerate(node.args):
            if names[min(index, len(names) - 1)][0] == "*":
                rest = node.args[index:]
                single = len(rest) == 1 and isinstance(rest[0], dict) and ("tuple" in rest[0] or "list" in rest[0])
                found[names[-1][1:]] = rest[0] if single else {"tuple": rest}
                break
            found[names[index]] = arg
        for key, value in node.kwargs.items():
            found[key if key in names else RENAMED.get(key, key)] = value
        self._given = node, Given({key: value for key, value in found.items() if value != {"value": None}})
        return self._given[1]

    def node(self, tree: Any) -> Node:
        if isinstance(tree, dict) and tree.keys() == {"node"}:
            return self.graph[tree["node"]]
        raise NotWritten("a number in place of a tensor")

    def is_tensor(self, tree: Any) -> bool:
        return isinstance(tree, dict) and tree.keys() == {"node"}

    def tensor(self, tree: Any, dtype: str = "float32") -> str:
        """The text of a tensor of a dtype ("": any)."""
        if dtype and self.node(tree).dtype != dtype:
            raise NotWritten(f"a tensor of {self.node(tree).dtype}")
        return self.texts[tree["node"]]

    def atom(self, tree: Any) -> str:
        """The text of a tensor of any dtype."""
        self.node(tree)
        return self.texts[tree["node"]]

    def rank(self, tree: Any) -> int:
        return len(self.node(tree).shapes[0])

    def constant(self, tree: Any, default: Any = None) -> Any:
        """The value of a constant. Raises: NotWritten: it is none."""
        match tree:
            case None:
                return default
            case {"value": value}:
                return value
            case {"tuple": list(items)} | {"list": list(items)}:
                return tuple(map(self.constant, items))
            case {"code": str(code)} if code.startswith("float("):
                return float(code[7:-2])
        raise NotWritten(f"an argument {str(tree)[:40]}")

    def text(self, tree: Any) -> str:
        match tree:
            case {"node": place}:
                return self.texts[place]
            case {"value": value}:
                return repr(value)
            case {"code": str(code)}:
                return code
            case {"sizes": list(sizes)}:
                return self.size(tuple(sizes))
            case {"numbers": list(numbers)}:
                return self._number_of_sizes(numbers)
            case {"list": list(items)} | {"tuple": list(items)}:
                return f"({', '.join(map(self.text, items))}{',' * (len(items) == 1)})"
        raise NotWritten(f"an argument {str(tree)[:40]}")

    def number(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotWritten(f"a number {value!r}")
        return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)

    # Sizes

    def size(self, sizes: tuple[int, ...], near: int | None = None) -> str:
        """An expression of sizes of tensors at hand that has these values in the calls."""
        if len(set(sizes)) == 1:
            return str(sizes[0])
        places = ([near] if near is not None and _NAME.fullmatch(self.texts[near]) else []) + self.inputs
        axes = [
            (place, axis, values)
            for place in places
            for axis, values in enumerate(zip(*self.graph[place].shapes, strict=True))
            if len(values) == len(sizes)
        ]
        for place, axis, values in axes:
            if values == sizes:
                return self._axis(place, axis, near)
        varied = [each for each in axes if len(set(each[2])) > 1]
        for place, axis, values in varied:
            if factor := _quotient(sizes, values):
                return f"{self._axis(place, axis, near)} * {factor}"
        for place, axis, values in varied:
            for share in (2, 3, 4, 8, _quotient(values, sizes)):
                if share and tuple(v // share for v in values) == sizes:
                    return f"{self._axis(place, axis, near)} // {share}"
                if share and tuple(-(-v // share) for v in values) == sizes:
                    return f"({self._axis(place, axis, near)} + {share - 1}) // {share}"
        for i, (place, axis, values) in enumerate(axes):
            for other, second, more in axes[i + 1 :]:
                if tuple(a * b for a, b in zip(values, more, strict=True)) == sizes:
                    return f"{self._axis(place, axis, near)} * {self._axis(other, second, near)}"
        for place, axis, values in varied:
            steps = {a - b for a, b in zip(sizes, values, strict=True)}
            if len(steps) == 1 and abs(step := steps.pop()) < _STEP:
                return f"{self._axis(place, axis, near)} {'+' if step > 0 else '-'} {abs(step)}"
        raise NotWritten(f"sizes {sizes[:3]}")

    def _number_of_sizes(self, numbers: Sequence[float]) -> str:
        """A number that follows from sizes, such as the root of one."""
        for text, exponent in (("{} ** 0.5", 2.0), ("{} ** -0.5", -2.0), ("1.0 / {}", -1.0), ("float({})", 1.0)):
            sizes = tuple(round(number**exponent) if number > 0 else 0 for number in numbers)
            if all(size and math.isclose(size ** (1 / exponent), n) for size, n in zip(sizes, numbers, strict=True)):
                with suppress(NotWritten):  # another form may have these sizes
                    size = self.size(sizes)
                    return text.format(f"({size})" if " " in size else size)
        raise NotWritten(f"numbers {numbers[:3]}")

    def _axis(self, place: int, axis: int, near: int | None) -> str:
        """A size of a tensor at hand, or the name of one of an input, which the first lines set if it is used."""
        if place == near:
            return f"{self.texts[place]}.shape[{axis}]"
        if (place, axis) not in self.axes:
            rank = len(self.graph[place].shapes[0])
            word = (_AXES.get(rank) or [f"size{i}" for i in range(rank)])[axis]
            while word in self.taken:
                word = f"{self.graph[place].name}_{word}"
            self.taken.add(word)
            self.axes[place, axis] = word
        return self.axes[place, axis]

    def shape(self, trees: Sequence[Any], near: int | None, free: bool = True) -> list[str]:
        """The sizes of a view; one that varies is written -1 where `free`."""
        varied = [i for i, tree in enumerate(trees) if isinstance(tree, dict) and "sizes" in tree]
        has_free = any(tree == {"value": -1} for tree in trees)
        texts = []
        for i, tree in enumerate(trees):
            if i in varied:
                try:
                    texts.append(self.size(tuple(tree["sizes"]), near))
                except NotWritten:
                    if not free or has_free:
                        raise
                    has_free = True
                    texts.append("-1")
            else:
                texts.append(str(self.constant(tree)))
        return texts


def _nodes(tree: Any) -> list[int]:
    if isinstance(tree, dict):
        if tree.keys() == {"node"}:
            return [tree["node"]]
        return [place for value in tree.values() for place in _nodes(value)]
    return [place for value in tree for place in _nodes(value)] if isinstance(tree, list) else []


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){name}\b")


def _quotient(ones: Sequence[int], others: Sequence[int]) -> int:
    found = {a // b if b and a % b == 0 else 0 for a, b in zip(ones, others, strict=True)}
    return found.pop() if len(found) == 1 else 0
