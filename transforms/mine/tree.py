"""Resolve names across the files of one tree to a definition or to an external package."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from . import allowed
from . import tree_sitter_nodes as ts
from .bindings import Definition, FileIndex, Import, build
from .stand_ins import sources as stand_in_sources
from .stand_ins import stand_in

_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__class__", "__module__", "__qualname__"}


class Symbol(NamedTuple):
    """A name defined by a file of the tree."""

    path: str
    name: str


class External(NamedTuple):
    """A module or a member of a module outside the tree, which may be imported."""

    module: str
    name: str | None  # None: the module itself
    local: str  # name in the importing file

    @property
    def dotted(self) -> str:
        return self.module if self.name is None else f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Package:
    """A module of the tree, used as an object."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Builtin:
    name: str


@dataclass(frozen=True, slots=True)
class Missing:
    """An unresolved name; `package` is set if the name needs a package that may not be imported."""

    name: str
    package: str = ""


Target: TypeAlias = Symbol | External | Builtin | Missing


class Resolved(NamedTuple):
    target: Target
    consumed: int  # number of the reference's attributes that belong to the target


class SourceTree:
    """The files of one package or checkout, and those that stand for other packages, parsed on first use."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self.sources = {**sources, **stand_in_sources()}
        self._indexes: dict[str, FileIndex] = {}
        self._found: dict[Symbol, Target | Package | None] = {}

    def index(self, path: str) -> FileIndex:
        if path not in self._indexes:
            self._indexes[path] = self._build(path)
        return self._indexes[path]

    def _build(self, path: str) -> FileIndex:
        """Index a file; the index is empty if a syntax error prevents it."""
        source = self.sources[path]
        try:
            return build(path, source, ts.parse(source), lambda item: self._fails(path, item))
        except (ts.Malformed, RecursionError):
            return FileIndex(path, source, has_error=True)

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Dotted module name -> path."""
        return {_dotted(path): path for path in self.sources if path.endswith(".py")}

    @cached_property
    def _packages(self) -> frozenset[str]:
        """Every dotted name that stands for a folder or a file."""
        found: set[str] = set()
        for name in self._modules:
            while name not in found:
                found.add(name)
                name = name.rpartition(".")[0]
        return frozenset(found)

    def resolve(self, path: str, name: str, attributes: tuple[str, ...] = ()) -> Resolved:
        """Resolve `name.attributes` at module level of the file `path`."""
        symbol = Symbol(path, name)
        if symbol not in self._found:
            self._found[symbol] = self._lookup(path, name, set())
        found = self._found[symbol]
        if found is None:
            return Resolved(Builtin(name) if name in _BUILTINS else Missing(name), 0)
        consumed = 0
        while isinstance(found, Package):
            if consumed == len(attributes):
                return Resolved(Missing(name), consumed)
            found = self._member(found.dotted, attributes[consumed], set())
            consumed += 1
        if found is None:
            return Resolved(Missing(".".join((name, *attributes[:consumed]))), consumed)
        return Resolved(_checked(found, attributes[consumed:]), consumed)

    def submodules(self, path: str, name: str, attributes: tuple[str, ...]) -> set[str]:
        """Modules `a.b.c` that the file imports without an alias and that a use of `a.b.c.d` needs."""
        used = ".".join((name, *attributes)) + "."
        return {item.module for item in self.index(path).modules if used.startswith(item.module + ".")}

    def resolve_import(self, path: str, item: Import) -> Target:
        """Resolve a name bound by an import statement inside a function."""
        found = self._imported(path, item, set())
        return Missing(item.local) if found is None or isinstance(found, Package) else _checked(found, ())

    def _lookup(self, path: str, name: str, seen: set[Symbol]) -> Target | Package | None:
        symbol = Symbol(path, name)
        if symbol in seen:
            return None
        seen.add(symbol)
        index = self.index(path)
        bound = index.bindings.get(name)
        if bound:
            last = bound[-1]
            return symbol if isinstance(last, Definition) else self._imported(path, last, seen)
        for star in reversed(index.stars):
            module = self._module_of(path, star)
            if module in self._modules and not name.startswith("_"):
                found = self._lookup(self._modules[module], name, seen)
                if found is not None:
                    return found
        if name in index.unavailable:
            return Missing(name, package=index.unavailable[name])
        outside = [star.module for star in index.stars if self._module_of(path, star) not in self._packages]
        if len(outside) == 1 and name not in _BUILTINS:
            return External(outside[0], name, name)
        return None

    def _imported(self, path: str, item: Import, seen: set[Symbol]) -> Target | Package | None:
        module = self._module_of(path, item)
        if module not in self._packages:
            if item.level:
                return Missing(item.local)
            source = item.module if item.aliased else item.local
            return External(source, item.name, item.local)
        if item.name is None:
            whole = module if item.aliased else self._module_of(path, Import(item.local, 0, item.local, None))
            return Package(whole) if whole in self._packages else External(item.local, None, item.local)
        found = self._member(module, item.name, seen)
        if found is None and module == stand_in(item.module):
            return External(item.module, item.name, item.local)
        return found or Missing(item.local)

    def _member(self, module: str, name: str, seen: set[Symbol]) -> Target | Package | None:
        """Resolve an attribute of a module: a name bound in its file, else a submodule."""
        if module in self._modules:
            found = self._lookup(self._modules[module], name, seen)
            if found is not None:
                return found
        inner = f"{module}.{name}" if module else name
        return Package(inner) if inner in self._packages else None

    def _module_of(self, path: str, item: Import) -> str:
        """Dotted name of the imported module, relative to the root of the tree if the tree contains the module."""
        package = _dotted(path).split(".")
        if not path.endswith("__init__.py"):
            package = package[:-1]
        if item.level:
            parent = package[: len(package) - item.level + 1]
            return ".".join([*parent, item.module] if item.module else parent)
        if allowed.allowed(item.module):
            return item.module
        # Absolute imports may start below the root: checkouts keep packages in `src`, scripts import their neighbours.
        for depth in (0, *range(len(package), 0, -1)):
            candidate = ".".join([*package[:depth], item.module])
            if candidate in self._packages:
                return candidate
        return stand_in(item.module) or item.module

    def _fails(self, path: str, item: Import) -> str | None:
        """Name of the package that makes an import fail, or None. Only file names are looked at."""
        module = self._module_of(path, item)
        if module == stand_in(item.module) and item.name not in (None, "*"):
            return None if self._member(module, item.name, set()) else _package_of(item.module)
        if module in self._packages or (item.level == 0 and allowed.allowed(_joined(item))):
            return None
        return _package_of(item.module) if item.level == 0 else module


def _checked(target: Target, attributes: tuple[str, ...]) -> Target:
    if isinstance(target, External):
        used = ".".join((target.dotted, *attributes))
        if not allowed.allowed(used):
            return Missing(target.local, package=_package_of(used))
    return target


def _joined(item: Import) -> str:
    return f"{item.module}.{item.name}" if item.name not in (None, "*") else item.module


def _package_of(dotted: str) -> str:
    """Name to report for a forbidden import: the package, or the forbidden part of an allowed package."""
    root = dotted.partition(".")[0]
    return dotted if allowed.allowed(root) else root


def _dotted(path: str) -> str:
    return f"/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")[1:]
