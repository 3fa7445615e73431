"""The body of `forward`, or of `backward`: allocate, launch, return."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import Lowered, Source

from ..kernel.combine import tidy_combine
from ..kernel.comments import comment
from ..kernel.kernel_names import buffer_name, free, kernel_name, operator_names
from ..kernel.tidy_kernel import Kernel, same_sizes, tidy_kernel
from ..kernel.triton_functions import LIBRARY
from ..read.call_steps import Allocate, Bind, Define, LaunchKernel, Return, Run, Size, Step, steps
from ..read.inductor_source import NotTidied, RawSource
from ..read.source_expressions import launched_for
from ..syntax.algebra import is_contiguous, polynomial, render
from ..syntax.ast_tools import walk
from ..syntax.print_code import tuple_text
from .arguments import Argument, axes_word, rank_of, short_roles, size_word
from .call_guards import Checks
from .repeated_sizes import name_sizes

_EXTERN = re.compile(r"extern_kernels\.(\w+)|torch\.ops\.(?:aten|prims)\.(\w+)(?:\.\w+)?")
_COPY = re.compile(r"(buf\d+)\.copy_")  # what Inductor copies complex numbers with


@dataclass(slots=True)
class File:
    """What the functions of one file share."""

    combines: dict[str, ast.FunctionDef] = field(default_factory=dict)  # by their text: kernels share those
    kernel_names: set[str] = field(default_factory=lambda: set(LIBRARY))
    autotuned: bool = False  # kernels are, where they can be


@dataclass(frozen=True, slots=True)
class Words:
    """What things are called in a function."""

    taken: set[str]  # by its signature and what surrounds it
    sizes: Mapping[str, str]  # symbol -> what it measures; others are called after their dimension
    results: Sequence[str]  # what is returned, the last for all that follow; "" is called as what is not returned


Ending = Callable[[list[str]], list[str]]  # the last lines of a function, of the expressions that the source returns


class Body:
    """The lines of a function that does what a source of Inductor's does, and the kernels that they launch."""

    def __init__(
        self,
        raw: RawSource,
        arguments: Mapping[str, Argument],
        words: Words,
        file: File,
        ending: Ending,
        checked: Lowered | None = None,
    ) -> None:
        """`checked`: what is assumed of the call is checked first, see `checks`."""
        self._checked = checked
        self._raw = raw
        self._arguments = arguments
        self._words = words
        self._file = file
        self._ending = ending
        self._steps = steps(raw.call)
        self._taken = {"torch", "triton", "tl", "nn", "libdevice"} | words.taken
        self._names: dict[str, str] = {}  # of the calling function -> expression in this one
        self._roles: dict[str, str] = {}
        self._defined: dict[str, ast.expr] = {}
        self._buffers: dict[str, Allocate] = {}
        self._device = ""
        self._back: list[str] = []  # lines that give inputs what kernels wrote into their contiguous copies
        self.lines: list[str] = []
        self.kernels: dict[str, Kernel] = {}
        self.extern: set[str] = set()
        self._build()

    @property
    def combines(self) -> dict[str, ast.FunctionDef]:
        return self._file.combines

    @property
    def sizes(self) -> dict[str, str]:
        """What the symbols are called here."""
        return {step.name: self._names[step.name] for step in self._steps if isinstance(step, Size)}

    def _build(self) -> None:
        inputs = self._bind_arguments()
        self._name_buffers()
        for step in self._steps:
            self._step(step)
        self.lines = name_sizes(self.lines, self._taken)
        self.lines[:0] = self._checks() if self._checked else []
        self.lines[:0] = self._size_lines()
        needed = _names(self.lines)
        self.lines[:0] = [line for name, line in inputs.items() if name in needed]

    @property
    def used(self) -> set[str]:
        """What it needs of all that the source was given and makes."""
        used: set[str] = set()
        for step in self._steps:
            match step:
                case LaunchKernel(args=nodes) | Return(values=nodes):
                    pass
                case Bind(value=node) | Run(call=node):
                    nodes = [node]
                case Size(argument=name):
                    used.add(name)
                    continue
                case _:
                    continue
            used |= {child.id for node in nodes for child in walk(node) if isinstance(child, ast.Name)}
        return used

    def _written(self) -> set[str]:
        """Arguments that kernels write into."""
        launches = [step for step in self._steps if isinstance(step, LaunchKernel)]
        pairs = [zip(self._raw.kernels[step.kernel].parameters, step.args, strict=True) for step in launches]
        return {_root(arg) or "" for pair in pairs for parameter, arg in pair if "out_ptr" in parameter}

    def _bind_arguments(self) -> dict[str, str]:
        """Names all that the graph was given; the lines that make inputs contiguous, by the name that they bind.

        Where a kernel writes into an input, what it wrote goes back: the contiguous one may be a copy.
        """
        used, written = self.used, self._written()
        lines: dict[str, str] = {}
        for name, argument in self._arguments.items():
            self._roles[name] = argument.role
            self._names[name] = argument.expression
            if argument.is_input and name in used:
                local = argument.expression
                if name in written:
                    local = free(f"{argument.role}_contiguous", self._taken)
                    self._back.append(f"{argument.expression}.copy_({local})")
                elif not local.isidentifier():
                    local = free(argument.role, self._taken)
                lines[local] = f"{local} = {argument.expression}.contiguous()"
                self._names[name] = local
        inputs = [name for name, argument in self._arguments.items() if argument.is_input and name in used]
        held = [name for name in self._arguments if name in used]
        if not held:
            raise NotTidied("nothing to take the device from")
        self._device = f"{self._names[(inputs or held)[0]]}.device"
        for step in self._steps:
            if isinstance(step, Size):
                self._names[step.name] = free(self._words.sizes.get(step.name, f"dim{step.dim}"), self._taken)
        return lines

    def _size_lines(self) -> list[str]:
        """Where the sizes that the other lines need come from."""
        needed = _names(self.lines)
        sizes = [step for step in self._steps if isinstance(step, Size) and self._names[step.name] in needed]
        lines = []
        for owner in dict.fromkeys(step.argument for step in sizes):
            own = [step for step in sizes if step.argument == owner]
            left = ", ".join(self._names[step.name] for step in own)
            right = ", ".join(f"{self._names[owner]}.shape[{step.dim}]" for step in own)
            rank = rank_of(self._checked, owner) if self._checked else 0
            whole = [step.dim for step in own] == list(range(rank)) and len(own) > 1
            lines.append(f"{left} = {self._names[owner]}.shape" if whole else f"{left} = {right}")
        return lines

    def _checks(self) -> list[str]:
        """Lines that raise where the call is not one that the kernels were written for."""
        assert self._checked is not None
        own = {int(b.name): b.argument for b in self._checked.bindings if b.source is Source.INPUT}
        numbers, used = {argument: index for index, argument in own.items()}, self.used
        sizes = [step for step in self._steps if isinstance(step, Size)]
        checks = Checks(
            self._checked,
            {index: self._arguments[name].expression for index, name in own.items() if name in used},
            {(numbers[size.argument], size.dim): self._names[size.name] for size in sizes},
        )
        for index, dim in checks.missing:
            size = Size(f"input{index}_{dim}", own[index], dim)
            self._steps.append(size)
            self._names[size.name] = free(size_word(self._checked, own[index], dim), self._taken)
        return checks.lines({place: self._names["input{}_{}".format(*place)] for place in checks.missing})

    def _name_buffers(self) -> None:
        """Results have names of their own, other buffers are called after the last operator of the kernel that fills
        them."""
        bases = {step.name: _root(step.value) for step in self._steps if isinstance(step, Bind)}
        returned = [value for step in self._steps if isinstance(step, Return) for value in step.values]
        for index, value in enumerate(returned):
            name, root = self._words.results[min(index, len(self._words.results) - 1)], _root(value)
            if name and root and root.startswith("buf") and root not in self._names:
                self._names[root] = free(name, self._taken)
        for step in self._steps:
            if not isinstance(step, LaunchKernel):
                continue
            raw = self._raw.kernels[step.kernel]
            last = (operator_names(raw.operators) or ["buffer"])[-1]
            for parameter, arg in zip(raw.parameters, step.args, strict=True):
                name = _root(arg) or ""
                made = buffer_name(raw.stored.get(parameter, "")) or last
                if "out_ptr" in parameter and name.startswith("buf") and name not in self._names:
                    base = bases.get(name)
                    if base and base not in self._names:
                        self._names[base] = free(made, self._taken)
                    self._names[name] = free(f"{self._names[base]}_part" if base else made, self._taken)
        for step in self._steps:
            if isinstance(step, Bind | Allocate) and step.name not in self._names:
                self._names[step.name] = free("buffer", self._taken)

    # Steps

    def _step(self, step: Step) -> None:
        match step:
            case Size():
                pass
            case Define(name=name, value=value):
                self._defined[name] = self._expanded(value)
            case Allocate():
                self._allocate(step)
            case Bind(name=name, value=value):
                self.lines.append(f"{self._names[name]} = {self._value(value)}")
            case Run(call=call):
                self.lines.append(self._extern(call))
            case LaunchKernel():
                self._launch(step)
            case Return(values=values):
                self.lines += [*self._back, *self._ending([self._value(value) for value in values])]

    def _expanded(self, node: ast.expr) -> ast.expr:
        """An expression of sizes, in the names of this function."""
        return _Expansion(self._defined, self._names).visit(parse_expression(ast.unparse(node)))

    def _size(self, node: ast.expr) -> str:
        return ast.unparse(render(polynomial(self._expanded(node)), lambda atom: True))

    def _allocate(self, step: Allocate) -> None:
        self._buffers[step.name] = step
        shape = tuple_text([self._size(size) for size in step.shape])
        options = f"device={self._device}, dtype={step.dtype}"
        if is_contiguous(step.shape, step.stride):
            self.lines.append(f"{self._names[step.name]} = torch.empty({shape}, {options})")
        else:
            stride = tuple_text([self._size(size) for size in step.stride])
            self.lines.append(f"{self._names[step.name]} = torch.empty_strided({shape}, {stride}, {options})")

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                return self._names.get(name) or self._size(node)
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[base, shape, stride, offset]):
                return self._view(base, shape, stride, offset)
            case ast.Subscript(value=value, slice=index):
                return f"{self._value(value)}[{ast.unparse(index)}]"
            case ast.Constant():
                return repr(node.value)
            case ast.Call():
                return self._extern(node)
        return self._size(node)

    def _view(self, base: ast.expr, shape: ast.expr, stride: ast.expr, offset: ast.expr) -> str:
        assert isinstance(shape, ast.Tuple) and isinstance(stride, ast.Tuple)
        sizes = tuple_text([self._size(size) for size in shape.elts])
        whole = self._buffers.get(base.id) if isinstance(base, ast.Name) else None
        start = polynomial(self._expanded(offset))
        is_plain = start.constant == 0 and is_contiguous(shape.elts, stride.elts)
        if whole and is_plain and self._is_whole(whole, shape.elts):
            return f"{self._value(base)}.view({sizes[1:-1].rstrip(',')})"
        strides = tuple_text([self._size(step) for step in stride.elts])
        text = self._value(base)
        if start.constant == 0:
            return f"{text}.as_strided({sizes}, {strides})"
        begin = self._size(offset)
        return f"{text}.as_strided({sizes}, {strides}, {begin if whole else f'{text}.storage_offset() + {begin}'})"

    def _is_whole(self, buffer: Allocate, shape: list[ast.expr]) -> bool:
        """Whether a contiguous view of `shape` from the start is all of a contiguous buffer."""
        sizes = ([self._expanded(size) for size in buffer.shape], [self._expanded(size) for size in shape])
        return is_contiguous(buffer.shape, buffer.stride) and _count(sizes[0]) == _count(sizes[1])

    def _extern(self, call: ast.Call) -> str:
        function = ast.unparse(call.func)
        if found := _EXTERN.fullmatch(function):
            kernel, operator = found.groups()
            function, name = (f"torch.{kernel}", kernel) if kernel else (function, operator)
        elif found := _COPY.fullmatch(function):
            function, name = f"{self._names[found[1]]}.copy_", "_to_copy"
        else:
            raise NotTidied(f"call of {function}")
        self.extern.add(name)
        parts = [self._operand(argument) for argument in call.args]
        parts += [f"{keyword.arg}={self._operand(keyword.value)}" for keyword in call.keywords]
        return f"{function}({', '.join(parts)})"

    def _operand(self, node: ast.expr) -> str:
        match node:
            case ast.Tuple(elts=items):
                return tuple_text([self._operand(item) for item in items])
            case ast.List(elts=items):
                return f"[{', '.join(self._operand(item) for item in items)}]"
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()) | ast.Attribute():
                return ast.unparse(node)
            case ast.Call(func=ast.Name("device")):
                return self._device
        return self._value(node)

    # Launches

    def _launch(self, step: LaunchKernel) -> None:
        raw = self._raw.kernels[step.kernel]
        given = dict(zip(raw.parameters, step.args, strict=True))
        if step.kernel not in self.kernels:
            self.kernels[step.kernel] = self._tidied(step.kernel, given)
        kernel = self.kernels[step.kernel]
        texts = [self._value(given[parameter]) for parameter in kernel.parameters]
        grid = []
        for prefix in kernel.launch.programs:
            size = self._size(given[f"{prefix}numel"])
            name = kernel.launch.names.get(prefix)
            grid.append(f"triton.cdiv({size}, {kernel.block(name)})" if name else size)
        self._tell(step)
        called = f"{kernel.function.name}[{kernel.grid(tuple_text(grid))}]"
        self.lines.append(f"{called}({', '.join([*texts, *kernel.options])})")

    def _launches(self, kernel: str) -> list[LaunchKernel]:
        return [step for step in self._steps if isinstance(step, LaunchKernel) and step.kernel == kernel]

    def _tell(self, step: LaunchKernel) -> None:
        """What the launch is for, before the lines that allocate its results."""
        at = len(self.lines)
        while at and " = torch.empty" in self.lines[at - 1]:
            at -= 1
        sources, first = self._raw.sources, self._launches(step.kernel)[0]
        computed = self._raw.kernels[step.kernel].sources.values()
        told = comment(launched_for(sources.get(step.line, ()), sources.get(first.line, ()), computed))
        if told and told not in [line for line in self.lines if line.startswith("#")][-1:]:
            self.lines.insert(at, told)

    def _tidied(self, name: str, given: dict[str, ast.expr]) -> Kernel:
        raw = self._raw.kernels[name]
        if len({self._raw.sources.get(step.line) for step in self._launches(name)}) > 1:
            raw = replace(raw, sources={})  # which are those of the first launch
        pointers = {parameter: _root(given[parameter]) or "" for parameter, kind in raw.types.items() if kind[0] == "*"}
        roles = [self._roles.get(argument) or self._names.get(argument, argument) for argument in pointers.values()]
        sizes = {parameter: self._role(value) for parameter, value in given.items() if parameter not in pointers}
        new = kernel_name(raw.operators, self._file.kernel_names)
        launches = [dict(zip(raw.parameters, step.args, strict=True)) for step in self._launches(name)]
        same = same_sizes([{size: self._size(launch[size]) for size in sizes} for launch in launches])
        roles_of = dict(zip(pointers, short_roles(roles), strict=True))
        kernel = tidy_kernel(raw, new, roles_of, sizes, same, self._file.autotuned)
        for node in walk(kernel.function):
            if isinstance(node, ast.Name) and (found := [h for h in raw.helpers if h.name == node.id]):
                node.id = self._combine(found[0])
        return kernel

    def _combine(self, helper: ast.FunctionDef) -> str:
        """The name of a combine function in the file."""
        tidied = tidy_combine(helper)
        combine = self._file.combines.setdefault(ast.unparse(ast.fix_missing_locations(tidied)), tidied)
        if combine is tidied:
            combine.name = free("combine", self._file.kernel_names)
        return combine.name

    def _role(self, size: ast.expr) -> str:
        """What to call a size in a kernel: as where it is launched, and a product after its factors."""
        value = polynomial(self._expanded(size))
        ((factors, factor),) = value.terms.items() if len(value.terms) == 1 else [((), 0)]
        if factor == 1 and "_".join(factors).isidentifier():
            return "_".join(factors)
        for name, buffer in self._buffers.items():
            if word := axes_word([polynomial(self._expanded(part)) for part in buffer.shape], value):
                return f"{self._names[name]}_{word}"
        return "size"


def _names(lines: list[str]) -> set[str]:
    return {node.id for line in lines for node in walk(parse(line)) if isinstance(node, ast.Name)}


class _Expansion(ast.NodeTransformer):
    def __init__(self, defined: dict[str, ast.expr], names: dict[str, str]) -> None:
        self._defined, self._names = defined, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._defined:
            return self._defined[node.id]
        return parse_expression(self._names.get(node.id, node.id))


def _root(node: ast.expr) -> str | None:
    """The buffer or argument that an expression is a view of."""
    match node:
        case ast.Name(name):
            return name
        case ast.Call(func=ast.Name("reinterpret_tensor"), args=[base, *_]):
            return _root(base)
    return None


def _count(sizes: list[ast.expr]) -> object:
    result = polynomial(ast.Constant(1))
    for size in sizes:
        result = result * polynomial(size)
    return result
