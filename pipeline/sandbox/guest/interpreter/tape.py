"""Tapes: the operations of a kernel, recorded in its first call and repeated without Triton's frontend.

The frontend takes five times as long for an operation as NumPy does, and does the same in every call with arguments of
the same types. A tape is a Python function with one line for each operation. An operation on constants alone runs once.
A loop is one operation, with a tape of its body.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from .batched_builder import BatchedBuilder, BlockPointer, uniform

_HANDLES = (TensorHandle, BlockPointer)
_SOURCES = ("create_get_program_id", "create_get_num_programs")  # without operands, and not the same in every call
_MOST_RETAKES = 2  # of a function, before it is no longer recorded
_MOST_WAYS = 16  # tapes for one signature
_MOST_SIGNATURES = 1_000
_MOST_LINES = 20_000  # of a tape
_STORES = re.compile("store|atomic|descriptor_reduce|scatter|print")  # in names of operations
_CONSTANT = object()  # stands for the tape of a constant
_NUMBERS = count()  # of constants
_TYPES: dict[str, tl.dtype] = {}  # of tensors, by name: they have no hash
_UNKNOWN = object()  # stands for a result that no tape gives
UNSET = object()  # the value of a local variable that is not assigned yet

Signature = tuple[Any, ...]  # of a value: its type, with the name of a tensor's type, and constants as they are
Values = tuple[Any, ...]
Body = Callable[..., tuple[Values, Values]]  # of a loop, see `Recorder.loop`


class Retake(Exception):
    """A tape does not describe this call: Python would take another way, or types differ."""

    def __init__(self, is_pure: bool = False) -> None:
        super().__init__()
        self.is_pure = is_pure  # nothing was stored yet


@dataclass(slots=True)
class _Line:
    """An operation: the values that it makes and uses, and its source text."""

    made: list[int]
    call: str
    used: set[int]
    decision: Any = None  # a number or truth value that Python goes on with
    is_pure: bool = False  # nothing was stored before
    outcome: Signature = ()  # of a loop: types after its last iteration

    @property
    def shape(self) -> tuple[Any, ...]:
        """Everything that a later line depends on."""
        return self.made, self.used, self.is_pure, self.decision is None, self.outcome

    @property
    def text(self) -> str:
        return f"{', '.join(map(_value, self.made))}, = {self.call}" if self.made else self.call


class Tape:
    """The operations of a function for arguments of one signature, on one way through its Python code."""

    def __init__(self, parent: Tape | None = None) -> None:
        """`parent` is the tape of the function that has this one as the body of a loop."""
        self.parent = parent
        self.usable = True
        self.stores = False
        self.lines: list[_Line] = []
        self.inputs: list[int] = []
        self.captures: list[int] = []
        self.captured: list[Any] = []  # handles of `parent` that are captured, until the recording ends
        self.returned, self.kept = "", set[int]()
        self.result: Signature = ()  # of the function's result
        self.constants: dict[str, Any] = {}
        self._size = 0  # number of values

    def parts_from(self, other: Tape) -> bool:
        """True if the tapes are the same up to a line at which Python decided otherwise."""
        for line, of_other in zip(self.lines, other.lines, strict=False):
            if line.shape != of_other.shape:  # of loops with other types, or that need other values
                return False
            if line.decision != of_other.decision:
                return True
        return False

    def input(self, handle: Any) -> Any:
        """A copy of a handle as the next input."""
        self.inputs.append(self._size)
        return self._mark(copy.copy(handle))

    def add(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        result: Any,
        source: bool = False,
        decision: Any = None,
    ) -> None:
        """Add an operation that has run. With constant operands its result is constant, unless it is a `source`."""
        if not self.usable:
            return
        used = set[int]()
        text = ", ".join([self._text(operand, used) for operand in operands])
        parts: Sequence[Any] = result if isinstance(result, list | tuple) else [result]
        made: list[Any] = [part for part in parts if isinstance(part, _HANDLES)]
        if not used and not source:
            for handle in made:
                handle.tape = _CONSTANT
            return
        call = f"{self._constant(function)}({text})"
        if made and not isinstance(result, list | tuple):
            call = f"[{call}]"
        places = [self._mark(handle).place for handle in made]
        loop = getattr(function, "__self__", None)
        outcome = loop.last if isinstance(loop, _Loop) else ()
        self.lines.append(_Line(places, call, used, decision, not self.stores, outcome))
        self.stores = self.stores or _stores(function)
        if len(self.lines) > _MOST_LINES:
            self.fail()

    def finish(self, results: Sequence[Any], signature: Signature) -> None:
        """End the recording with the handles and the signature of the function's result."""
        self.returned = ", ".join([self._text(handle, self.kept) for handle in results])
        self.result = signature

    def fail(self) -> None:
        """Give up this tape and those of the functions around it."""
        self.usable = False
        if self.parent is not None:
            self.parent.fail()

    def _mark(self, handle: Any) -> Any:
        handle.tape, handle.place = self, self._size
        self._size += 1
        return handle

    def _text(self, operand: Any, used: set[int]) -> str:
        """Source text of an operand; adds the handles in it to `used`."""
        if isinstance(operand, _HANDLES):
            owner = getattr(operand, "tape", None)
            if owner is _CONSTANT:
                return self._constant(operand)
            place = getattr(operand, "place", 0) if owner is self else self._capture(operand)
            used.add(place)
            return _value(place)
        if isinstance(operand, list | tuple):
            return f"[{', '.join([self._text(part, used) for part in operand])}]"
        return self._constant(operand)

    def _constant(self, value: Any) -> str:
        name = f"c{next(_NUMBERS)}"
        self.constants[name] = value
        return name

    def _capture(self, handle: Any) -> int:
        for place, known in zip(self.captures, self.captured, strict=True):
            if known is handle:
                return place
        owner, above = getattr(handle, "tape", None), self.parent
        while above is not None and above is not owner:
            above = above.parent
        if above is None:  # it is of no function that is being recorded
            self.fail()
        self.captured.append(handle)
        self.captures.append(self._size)
        self._size += 1
        return self.captures[-1]


