"""Values of the host code that the evaluator computes with. Tensors are torch's own on the device `meta`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor


class Unsupported(Exception):
    """The evaluator does not support a construct, or has no value of it: there is no plan."""


class TooLong(Unsupported):
    """The evaluation takes more steps than its limit."""


class Raised(Exception):
    """The candidate raises an exception."""


class Scope:
    """Names of a function's call, with those of the functions around it."""

    __slots__ = ("around", "names")

    def __init__(self, around: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.around = around

    def find(self, name: str) -> Scope | None:
        """The scope that binds a name; None if none does."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.around
        return scope


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function or lambda of the file."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope | None  # in which it was defined; None at the top of the file
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Native:
    """A callable of Python, torch or Triton that the language lists."""

    name: str
    call: Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A method of a value, or a callable with its first arguments."""

    function: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Callback:
    """A value of the evaluator as a callable of Python, for functions that take one."""

    value: Any
    call: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(self.value, args, kwargs)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A module or type that has no value of its own, by its path, such as `torch.nn` or `torch.Tensor`."""

    path: str


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of the file."""

    node: ast.ClassDef
    kind: str  # "module", "layer", "autograd", "record", "dataclass" or "plain"
    bases: tuple[Class, ...]
    members: dict[str, ast.expr | ast.FunctionDef]

    @property
    def name(self) -> str:
        return self.node.name

    def find(self, name: str) -> ast.expr | ast.FunctionDef | None:
        """The member of this name, of the class or of a base."""
        if name in self.members:
            return self.members[name]
        return next((found for base in self.bases if (found := base.find(name)) is not None), None)

    def fields(self) -> list[str]:
        """Names of the annotated fields, those of bases first."""
        own = [
            each.target.id
            for each in self.node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
        return [*dict.fromkeys([name for base in self.bases for name in base.fields()] + own)]


@dataclass(slots=True, eq=False)
class Record:
    """An instance of a named tuple, a dataclass or a plain class of the file."""

    kind: Class
    values: dict[str, Any]

    @property
    def is_tuple(self) -> bool:
        return self.kind.kind == "record"

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.kind is other.kind and self.values == other.values

    __hash__: ClassVar[None]  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class Layer:
    """A module that the constructor made: one of the file's, or a layer of `torch.nn`."""

    path: str  # name of the class in the file, or `torch.nn.<name>`; "" for another type
    base: str  # the same without classes of the file: these replaced by their base
    attributes: dict[str, Any]
    layers: tuple[str, ...]  # names of the modules among the attributes

    def children(self) -> list[Layer]:
        return [self.attributes[name] for name in self.layers]


@dataclass(frozen=True, slots=True)
class Device:
    type: str = "cuda"
    index: int | None = 0

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The `ctx` of an autograd function."""

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """A value of the constructor that is no data. Nothing can be done with it."""

    type: str


@dataclass(slots=True, eq=False)
class Descriptor:
    """A tensor descriptor that the host makes."""

    base: Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """A configuration of an autotuner."""

    kwargs: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    pre_hook: Any = None
    ir_override: str | None = None

    def options(self) -> dict[str, Any]:
        """All arguments that a launch with this configuration gets, in the order of Triton's own."""
        names = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")
        return {**self.kwargs, **{name: value for name in names if (value := getattr(self, name)) is not None}}


@dataclass(frozen=True, slots=True, eq=False)
class Tuner:
    """The decorator `triton.autotune` of a kernel."""

    configs: tuple[Config, ...]
    key: tuple[str, ...]
    prune: Any = None
    reset_to_zero: tuple[str, ...] = ()
    selected: dict[tuple[Any, ...], Config] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Heuristics:
    """The decorator `triton.heuristics` of a kernel."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    name: str
    parameters: dict[str, Any]  # with defaults; `REQUIRED` where there is none
    decorators: tuple[Tuner | Heuristics, ...]  # the outermost first


REQUIRED = object()


@dataclass(frozen=True, slots=True, eq=False)
class Launcher:
    """A kernel with its grid: `kernel[grid]`."""

    kernel: Kernel
    grid: Any
