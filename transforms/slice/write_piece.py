"""Write a piece of a graph as a small module, as a person would: layers in the constructor, calls in `forward`."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import TensorSpec

from .pieces import Piece
from .traced_graph import Node

MOST_INPUTS = 4
_DTYPES = ("float32", "int64", "bool")
_WIDTH = 60  # characters of an expression with another in it
_DEPTH = 3  # calls in one another
_SIZES = (  # arguments of layers that the constructor takes, so that the text is the same for all sizes
    "in_channels", "out_channels", "in_features", "out_features", "num_features", "num_channels", "normalized_shape",
    "num_embeddings", "embedding_dim", "embed_dim", "num_parameters", "input_size", "hidden_size",
)  # fmt: skip
_POSITIONAL = frozenset((*_SIZES, "kernel_size", "num_groups", "num_heads", "output_size", "upscale_factor", "padding"))
_PLAIN_NAMES = {
    "Conv": "conv",
    "BatchNorm": "bn",
    "Linear": "linear",
    "Embedding": "embedding",
    "MultiheadAttention": "attn",
}
_STRENGTH = {"|": 1, "&": 2, "+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "@": 5, "**": 7}  # comparisons: 0
_ATOM, _PREFIX = 9, 6
_VARIABLES = {"softmax": "weights", "sigmoid": "gate", "mean": "mean", "var": "var", "std": "std", "norm": "norm",
              "sum": "total", "max": "peak", "amax": "peak"}  # fmt: skip
_NAMED = {math.pi: "torch.pi", -3.4028234663852886e38: "torch.finfo(torch.float32).min"}  # constants
_LETTERS = ("x", "y", "z", "u", "v", "s", "t", "r")  # none of the axes below
_AXES = {1: ("n",), 2: ("b", "c"), 3: ("b", "n", "c"), 4: ("b", "c", "h", "w"), 5: ("b", "c", "d", "h", "w"),
         6: ("b", "g", "c", "d", "h", "w")}  # fmt: skip


class NotWritten(Exception):
    """The piece cannot be written."""

    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(reason.value, evidence)
        self.reason, self.evidence = reason, evidence


@dataclass(frozen=True, slots=True)
class WrittenPiece:
    """The source of a piece, and a call of it."""

    name: str  # of its operators
    code: str  # defines `Model`
    init_args: tuple[int, ...]
    inputs: tuple[TensorSpec, ...]


@dataclass(slots=True)
class _Expression:
    text: str
    strength: int = _ATOM
    depth: int = 0
    holds: frozenset[int] = frozenset()  # nodes that it computes


def write_piece(piece: Piece) -> WrittenPiece:
    """The source of a piece. Raises: NotWritten."""
    return _Writer(piece).write()


@dataclass
class _Writer:
    piece: Piece
    lines: list[str] = field(default_factory=list)  # of forward
    layers: dict[str, str] = field(default_factory=dict)  # attribute -> source of its value
    sizes: dict[int, str] = field(default_factory=dict)  # size -> parameter of the constructor
    tensors: dict[int, str] = field(default_factory=dict)  # input -> its name
    expressions: dict[int, _Expression] = field(default_factory=dict)
    axes: dict[tuple[int, int], str] = field(default_factory=dict)  # (input, axis) -> name of its size
    attributes: dict[Any, str] = field(default_factory=dict)  # path of a layer or parameter -> attribute

    @property
    def graph(self) -> Sequence[Node]:
        return self.piece.graph

    def write(self) -> WrittenPiece:
        self._name_attributes()
        self._name_inputs()
        uses = Counter(taken for place in self.piece.nodes for taken in self.graph[place].takes)
        self.left = dict(uses)  # uses that no line has yet
        for place in self.piece.nodes:
            if place not in self.expressions:
                self._compute(place, uses)
        names = ", ".join(self.tensors.values())
        body = [f"        {line}" for line in (*self._unpackings(), *self.lines)]
        forward = [f"    def forward(self, {names}):", *body]
        lines = ["class Model(nn.Module):", *self._constructor(), *forward]
        text = "\n".join(lines) + "\n"
        imports = ["import torch\n"] if re.search(r"\btorch\.", text) else []
        imports += ["import torch.nn.functional as F\n"] if re.search(r"\bF\.", text) else []
        code = "".join(imports) + "from torch import nn\n\n\n" + text
        return WrittenPiece(self._name(), code, tuple(self.sizes), tuple(self._specs()))

    def _name(self) -> str:
        operators = [self.graph[place] for place in self.piece.nodes if self.graph[place].is_operator]
        words = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "@": "Matmul", "**": "Pow"}
        return "".join(words.get(node.name, _camel(node)) for node in operators) or "Compare"

    # Names

    def _name_attributes(self) -> None:
        """Attributes for the layers and parameters, after those of the module that the piece is cut from."""
        wanted: dict[Any, str] = {}
        for place in self.piece.inputs:
            if (node := self.graph[place]).kind == "parameter":
                wanted.setdefault(node.name, _attribute(node.name, "weight"))
        for place in self.piece.nodes:
            if (node := self.graph[place]).kind == "layer":
                wanted.setdefault(node.path or place, _attribute(node.path, node.name))
        plain = Counter(name.rstrip("0123456789") for name in wanted.values())
        for key, name in wanted.items():
            if (short := name.rstrip("0123456789_")) and plain[name.rstrip("0123456789")] == 1:
                wanted[key] = short
        counts, numbers = Counter(wanted.values()), Counter[str]()
        for key, name in wanted.items():
            numbers[name] += 1
            self.attributes[key] = f"{name}{numbers[name]}" if counts[name] > 1 else name
        if len(set(self.attributes.values())) < len(wanted):
            raise NotWritten(Reason.NOT_WRITTEN, "two layers of one name")
        for place in self.piece.nodes:
            node = self.graph[place]
            if node.kind == "layer":
                self.layers[self.attributes[node.path or place]] = self._layer(node)

    def _name_inputs(self) -> None:
        given = [place for place in self.piece.inputs if self.graph[place].kind != "parameter"]
        if not 0 < len(given) <= MOST_INPUTS:
            raise NotWritten(Reason.NOT_WRITTEN, f"{len(given)} inputs")
        for place in given:
            node = self.graph[place]
            if node.dtype not in _DTYPES or not node.shapes or 0 in node.shapes[0] or len(node.shapes[0]) > 6:
                raise NotWritten(Reason.NOT_WRITTEN, f"an input of dtype {node.dtype} and shape {node.shapes[:1]}")
            if node.dtype == "int64" and not -(2**31) <= node.low < node.high <= 2**31:
                raise NotWritten(Reason.NOT_WRITTEN, f"integers from {node.low} to {node.high}")
            wish = node.name.rpartition(".")[2] if node.kind in ("input", "buffer") else ""
            fallback = {"bool": "mask", "int64": "index"}.get(node.dtype, "")
            options = [name for name in (wish, fallback, *_LETTERS) if name.isidentifier() and len(name) <= 16]
            self.tensors[place] = self._free_name(options)
            self.expressions[place] = _Expression(self.tensors[place])
        for place in self.piece.inputs:
            if (node := self.graph[place]).kind == "parameter":
                attribute = self.attributes[node.name]
                self.layers[attribute] = self._parameter(node)
                self.expressions[place] = _Expression(f"self.{attribute}")

    def _free_name(self, options: Sequence[str]) -> str:
        taken = {*self.tensors.values(), *self.axes.values(), *(e.text for e in self.expressions.values())}
        taken |= {"self", "torch", "nn", "F", "_", *(name for names in _AXES.values() for name in names)}
        for name in (*options, *(f"{letter}{i}" for i in range(1, 9) for letter in _LETTERS)):
            if name not in taken and not keyword.iskeyword(name):
                return name
        raise NotWritten(Reason.NOT_WRITTEN, "more variables than names")

    # The constructor

    def _constructor(self) -> list[str]:
        if not self.layers:
            return []
        parameters = ", ".join(("self", *self.sizes.values()))
        lines = [f"        self.{name} = {value}" for name, value in self.layers.items()]
        return [f"    def __init__({parameters}):", "        super().__init__()", *lines, ""]

    def _layer(self, node: Node) -> str:
        given = dict(node.arguments)
        if "Pool" in node.name and given.get("stride") == given.get("kernel_size"):
            given.pop("stride", None)
        texts: list[str] = []
        for name, value in given.items():
            text = self._setting(name, value)
            positional = name in _POSITIONAL and all("=" not in other for other in texts)
            texts.append(text if positional and (name != "padding" or "Pad" in node.name) else f"{name}={text}")
        return f"nn.{node.name}({', '.join(texts)})"

    def _setting(self, name: str, value: Any) -> str:
        if type(value) is int and (name in _SIZES or (name == "groups" and value in self.sizes)) and value > 1:
            return self._size(value, name)
        return repr(tuple(value) if isinstance(value, list) else value)

    def _size(self, value: int, name: str) -> str:
        if value not in self.sizes:
            same = sum(known.rstrip("0123456789") == name for known in self.sizes.values())
            self.sizes[value] = f"{name}{same + 1}" if same else name
        return self.sizes[value]

    def _parameter(self, node: Node) -> str:
        shape = node.shapes[0]
        large = [size for size in shape if size > 1]
        sizes = [self._size(size, "dim") if len(large) == 1 and size > 1 else str(size) for size in shape]
        inside = ", ".join(sizes) if sizes else "()"
        if node.std > 0:
            scale = "" if 0.5 < node.std < 2 else f" * {node.std:.1g}"
            return f"nn.Parameter(torch.randn({inside}){scale})"
        if node.mean in (0, 1):
            return f"nn.Parameter(torch.{'ones' if node.mean else 'zeros'}({inside}))"
        return f"nn.Parameter({node.mean:.6g} * torch.ones({inside}))"

    # Forward

    def _compute(self, place: int, uses: Mapping[int, int]) -> None:
        node = self.graph[place]
        items = [p for p in self.piece.nodes if self.graph[p].kind == "item" and self.graph[p].takes[0] == place]
        expression = self._expression(place)
        if place == self.piece.result:
            self.lines.append(f"return {expression.text}")
        elif items and len(items) > 1:
            last = max(int(self.graph[item].name) for item in items)
            count = sum(other.kind == "item" and other.takes[0] == place for other in self.graph)
            names = ["_"] * max(count, last + 1)
            for number, item in enumerate(items):
                wishes = ("qkv"[number],) if len(items) == 3 else ()
                name = self._free_name((*wishes, *(f"x{i}" for i in range(1, 9))))
                self.expressions[item] = _Expression(name)
                names[int(self.graph[item].name)] = name
            self._emit(f"{', '.join(names)} = {expression.text}", expression)
        elif uses[place] == 1 and expression.depth < _DEPTH and len(expression.text) <= _WIDTH:
            self.expressions[place] = expression
        else:
            name = self._variable(node, expression)
            self._emit(f"{name} = {expression.text}", expression)
            self.expressions[place] = _Expression(name)

    def _emit(self, line: str, expression: _Expression) -> None:
        for place in expression.holds:
            for taken in self.graph[place].takes:
                self.left[taken] -= 1
        self.lines.append(line)

    def _variable(self, node: Node, expression: _Expression) -> str:
        """The name of the first operand, if no later line needs that, else a new name."""
        held = Counter(taken for place in expression.holds for taken in self.graph[place].takes)
        for taken, number in held.items():
            text = self.expressions[taken].text if taken in self.expressions else ""
            if text.isidentifier() and self.left[taken] == number and self.graph[taken].dtype == "float32":
                if taken in self.tensors:
                    self.expressions[taken] = _Expression("")
                return text
        wish = _VARIABLES.get(node.operator.lower(), "")
        return self._free_name([wish, *_LETTERS] if wish else _LETTERS)

    def _expression(self, place: int) -> _Expression:
        node = self.graph[place]
        operands = [self.expressions[taken] for taken in node.takes]
        nested = max((operand.depth for operand in operands), default=0)
        holds = frozenset([place]).union(*(operand.holds for operand in operands))
        if node.kind == "layer":
            return self._call(f"self.{self.attributes[node.path or place]}", node.args, node, nested, holds)
        if node.kind == "function":
            return self._call(node.name, node.args, node, nested, holds)
        if node.kind == "method":
            return self._call(f"{self._operand(node.args[0], _ATOM)}.{node.name}", node.args[1:], node, nested, holds)
        if node.kind == "attribute":
            return _Expression(f"{self._operand(node.args[0], _ATOM)}.{node.name}", _ATOM, nested, holds)
        if node.kind == "item":
            return _Expression(f"{self._operand(node.args[0], _ATOM)}[{node.name}]", _ATOM, nested, holds)
        if node.kind == "index":
            return _Expression(
                f"{self._operand(node.args[0], _ATOM)}[{self._index(node.args[1])}]", _ATOM, nested, holds
            )
        if node.kind == "prefix":
            return _Expression(f"{node.name}{self._operand(node.args[0], _PREFIX)}", _PREFIX, nested + 1, holds)
        strength = _STRENGTH.get(node.name, 0)
        left = self._operand(node.args[0], strength + (node.name == "**" or not strength))
        right = self._operand(node.args[1], strength + (node.name != "**"))
        return _Expression(f"{left} {node.name} {right}", strength, nested + 1, holds)

    def _call(self, name: str, args: Sequence[Any], node: Node, nested: int, holds: frozenset[int]) -> _Expression:
        given = list(self._without_tuple(args, node))
        while given and given[-1] == {"value": None}:
            given.pop()
        texts = [self._text(arg) for arg in given]
        texts += [f"{key}={self._text(value)}" for key, value in node.kwargs.items() if value != {"value": None}]
        return _Expression(f"{name}({', '.join(texts)})", _ATOM, nested + 1, holds)

    def _without_tuple(self, args: Sequence[Any], node: Node) -> Sequence[Any]:
        """`x.view(2, 3)` for `x.view((2, 3))`."""
        if node.kind == "method" and len(args) == 1 and isinstance(args[0], dict) and node.operator in (
            "view", "reshape", "permute", "expand", "repeat",
        ):  # fmt: skip
            return next((args[0][key] for key in ("tuple", "list") if key in args[0]), args)
        return args

    def _operand(self, tree: Any, least: int) -> str:
        if isinstance(tree, dict) and tree.keys() == {"node"}:
            found = self.expressions[tree["node"]]
            return f"({found.text})" if found.strength < least else found.text
        text = self._text(tree)
        return f"({text})" if text.startswith("-") and least > _PREFIX else text

    def _text(self, tree: Any) -> str:
        match tree:
            case {"node": place}:
                return self.expressions[place].text
            case {"value": value}:
                return _number(value)
            case {"code": str(code)} if re.fullmatch(r'[\w.]+|\.\.\.|float\("-?(inf|nan)"\)', code):
                return code
            case {"sizes": list(sizes)}:
                return self._free_size(tuple(sizes))
            case {"list": list(items)}:
                return f"[{', '.join(map(self._text, items))}]"
            case {"tuple": list(items)}:
                return f"({', '.join(map(self._text, items))}{',' * (len(items) == 1)})"
            case {"slice": [start, stop, step]}:
                return f"slice({self._text(start)}, {self._text(stop)}, {self._text(step)})"
        raise NotWritten(Reason.NOT_WRITTEN, f"an argument {str(tree)[:80]}")

    def _index(self, tree: Any) -> str:
        match tree:
            case {"tuple": list(items)} if items:
                return ", ".join(map(self._index, items))
            case {"slice": [start, stop, step]}:
                texts = ["" if part == {"value": None} else self._text(part) for part in (start, stop, step)]
                return ":".join(texts[: 3 if texts[2] else 2])
        return self._text(tree)

    # Sizes

    def _free_size(self, sizes: tuple[int, ...]) -> str:
        """An expression of the inputs' sizes that has these values. Raises: NotWritten: there is none."""
        axes = [
            (place, axis, values)
            for place in self.tensors
            for axis, values in enumerate(zip(*self.graph[place].shapes, strict=True))
            if len(values) == len(sizes)
        ]
        for place, axis, values in axes:
            if values == sizes:
                return self._axis(place, axis)
        for place, axis, values in axes:
            if len(set(values)) == 1:
                continue
            if factor := _quotient(sizes, values):
                return f"{self._axis(place, axis)} * {factor}"
            if share := _quotient(values, sizes):
                return f"{self._axis(place, axis)} // {share}"
            steps = {a - b for a, b in zip(sizes, values, strict=True)}
            if steps in ({1}, {-1}):  # a larger difference is mostly chance
                return f"{self._axis(place, axis)} {'+' if steps == {1} else '-'} 1"
        for i, (place, axis, values) in enumerate(axes):
            for other, second, more in axes[i + 1 :]:
                if tuple(a * b for a, b in zip(values, more, strict=True)) == sizes:
                    return f"{self._axis(place, axis)} * {self._axis(other, second)}"
        raise NotWritten(Reason.SIZE_FROM_OUTSIDE, f"sizes {sizes[:3]}")

    def _axis(self, place: int, axis: int) -> str:
        if (place, axis) not in self.axes:
            names = _AXES[len(self.graph[place].shapes[0])]
            taken = {*self.axes.values(), *self.tensors.values(), *(e.text for e in self.expressions.values())}
            name = names[axis]
            self.axes[place, axis] = next(n for n in (name, *(f"{name}{i}" for i in range(2, 99))) if n not in taken)
        return self.axes[place, axis]

    def _unpackings(self) -> Iterator[str]:
        for place, tensor in self.tensors.items():
            rank = len(self.graph[place].shapes[0])
            names = [self.axes.get((place, axis), "_") for axis in range(rank)]
            known = [name for name in names if name != "_"]
            if len(known) == 1:
                yield f"{known[0]} = {tensor}.shape[{names.index(known[0])}]"
            elif known:
                yield f"{', '.join(names)} = {tensor}.shape"

    def _specs(self) -> Iterator[TensorSpec]:
        for place, name in self.tensors.items():
            node = self.graph[place]
            yield TensorSpec(name, node.shapes[0], node.dtype, node.low, node.high)