class Ways:
    """The tapes of a function for arguments of one signature: a Python function that decides as they do."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        self.recorded = 0  # tapes that were added
        self._function: Callable[..., tuple[int, list[Any]]] | None = None

    @property
    def captured(self) -> list[list[Any]]:
        return [tape.captured for tape in self.tapes]

    def add(self, tape: Tape) -> None:
        """Add a tape, in place of those that do not fit it, and of one that went the same way."""
        self.tapes = [*(other for other in self.tapes if tape.parts_from(other)), tape]
        self.recorded += 1
        self._function = None

    def play(self, handles: Sequence[Any], captured: Sequence[Sequence[Any]]) -> tuple[Signature, list[Any]]:
        """Signature and handles of the result for other inputs. Raises: Retake: no tape goes this way."""
        if not self.tapes:
            raise Retake(is_pure=True)
        if self._function is None:
            self._function = self._compile()
        number, results = self._function(captured, *handles)
        return self.tapes[number].result, results

    def _compile(self) -> Callable[..., tuple[int, list[Any]]]:
        last = [_last_uses(tape) for tape in self.tapes]
        lines = [f"def play({', '.join(['captured', *map(_value, self.tapes[0].inputs)])}):"]

        def write(ways: Sequence[int], first: int, indent: str) -> None:
            lead = self.tapes[ways[0]]
            if lead.captures:
                lines.append(f"{indent}{', '.join(map(_value, lead.captures))}, = captured[{ways[0]}]")
            for number, line in enumerate(lead.lines[first:], first):
                unused = set[int].intersection(*(last[way].get(number, set()) for way in ways))
                end = f"; {' = '.join(map(_value, unused))} = None" if unused else ""
                if line.decision is None:
                    lines.append(f"{indent}{line.text}{end}")
                    continue
                lines.append(f"{indent}decision = {line.text}{end}")
                groups: dict[Any, list[int]] = {}
                for way in ways:
                    groups.setdefault(self.tapes[way].lines[number].decision, []).append(way)
                if len(groups) == 1:
                    lines.append(f"{indent}if decision != {line.decision}: raise Retake({line.is_pure})")
                    continue
                for decision, group in groups.items():
                    lines.append(f"{indent}if decision == {decision}:")
                    write(group, number + 1, indent + " ")
                lines.append(f"{indent}raise Retake({line.is_pure})")
                return
            lines.append(f"{indent}return {ways[0]}, [{lead.returned}]")

        write(range(len(self.tapes)), 0, " ")
        names: dict[str, Any] = {"Retake": Retake}
        for tape in self.tapes:
            names |= tape.constants
        exec("\n".join(lines), names)
        function: Callable[..., tuple[int, list[Any]]] = names["play"]
        return function


def _last_uses(tape: Tape) -> dict[int, set[int]]:
    """The values that are not needed after a line, by its number."""
    seen, last = set(tape.kept), dict[int, set[int]]()
    for number, line in reversed([*enumerate(tape.lines)]):
        last[number] = {*line.made, *line.used} - seen
        seen |= last[number]
    return last


def _value(place: int) -> str:
    return f"v{place}"


class _Loop:
    """A loop as an operation: tapes of its body by the signature of the index and of the carried values."""

    def __init__(self, first: Signature) -> None:
        """`first` is the signature of the carried and of the other values before the loop."""
        self.bodies: dict[tuple[str, Signature], Ways] = {}
        self.last = self._first = first  # after the last iteration, and before the first

    @property
    def captured(self) -> list[list[list[Any]]]:
        return [ways.captured for ways in self.bodies.values()]

    @property
    def tapes(self) -> list[Tape]:
        return [tape for ways in self.bodies.values() for tape in ways.tapes]

    def play(
        self, bounds: Sequence[Any], carried: list[Any], others: list[Any], captured: Sequence[Sequence[Sequence[Any]]]
    ) -> list[Any]:
        """The handles after the loop, see `Recorder.loop`. Raises: Retake."""
        results, last = [*carried, *others], self._first
        needed = dict(zip(self.bodies, captured, strict=True))
        try:
            for index in _indices(bounds):
                key = index.dtype.name, last[1]
                last, results = self.bodies[key].play([index, *carried], needed[key])
                carried = results[: _count(last[1])]
        except (KeyError, Retake) as error:
            raise Retake from error
        if last != self.last:
            raise Retake
        return results


class Recorder:
    """The builder that Triton's frontend calls: it runs each operation, and adds it to the tape of the function."""

    def __init__(self, builder: BatchedBuilder) -> None:
        self.builder = builder
        self._tape: Tape | None = None
        self._ways: dict[tuple[Hashable, Signature], Ways] = {}
        self._retakes = Counter[Hashable]()
        self._plays = True

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.builder, name)
        if not callable(member):
            return member
        if name.startswith("get_"):
            call: Any = partial(_constant, member)
        else:
            call = partial(self.run, member, source=name in _SOURCES)
        setattr(self, name, call)
        return call

    def run(self, function: Callable[..., Any], *operands: Any, source: bool = False) -> Any:
        """Run an operation on handles and constants."""
        result = function(*operands)
        if self._tape is not None:
            self._tape.add(function, operands, result, source)
        return result

    def decide(self, handle: TensorHandle, kind: type) -> Any:
        """The number or truth value that all programs hold, on which Python's way depends."""

        def decided(handle: TensorHandle) -> Any:
            return kind(uniform(handle.data))

        value = decided(handle)
        if self._tape is not None:
            self._tape.add(decided, [handle], None, decision=value)
        return value

    def call(self, function: Callable[..., Any], values: Values) -> Any:
        """Call a function by its tape, or record it. Raises: Retake."""
        identity = identity_of(function)
        if self._retakes[identity] > _MOST_RETAKES:
            return self._record(None, function, values)
        handles: list[Any] = []
        signature = _flatten(values, handles)
        if len(self._ways) > _MOST_SIGNATURES:
            self._ways.clear()
        ways = self._ways.setdefault((identity, signature), Ways())
        result = self._play(ways, handles)
        if result is not _UNKNOWN:
            return result
        tape = Tape()
        result = self._record(tape, function, _rebuild(signature, map(tape.input, handles)))
        if tape.usable and ways.recorded < _MOST_WAYS:
            ways.add(tape)
        else:
            self._retakes[identity] = _MOST_RETAKES + 1
        return result

    @contextmanager
    def recording(self, identity: Hashable) -> Iterator[None]:
        """Play no tapes of a launch, after one of `identity` had stored something before it raised `Retake`."""
        self._retakes[identity] += 1
        self._plays = False
        try:
            yield
        finally:
            self._plays = True

    def _play(self, ways: Ways, handles: Sequence[Any]) -> Any:
        """The result of a function by its tapes; `_UNKNOWN` if it must be recorded. Raises: Retake."""
        if not self._plays:
            return _UNKNOWN
        try:
            signature, results = ways.play(handles, ways.captured)
        except Retake as retake:
            if not retake.is_pure:
                raise
            return _UNKNOWN
        return _rebuild(signature, iter(results))

    def loop(self, body: Body, bounds: Sequence[Any], carried: Values, others: Values) -> Values:
        """Call `body` with each number of a range, and with the values that the call before left, at first `carried`.

        It returns those, and the values of other variables, which are `others` if there is no call.
        """
        bounds = [getattr(tl.core._unwrap_if_constexpr(bound), "handle", bound) for bound in bounds]
        outer, first, unused, last = self._tape, list[Any](), list[Any](), list[Any]()
        loop = _Loop((tuple, _flatten(carried, first), _flatten(others, unused)))
        for index in _indices(bounds):
            if outer is None or not outer.usable:
                carried, others = self._record(None, body, (_tensor(index), *carried))
            else:
                carried, others = self._iterate(loop, outer, body, index, carried)
        if outer is not None and outer.usable:
            signature = _flatten((carried, others), last)
            last = [copy.copy(handle) for handle in last]
            # The body may ask for the program's number, so the result is no constant even if all operands are.
            outer.add(loop.play, [bounds, first, unused, loop.captured], last, source=True)
            for each in loop.tapes:
                each.captured = []
            carried, others = _rebuild(signature, iter(last))
        return (*carried, *others)

    def _iterate(self, loop: _Loop, outer: Tape, body: Body, index: TensorHandle, carried: Values) -> Any:
        """Call the body of a loop by its tape, or record it."""
        handles: list[Any] = []
        signature = _flatten(carried, handles)
        ways = loop.bodies.setdefault((index.dtype.name, signature), Ways())
        result = self._play(ways, [index, *handles])
        if result is _UNKNOWN:
            tape = Tape(outer)
            number = _tensor(tape.input(index))
            result = self._record(tape, body, (number, *_rebuild(signature, map(tape.input, handles))))
            ways.add(tape)
            if ways.recorded > _MOST_WAYS:
                outer.fail()
        loop.last = _flatten(result, [])
        return result

    def _record(self, tape: Tape | None, function: Callable[..., Any], values: Values) -> Any:
        """Call a function, and record it on the tape, if any."""
        outer, self._tape = self._tape, tape
        try:
            result = function(*values)
            if tape is not None:
                handles: list[Any] = []
                signature = _flatten(result, handles)
                tape.finish(handles, signature)
            return result
        finally:
            self._tape = outer


