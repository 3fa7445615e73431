"""Write the body of `forward`, or of a backward: allocate, launch, return."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import Lowered, Source
from kernelquarry.transforms.workloads.axis_names import axis_word

from ..kernel.addresses import COMPUTED
from ..kernel.combine import tidy_combine
from ..kernel.comments import comment, kernel_docstring
from ..kernel.kernel_names import buffer_name, kernel_name, operator_names
from ..kernel.tidy_kernel import Kernel, same_sizes, tidy_kernel
from ..kernel.triton_functions import LIBRARY
from ..read.call_steps import Allocate, Bind, Define, LaunchKernel, Return, Run, Size, Step, steps
from ..read.inductor_source import RawSource
from ..read.source_expressions import launched_for
from ..refusals import NotTidied
from ..syntax.algebra import Polynomial, is_contiguous, polynomial, product
from ..syntax.ast_tools import names_in, substitute, tuple_text, unused_name, walk
from .arguments import Argument, axes_word, known_shapes, places, shape_of, short_roles, size_word
from .call_guards import Checks
from .named_sizes import NamedSizes, factored, products, relations

_EXTERN = re.compile(r"extern_kernels\.(\w+)|torch\.ops\.(?:aten|prims)\.(\w+)(?:\.\w+)?")
_COPY = re.compile(r"(buf\d+)\.copy_")  # Inductor's copy of complex numbers


@dataclass(slots=True)
class FileNames:
    """State that the functions of one file share."""

    combines: dict[str, ast.FunctionDef] = field(default_factory=dict)  # by their text, as kernels share them
    kernel_names: set[str] = field(default_factory=lambda: set(LIBRARY))
    autotuned: bool = False  # kernels get `triton.autotune` where possible


@dataclass(frozen=True, slots=True)
class Words:
    """Names for a function."""

    taken: set[str]  # by its signature and the code around it
    sizes: Mapping[str, str]  # symbol -> name; other symbols are named after their dimension
    results: Sequence[str]  # names of the results, the last for all further ones; "" names them like other buffers


Ending = Callable[[list[str]], list[str]]  # expressions of the source's results -> the last lines of the function


class Body:
    """The lines of a function that does the steps of one source of Inductor's, and the kernels that it launches."""

    def __init__(
        self,
        raw: RawSource,
        arguments: Mapping[str, Argument],
        words: Words,
        file: FileNames,
        ending: Ending,
        checked: Lowered | None = None,
    ) -> None:
        """With `checked`, the lines begin with the checks of `call_guards`."""
        self._checked = checked
        self._raw = raw
        self._arguments = arguments
        self._words = words
        self._file = file
        self._ending = ending
        self._steps = steps(raw.call)
        self._taken = {"torch", "triton", "tl", "nn", "libdevice"} | words.taken
        self._names: dict[str, str] = {}  # name in Inductor's function -> expression in this one
        self._defined: dict[str, ast.expr] = {}
        self._buffers: dict[str, Allocate] = {}
        self._named = NamedSizes(self._taken)
        self._naming_lines: set[str] = set()  # those that name sizes of buffers
        self._device = ""
        self._copies_back: list[str] = []  # lines that copy outputs from contiguous copies to the inputs themselves
        self.lines: list[str] = []
        self.kernels: dict[str, Kernel] = {}
        self.extern: set[str] = set()
        self._build()

    @property
    def combines(self) -> dict[str, ast.FunctionDef]:
        return self._file.combines

    @property
    def sizes(self) -> dict[str, str]:
        """Symbol -> its name in this function."""
        return {step.name: self._names[step.name] for step in self._sizes}

    @property
    def _sizes(self) -> list[Size]:
        return [step for step in self._steps if isinstance(step, Size)]

    @property
    def _launches(self) -> list[LaunchKernel]:
        return [step for step in self._steps if isinstance(step, LaunchKernel)]

    def _given(self, step: LaunchKernel) -> dict[str, ast.expr]:
        """Parameter -> argument of a launch."""
        return dict(zip(self._raw.kernels[step.kernel].parameters, step.args, strict=True))

    def _build(self) -> None:
        inputs = self._bind_arguments()
        self._name_buffers()
        for step in self._steps:
            self._step(step)
        self.lines[:0] = self._checks(self._checked) if self._checked else []
        self.lines[:0] = self._size_lines()
        needed = _names(self.lines)
        self.lines[:0] = [line for name, line in inputs.items() if name in needed]

    @property
    def used(self) -> set[str]:
        """Inductor's names of the arguments and buffers that the steps read."""
        used: set[str] = set()
        for step in self._steps:
            match step:
                case LaunchKernel(args=nodes) | Return(values=nodes):
                    used.update(names_in(*nodes))
                case Bind(value=node) | Run(call=node):
                    used.update(names_in(node))
                case Size(argument=name):
                    used.add(name)
        return used

    def _bind_arguments(self) -> dict[str, str]:
        """Name the graph's inputs. Returns the lines that make them contiguous, by the name that each line binds.

        If a kernel writes into an input, a line at the end copies the result back, since `contiguous()` may copy.
        """
        launches = [self._given(step) for step in self._launches]
        written = {_root(arg) for given in launches for parameter, arg in given.items() if "out_ptr" in parameter}
        used = self.used
        held = [name for name in self._arguments if name in used]
        inputs = [name for name in held if self._arguments[name].is_input]
        lines: dict[str, str] = {}
        for name, argument in self._arguments.items():
            self._names[name] = argument.expression
            if name in inputs:
                local = argument.expression
                if name in written:
                    local = unused_name(f"{argument.role}_contiguous", self._taken)
                    self._copies_back.append(f"{argument.expression}.copy_({local})")
                elif not local.isidentifier():
                    local = unused_name(argument.role, self._taken)
                lines[local] = f"{local} = {argument.expression}.contiguous()"
                self._names[name] = local
        if not held:
            raise NotTidied("nothing to take the device from")
        self._device = f"{self._names[(inputs or held)[0]]}.device"
        for size in self._sizes:
            self._names[size.name] = unused_name(self._words.sizes.get(size.name, f"dim{size.dim}"), self._taken)
        return lines

    def _size_lines(self) -> list[str]:
        """The lines that read the sizes that other lines need."""
        needed = _names(self.lines)
        sizes = [step for step in self._sizes if self._names[step.name] in needed]
        lines = []
        for owner in dict.fromkeys(step.argument for step in sizes):
            own = [step for step in sizes if step.argument == owner]
            left = ", ".join(self._names[step.name] for step in own)
            right = ", ".join(f"{self._names[owner]}.shape[{step.dim}]" for step in own)
            rank = len(shape_of(self._checked, owner)) if self._checked else 0
            is_whole = [step.dim for step in own] == list(range(rank)) and len(own) > 1
            lines.append(f"{left} = {self._names[owner]}.shape" if is_whole else f"{left} = {right}")
        return lines

    def _checks(self, lowered: Lowered) -> list[str]:
        """The lines that raise for calls that the kernels were not written for."""
        own = {int(b.name): b.argument for b in lowered.bindings if b.source is Source.INPUT}
        place_of, used = places(lowered), self.used
        owners = {place: argument for argument, place in place_of.items()}
        checks = Checks(
            lowered,
            {index: self._arguments[name].expression for index, name in own.items() if name in used},
            {(*place_of[size.argument], size.dim): self._names[size.name] for size in self._sizes},
        )
        names = {}
        for source, index, dim in checks.missing:
            size = Size(f"{source}{index}_{dim}", owners[source, index], dim)
            self._steps.append(size)
            name = unused_name(size_word(lowered, size.argument, dim), self._taken)
            names[source, index, dim] = self._names[size.name] = name
        lines = checks.lines(names)
        if len(self.kernels) > 1:
            for name, kernel in self.kernels.items():
                self._describe(kernel, [self._given(step) for step in self._launches if step.kernel == name], checks)
        return lines

    def _describe(self, kernel: Kernel, launches: Sequence[Mapping[str, ast.expr]], checks: Checks) -> None:
        """Add to the docstring of one of several kernels the shapes of tensors that are the same in all launches.

        With them, and `ModelNew` first, a coder writes more files of several kernels right (docs/results/training.md).
        """
        read, written = dict[str, str](), dict[str, str]()
        for parameter, argument in zip(kernel.parameters, kernel.function.args.args, strict=False):
            shapes = {self._shape(launch[parameter], checks) for launch in launches if "_ptr" in parameter}
            if len(shapes) == 1 and (shape := shapes.pop()):
                (written if "out_ptr" in parameter else read)[argument.arg.removesuffix("_ptr")] = shape
        docstring = kernel.function.body[0]
        assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)
        docstring.value.value = kernel_docstring(str(docstring.value.value), read, written)

    def _shape(self, node: ast.expr, checks: Checks) -> str:
        """The shape of a tensor of a launch, in the sizes of this function; "" if it is not known."""
        match node:
            case ast.Name(name) if name in self._buffers:
                return self._sizes_text(self._buffers[name].shape)
            case ast.Name(name) if name in self._arguments:
                return checks.shape(name)
            case ast.Name(name):
                views = [step.value for step in self._steps if isinstance(step, Bind) and step.name == name]
                return self._shape(views[0], checks) if views else ""
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[_, ast.Tuple(shape), *_]):
                return self._sizes_text(shape)
        return ""

    def _name_buffers(self) -> None:
        """Name results after `Words.results`, other buffers after the last operator of the kernel that fills them."""
        bases = {step.name: _root(step.value) for step in self._steps if isinstance(step, Bind)}
        returned = [value for step in self._steps if isinstance(step, Return) for value in step.values]
        for index, value in enumerate(returned):
            name, root = self._words.results[min(index, len(self._words.results) - 1)], _root(value)
            if name and root.startswith("buf") and root not in self._names:
                self._names[root] = unused_name(name, self._taken)
        for step in self._launches:
            raw = self._raw.kernels[step.kernel]
            last = (operator_names(raw.operators) or ["buffer"])[-1]
            for parameter, arg in self._given(step).items():
                name = _root(arg)
                word = buffer_name(raw.stored.get(parameter, "")) or last
                if "out_ptr" in parameter and name.startswith("buf") and name not in self._names:
                    base = bases.get(name)
                    if base and base not in self._names:
                        self._names[base] = unused_name(word, self._taken)
                    self._names[name] = unused_name(f"{self._names[base]}_part" if base else word, self._taken)
        for made in self._steps:
            if isinstance(made, Bind | Allocate) and made.name not in self._names:
                self._names[made.name] = unused_name("buffer", self._taken)

    # Steps

    def _step(self, step: Step) -> None:
        match step:
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
                self.lines += [*self._copies_back, *self._ending([self._value(value) for value in values])]

    def _expanded(self, node: ast.expr) -> ast.expr:
        """An expression of sizes in the names of this function."""
        named = {name: parse_expression(self._names.get(name, name)) for name in names_in(node)}
        return substitute(parse_expression(ast.unparse(node)), named | self._defined)

    def _size(self, node: ast.expr) -> str:
        return self._named.text(polynomial(self._expanded(node)))

    def _sizes_text(self, nodes: Sequence[ast.expr]) -> str:
        return tuple_text([self._size(node) for node in nodes])

    def _allocate(self, step: Allocate) -> None:
        self._buffers[step.name] = step
        for dim, size in enumerate(step.shape):
            word = f"{self._names[step.name]}_{axis_word(len(step.shape), dim)}"
            if line := self._named.name(polynomial(self._expanded(size)), word):
                self._naming_lines.add(line)
                self.lines.append(line)
        shape = self._sizes_text(step.shape)
        options = f"device={self._device}, dtype={step.dtype}"
        if is_contiguous(step.shape, step.stride):
            self.lines.append(f"{self._names[step.name]} = torch.empty({shape}, {options})")
        else:
            stride = self._sizes_text(step.stride)
            self.lines.append(f"{self._names[step.name]} = torch.empty_strided({shape}, {stride}, {options})")

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                return self._names.get(name) or self._size(node)
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[base, ast.Tuple(shape), ast.Tuple(stride), at]):
                return self._view(base, shape, stride, at)
            case ast.Subscript(value=value, slice=index):
                return f"{self._value(value)}[{ast.unparse(index)}]"
            case ast.Constant():
                return repr(node.value)
            case ast.Call():
                return self._extern(node)
        return self._size(node)

    def _view(self, base: ast.expr, shape: list[ast.expr], stride: list[ast.expr], offset: ast.expr) -> str:
        sizes, strides, text = self._sizes_text(shape), self._sizes_text(stride), self._value(base)
        whole = self._buffers.get(base.id) if isinstance(base, ast.Name) else None
        if polynomial(self._expanded(offset)).constant != 0:
            begin = self._size(offset)
            return f"{text}.as_strided({sizes}, {strides}, {begin if whole else f'{text}.storage_offset() + {begin}'})"
        if whole and is_contiguous(shape, stride) and self._is_whole(whole, shape):
            return f"{text}.view({sizes[1:-1].rstrip(',')})"
        return f"{text}.as_strided({sizes}, {strides})"

    def _is_whole(self, buffer: Allocate, shape: list[ast.expr]) -> bool:
        """True if a contiguous view of `shape` from the start covers all of a contiguous buffer."""
        counts = [product(map(self._expanded, sizes)) for sizes in (buffer.shape, shape)]
        return is_contiguous(buffer.shape, buffer.stride) and counts[0] == counts[1]

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
        given = self._given(step)
        launches = [launch for launch in self._launches if launch.kernel == step.kernel]
        if step.kernel not in self.kernels:
            self.kernels[step.kernel] = self._tidied(step.kernel, launches)
        kernel = self.kernels[step.kernel]
        texts = [self._argument(given, parameter) for parameter in kernel.parameters]
        grid = kernel.grid([self._argument(given, f"{prefix}numel") for prefix in kernel.launch.programs])
        self._add_comment(step, launches[0])
        self.lines.append(f"{kernel.function.name}[{grid}]({', '.join([*texts, *kernel.options])})")

    def _argument(self, given: Mapping[str, ast.expr], parameter: str) -> str:
        """An argument of a launch; the size of an axis is written `out.numel()` where it is that of a tensor."""
        count = parameter.endswith("numel") and self._counted(given, parameter)
        return f"{count}.numel()" if count else self._value(given[parameter])

    def _counted(self, given: Mapping[str, ast.expr], parameter: str) -> str:
        """A new tensor of a launch with as many elements as an axis, first one that it fills; "" if there is none."""
        size = polynomial(self._expanded(given[parameter]))
        if len(size.terms) == 1 and all(factor == 1 and len(atoms) == 1 for atoms, factor in size.terms.items()):
            return ""
        for _, argument in sorted(given.items(), key=lambda item: "out_ptr" not in item[0]):
            match argument:
                case ast.Name(name) if name in self._buffers:
                    if product(map(self._expanded, self._buffers[name].shape)) == size:
                        return self._names[name]
        return ""

    def _add_comment(self, step: LaunchKernel, first: LaunchKernel) -> None:
        """Add a comment with the launch's source expressions, before the lines that allocate its results."""
        at = len(self.lines)
        while at and (" = torch.empty" in self.lines[at - 1] or self.lines[at - 1] in self._naming_lines):
            at -= 1
        sources = self._raw.sources
        computed = self._raw.kernels[step.kernel].sources.values()
        text = comment(launched_for(sources.get(step.line, ()), sources.get(first.line, ()), computed))
        if text and text not in [line for line in self.lines if line.startswith("#")][-1:]:
            self.lines.insert(at, text)

    def _tidied(self, name: str, steps: Sequence[LaunchKernel]) -> Kernel:
        raw = self._raw.kernels[name]
        if len({self._raw.sources.get(step.line) for step in steps}) > 1:
            raw = replace(raw, sources={})  # these are the sources of the first launch only
        launches = [self._given(step) for step in steps]
        given = launches[0]
        pointers = {parameter: _root(given[parameter]) for parameter, kind in raw.types.items() if kind[0] == "*"}
        roles = [self._role(argument) for argument in pointers.values()]
        sizes = {parameter: self._size_role(value) for parameter, value in given.items() if parameter not in pointers}
        new = kernel_name(raw.operators, self._file.kernel_names)
        same = same_sizes([{size: self._size(launch[size]) for size in sizes} for launch in launches])
        roles_of = dict(zip(pointers, short_roles(roles), strict=True))
        axes = [size for size in sizes if size.endswith("numel")]
        passed = [axis.removesuffix("numel") for axis in axes if all(self._counted(one, axis) for one in launches)]
        related = relations([self._sizes_of(one, roles_of) for one in launches])
        kernel = tidy_kernel(raw, new, roles_of, sizes, same, passed, related, self._file.autotuned)
        factors = products(self._known_shapes(given))
        kernel.function.body[:] = [factored(statement, factors) for statement in kernel.function.body]
        helpers = {helper.name: helper for helper in raw.helpers}
        for node in walk(kernel.function):
            if isinstance(node, ast.Name) and node.id in helpers:
                node.id = self._combine(helpers[node.id])
        return kernel

    def _sizes_of(self, given: Mapping[str, ast.expr], roles: Mapping[str, str]) -> dict[str, Polynomial]:
        """The sizes that a launch passes, and sizes of its buffers such as `height + 2`."""
        sizes = {name: polynomial(self._expanded(given[name])) for name in given if name not in roles}
        for parameter, role in roles.items():
            root = _root(given[parameter])
            shape = self._buffers[root].shape if root in self._buffers else []
            for dim, size in enumerate(shape):
                value = polynomial(self._expanded(size))
                if len(value.terms) == 2 and () in value.terms and value not in sizes.values():
                    sizes[f"{COMPUTED}{role}_{axis_word(len(shape), dim)}"] = value
        return sizes

    def _known_shapes(self, given: Mapping[str, ast.expr]) -> Iterator[list[int]]:
        """The shapes of the tensors of a launch, without sizes that are unknown here."""
        known = known_shapes(self._checked) if self._checked else {}
        for argument in map(_root, given.values()):
            if argument in self._buffers:
                sizes = (polynomial(self._expanded(size)).constant for size in self._buffers[argument].shape)
                yield [size for size in sizes if size is not None]
            elif argument in known:
                yield [*known[argument]]

    def _combine(self, helper: ast.FunctionDef) -> str:
        """The name of a combine function in the file."""
        tidied = tidy_combine(helper)
        combine = self._file.combines.setdefault(ast.unparse(ast.fix_missing_locations(tidied)), tidied)
        if combine is tidied:
            combine.name = unused_name("combine", self._file.kernel_names)
        return combine.name

    def _role(self, argument: str) -> str:
        """A name for a buffer or an argument in a kernel."""
        given = self._arguments.get(argument)
        return (given and given.role) or self._names.get(argument, argument)

    def _size_role(self, size: ast.expr) -> str:
        """A name for a size in a kernel: its name in this function, and for a product the names of its factors."""
        value = polynomial(self._expanded(size))
        ((factors, factor),) = value.terms.items() if len(value.terms) == 1 else [((), 0)]
        if factor == 1 and "_".join(factors).isidentifier():
            return "_".join(factors)
        if (name := self._named.text(value)).isidentifier():
            return name
        for name, buffer in self._buffers.items():
            if word := axes_word([polynomial(self._expanded(part)) for part in buffer.shape], value):
                return f"{self._names[name]}_{word}"
        return "size"


def _names(lines: list[str]) -> set[str]:
    return set(names_in(*map(parse, lines)))


def _root(node: ast.expr) -> str:
    """The buffer or argument that an expression is a view of; "" if there is none."""
    match node:
        case ast.Name(name):
            return name
        case ast.Call(func=ast.Name("reinterpret_tensor"), args=[base, *_]):
            return _root(base)
    return ""
