"""Narrow a candidate's text to what verified calls took, so that it claims no more than was tried.

- A branch that no call took raises NotImplementedError, and so does the `forward` of a layer that no call used.
- A condition on the inputs that had one truth value in all calls must have it: otherwise the text raises.
- Functions, methods and classes that nothing uses after that are removed.

Constructors and kernels stay as they are. So do functions that constructors call, where these fail otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from kernelquarry.filters.language import check
from kernelquarry.filters.language.parsed_source import Source, parsed
from kernelquarry.filters.language.scopes import is_local, stored, variables
from kernelquarry.filters.language.unused import reach
from kernelquarry.pipeline.schema.parse_python import parse_expression

from .edits import Edits
from .evaluator import Evaluator
from .planner import PlannedCall, Planner
from .values import Raised, Unsupported

_RAISE = 'raise NotImplementedError("no verified call came here")'
_UNTRIED = "untried"  # a function that raises, for use in expressions
_STARTS = ("__init__", "__post_init__")  # constructors
_CALLED = ("forward", "setup_context", *_STARTS)  # methods that PyTorch and Python call
_SHOWN = 80  # characters of a condition in a note
# Calls that may be made twice, as no step follows from them.
_REPEATABLE = frozenset("abs cdiv float int len max min next_power_of_2 triton.cdiv triton.next_power_of_2".split())


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A text that claims what was tried, and a note on each difference."""

    code: str
    notes: tuple[str, ...] = ()


def claim(
    code: str,
    arguments: str,
    module: str,
    snapshot: Any,
    calls: Sequence[PlannedCall],
    planner: Planner,
    spare: bool = False,
) -> Narrowed:
    """The text of a candidate that claims what these calls took, all of which were verified.

    Args:
        module: text of the module's file.
        spare: leave functions as they are that a constructor may call; notes say what they should require.
        planner: of the text; it may have planned some of the calls, and no others.

    Raises:
        Raised, Unsupported, MalformedReply: a call has no plan.
        Unfaithful: the narrowed text has other plans, which is a mistake of this module.
    """
    plans = [planner.plan(call) for call in calls]
    narrowed = narrow(code, arguments, planner.evaluator, spare)
    if narrowed.code == code:
        return narrowed
    if outside := check(narrowed.code, arguments, module):
        raise Unfaithful(f"the narrowed text: {outside}")
    try:
        again = Planner(parsed(narrowed.code), snapshot)
        same = [again.plan(call) for call in calls] == plans
    except (Raised, Unsupported) as error:
        raise Unfaithful(f"the narrowed text: {error}") from error
    if not same:
        raise Unfaithful("the narrowed text has other plans")
    return narrowed


class Unfaithful(Exception):
    """A narrowed text does not do what the text did."""


def narrow(code: str, arguments: str, evaluator: Evaluator, spare: bool = False) -> Narrowed:
    """The text after the calls that the evaluator has seen; the same text if it need not change.

    Args:
        code: the text that the evaluator read.
        arguments: source of the constructor's arguments, which may name functions of the file.
        spare: see `claim`.
    """
    conditions = _Conditions(code, arguments, evaluator, spare)
    conditions.narrow()
    return _trimmed(Narrowed(conditions.edits.apply(), tuple(conditions.notes)), arguments)