def _camel(node: Node) -> str:
    if node.kind == "layer":
        return node.name
    return "".join(part.capitalize() for part in re.split(r"\W|_", node.operator))


def _number(value: Any) -> str:
    """Source of a constant: `8**-0.5` for what is a root of a whole number."""
    if type(value) is not float:
        return repr(value)
    if value in _NAMED:
        return _NAMED[value]
    if 1e-3 < value < 1e3 and len(repr(value)) > 12:
        for square, power in ((round(value**2), 0.5), (round(value**-2), -0.5)):
            if square > 1 and math.isclose(value, square**power, rel_tol=1e-15):
                return f"{square}**{power}"
    return repr(value)


def _quotient(ones: Sequence[int], others: Sequence[int]) -> int:
    """The integer that each of the ones is of its other; 0 if there is none."""
    found = {a // b if b and a % b == 0 else 0 for a, b in zip(ones, others, strict=True)}
    return found.pop() if len(found) == 1 else 0


def _attribute(path: str, name: str) -> str:
    last = path.removesuffix(".original").rpartition(".")[2]  # of a parametrised weight
    if last.isidentifier() and not keyword.iskeyword(last) and len(last) <= 24 and last not in ("forward", "training"):
        return last
    plain = next((short for start, short in _PLAIN_NAMES.items() if name.startswith(start)), "")
    return plain or ("norm" if name.endswith("Norm") or "Norm" in name else name.lower())
