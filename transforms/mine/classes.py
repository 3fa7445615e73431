"""Find the classes that derive from nn.Module, and the reasons why one cannot be constructed and called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from kernelquarry.pipeline.schema.reasons import Reason

from . import tree_sitter_nodes as ts
from .bindings import Definition
from .tree import External, SourceTree, Symbol
from .tree_sitter_nodes import FUNCTION, text

# Classes of torch.nn that are not modules.
_NOT_MODULES = frozenset({"Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"})
# Modules of torch.nn without a forward of their own.
_WITHOUT_FORWARD = frozenset(
    {"Module", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Container", "_Loss", "_WeightedLoss",
     "_ConvNd", "_NormBase"}
)  # fmt: skip
_LONGEST_ALIAS = 8
_MOST_BASES = 100


class Classes:
    """Inheritance among the classes of one tree."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._bases: dict[Definition, list[Definition | External]] = {}

    def modules(self, path: str) -> list[Definition]:
        """The nn.Module classes that a file defines at module level, in source order."""
        return [d for d in self._tree.index(path).classes if self.is_module(d)]

    def is_module(self, definition: Definition) -> bool:
        return any(isinstance(base, External) and _is_torch_module(base.dotted) for base in self.order(definition))

    def passed(self, definition: Definition) -> list[Definition]:
        """The module classes that the file's first such call passes to the class: `BasicBlock` of a ResNet."""
        own = {each.names[0]: each for each in self._tree.index(definition.path).classes if each is not definition}
        source = self._tree.sources[definition.path].decode(errors="replace")
        for call in re.finditer(rf"(?<!class )\b{definition.names[0]}\(([^()\[]+)", source):
            names = [argument.rpartition("=")[2].strip() for argument in call[1].split(",")]
            if source[call.end() : call.end() + 1] == "(":  # the last one is called itself
                names.pop()
            if found := [own[name] for name in dict.fromkeys(names) if name in own and self.is_module(own[name])]:
                return found
        return []

    def order(self, definition: Definition) -> list[Definition | External]:
        """The class and all its bases, depth first: an approximation of the method resolution order."""
        found: dict[Definition | External, None] = {}
        stack: list[Definition | External] = [definition]
        while stack and len(found) < _MOST_BASES:
            current = stack.pop()
            if current not in found:
                found[current] = None
                if isinstance(current, Definition):
                    stack.extend(reversed(self._direct_bases(current)))
        return list(found)

    def _direct_bases(self, definition: Definition) -> list[Definition | External]:
        if definition not in self._bases:
            superclasses = _superclasses(definition)
            expressions = superclasses.named_children if superclasses is not None else []
            names = [name for name in map(ts.dotted, expressions) if name]
            self._bases[definition] = [base for name in names for base in self._class(definition, name)]
        return self._bases[definition]

    def knows_bases(self, definition: Definition) -> bool:
        """True if `order` has all direct bases of the class, apart from `object`, generics and `ABCMeta`."""
        superclasses = _superclasses(definition)
        for expression in ts.statements(superclasses) if superclasses is not None else []:
            if expression.type == "keyword_argument":
                if not text(expression).endswith("ABCMeta"):
                    return False
                continue
            if expression.type == "subscript":
                expression = ts.field(expression, "value")
                if text(expression).rpartition(".")[2] in ("Generic", "Protocol"):
                    continue
                return False
            name = ts.dotted(expression)
            if name is None or not (name == ("object",) or self._class(definition, name)):
                return False
        return True

    def _class(self, user: Definition, name: tuple[str, ...], depth: int = 0) -> list[Definition | External]:
        """Resolve a dotted name in a definition to a class, through assignments such as `Base = nn.Module`."""
        resolved = self._tree.resolve(user.path, name[0], name[1:])
        target, rest = resolved.target, name[1 + resolved.consumed :]
        if isinstance(target, External):
            return [External(".".join((target.dotted, *rest)), None, target.local)]
        if not isinstance(target, Symbol) or rest:
            return []
        bound = self._tree.index(target.path).bindings[target.name]
        definitions = [binding for binding in bound if isinstance(binding, Definition) and binding is not user]
        if not definitions:
            return []
        last = definitions[-1]
        if last.is_class:
            return [last]
        value = ts.assigned(last.node)
        alias = ts.dotted(value) if value is not None else None
        return self._class(last, alias, depth + 1) if alias and depth < _LONGEST_ALIAS else []

    def objection(self, definition: Definition) -> tuple[Reason, str] | None:
        """Reason and evidence if the class cannot be constructed and called, else None."""
        order = self.order(definition)
        classes = [c for c in order if isinstance(c, Definition)]
        inherited = [
            c.dotted.rpartition(".")[2] for c in order if isinstance(c, External) and _is_torch_module(c.dotted)
        ]
        forward = next((m for c in classes for m in _members(c) if _member_name(m) == "forward"), None)
        if forward is None:
            if any(_assigns_forward(c) for c in classes) or any(name not in _WITHOUT_FORWARD for name in inherited):
                return None
            return Reason.NO_FORWARD, "bases: " + ", ".join(inherited)
        if ts.undecorated(forward).type == FUNCTION and _only_raises(ts.undecorated(forward)):
            return Reason.ABSTRACT, "forward has no body"
        abstract = _abstract_members(classes) if any(map(_forbids_abstract, order)) else []
        return (Reason.ABSTRACT, ", ".join(abstract)) if abstract else None