class _Conditions:
    """Narrows the functions that calls have evaluated."""

    def __init__(self, code: str, arguments: str, evaluator: Evaluator, spare: bool) -> None:
        self._code, self._evaluator = code, evaluator
        self._source, self._file = evaluator.source, evaluator.definitions
        taken = {each.id for each in self._source.nodes if isinstance(each, ast.Name)} | self._file.names
        known = next((name for name, node in self._file.functions.items() if _is_raising(node)), "")
        free = (name for i in count() if (name := f"{_UNTRIED}_{i}" if i else _UNTRIED) not in taken)
        self._raising, self._is_defined = known or next(free), bool(known)
        self._spares = spare
        self._spared = self._of_constructors(arguments) if spare else set()
        self.edits = Edits(code)
        self.notes: list[str] = []
        self._guards: set[ast.AST] = set()
        self._uses_raising = False

    def narrow(self) -> None:
        file = self._file
        methods = [each for node in file.classes.values() for each in node.body if isinstance(each, ast.FunctionDef)]
        for function in (*file.functions.values(), *methods):
            if function.name in _STARTS:
                continue
            if function not in self._evaluator.called:
                if function.name == "forward" and not self._spares:
                    self._raise(function.body)
            elif function in self._spared:
                self._note_alone(function)
            else:
                self._block(function.body)
        for kernel in file.kernels.values():
            for decorator in kernel.decorator_list:
                self._expression(decorator)
        if self._uses_raising and not self._is_defined:
            first = next(each for each in self._source.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef))
            text = f"def {self._raising}():\n    {_RAISE}\n\n\n"
            self.edits.insert_line(first, text)

    def _note_alone(self, function: ast.FunctionDef) -> None:
        """Note what the function should require, without an edit."""
        edits, uses_raising, before = self.edits, self._uses_raising, len(self.notes)
        self.edits = Edits(self._code)
        self._block(function.body)
        self.edits, self._uses_raising = edits, uses_raising
        self.notes[before:] = [f"{note}; not guarded, since the constructor needs more" for note in self.notes[before:]]

    def _of_constructors(self, arguments: str) -> set[ast.AST]:
        """Functions and methods that constructors, the arguments or the file itself may call, by their names."""
        file = self._file
        methods = [each for node in file.classes.values() for each in node.body if isinstance(each, ast.FunctionDef)]
        waiting: list[ast.AST] = [each for each in methods if each.name in _STARTS]
        waiting += [node for node in self._source.tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        waiting += [
            node for each in file.classes.values() for node in each.body if not isinstance(node, ast.FunctionDef)
        ]
        decorated = (*file.functions.values(), *methods)
        waiting += [each for function in decorated for each in (*function.decorator_list, *function.args.defaults)]
        waiting += [parse_expression(arguments)] if arguments else []
        found = set[ast.AST]()
        while waiting:
            node = waiting.pop()
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and inner.id in file.functions:
                    new: list[ast.FunctionDef] = [file.functions[inner.id]]
                elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
                    new = file.methods.get(inner.attr, [])
                else:
                    continue
                waiting += [each for each in new if each not in found]
                found.update(new)
        return found

    # Statements

    def _block(self, body: list[ast.stmt]) -> None:
        """Narrow statements of which the first was evaluated."""
        evaluated = self._evaluator.evaluated
        reached = next((number for number, each in enumerate(body) if each not in evaluated), len(body))
        for number, node in enumerate(body[:reached]):
            self._statement(node, is_last=number == reached - 1 and reached < len(body))
        if reached < len(body):
            self._raise(body[reached:])

    def _statement(self, node: ast.stmt, is_last: bool) -> None:
        """Narrow a statement. Args: is_last: no call went on behind it."""
        match node:
            case ast.If():
                self._branch(node, is_last)
            case ast.For() | ast.While():
                if isinstance(node, ast.For):
                    self._expression(node.iter)
                else:
                    self._test(node.test)
                self._body(node.body)
                if node.orelse and node.orelse[0] in self._evaluator.evaluated:
                    self._block(node.orelse)
            case ast.With():
                self._block(node.body)
            case ast.FunctionDef():
                if node in self._evaluator.called:
                    self._block(node.body)
                else:
                    self._raise(node.body)
            case ast.Assert():
                self._test(node.test)
            case ast.Raise():
                pass
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child)

    def _body(self, body: list[ast.stmt]) -> None:
        if body[0] in self._evaluator.evaluated:
            self._block(body)
        else:
            self._raise(body)

    def _branch(self, node: ast.If, is_last: bool) -> None:
        sides = self._evaluator.sides[node.test]
        self._test(node.test)
        if True in sides:
            self._block(node.body)
        elif not isinstance(node.body[0], ast.Raise):
            self._note(node.test, False)
            self._raise(node.body)
        if False in sides:
            if node.orelse:
                self._block(node.orelse)
        elif node.orelse:
            if not isinstance(node.orelse[0], ast.Raise):
                self._note(node.test, True)
                self._raise(node.orelse)
        elif self._depends(node.test):
            self._note(node.test, True)
            if not is_last:  # otherwise the statements behind it raise
                indentation = self.edits.indentation(node)
                self.edits.append(node, f"\n{indentation}else:\n{indentation}    {_RAISE}")

    def _raise(self, body: list[ast.stmt]) -> None:
        """Replace statements that no call evaluated."""
        if isinstance(body[0], ast.Raise):
            return
        if self.edits.begins_with(body[0], "elif"):
            self.edits.replace(body, f"else:\n{self.edits.indentation(body[0])}    {_RAISE}")
        else:
            self.edits.replace(body, _RAISE)

    # Expressions

    def _test(self, node: ast.expr) -> None:
        """Narrow the parts of a condition; its statement narrows the whole."""
        self._parts(node, guarded=len(self._evaluator.sides.get(node, ())) > 1)

    def _expression(self, node: ast.expr) -> None:
        self._parts(node, guarded=True)

    def _parts(self, node: ast.AST, guarded: bool) -> None:
        """Narrow an expression that was evaluated. Args: guarded: conditions in it need guards."""
        match node:
            case ast.JoinedStr():
                return  # places in it are not exact
            case ast.Lambda():
                if node in self._evaluator.called:
                    self._expression(node.body)
                return
            case ast.IfExp():
                self._conditional(node)
                return
            case ast.BoolOp():
                self._logical(node, guarded)
                return
            case ast.Compare():
                if guarded:
                    self._guard(node)
            case ast.Call(func=ast.Name(id="min" | "max"), args=[first, second]) if node in self._evaluator.sides:
                self._guard_choice(node, first, second)
            case ast.BinOp(op=ast.FloorDiv() | ast.RShift()):
                if self._evaluator.sides.get(node) == {False}:  # a quotient that is not 0 is no branch
                    self._guard(node)
            case ast.comprehension():
                for test in node.ifs:
                    self._guard(test)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword | ast.comprehension):
                kept = guarded if isinstance(node, ast.UnaryOp) else True
                self._parts(child, kept and not self._is_guarded(child))

    def _logical(self, node: ast.BoolOp, guarded: bool) -> None:
        ends = isinstance(node.op, ast.Or)  # the truth value at which the other parts are not evaluated
        for part in node.values:
            if part not in self._evaluator.evaluated:
                self._replace(part)
                continue
            is_last = part is node.values[-1]
            raises_next = not is_last and self._evaluator.sides[part] == {ends}
            if guarded and not is_last and not raises_next:
                self._guard(part)
            self._parts(part, guarded and not raises_next and not self._is_guarded(part))

    def _conditional(self, node: ast.IfExp) -> None:
        evaluated = self._evaluator.evaluated
        if not evaluated & {node.body, node.orelse}:
            return
        self._test(node.test)
        for branch, side in ((node.body, True), (node.orelse, False)):
            if branch in evaluated:
                self._expression(branch)
            elif ast.unparse(branch) != f"{self._raising}()":
                self._note(node.test, not side)
                self._replace(branch)

    def _is_guarded(self, node: ast.AST) -> bool:
        return node in self._guards

    def _guard(self, node: ast.expr) -> None:
        """Require the side that a condition on the inputs always had."""
        sides = self._evaluator.sides.get(node, set())
        if len(sides) != 1 or node in self._guards or not self._depends(node):
            return
        if isinstance(node, ast.BoolOp) and ast.unparse(node.values[-1]) == f"{self._raising}()":
            return  # it has a guard
        (side,) = sides
        self._guards.add(node)
        self._note(node, side)
        self._uses_raising = True
        self.edits.wrap(node, "((", f") {'or' if side else 'and'} {self._raising}())")

    def _guard_choice(self, node: ast.Call, first: ast.expr, second: ast.expr) -> None:
        """Require the choice that `min` or `max` always made between two numbers."""
        chosen = self._evaluator.sides[node]
        if len(chosen) != 1 or node in self._guards or not self._depends(node):
            return
        is_less = (chosen == {True}) == (ast.unparse(node.func) == "min")
        condition = ast.copy_location(ast.Compare(first, [ast.LtE() if is_less else ast.GtE()], [second]), node)
        self._guards.add(node)
        self._note(condition, True)
        if all(ast.unparse(each.func) in _REPEATABLE for each in ast.walk(condition) if isinstance(each, ast.Call)):
            self._uses_raising = True
            self.edits.wrap(node, "(", f" if {ast.unparse(condition)} else {self._raising}())")

    def _replace(self, node: ast.expr) -> None:
        if ast.unparse(node) == f"{self._raising}()":
            return
        self._uses_raising = True
        self.edits.replace([node], f"{self._raising}()")

    def _depends(self, node: ast.expr) -> bool:
        """True if a condition may depend on the inputs: it reads a variable other than the `self` of a method."""
        return any(isinstance(each, ast.Name) and self._is_variable(each) for each in ast.walk(node))

    def _is_variable(self, node: ast.Name) -> bool:
        if not is_local(node.id, node, self._source):
            return False
        functions = (each for each in self._source.ancestors(node) if isinstance(each, ast.FunctionDef))
        function = next((each for each in functions if node.id in variables(each)), None)
        return function is None or node.id != self._file.self_name(function) or node.id in stored(function)

    def _note(self, node: ast.expr, side: bool) -> None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._note(node.operand, not side)
            return
        text = ast.unparse(node)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        self.notes.append(f"line {node.lineno}: verified only {'where' if side else 'unless'} {text}")


