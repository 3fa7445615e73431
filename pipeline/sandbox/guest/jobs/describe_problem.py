"""Guest job: the calls, the constructor's arguments and the state of a problem in KernelBench's form."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kernelquarry.pipeline.sandbox.jobs.axis_sizes import varied
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.pipeline.sandbox.jobs.describe_problem import (
    ProblemCall,
    ProblemReply,
    ProblemRequest,
    ProblemShape,
    ProblemState,
    SizeLimits,
)

from ..candidate import fake_cuda
from ..lib.load_source import load_source
from ..lib.on_meta import OnMeta
from ..lib.pytree import fill, tensors_of
from ..probing import module_facts
from ..probing.call_shapes import CallShapes, with_further_shapes
from ..probing.guarded_call import attempt, seed
from ..probing.observed_calls import NotRepresentable, source_of
from ..probing.problem_sizes import Cost, Size, Sizes, capped, shrink, sizes_of, variations, with_sizes

_NAME = "problem"
_CAPS = (64, 256, 1024)  # of sizes of a problem that does not run without values
_SLOW_S = 1.0  # CPU time of a forward, above which sizes shrink further
_ROUNDS = 4
_LOOPED = (12, 24)  # most sizes of two problems that are compared
_ZEROS = 0.2  # share of zeros that draws of a dense input lack
_MOST = 8.0  # of the numbers of an ordinary input
_LEAST = 16  # elements of an input whose structure is no chance
_HALVES = (torch.tril, torch.triu)


class _Unfit(Exception):
    """The problem cannot be used, and why."""


def run(request: ProblemRequest, tensors: dict[str, Tensor]) -> tuple[ProblemReply, dict[str, Tensor]]:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with fake_cuda.pretend():
        try:
            return _describe(request)
        except _Unfit as unfit:
            return ProblemReply(failure=str(unfit)), {}


def _describe(request: ProblemRequest) -> tuple[ProblemReply, dict[str, Tensor]]:
    code, limits = request.code, request.limits
    if limits is None:
        problem, calls, operators = _Problem(code), list[_Problem](), set[str]()
        given: _Problem | None = problem
        shapes: tuple[ProblemShape, ...] = ()
    else:
        sizes = _check_source(code)
        given = _outline(code)
        outlines = given is not None and not _loops(code, sizes) and given.census_without_values is not None
        last = {} if request.unit else _last(code, sizes)
        if request.resize:
            least = _least(code, sizes, request.above) | last
            sizes, problem = _affordable(code, sizes, limits, outlines, least)
        else:
            problem = _as_given(code, given if outlines else None, limits)
        more = request.more_calls
        varied = {size: n for size, n in sizes.items() if size not in last}
        calls = _other_calls(code, problem, varied, limits, outlines, more, request.unit or 1) if more else []
        operators = problem.census().operators
        given = problem if problem.code == code else given
        is_cheap = outlines or given is problem
        shapes = given.made_shapes((problem, *calls)) if given and is_cheap and more else ()
    described = tuple(call.described(problem.most, problem.takes_either) for call in (problem, *calls))
    initial = _Problem(problem.code) if problem.is_stateful else problem
    is_like_draws = limits is None or all(map(_is_ordinary, problem.tensors))
    own = [] if is_like_draws or any(value.is_complex() for value in problem.tensors) else problem.tensors
    values = {f"input.0.{i}": value.clone().contiguous() for i, value in enumerate(own)}
    reply = ProblemReply(
        code=problem.code,
        init_args=problem.init_args,
        calls=described,
        state=tuple(
            ProblemState(**entry | {"shape": tuple(entry["shape"])})
            for entry in module_facts.state_specs(initial.module)
        ),
        operators=tuple(sorted(operators)),
        given=given.described() if given else None,
        given_init_args=given.init_args if given else "",
        given_shapes=shapes,
        structure=_structure(problem.tensors),
        strided=not all(value.is_contiguous() for value in problem.tensors),
    )
    return reply, values


def _as_given(code: str, outlined: _Problem | None, limits: SizeLimits) -> _Problem:
    """The problem at its own sizes. Raises: _Unfit: they exceed the limits."""
    cost = outlined.cost_without_values if outlined else None
    problem = None if cost and cost.exceeds(limits) else _Problem(code)
    if problem is None or problem.cost.exceeds(limits):
        raise _Unfit("get_inputs() is too large to check here: check smaller sizes, or use a GPU")
    problem.check()
    return problem


def _check_source(code: str) -> Sizes:
    """The sizes of a source. Raises: _Unfit: the source does not parse."""
    try:
        return sizes_of(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _Unfit(f"the module does not parse: {error}") from None


class _Problem:
    """A problem's module, its constructor's arguments, and the arguments of its call. Raises: _Unfit."""

    is_stateful = False  # a call changes the state; known once the problem was checked

    def __init__(self, code: str) -> None:
        self.code = code
        self._file = str(Path.cwd() / f"{_NAME}.py")
        seed(0)
        loaded = self._attempt("the module does not import", lambda: load_source(code, _NAME))
        self.namespace = vars(loaded)
        model = self.namespace.get("Model")
        if not (isinstance(model, type) and issubclass(model, nn.Module)):
            names = [name for name, value in self.namespace.items() if _is_own(value, loaded)]
            instead = f": rename {' or '.join(names)}" if names else ""
            raise _Unfit(f"the module has no class Model that derives from nn.Module{instead}")
        if not callable(self.namespace.get("get_inputs")):
            raise _Unfit("the module has no function get_inputs")
        get_init_inputs = self.namespace.get("get_init_inputs", list)
        arguments = self._attempt("get_init_inputs() raises", lambda: list(get_init_inputs()))
        try:
            self.init_args = f"[{', '.join(source_of(value, self.namespace) for value in arguments)}]"
        except NotRepresentable as error:
            raise _Unfit(f"get_init_inputs() returns a {error}, which has no source") from None
        seed(0)
        without = "" if "get_init_inputs" in self.namespace else " without get_init_inputs()"
        self.module = self._attempt(f"Model is not constructed{without}", lambda: model(*arguments))
        nn.Module.eval(self.module)
        with _Integers() as integers:
            inputs = self._attempt("get_inputs() raises", lambda: list(self.namespace["get_inputs"]()))
        self.tensors: list[Tensor] = []
        self._tree = _tree(inputs, self.tensors)
        self._bounds = [integers.bounds_of(value) for value in self.tensors]
        fake_cuda.move_to_gpu([*self.tensors, *self.module.parameters(), *self.module.buffers()])

    def _attempt(self, what: str, call: Callable[[], Any]) -> Any:
        value, failure = attempt(call, self._file)
        if failure is not None:
            raise _Unfit(f"{what}: {f'line {failure.line}: ' if failure.line else ''}{failure}")
        return value

    def arguments(self) -> list[Any]:
        """Arguments of the call, with copies of the tensors."""
        arguments: list[Any] = fill(self._tree, [value.clone() for value in self.tensors])
        return arguments

    def call(self, arguments: Sequence[Any] | None = None) -> Any:
        """The result of one call. Raises: _Unfit."""
        given = self.arguments() if arguments is None else arguments
        with torch.no_grad():
            return self._attempt("forward raises", lambda: self.module(*given))

    def census(self) -> module_facts.Census:
        """The operators of one call. Raises: _Unfit."""
        arguments = self.arguments()
        with module_facts.Census() as census:
            self.call(arguments)
        return census

    def made_shapes(self, calls: Sequence[_Problem]) -> tuple[ProblemShape, ...]:
        """The shapes that calls and the forward give; () if the module does not run without values, as its inputs.

        `further` holds the shapes at the varying sizes of each call in `calls`.
        """
        first = self._made_shapes(self.tensors)
        shapes = varied(self.shapes, [call.shapes for call in calls]) if first else []
        further = [self._made_shapes(list(map(Tensor.new_zeros, self.tensors, each))) for each in shapes]
        made = with_further_shapes(first, further)
        return tuple(
            ProblemShape(each["call"], tuple(each["shape"]), each["dtype"], tuple(map(tuple, each["further"])))
            for each in made
        )

    def _made_shapes(self, tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
        calls = CallShapes(self.module)
        has_values = not all(value.is_meta for value in tensors)
        try:
            with nullcontext() if has_values else OnMeta(), calls.with_layers():
                results = [*tensors_of(self.call(fill(self._tree, [value.clone() for value in tensors])))]
        except (_Unfit, RuntimeError, NotImplementedError):
            return []
        return calls.with_results(results)

    def check(self) -> float:
        """CPU seconds of a call. Raises: _Unfit: it raises, changes an input that is two, or two calls differ."""
        if self._changes_shared():
            raise _Unfit("two inputs share memory, and forward changes one of them: get_inputs() must copy it")
        seed(1)
        start = time.process_time()
        first = self.call()
        took_s = time.process_time() - start
        state = {name: value.clone() for name, value in self._state().items()}
        seed(2)
        second = self.call()
        ones, others = list(tensors_of(first)), list(tensors_of(second))
        if not ones:
            raise _Unfit("forward returns no tensor")
        changed = {name for name, value in self._state().items() if not _same(value, state[name])}
        self.is_stateful = not changed.isdisjoint(self.module.state_dict())
        if not self.is_stateful and not all(_same(one, other) for one, other in zip(ones, others, strict=True)):
            if changed:
                raise _Unfit(f"forward changes {min(changed)}, which is not in the state_dict: make it persistent")
            raise _Unfit("the module is random: two calls in eval mode with the same inputs differ")
        return took_s

    def _changes_shared(self) -> bool:
        """True if inputs share memory, and a call changes one of them. Trials draw inputs that share none."""
        if len({value.untyped_storage().data_ptr() for value in self.tensors}) == len(self.tensors):
            return False
        copies = [value.clone() for value in self.tensors]
        self.call(fill(self._tree, copies))
        return not all(map(_same, copies, self.tensors))

    def _state(self) -> dict[str, Tensor]:
        """All parameters and buffers by name, and what else is in the state_dict."""
        return {**dict(self.module.named_buffers()), **self.module.state_dict()}

    @property
    def shapes(self) -> list[torch.Size]:
        return [value.shape for value in self.tensors]

    @cached_property
    def most(self) -> int:
        """The bound of inputs that must be above 0, 2 or 1; 0 if the module is finite on normal ones, too."""
        floats = [value for value in self.tensors if value.is_floating_point() and value.numel()]
        if not floats or not all(float(value.min()) >= 0 and float(value.max()) <= 1 for value in floats):
            return 0
        seed(3)
        if not self._runs_on(Tensor.clone) or self._runs_on(_of_floats(torch.randn_like)):
            return 0
        return 2 if self._runs_on(_of_floats(lambda value: 2 * torch.rand_like(value))) else 1

    @cached_property
    def takes_either(self) -> bool:
        """True if integers that are all 0, or all 1, may be both, as those of a mask and of token types."""
        if not any(map(_is_flag, self.tensors)) or not self._runs_on(Tensor.clone):
            return False
        seed(3)
        return self._runs_on(lambda value: torch.randint_like(value, 2) if _is_flag(value) else value.clone())

    def _runs_on(self, draw: Callable[[Tensor], Tensor]) -> bool:
        """True if a call on inputs that are drawn so neither raises nor has values that are not finite."""
        try:
            result = self.call(fill(self._tree, list(map(draw, self.tensors))))
            return all(bool(value.isfinite().all()) for value in tensors_of(result))
        except _Unfit:
            return False

    def takes(self, other: _Problem) -> bool:
        """True if this module, whose constructor may depend on a size of its file, accepts another's call."""
        try:
            self.call(other.arguments())
        except _Unfit:
            return False
        return True

    def described(self, most: int = 0, either: bool = False) -> ProblemCall:
        """The call.

        Args:
            most: bound of its floating-point inputs, which are drawn above 0; 0: they are normal.
            either: integers that are all 0, or all 1, are drawn from both.
        """
        specs = tuple(
            InputSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."), *bounds)
            for value, bounds in zip(self.tensors, self._bounds_within(most, either), strict=True)
        )
        return ProblemCall(specs, self._names(), self._tree)

    def _names(self) -> tuple[str, ...]:
        """A name for each tensor: that of forward's argument, or one with its number."""
        numbered = [f"x{place}" for place in range(len(self.tensors))]
        signature, _ = attempt(lambda: inspect.signature(self.module.forward), self._file)
        names = numbered.copy()
        for parameter, value in zip(signature.parameters.values() if signature else (), self._tree, strict=False):
            is_tensor = isinstance(value, dict) and value.keys() == {"tensor"}
            if is_tensor and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                names[value["tensor"]] = parameter.name
        return tuple(names if len({*names}) == len(names) else numbered)

    def _bounds_within(self, most: int, either: bool) -> list[tuple[int, int]]:
        return [
            (0, most) if most and value.is_floating_point() else (0, 2) if either and _is_flag(value) else bounds
            for value, bounds in zip(self.tensors, self._bounds, strict=True)
        ]

    @property
    def cost(self) -> Cost:
        return self._cost(self.census())

    def _cost(self, census: module_facts.Census) -> Cost:
        parameters = sum(value.numel() for value in self.module.state_dict().values() if isinstance(value, Tensor))
        elements = census.elements + sum(value.numel() for value in self.tensors)
        return Cost(parameters, elements, census.flops)

    @property
    def cost_or_none(self) -> Cost | None:
        """The cost; None if a call raises."""
        try:
            return self.cost
        except _Unfit:
            return None

    @property
    def cost_without_values(self) -> Cost | None:
        """The cost of a problem that was made without values; None if it does not run so."""
        census = self.census_without_values
        return self._cost(census) if census else None

    @property
    def census_without_values(self) -> module_facts.Census | None:
        """The operators of one call without values; None if it does not run so."""
        try:
            with OnMeta():
                return self.census()
        except (_Unfit, RuntimeError, NotImplementedError):
            return None


