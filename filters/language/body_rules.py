"""Rules on the statements and expressions of the host code."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy

from . import tables
from .definitions import CALLED, Context, Definitions, Function, Kind, is_plain_format
from .parsed_source import last_name, root
from .scopes import arguments, defaults, is_local, is_stored, passed, stored
from .value_origins import Origins

Found = tuple[ast.AST, str, str]  # a node, what it is, and what to write instead: "" if it fails in any case

_NAMES = "use a name that the language lists"
_GROWING = (ast.Add, ast.Mult, ast.BitOr)  # operators that change a list or a dict in place
_READS = frozenset({"item", "tolist", "numpy"})  # methods that copy values to the host
_TUNERS = frozenset({"triton.autotune", "triton.heuristics"})
_DECORATORS = tables.CONTEXTS.names | tables.CACHES.names | {"functools.wraps"}
_GPU_PROPERTIES = ("torch.cuda.get_device_properties", "triton.runtime.driver.active.get_current_target")
_BUILTINS = tables.BUILTINS.names | tables.TYPES.names | tables.EXCEPTIONS.names
_ANNOTATIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp)


class Body:
    """Checks the statements of one function, with those of functions inside of it, or single expressions."""

    def __init__(self, file: Definitions, function: Function | None, context: Context) -> None:
        """`function`: None for expressions outside of functions."""
        self._file, self._source, self._parents = file, file.source, file.source.parents
        self._origins = Origins(file)
        self._pending = set[str]()  # functions whose results are looked at
        self._members = file.attributes - tables.TAKEN - tables.MODULE_METHODS
        self._function = function
        self._context = context
        self._owner = file.owner(function) if function else None
        self._kind = file.kind(self._owner) if self._owner else None
        self._self = file.self_name(function) if function else ""
        starts = function is not None and function.name in ("__init__", "__post_init__")
        self._sets_attributes = starts or context is Context.CONSTRUCTOR or self._kind is Kind.AUTOGRAD

    def check(self) -> Iterator[Found]:
        assert self._function is not None
        if self._sets_attributes and self._self in stored(self._function):
            yield self._function, f"another value of {self._self}", "name the variable otherwise"
        yield from self._statements(self._function.body)

    def _later(self) -> Body:
        """The checks of a function inside of this one, which may run in a call of forward whoever makes it."""
        inner = copy(self)
        inner._context, inner._sets_attributes = Context.CALL, False
        return inner

    def _statements(self, body: Iterable[ast.stmt]) -> Iterator[Found]:
        for node in body:
            if type(node) in tables.STATEMENTS:
                yield from self._statement(node)
            else:
                yield (node, *_refusal(node))

    def _statement(self, node: ast.stmt) -> Iterator[Found]:
        match node:
            case ast.FunctionDef():
                for decorator in node.decorator_list:
                    yield from check_decorator(self._file, decorator)
                    yield from self._expressions(passed(decorator))
                yield from self._expressions(defaults(node))
                yield from self._later()._statements(node.body)
            case ast.Assign():
                for target in node.targets:
                    yield from self._target(target)
                yield from self.expression(node.value)
            case ast.AugAssign():
                if isinstance(node.op, _GROWING) and not self._may_grow(node):
                    shown = f"{ast.unparse(node.target)} = {ast.unparse(node.target)}"
                    yield node, f"a change of {ast.unparse(node.target)}", f"write `{shown} {_sign(node)} ...`"
                yield from self._target(node.target)
                yield from self.expression(node.value)
            case ast.AnnAssign():
                yield from self._target(node.target)
                yield from check_annotation(node.annotation)
                yield from self._expressions(filter(None, (node.value,)))
            case ast.For():
                yield from self._target(node.target)
                yield from self.expression(node.iter)
                yield from self._statements((*node.body, *node.orelse))
            case ast.While() | ast.If():
                yield from self.expression(node.test)
                yield from self._statements((*node.body, *node.orelse))
            case ast.With():
                for item in node.items:
                    made = item.context_expr
                    is_listed = isinstance(made, ast.Call) and self._path(made.func) in tables.CONTEXTS.names
                    if item.optional_vars is not None or not (is_listed or self._is_context(made)):
                        yield node, f"with {ast.unparse(made)}", "use torch.no_grad or torch.cuda.device"
                    yield from self._expressions(passed(made) if isinstance(made, ast.Call) else (made,))
                yield from self._statements(node.body)
            case ast.Raise():
                error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if not isinstance(error, ast.Name) or error.id not in tables.EXCEPTIONS.names or node.cause:
                    yield node, ast.unparse(node).partition("(")[0], "raise ValueError or another listed exception"
                yield from self._expressions(passed(node.exc) if node.exc else ())
            case ast.Assert():
                yield from self._expressions(filter(None, (node.test, node.msg)))
            case ast.Return():
                yield from self._expressions(filter(None, (node.value,)))
            case ast.Delete():
                for target in node.targets:
                    if not isinstance(target, ast.Name):
                        yield node, f"del {ast.unparse(target)}", "delete variables only"
            case ast.Expr():
                if not isinstance(node.value, (ast.Call, ast.Constant)):
                    yield node, "an expression that does nothing", "leave it out"
                written = self._file.writes_text(node.value)
                yield from self._expressions(passed(node.value) if written else (node.value,))

    def _is_context(self, node: ast.expr | None) -> bool:
        """True for a context that a variable holds, or that a condition or a function of the file chooses."""
        match node:
            case ast.IfExp():
                return self._is_context(node.body) and self._is_context(node.orelse)
            case ast.Name():
                return self._origins.every_bound(node, self._is_context)
            case ast.Call(func=ast.Name(id=name)) if name in self._file.functions:
                if name in self._pending:
                    return False  # it calls itself
                self._pending.add(name)
                returned = [each for each in ast.walk(self._file.functions[name]) if isinstance(each, ast.Return)]
                found = bool(returned) and all(self._is_context(each.value) for each in returned)
                self._pending.discard(name)
                return found
        return isinstance(node, ast.Call) and self._path(node.func) in tables.CONTEXT_VALUES.names

    def _target(self, node: ast.expr) -> Iterator[Found]:
        """Findings in the target of an assignment."""
        if isinstance(node, (ast.Tuple, ast.List)):
            for each in node.elts:
                yield from self._target(each)
        elif isinstance(node, ast.Starred):
            yield from self._target(node.value)
        elif isinstance(node, ast.Attribute):
            yield from self._set_attribute(node)
        elif isinstance(node, ast.Subscript):
            if not self._may_change(node.value):
                yield self._change(node, node)
            yield from self._expressions((node.value, node.slice))

    def _set_attribute(self, node: ast.Attribute) -> Iterator[Found]:
        own = isinstance(node.value, ast.Name) and node.value.id == self._self
        ties = self._context is Context.CONSTRUCTOR and root(node) == self._self and node.attr in ("weight", "bias")
        if ties and isinstance(node.value, (ast.Attribute, ast.Subscript)):
            yield from self.expression(node.value)
        elif not own or not self._sets_attributes:
            yield node, f"an assignment to {ast.unparse(node)}", "set attributes of self, in the constructor"
        elif (
            _is_special(node.attr) or node.attr in tables.OF_OTHERS | tables.MODULE_METHODS | self._file.methods.keys()
        ):
            yield node, f"an attribute called {node.attr}", "name it otherwise"

    def _may_change(self, node: ast.expr) -> bool:
        """True for lists, dicts and tensors that the function makes; in a constructor, also for its attributes' own."""
        if self._context is Context.CONSTRUCTOR and isinstance(node, ast.Attribute) and self._owner:
            own = [each for each in ast.walk(self._owner) if isinstance(each, ast.Assign)]
            values = [each.value for each in own if ast.unparse(node) in map(ast.unparse, each.targets)]
            return bool(values) and all(map(self._is_made, values))
        return isinstance(node, ast.Name) and self._origins.every_bound(node, self._is_made_or_none)

    def _is_made_or_none(self, node: ast.expr | None) -> bool:
        """True for a value that the function makes, or for None, which no statement can change."""
        return (isinstance(node, ast.Constant) and node.value is None) or self._is_made(node)

    def _is_made(self, node: ast.expr | None) -> bool:
        if node is None or self._origins.is_list(node):
            return node is not None
        made = isinstance(node, (ast.Call, ast.BinOp)) and self._origins.is_new(node)
        allocates = isinstance(node, ast.Call) and self._path(node.func) in tables.ALLOCATION.names
        return made if self._context is Context.CONSTRUCTOR else allocates

    def _may_grow(self, node: ast.AugAssign) -> bool:
        """True if no list that outlives the call can be the target. No number can be added to a list."""
        is_new = isinstance(node.target, ast.Name) and self._origins.is_new(node.target)
        return is_new or (isinstance(node.op, ast.Add) and self._origins.is_number(node.value))

    @staticmethod
    def _change(node: ast.AST, changed: ast.expr) -> Found:
        return node, f"a change of {ast.unparse(changed)}", "change a list or dict that the function makes"

    def _expressions(self, nodes: Iterable[ast.expr]) -> Iterator[Found]:
        for node in nodes:
            yield from self.expression(node)

    def expression(self, node: ast.expr) -> Iterator[Found]:
        """Findings in an expression."""
        match node:
            case _ if type(node) not in tables.EXPRESSIONS:
                yield (node, *_refusal(node))
                return
            case ast.Name():
                yield from self._name(node)
            case ast.Attribute():
                yield from self._attribute(node)
                return
            case ast.Call():
                yield from self._call(node)
            case ast.Compare():
                for operator, right in zip(node.ops, node.comparators, strict=True):
                    is_one = isinstance(right, ast.Constant) or self._path(right) in tables.DTYPES
                    if isinstance(operator, (ast.Is, ast.IsNot)) and not is_one:
                        yield node, f"a test of identity, {ast.unparse(node)}", "compare values"
            case ast.JoinedStr():
                if self._context is Context.CALL and not (self._in_message(node) or self._reads_parameter(node)):
                    yield node, "an f-string", "use it in the message of an exception"
            case ast.Constant():
                is_format = isinstance(node.value, str) and "%" in node.value
                if is_format and node not in self._source.arguments and not self._in_message(node):
                    yield node, "a format of text", "use it in the message of an exception"
            case ast.Set():
                uses = self._uses(node) or [node]
                if not all(map(self._is_behind_in, uses)):
                    yield node, "a set", "write a tuple"
            case ast.Lambda():
                yield from self._expressions(defaults(node))
                yield from self._later().expression(node.body)
                return
            case ast.GeneratorExp():
                if not self._is_consumed(node, may_be_named=self._is_early(node)):
                    yield node, "a generator that is kept", "make a list"
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                yield from self._target(child.target)
                yield from self._expressions((child.iter, *child.ifs))
            elif isinstance(child, (ast.expr, ast.keyword)):
                yield from self.expression(child.value if isinstance(child, ast.keyword) else child)

    def _is_local(self, node: ast.expr) -> bool:
        return is_local(root(node), node, self._source)

    def _path(self, node: ast.expr) -> str:
        """The path of an imported name, or of what it holds; "" for other expressions."""
        return self._file.path(node)

    def _name(self, node: ast.Name) -> Iterator[Found]:
        name = node.id
        if is_stored(node) or self._is_local(node) or self._makes_class(node):
            return
        if name in self._file.classes:
            yield from self._class_name(node)
        elif name in self._file.names:
            return
        elif path := self._source.path(node):
            yield from self._imported(node, path)
        elif not ({name, "*"} & self._source.bound or _is_special(name) or node in self._source.arguments):
            yield node, f"{name} is not defined", ""
        elif (name in vars(builtins) or _is_special(name)) and name not in _BUILTINS:
            if not (self._reads_parameter(node) or (name == "type" and self._names_type(self._parents[node]))):
                yield node, f"the name {name}", _NAMES
        elif name == "super" and not (
            self._sets_attributes and last_name(self._parents[self._parents[node]]) == "__init__"
        ):
            yield node, "super()", "call super().__init__()"

    def _reads_parameter(self, part: ast.expr) -> bool:
        """True for the function or the name in `getattr(layer, f"weight_l{number}")`, or `"weight_l" + str(number)`."""
        match call := self._parents[part]:
            case ast.Call(func=function, args=[_, name], keywords=[]) if self._file.builtin(function) == "getattr":
                start, values = _parts_of_name(name)
                plain = all(isinstance(each, (ast.Name, ast.Constant)) for each in values)
                return start.startswith(tables.PARAMETERS) and plain and part in (call.func, name)
        return False

    def _makes_class(self, node: ast.Name) -> bool:
        """True for `type` in constructor arguments such as `type('Config', (), {'size': 3})()`, as the probe writes."""
        parent = self._parents[node]
        if node.id != "type" or node not in self._source.arguments or not isinstance(parent, ast.Call):
            return False
        members = parent.args[2] if len(parent.args) == 3 and not parent.keywords else None
        keys = [getattr(key, "value", None) for key in members.keys] if isinstance(members, ast.Dict) else [None]
        return all(isinstance(key, str) and not _is_special(key) for key in keys)

    def _class_name(self, node: ast.Name) -> Iterator[Found]:
        """A class of the file: it is called, one of its members is used, or a constructor's argument names it."""
        if node in self._source.arguments:
            return
        parent, kind = self._parents[node], self._file.kind(self._file.classes[node.id])
        called = self._is_called(node)
        is_module = kind in (Kind.MODULE, Kind.LAYER)
        in_constructor = self._context is Context.CONSTRUCTOR and self._ends_in_call(node, set())
        if is_module and (in_constructor or (self._function is None and not called)):
            return  # called, in a table of the file, or an argument of a function that makes layers
        if called and is_module and self._context is Context.CALL:
            yield node, f"a module {node.id} that is made in a call", "make it in the constructor"
        elif kind is Kind.AUTOGRAD and not (isinstance(parent, ast.Attribute) and parent.attr == "apply"):
            yield node, f"the function {node.id} without apply", f"call {node.id}.apply"
        elif (
            not called
            and not isinstance(parent, ast.Attribute)
            and self._file.builtin(getattr(parent, "func", node)) != "super"
        ):
            yield node, f"the class {node.id} as a value", "call it"

    def _ends_in_call(self, node: ast.AST, seen: set[str]) -> bool:
        """True for a class that is called or passed on, perhaps by way of a table or of a variable."""
        parent = self._parents[node]
        while isinstance(parent, (ast.IfExp, ast.Dict, ast.List, ast.Tuple, ast.Subscript, ast.keyword)):
            parent = self._parents[parent]
        if isinstance(parent, ast.Assign) and all(isinstance(each, ast.Name) for each in parent.targets):
            new = stored(parent) - seen
            seen |= new
            names = [each for each in ast.walk(self._function or parent) if isinstance(each, ast.Name)]
            return all(self._ends_in_call(each, seen) for each in names if each.id in new and not is_stored(each))
        return isinstance(parent, (ast.Call, ast.Compare))

    def _imported(self, node: ast.expr, path: str) -> Iterator[Found]:
        if tables.is_listed(path):
            return
        head, _, last = path.rpartition(".")
        layer = head in ("torch.nn", "torch.nn.parameter") and last[:1].isupper()
        fills = head == "torch.nn.init" and (last.endswith("_") or "calculate" in last)
        function = self._file.builtin(getattr(self._parents[node], "func", node))
        if path in tables.IMPORTS.names and function in ("getattr", "hasattr"):
            return  # the function is refused
        if not (layer or fills or path in tables.CONSTRUCTOR.names):
            yield node, f"the module {path} as a value" if path in tables.IMPORTS.names else path, _NAMES
        elif self._context is Context.CALL and not (self._is_layer_in_constant(node, path) or self._is_kind(node)):
            yield node, path, "use it in the constructor"

    def _is_kind(self, node: ast.expr) -> bool:
        """True for `nn.ReLU` in `isinstance(layer, nn.ReLU)`, alone or in a tuple."""
        parent = self._parents[node]
        call = self._parents[parent] if isinstance(parent, ast.Tuple) else parent
        return isinstance(call, ast.Call) and self._file.builtin(call.func) == "isinstance" and node is not call.args[0]

    def _is_called(self, node: ast.expr) -> bool:
        return getattr(self._parents[node], "func", None) is node

    def _is_layer_in_constant(self, node: ast.expr, path: str) -> bool:
        """True for a listed layer that a constant of the file names, without making one."""
        return path in tables.LAYERS.names and self._function is None and not self._is_called(node)

    def _attribute(self, node: ast.Attribute) -> Iterator[Found]:
        if path := self._path(node):
            yield from self._imported(node, path)
            return
        owner, name = node.value, node.attr
        made = self._path(owner.func) if isinstance(owner, ast.Call) else ""
        if isinstance(owner, ast.Name) and owner.id in self._file.kernels and not self._is_local(owner):
            yield node, f"an attribute of the kernel {owner.id}", "launch it"
        elif name in tables.LIST_CHANGES and not self._is_called(node):
            yield node, f"{ast.unparse(node)} as a value", "call it"
        elif made in _GPU_PROPERTIES and name not in tables.GPU_ATTRIBUTES:
            yield node, f"the GPU's {name}", "use multi_processor_count"
        elif made not in _GPU_PROPERTIES and not self._may_read(node):
            yield node, f"the attribute {name}", "load the value in a kernel" if name in _READS else _NAMES
        yield from self.expression(owner)

    def _may_read(self, node: ast.Attribute) -> bool:
        name, owner = node.attr, node.value
        of_class = isinstance(owner, ast.Name) and owner.id in self._file.classes
        if name == "__name__":
            return self._names_type(owner)
        if name == "__init__":
            return isinstance(owner, ast.Call) and self._file.builtin(owner.func) == "super"
        if name in CALLED:
            return name == "forward" and not of_class
        if name == "format":
            return self._in_message(node) and is_plain_format(owner)
        if name in tables.OTHER_ATTRIBUTES.names:
            return True
        if name.startswith("_"):
            own = of_class or (isinstance(owner, ast.Name) and owner.id in (self._self, "self", "cls"))
            return own and name in self._members and not _is_special(name)
        is_self = isinstance(owner, ast.Name) and owner.id == self._self and not of_class
        if is_self and name in tables.OF_KERNELS & self._file.attributes and self._is_module():
            return True
        if is_self and self._context is Context.CALL and self._kind is not Kind.LAYER:
            return name in self._members or name == "training" or self._kind is not Kind.MODULE
        known = tables.LAYER_ATTRIBUTES.names | self._members
        if self._context is Context.CONSTRUCTOR:
            known |= tables.CONSTRUCTOR_ATTRIBUTES.names
        return name in known or tables.is_tensor_attribute(name)

    def _is_module(self) -> bool:
        """True if the first argument is the module wherever its name stands: no class gives `forward` to others."""
        if self._function is None or self._kind not in (Kind.MODULE, Kind.LAYER):
            return False
        if self._function.name not in ("__init__", "forward") or self._function.decorator_list:
            return False
        scopes = [each for each in ast.walk(self._function) if isinstance(each, (ast.FunctionDef, ast.Lambda))]
        return sum(self._self in arguments(each) for each in scopes) == 1 and self._self not in stored(self._function)

    def _call(self, node: ast.Call) -> Iterator[Found]:
        function, parent = node.func, self._parents[node]
        name, path = last_name(function), self._path(function)
        builtin = self._file.builtin(function)
        if self._is_launch(function) and not isinstance(parent, ast.Expr):
            yield node, "the value of a launch", "read what the kernel stored"
        if name in tables.LIST_CHANGES and isinstance(function, ast.Attribute):
            yield from () if self._may_change(function.value) else [self._change(node, function.value)]
        if builtin == "isinstance" and self._context is Context.CALL and len(node.args) == 2:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            for kind in kinds:
                if (self._path(kind) or self._file.builtin(kind)) not in tables.TYPES.names | tables.LAYERS.names:
                    yield node, f"isinstance of {ast.unparse(kind)}", "test for Tensor, a number, a list or a dict"
        is_shown = any(isinstance(each, ast.Raise) or self._describes(each) for each in self._source.ancestors(node))
        is_kept = self._context is Context.CALL and not is_shown
        around = self._parents[node]
        is_name = isinstance(around, ast.BinOp) and self._reads_parameter(around)
        if builtin == "str" and is_kept and not is_name and [*map(last_name, node.args)] != ["dtype"]:
            yield node, "the text of a value", "compare values"
        if path in _GPU_PROPERTIES and not isinstance(parent, ast.Attribute):
            yield node, "the properties of the GPU as a value", "read multi_processor_count"
        if (builtin in tables.LAZY or path.startswith("itertools.")) and not self._is_consumed(node):
            yield node, f"{name} that is kept", "make a list"

    def _is_launch(self, node: ast.expr) -> bool:
        """True for `kernel[grid]`, where a variable may hold the kernel."""
        owner = node.value if isinstance(node, ast.Subscript) else None
        if isinstance(owner, ast.Name):
            return owner.id in self._file.kernels or self._is_local(owner)
        return isinstance(owner, ast.Subscript)

    def _is_early(self, node: ast.GeneratorExp) -> bool:
        """True if no name that a generator reads gets another value, which a later use would see."""
        scope = self._function or self._source.tree
        bound = Counter(each.id for each in ast.walk(scope) if isinstance(each, ast.Name) and is_stored(each))
        return all(
            bound[name] <= 1
            for name in {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - stored(node)
        )

    def _is_consumed(self, node: ast.expr, may_be_named: bool = True) -> bool:
        """True if an iterator is used up where it is made. One that is kept could count calls."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call):
            path, name = self._path(parent.func), last_name(parent.func)
            listed = self._file.builtin(parent.func) in tables.CONSUMERS | tables.LAZY
            joins = isinstance(parent.func, ast.Attribute) and name not in self._file.attributes
            listed |= path.startswith(("itertools.", "torch.nn."))
            return listed or (name in tables.CONSUMERS and (joins or path != ""))
        if isinstance(parent, ast.Assign) and self._function is not None:
            names = {each.id for each in parent.targets if isinstance(each, ast.Name)}
            loads = [each for each in ast.walk(self._function) if isinstance(each, ast.Name) and not is_stored(each)]
            kept = [each for each in parent.targets if not isinstance(each, (ast.Tuple, ast.Name))]
            reads = [each for each in loads if each.id in names]
            if kept or (names and not may_be_named) or len(reads) > 1:  # a second read finds nothing
                return False
            return all(self._is_consumed(each, may_be_named=False) for each in reads)
        return isinstance(parent, ast.Starred) or (
            isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node
        )

    def _in_message(self, node: ast.expr) -> bool:
        """True for a part of a message or of `extra_repr`, or of a variable that only messages use."""
        around = [*self._source.ancestors(node)]
        if any(isinstance(each, (ast.Raise, ast.Assert)) or self._file.writes_text(each) for each in around):
            return True
        if any(map(self._describes, around)):
            return True
        uses = self._uses(node)
        return bool(uses) and all(isinstance(self._error(each), ast.Raise) for each in uses)

    def _names_type(self, node: ast.AST) -> bool:
        """True for `type(x)` in a message, as text."""
        match node:
            case ast.Call(func=ast.Name(id="type"), args=[_], keywords=[]) if not self._is_called(node):
                return any(isinstance(each, ast.Raise) for each in self._source.ancestors(node))
        return False

    def _describes(self, node: ast.AST) -> bool:
        """True for the method `extra_repr`, which only the text of a module calls."""
        return isinstance(node, Function) and node.name == "extra_repr" and self._file.owner(node) is not None

    def _uses(self, node: ast.expr) -> list[ast.expr]:
        """The reads of the variables that are set to an expression: of a function, or of the file or a class."""
        names = {each.id for each in getattr(self._parents[node], "targets", ()) if isinstance(each, ast.Name)}
        scope = next((each for each in self._source.ancestors(node) if isinstance(each, Function)), self._source.tree)
        reads = [each for each in ast.walk(scope) if isinstance(getattr(each, "ctx", None), ast.Load)]
        names_of_file = (ast.Name, ast.Attribute) if scope is self._source.tree else ast.Name
        return [each for each in reads if isinstance(each, names_of_file) and last_name(each) in names]

    def _is_behind_in(self, node: ast.expr) -> bool:
        parent = self._parents[node]
        operators = parent.ops if isinstance(parent, ast.Compare) and node is not parent.left else ()
        return bool(operators) and all(isinstance(each, (ast.In, ast.NotIn)) for each in operators)

    def _error(self, node: ast.expr) -> ast.AST:
        """The statement `raise` of `raise Error(node)`."""
        call = self._parents[node]
        return self._parents[call] if isinstance(call, ast.Call) else call


def check_decorator(file: Definitions, node: ast.expr) -> Iterator[Found]:
    """A decorator of a function, without its arguments."""
    made = node.func if isinstance(node, ast.Call) else node
    path = file.path(made) or file.builtin(made)
    if path in _TUNERS:
        yield node, f"{ast.unparse(made)} decorates a function without @triton.jit", ""
    elif path not in _DECORATORS and ast.unparse(made) not in file.functions:
        yield node, f"the decorator {ast.unparse(made)}", "call the function by name"


def check_annotation(node: ast.expr) -> Iterator[Found]:
    """An annotation, which must compute nothing."""
    if any(isinstance(each, ast.expr) and not isinstance(each, _ANNOTATIONS) for each in ast.walk(node)):
        yield node, f"an annotation that computes, {ast.unparse(node)}", "name a type"


def named(node: ast.AST) -> str:
    """The name of a construct in messages."""
    kind = "a statement" if isinstance(node, ast.stmt) else "an expression"
    return tables.ADVICE[type(node)][0] if type(node) in tables.ADVICE else f"{kind} {type(node).__name__}"


def _refusal(node: ast.AST) -> tuple[str, str]:
    return named(node), tables.ADVICE[type(node)][1] if type(node) in tables.ADVICE else "use a listed construct"


def _sign(node: ast.AugAssign) -> str:
    return ast.unparse(node).removeprefix(ast.unparse(node.target)).partition("=")[0].strip()


def _parts_of_name(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """The beginning of a name that a text gives, and the values that follow; ("", []) for other expressions."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *rest]):
            return start, [each.value for each in rest if isinstance(each, ast.FormattedValue)]
        case ast.BinOp(
            left=ast.Constant(value=str(start)),
            op=ast.Add(),
            right=ast.Call(func=ast.Name(id="str"), args=[value], keywords=[]),
        ):
            return start, [value]
    return "", []


def _is_special(name: str) -> bool:
    return name.startswith("__")