def _is_raising(node: ast.FunctionDef) -> bool:
    """True for the function that an earlier narrowing made."""
    return node.name.startswith(_UNTRIED) and ast.unparse(node.body[0]) == _RAISE.replace('"', "'")


def _trimmed(narrowed: Narrowed, arguments: str) -> Narrowed:
    """The text without definitions and methods that nothing uses."""
    while True:
        source = parsed(narrowed.code)
        unused = list(_unused(source, arguments))
        if not unused:
            return narrowed
        edits = Edits(narrowed.code)
        for node in unused:
            edits.remove_lines(node)
        names = [each.name for each in unused if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        notes = (f"removed, since no verified call uses it: {', '.join(names)}",) if names else ()
        narrowed = Narrowed(edits.apply(), (*narrowed.notes, *notes))


def _unused(source: Source, arguments: str) -> Iterator[ast.stmt]:
    """Definitions at the top of the file whose name `ModelNew` does not use, and methods whose name is not read."""
    body = source.tree.body
    entry = source.entry
    assert entry is not None  # it was called
    definitions = [each for each in body if isinstance(each, _DEFINITIONS)]
    roots: list[ast.stmt] = [entry, *(each for each in definitions if _names_entry(each, entry.name))]
    roots += [ast.Expr(parse_expression(arguments))] if arguments else []
    used = reach(roots, definitions)
    yield from (each for each in definitions if each not in used)
    attributes = {each.attr for node in used for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    for node in body:
        if isinstance(node, ast.ClassDef) and node in used:
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            unread = [each for each in methods if each.name not in attributes | set(_CALLED)]
            yield from unread if len(unread) < len(node.body) else ()


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def _names_entry(node: ast.stmt, entry: str) -> bool:
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Name) and value.id == entry