def _tree(value: Any, tensors: list[Tensor]) -> Any:
    """The arguments as JSON. Raises: _Unfit: one has another type."""
    if isinstance(value, Tensor):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, list | tuple):
        return [_tree(item, tensors) for item in value]
    if isinstance(value, dict) and value.keys() == {"tensor"}:
        raise _Unfit("get_inputs() returns a dict with the key 'tensor' alone, which stands for a tensor: rename it")
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _tree(item, tensors) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise _Unfit(f"get_inputs() returns a {type(value).__name__}, which is no tensor, number, list or dict")


def _is_own(value: Any, module: ModuleType) -> bool:
    """True for a module's class that this source defines."""
    return isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == module.__name__


def _of_floats(draw: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Draws floating-point inputs, and copies the others."""
    return lambda value: draw(value) if value.is_floating_point() else value.clone()


def _is_flag(value: Tensor) -> bool:
    """True for several integers that are all 0, or all 1."""
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool or value.is_meta:
        return False
    return value.numel() > 1 and any(bool((value == number).all()) for number in (0, 1))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return True
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


class _Integers(TorchFunctionMode):
    """Records the range of the tensors that `torch.randint` draws within the context."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[tuple[Tensor, int, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        value = func(*args, **(kwargs or {}))
        if func is torch.randint:
            named = kwargs or {}
            numbers = [number for number in args if type(number) is int]
            low, high = named.get("low", 0), named.get("high")
            if high is None and numbers:
                low, high = (numbers[0], numbers[1]) if len(numbers) > 1 else (low, numbers[0])
            if type(low) is int and type(high) is int:
                self._drawn.append((value, low, high))
        return value

    def bounds_of(self, value: Tensor) -> tuple[int, int]:
        """The range [low, high) of an integer tensor: that it was drawn from, or that of its values."""
        if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool or not value.numel():
            return 0, 0
        for drawn, low, high in self._drawn:
            if drawn is value or (drawn.shape == value.shape and drawn.data_ptr() == value.data_ptr() != 0):
                return low, high
        return (0, 1) if value.is_meta else (int(value.min()), int(value.max()) + 1)


def _outline(code: str) -> _Problem | None:
    """The problem without values; None if it cannot be made so."""
    try:
        with OnMeta():
            problem = _Problem(code)
    except (_Unfit, RuntimeError, NotImplementedError):
        return None
    return problem if all(value.is_meta for value in problem.tensors) else None


def _loops(code: str, sizes: Sizes) -> bool:
    """True if larger sizes give more contractions: a recurrent layer, say, which takes long even without values."""
    counts = []
    for most in _LOOPED:
        outlined = _outline(with_sizes(code, capped(sizes, most)))
        if outlined is None or (counted := outlined.census_without_values) is None:
            return False
        counts.append(counted.contractions)
    return counts[0] < counts[-1]


def _least(code: str, sizes: Sizes, above: Sequence[int]) -> dict[Size, int]:
    """The smallest value of each size of the constructor that is above one of the numbers."""
    if not above:
        return {}
    given = _outline(code)
    below = {size: max((number for number in above if number < n), default=0) for size, n in sizes.items()}
    changed = {size: _outline(with_sizes(code, sizes | {size: n - 1})) for size, n in sizes.items() if below[size]}
    return {
        size: below[size] + 1
        for size, other in changed.items()
        if given is None or other is None or other.init_args != given.init_args
    }


def _last(code: str, sizes: Sizes) -> dict[Size, int]:
    """The sizes that last axes of the inputs follow from; none if the problem cannot be made without values."""
    given = _outline(code)
    found = {}
    for size, n in sizes.items() if given is not None else ():
        other = _outline(with_sizes(code, sizes | {size: n - 1}))
        if given and other and [shape[-1:] for shape in given.shapes] != [shape[-1:] for shape in other.shapes]:
            found[size] = n
    return found


def _affordable(
    code: str, sizes: Sizes, limits: SizeLimits, outlines: bool, least: Mapping[Size, int]
) -> tuple[Sizes, _Problem]:
    """The largest sizes at which the problem is within the limits, and the problem at these sizes. Raises: _Unfit.

    Args:
        outlines: True if the problem runs without values.
        least: see `shrink`; the problem may exceed the limits if there are none.
    """
    if not outlines and not least and (fitting := _first_that_runs(code, sizes)):
        sizes = fitting
    problem: _Problem | None = None

    def cost(other: Sizes) -> Cost | None:
        try:
            if not outlines:
                return _Problem(with_sizes(code, other)).cost
        except _Unfit:
            return None
        outlined = _outline(with_sizes(code, other))
        return outlined.cost_without_values if outlined else None

    for _ in range(_ROUNDS):
        before, sizes = sizes, shrink(sizes, cost, limits, least)
        if least and ((costs := cost(sizes)) is None or costs.exceeds(limits)):
            raise _Unfit("sizes that are large enough are too large to check here")
        if problem is not None and sizes == before:
            break
        problem = _Problem(with_sizes(code, sizes))
        if (took_s := problem.check()) <= _SLOW_S:
            break
        now = cost(sizes)  # loops over small operators take longer than the census counts
        share = _SLOW_S / took_s / 2
        elements = int(share * now.elements) if now else 0
        limits = SizeLimits(limits.parameters, min(limits.elements, elements), limits.flops)
    assert problem is not None
    return sizes, problem


def _first_that_runs(code: str, sizes: Sizes) -> Sizes | None:
    """The sizes capped by the first of `_CAPS` with which the problem runs."""
    for most in _CAPS:
        try:
            _Problem(with_sizes(code, capped(sizes, most))).call()
        except _Unfit:
            continue
        return capped(sizes, most)
    return None


def _other_calls(
    code: str, problem: _Problem, sizes: Sizes, limits: SizeLimits, outlines: bool, number: int, unit: int
) -> list[_Problem]:
    """Calls of the same module at other sizes; `problem` has `sizes`."""
    cost = problem.cost
    double = SizeLimits(cost.parameters, 2 * max(limits.elements, cost.elements), 2 * max(limits.flops, cost.flops))

    def fits(other: Sizes) -> bool:
        outlined = _outline(with_sizes(code, other)) if outlines else None
        found = outlined or _at(code, other)
        if found is None or found.init_args != problem.init_args or _shapes(found.module) != _shapes(problem.module):
            return False
        costs = outlined.cost_without_values if outlined else found.cost_or_none
        return found.shapes != problem.shapes and costs is not None and not costs.exceeds(double)

    found = [_at(code, other) for other in variations(sizes, fits, number, unit)]
    return [call for call in found if call is not None and problem.takes(call)]


def _at(code: str, sizes: Sizes) -> _Problem | None:
    """The problem with these sizes; None if it cannot be made."""
    try:
        return _Problem(with_sizes(code, sizes))
    except _Unfit:
        return None


def _shapes(module: nn.Module) -> Mapping[str, Sequence[int]]:
    return {name: tuple(value.shape) for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def _is_ordinary(value: Tensor) -> bool:
    """True for an input like those that are drawn: contiguous, finite and dense numbers of ordinary size."""
    is_like = value.is_floating_point() and value.is_contiguous() and bool((value.abs() <= _MOST).all())
    return is_like and not _structure([value])


def _structure(tensors: Sequence[Tensor]) -> str:
    """A structure of an input's values that draws of a dense input lack; "" if none was found."""
    for index, value in enumerate(tensors):
        if value.numel() >= _LEAST and (found := _structure_of(value)):
            return f"input {index} {found}"
    return ""


def _structure_of(value: Tensor) -> str:
    if value.is_floating_point() and (zeros := float((value == 0).double().mean())) >= _ZEROS:
        return f"is {zeros:.0%} zeros"
    if value.dim() == 2 and value.shape[0] == value.shape[1]:
        if value.dtype != torch.bool and torch.equal(value, value.mT):
            return "is symmetric"
        if value.dtype == torch.bool and not value.all() and any(torch.equal(value, part(value)) for part in _HALVES):
            return "is triangular"
    if value.dim() == 1 and value.dtype != torch.bool and not value.is_complex():
        if (value[1:] >= value[:-1]).all() and value[0] < value[-1]:
            return "is sorted"
        if not value.is_floating_point() and len(value.unique()) == len(value):
            return "has no number twice"
    return ""