def _superclasses(definition: Definition) -> Node | None:
    return ts.child(ts.undecorated(definition.node), "superclasses")


def _is_torch_module(dotted: str) -> bool:
    package, _, name = dotted.rpartition(".")
    if name in _NOT_MODULES or package.startswith(("torch.nn.functional", "torch.nn.init", "torch.nn.utils")):
        return False
    return (package == "torch.nn" or package.startswith("torch.nn.modules")) and name.lstrip("_")[:1].isupper()


def _members(definition: Definition) -> Iterator[Node]:
    """Functions and assignments in a class body, also those in conditional statements."""
    stack = list(reversed(ts.statements(ts.field(ts.undecorated(definition.node), "body"))))
    while stack:
        node = stack.pop()
        if node.type in ("if_statement", "try_statement", "else_clause", "elif_clause", "except_clause", "block"):
            stack.extend(reversed(node.named_children))
        else:
            yield node


def _member_name(node: Node) -> str:
    if ts.undecorated(node).type == FUNCTION:
        return text(ts.field(ts.undecorated(node), "name"))
    names = list(ts.bindings([node])) if node.type == "expression_statement" else []
    return text(names[0]) if len(names) == 1 else ""


def _assigns_forward(definition: Definition) -> bool:
    return b"self.forward =" in (definition.node.text or b"")


def _only_raises(function: Node) -> bool:
    """True if the body has nothing but a docstring, `pass`, `...` and `raise`."""
    for statement in ts.statements(ts.field(function, "body")):
        if statement.type == "expression_statement" and statement.named_children[0].type in ("string", "ellipsis"):
            continue
        if statement.type not in ("pass_statement", "raise_statement"):
            return False
    return True


def _abstract_members(classes: list[Definition]) -> list[str]:
    """Names whose first member, by the order of the classes, is abstract."""
    first: dict[str, bool] = {}
    for definition in classes:
        for member in _members(definition):
            first.setdefault(_member_name(member), _is_abstract(member))
    return sorted(name for name, abstract in first.items() if abstract and name)


def _forbids_abstract(base: Definition | External) -> bool:
    """True if this base makes Python refuse to construct a class with abstract members."""
    if isinstance(base, External):
        return base.dotted == "abc.ABC"
    superclasses = _superclasses(base)
    return superclasses is not None and b"ABCMeta" in (superclasses.text or b"")


def _is_abstract(member: Node) -> bool:
    return member.type == "decorated_definition" and any(
        text(child).rpartition(".")[2].lstrip("@").startswith("abstract")
        for child in member.named_children
        if child.type == "decorator"
    )