def identity_of(function: Callable[..., Any]) -> Hashable:
    """Equal for functions that share tapes, see `interpreted_source.rewrite`."""
    identity: Hashable = getattr(function, "identity", function)
    return identity


class _Same:
    """A value without a hash, equal to itself alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _flatten(value: Any, handles: list[Any]) -> Signature:
    """The signature of a value, whose handles are added to `handles`."""
    if isinstance(value, tl.tensor):
        handles.append(value.handle)
        _TYPES.setdefault(value.type.name, value.type)
        return tl.tensor, value.type.name
    if isinstance(value, tuple | list):
        return type(value), *[_flatten(part, handles) for part in value]
    if isinstance(value, tl.constexpr):
        return tl.constexpr, _flatten(value.value, handles)
    if type(value) is float:
        return float, value.hex()  # NaN is equal to itself, and -0 not to 0
    try:
        hash(value)
    except TypeError:
        return _Same, _Same(value)
    return type(value), value


def _rebuild(signature: Signature, handles: Iterator[Any]) -> Any:
    """The value of a signature, with other handles."""
    kind = signature[0]
    if kind is tl.tensor:
        return tl.tensor(next(handles), _TYPES[signature[1]])
    if issubclass(kind, tuple | list):
        parts = [_rebuild(part, handles) for part in signature[1:]]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if kind is tl.constexpr:
        return tl.constexpr(_rebuild(signature[1], handles))
    if kind is float:
        return float.fromhex(signature[1])
    return signature[1].value if kind is _Same else signature[1]


def _count(signature: Signature) -> int:
    """Number of handles in a value."""
    if signature[0] is tl.tensor:
        return 1
    return sum(map(_count, signature[1:])) if issubclass(signature[0], tuple | list) else 0


def _stores(function: Callable[..., Any]) -> bool:
    """True if an operation changes memory."""
    loop = getattr(function, "__self__", None)
    if isinstance(loop, _Loop):
        return any(tape.stores for tape in loop.tapes)
    return _STORES.search(function.__name__) is not None


def _constant(function: Callable[..., Any], *values: Any) -> Any:
    result = function(*values)
    if isinstance(result, TensorHandle):
        result.tape = _CONSTANT
    return result


def _indices(bounds: Sequence[Any]) -> Iterator[TensorHandle]:
    """The numbers of a loop's iterations, in the type that its bounds have in common."""
    handles = [bound for bound in bounds if isinstance(bound, TensorHandle)]
    is_wide = any(handle.data.dtype.itemsize == 8 for handle in handles)
    for number in range(*(int(uniform(bound.data)) if isinstance(bound, TensorHandle) else bound for bound in bounds)):
        yield _index(number, is_wide)


def _index(number: int, is_wide: bool = False) -> TensorHandle:
    dtype = tl.int64 if is_wide or not -(1 << 31) <= number < 1 << 31 else tl.int32
    return TensorHandle(np.array([number], dtype=dtype.name), dtype)


def _tensor(handle: TensorHandle) -> tl.tensor:
    return tl.tensor(handle, handle.dtype)


def count_tensor(number: int) -> tl.tensor:
    """The number of an iteration."""
    return _tensor(_index(number))


recorder = Recorder(BatchedBuilder())
