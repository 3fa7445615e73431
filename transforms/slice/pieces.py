"""Find the connected convex pieces of a graph, and the pattern of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kernelquarry.pipeline.schema.ids import sha256

from .traced_graph import Node

MOST_OPERATORS = 8
_MOST_SETS = 1500  # of operators of one size in one module
_TUPLES = frozenset("chunk split tensor_split unbind".split())
_TURNS = frozenset("mT T t transpose permute".split())
_SPREADS = frozenset("unsqueeze getitem expand".split())
_COMMUTE = frozenset("+*&|")
_ONE_NAME = {"@": "matmul", "bmm": "matmul", "mm": "matmul", "+": "add", "-": "sub", "*": "mul", "/": "div",
             "**": "pow", "square": "pow", "concat": "cat"}  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """Nodes of a graph that compute one tensor."""

    graph: Sequence[Node]
    nodes: tuple[int, ...]  # places, in order; leaves are not among them
    result: int
    operators: int

    @property
    def combining(self) -> int:
        """Number of operators that are mostly kernels of their own; the others fuse into them, or into one kernel."""
        return sum(self.graph[place].combines for place in self.nodes)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Nodes outside, parameters included, that the piece takes, in the order in which an expression names them."""
        inside, found = set(self.nodes), dict[int, None]()

        def visit(place: int) -> None:
            for taken in self.graph[place].takes:
                if taken in inside:
                    visit(taken)
                else:
                    found[taken] = None

        visit(self.result)
        return tuple(found)

    @cached_property
    def pattern(self) -> str:
        """The operators and their wiring, without settings, sizes, reshapes, and the spelling of an operator."""
        inside = set(self.nodes)
        shapes: dict[int, str] = {}
        for place in self.nodes:
            node = self.graph[place]
            below = [shapes.get(taken, _leaf(self.graph[taken])) for taken in node.takes]
            if not node.is_operator:
                shapes[place] = below[0] if below else "made"
                continue
            if node.name in _COMMUTE:
                below.sort()
            if node.kind in ("infix", "method", "function") and len(below) == 1 and len(node.args) > 1:
                below.append("c")
            shapes[place] = f"{_operator_name(node)}({','.join(below)})"
        uses = sorted(
            f"{shapes[place]}*{number}"
            for place in self.nodes
            if self.graph[place].is_operator
            and (number := sum(taken == place for other in inside for taken in self.graph[other].takes)) > 1
        )
        used = sorted(
            sum(taken == outside for place in self.nodes for taken in self.graph[place].takes)
            for outside in self.inputs
            if self.graph[outside].kind != "parameter"
        )
        return f"{shapes[self.result]} {used} {uses}"


def _leaf(node: Node) -> str:
    return "p" if node.kind == "parameter" else {"bool": "b", "int64": "i"}.get(node.dtype, "x")


def _operator_name(node: Node) -> str:
    name = _ONE_NAME.get(node.operator, re.sub(r"\W|_", "", node.operator.lower()) or node.operator)
    return name if node.kind != "layer" or not node.arguments else f"{name}."


def pieces_of(graph: Sequence[Node], most_operators: int = MOST_OPERATORS) -> Iterator[Piece]:
    """The pieces of a graph that have one result, smallest first. The whole graph is none of them."""
    index = _Index(graph)
    level = [frozenset([place]) for place in index.operators]
    for size in range(1, most_operators + 1):
        if size == len(index.operators):
            return
        for chosen in level:
            if (piece := index.piece(chosen)) is not None:
                yield piece
        grown = {chosen | {other} for chosen in level for place in chosen for other in index.near[place] - chosen}
        level = sorted(grown, key=lambda chosen: sha256(str(sorted(chosen))))[:_MOST_SETS]


class _Index:
    """Neighbours, ancestors and users of the nodes of a graph. A set of nodes is an integer with their places' bits."""

    def __init__(self, graph: Sequence[Node]) -> None:
        self.graph = graph
        self.users: Mapping[int, list[int]] = defaultdict(list)
        self._before: list[int] = []  # ancestors of each node
        self._after = [0] * len(graph)  # descendants of each node
        self._last: list[frozenset[int]] = []  # operators that a node shows, directly or through views
        self.near: dict[int, set[int]] = defaultdict(set)
        self.operators = [p for p, node in enumerate(graph) if node.is_operator and not node.is_unfit and node.takes]
        operators = set(self.operators)
        for place, node in enumerate(graph):
            before, shown = 0, set[int]()
            for taken in node.takes:
                self.users[taken].append(place)
                before |= self._before[taken] | 1 << taken
                shown |= self._last[taken]
            self._before.append(before)
            if place in operators:
                for other in shown:
                    self.near[place].add(other)
                    self.near[other].add(place)
            shows_itself = frozenset([place]) if place in operators else frozenset()
            self._last.append(shows_itself if node.is_operator else frozenset(shown))
        for place in reversed(range(len(graph))):
            for taken in graph[place].takes:
                self._after[taken] |= self._after[place] | 1 << place
        self._users = [_bits(self.users[place]) for place in range(len(graph))]
        self._separate = _bits(place for place, node in enumerate(graph) if node.is_operator or node.is_unfit)
        self._unfit = _bits(
            place for place, node in enumerate(graph) if node.is_unfit or (not node.dtype and not self._is_tuple(place))
        )

    def piece(self, chosen: frozenset[int]) -> Piece | None:
        """The piece with exactly these operators; None if it is not convex, or unfit."""
        before, after = 0, 0
        for place in chosen:
            before |= self._before[place]
            after |= self._after[place]
        between = before & after & ~_bits(chosen)
        if between & self._separate:
            return None
        inside = {*chosen, *(place for place in range(between.bit_length()) if between >> place & 1)}
        self._add_views(inside)
        bits = _bits(inside)
        if bits & self._unfit:
            return None
        ends = [place for place in inside if not self._users[place] & bits]
        if len(ends) == 1 and self._is_tuple(ends[0]):  # such as the values of `max`
            items = [user for user in self.users[ends[0]] if self.graph[user].kind == "item" and self.users[user]]
            inside |= set(items[:1])
            ends = items[:1]
        if len(ends) != 1 or self.graph[ends[0]].dtype != "float32":
            return None
        return Piece(self.graph, tuple(sorted(inside)), ends[0], len(chosen))

    def _is_tuple(self, place: int) -> bool:
        return any(self.graph[user].kind == "item" for user in self.users[place])

    def _add_views(self, inside: set[int]) -> None:
        """Add the nodes before the piece that belong to it: made tensors, parts of a tuple, a factor's transpose."""
        waiting = sorted(inside)
        while waiting:
            place = waiting.pop()
            node = self.graph[place]
            for taken in node.takes:
                other = self.graph[taken]
                if taken in inside or other.is_leaf or other.is_operator:
                    continue
                parts = other.kind == "item" and self.graph[other.takes[0]].operator in _TUPLES
                turned = other.operator in _TURNS and node.operator in ("@", "matmul", "bmm")
                spread = other.operator in _SPREADS and node.kind == "infix"
                if parts or turned or spread or other.makes or node.kind == "item":
                    inside.add(taken)
                    waiting.append(taken)


def _bits(places: Iterable[int]) -> int:
    return sum(1 << place for place in set(places))
