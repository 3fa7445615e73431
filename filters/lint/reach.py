"""Rules on the names that a candidate may use, so that it cannot deceive the recorders of its launches and operators.

The recorders live in the candidate's process, where Python code can reach and change anything. The rules are therefore
an allow-list: certain imports, certain parts of torch and Triton, no private names, no code from text, no attributes
set on shared objects. A kernel is defined once, at the top of the file, and only launched, so that the interpreter and
the compiler get the same kernel.

The rules reduce what a candidate can hide. An executor that replays its launches does not rely on them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from string import Formatter

from .finding import Rule
from .parsed_source import MAIN_TESTS, Source, is_module, last_name, root

_IMPORTS = frozenset(
    "__future__ abc collections collections.abc contextlib copy dataclasses enum functools itertools math numbers "
    "operator typing warnings torch torch.amp torch.nn torch.nn.functional torch.nn.init torch.nn.parameter "
    "torch.nn.utils torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.autograd torch.autograd.function "
    "torch.cuda.amp triton triton.language triton.language.extra triton.language.math triton.language.extra.libdevice "
    "triton.language.extra.cuda triton.language.extra.cuda.libdevice triton.tools.tensor_descriptor".split()
)
# Modules of torch that may be used but not imported. Other modules expose their own imports.
_TORCH_PARTS = frozenset("torch.cuda torch.fft torch.linalg torch.nn.modules torch.special torch.version".split())
# Names in modules of the standard library that neither evaluate text nor change shared objects.
_ALLOWED_NAMES = {
    "__future__": frozenset({"annotations"}),
    "abc": frozenset("ABC ABCMeta abstractmethod".split()),
    "collections": frozenset("OrderedDict abc ChainMap Counter defaultdict deque namedtuple".split()),
    "contextlib": frozenset("AbstractContextManager ExitStack closing contextmanager nullcontext suppress".split()),
    "copy": frozenset("copy deepcopy".split()),
    "dataclasses": frozenset("asdict astuple dataclass field fields is_dataclass replace".split()),
    "enum": frozenset("Enum Flag IntEnum IntFlag StrEnum auto unique".split()),
    "functools": frozenset("cache cached_property lru_cache partial partialmethod reduce wraps".split()),
    "warnings": frozenset("catch_warnings filterwarnings simplefilter warn".split()),
}
# Names in typing that evaluate text or register functions globally.
_FORBIDDEN_TYPING = frozenset(
    "ForwardRef evaluate_forward_ref get_type_hints clear_overloads get_overloads overload".split()
)
# Attributes that lead from any module to a module that is not on the list.
_GATEWAYS = frozenset(
    "atexit asyncio builtins concurrent ctypes ctypeslib faulthandler gc importlib inspect io linecache marshal mmap "
    "multiprocessing os pathlib pickle resource runpy shutil signal socket subprocess sys tempfile threading torch "
    "traceback triton types weakref".split()
)
# Attributes that lead from a generator, a coroutine or an exception to frames.
_FRAMES = frozenset(
    "ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_locals f_trace "
    "gi_code gi_frame gi_yieldfrom tb_frame tb_next".split()
)
# Names that modules import for themselves, except functions of torch and Triton with the same name.
_REEXPORTED = (sys.stdlib_module_names | {"container_abcs", "np", "numpy"}) - {"chunk", "math", "select", "trace"}
# Names in torch, Triton and operator that run code, read memory, change global state, or reveal the environment.
_FORBIDDEN_NAMES = {
    "torch": frozenset(
        "GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES common_args common_notes factory_common_args "
        "multi_dim_common reproducibility_notes sparse_support_notes tf32_notes default_generator kineto_available "
        "accelerator ao backends classes compile compiler distributed export from_dlpack from_file from_numpy "
        "frombuffer func futures fx get_device_module hub import_ir_module jit library load monitor mps mtia "
        "multiprocessing onnx "
        "get_autocast_dtype get_deterministic_debug_mode get_file_path get_float32_matmul_precision "
        "get_num_interop_threads get_num_threads get_rng_state initial_seed is_autocast_enabled "
        "is_deterministic_algorithms_warn_only_enabled is_inference_mode_enabled random seed set_flush_denormal "
        "set_num_interop_threads set_num_threads set_printoptions set_rng_state "
        "are_deterministic_algorithms_enabled ops overrides package BFloat16Tensor BoolTensor ByteTensor "
        "DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "profiler profiler_legacy profiler_util quantization save serialization "
        "set_default_device set_default_dtype set_default_tensor_type storage testing "
        "to_dlpack torch_version TypedStorage UntypedStorage utils vmap xpu".split()
    ),
    "triton": frozenset("backends compile compiler constexpr_function JITFunction knobs runtime testing tools".split()),
    "triton.language": frozenset(
        "core ir knobs module_finder module_from_spec modules pkgutil semantic spec standard target_info".split()
    ),
    "operator": frozenset("attrgetter methodcaller".split()),
    "": frozenset[str](),
}
# Public classes in the namespace torch. The others there are internal, and could store a call count.
_PUBLIC_CLASSES = frozenset("Generator OutOfMemoryError Size SymBool SymFloat SymInt Tensor".split())
# Methods that read a tensor's values unrecorded, or expose its storage or address; attributes of values in a kernel
# that exist only while it compiles.
_FORBIDDEN_METHODS = frozenset(
    "apply_ cache_info data_ptr handle initial_seed map_ map2_ set_ set_state storage storage_type "
    "untyped_storage".split()
)
# Private attributes of modules: hooks, and what PyTorch wraps forward in. Forbidden on `self`, too.
_MODULE_INTERNALS = re.compile(r"_\w*hooks\w*|_(compiled_)?call_impl|_slow_forward|_backward_\w+|_version|_is_\w+_hook")
_TENSOR_INTERNALS = frozenset("_cdata _typed_storage _use_count _version".split())  # forbidden on `self`, too
# Prefixes of functions of torch that read or change global settings.
_SETTINGS = tuple(
    "autocast_decrement autocast_increment cudnn_ get_autocast has_ init_ is_anomaly is_autocast is_warn set_".split()
)
_HARMLESS_SETTINGS = frozenset({"set_device", "set_grad_enabled"})  # the first exists in `torch.cuda` only
# Names in torch.cuda that guests without a GPU emulate. Others could reveal whether there is a GPU.
_EMULATED_CUDA = frozenset(
    "amp current_device device device_count device_of empty_cache get_device_capability get_device_name "
    "get_device_properties is_available is_bf16_supported set_device synchronize".split()
)
_EXCEPTIONS = frozenset(
    (
        "triton.runtime.driver.active.get_active_torch_device",  # Triton's tutorials use them
        "triton.runtime.driver.active.get_current_target",
        "torch.testing.assert_close",  # in tests that follow the class
        "torch.nn.init._calculate_correct_fan",  # PyTorch's own layers use it
        "torch.nn.init._calculate_fan_in_and_fan_out",
    )
)
# Builtins that reach other code, or whose values vary by process and could trigger rare misbehaviour.
_FORBIDDEN_BUILTINS = frozenset(
    "__import__ breakpoint compile delattr dir eval exec globals hash id locals memoryview open vars".split()
)
_DECORATING_KERNELS = frozenset(("triton.autotune", "triton.heuristics", "triton.jit"))
# Keyword arguments that could tell a check from a normal run: a tuner's clock, recorded warnings with file names, and a
# function that only the compiler calls. `module` would make a class of the file look like a class of another module.
_FORBIDDEN_KEYWORDS = {
    "triton.autotune": "do_bench",
    "triton.jit": "repr",
    "warnings.catch_warnings": "record",
    "collections.namedtuple": "module",
    **{f"enum.{kind}": "module" for kind in ("Enum", "Flag", "IntEnum", "IntFlag", "StrEnum")},
}
# Decorators that set attributes of the decorated object: only for definitions in the file.
_DECORATORS = frozenset(("dataclasses.dataclass", "functools.wraps"))
_HOOK = re.compile(r"_?register_(?!load_state_dict|state_dict)\w*hook")
_ABSTRACT = ("abc.", "collections.abc.", "numbers.", "typing.")
_ALLOWED_SPECIAL_METHODS = frozenset(
    "__call__ __contains__ __getitem__ __init__ __iter__ __len__ __new__ __post_init__ __repr__ __setitem__ "
    "__str__".split()
)
# Attributes of kernels: setting one can make the interpreter and the compiler run different code.
_KERNEL_ATTRIBUTES = frozenset(
    "arg_names configs constexprs fn kernel params pre_run_hooks raw_src run signature src".split()
)
_TILING = "block_shape"  # an attribute of tensor descriptors that hooks of autotuner configurations set
# Attributes that hardly any other object has: forbidden in every look-up by name.
_KERNEL_ONLY_ATTRIBUTES = frozenset(
    "arg_names cache_key create_binder device_caches is_gluon noinline pre_run_hooks preload raw_src rewrite "
    "starting_line_number used_global_vals".split()
)
_ALLOWED_SPECIAL_NAMES = frozenset("__all__ __constants__ __slots__ __version__".split())
_INSPECTING = frozenset(
    "callable format getattr hasattr hash id isinstance issubclass print repr setattr str type".split()
)
_BY_NAME = ("getattr", "hasattr", "setattr")
_ORDER_DEPENDENT = frozenset("dict enumerate filter fromkeys iter join list map next reversed tuple zip".split())
# Findings that are harmless under `if __name__ == "__main__"`, where files time their kernels.
_MEASURING = re.compile(r"(imports )?(time|timeit|argparse|torch\.cuda|triton\.testing)(\.\w+)*")
_TYPED_TENSOR = re.compile(r"torch\.[A-Z]\w+Tensor")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_COMPREHENSIONS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# Types and markers of constants in triton.language, which are the same in all modes.
_MODE_INDEPENDENT = re.compile(r"u?int\d+|float\d+\w*|bfloat16|const|constexpr|dtype|tensor|tensor_descriptor|void")


Found = tuple[ast.AST, Rule, str]


def find_forbidden(source: Source) -> Iterator[Found]:
    """Uses of names that the rules forbid, except those that only time kernels where the file runs as a program."""
    reader = _Reader(source)
    return (each for each in reader.all() if not (_MEASURING.fullmatch(each[2]) and reader.in_main(each[0])))


class _Reader:
    """Checks each node of a source against the rules."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tree, self._nodes, self._parents = source.tree, source.nodes, source.parents
        self._path = source.path
        self._in_kernel = source.in_kernel
        self._imports, self._kernels = source.imports, source.kernels
        self._modules, self._shared = self._imported()
        self._classes = {node.name for node in self._tree.body if isinstance(node, ast.ClassDef)} - self._shared.keys()
        self._starred = any(alias.name == "*" for node in self._imports for alias in node.names)
        self._kernel_aliases = self._find_kernel_aliases()
        self._assigned = {
            node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    def all(self) -> Iterator[Found]:
        yield from self._check_imports()
        yield from self._check_kernel_definitions()
        yield from self._check_globals_of_kernels()
        for node in self._nodes:
            yield from ((node, rule, what) for rule, what in self._check_node(node))

    def _check_node(self, node: ast.AST) -> Iterator[tuple[Rule, str]]:
        if self._depends_on_set_order(node):
            yield Rule.HIDDEN_NAME, f"goes through a set, which has no order: {ast.unparse(node)}"
        if isinstance(node, ast.Attribute):
            yield from self._check_attribute(node)
        elif isinstance(node, ast.Name):
            yield from self._check_name(node)
        elif isinstance(node, ast.FunctionDef) and _is_dunder(node.name) and node.name not in _ALLOWED_SPECIAL_METHODS:
            yield Rule.SPECIAL_METHOD, f"defines {node.name}"
        elif isinstance(node, ast.Call):
            yield from self._check_call(node)
        elif isinstance(node, ast.FormattedValue) and self._is_torch_function(node.value):
            yield Rule.HIDDEN_NAME, ast.unparse(node.value)
        elif isinstance(node, ast.NamedExpr) and self._is_asserted(node):
            yield Rule.HIDDEN_NAME, f"sets a name in an assertion, which need not run: {ast.unparse(node)}"
        elif isinstance(node, ast.MatchClass) and node.kwd_attrs:
            yield Rule.BY_NAME, f"matches attributes: {ast.unparse(node)}"

    def _imported(self) -> tuple[set[str], dict[str, str]]:
        """Names that are bound to modules, and all names that are bound to shared objects, with their origin."""
        modules: set[str] = set()
        shared: dict[str, str] = {}
        for node in self._imports:
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                whole = alias.name if alias.asname else name
                whole = whole if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
                shared[name] = _origin(whole)
                if isinstance(node, ast.Import) or whole in _IMPORTS:
                    modules.add(name)
        for statement in self._nodes:
            if isinstance(statement, ast.Assign) and root(statement.value) in shared:
                copied = [target.id for target in statement.targets if isinstance(target, ast.Name)]
                shared |= dict.fromkeys(copied, shared[root(statement.value)])
        return modules, shared

    def _find_kernel_aliases(self) -> set[str]:
        """Names and attributes, as text, that a kernel or a container of kernels is assigned to."""
        found = set[str]()
        bound = [
            node for node in self._nodes if isinstance(node, (ast.Assign, ast.For, ast.NamedExpr, ast.comprehension))
        ]
        while True:
            known = len(found)
            for node in bound:
                value = node.value if isinstance(node, (ast.Assign, ast.NamedExpr)) else node.iter
                if not self._may_hold_kernel(value, found):
                    continue
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    found |= _targets(target)
            if len(found) == known:
                return found

    def _may_hold_kernel(self, node: ast.AST, names: set[str]) -> bool:
        """True if the value of `node` can be a kernel, one of `names`, or a container of either."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._is_kernel(node, names)
        inner: list[ast.AST] = []
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            inner = list(node.elts)
        elif isinstance(node, ast.Dict):
            inner = list(node.values)
        elif isinstance(node, ast.IfExp):
            inner = [node.body, node.orelse]
        elif isinstance(node, (ast.Subscript, ast.Starred)):
            inner = [node.value]
        elif isinstance(node, ast.BoolOp):
            inner = list(node.values)
        return any(self._may_hold_kernel(item, names) for item in inner)

    def _is_kernel(self, node: ast.Name | ast.Attribute, names: set[str]) -> bool:
        """True for a kernel's name, unless it is a local variable, and for one of the aliases `names`."""
        if names and ast.unparse(node) in names:
            return True
        return isinstance(node, ast.Name) and node.id in self._kernels and not self._is_local(node)

    def _check_imports(self) -> Iterator[Found]:
        for node in self._imports:
            names = [alias.name for alias in node.names]
            wanted = names if isinstance(node, ast.Import) else [node.module or "."]
            yield from ((node, Rule.IMPORT, f"imports {name}") for name in wanted if name not in _IMPORTS)
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                whole = {name for name in names if f"{node.module}.{name}" in _IMPORTS}
                origin = _origin(node.module or "")
                hidden = [name for name in names if name not in whole and _is_hidden(name, origin)]
                hidden += [name for name in names if _is_not_allowed(node.module or "", name)]
                hidden += [name for name in names if _is_internal(node.module or "", name)]
                if node.module not in _ALLOWED_NAMES:
                    hidden += [name for name in names if name in _REEXPORTED and name not in whole]
                hidden = [name for name in hidden if f"{node.module}.{name}" not in _EXCEPTIONS]
                yield from ((node, Rule.IMPORT, f"imports {name}") for name in hidden)

    def _annotates(self, node: ast.AST) -> bool:
        """True if the node is part of a type annotation."""
        while isinstance(parent := self._parents[node], (ast.Subscript, ast.Tuple, ast.BinOp)):
            node = parent
        return node in (getattr(parent, name, None) for name in ("annotation", "returns"))

    def _check_globals_of_kernels(self) -> Iterator[Found]:
        """Changes of a global that a kernel reads, which works like an argument that no launch log records."""
        inner = [node for kernel in self._kernels.values() for node in ast.walk(kernel)]
        read = {node.id for node in inner if isinstance(node, ast.Name)} - self._kernels.keys()
        for node in self._nodes:
            if isinstance(node, ast.Global) and (changed := read & set(node.names)):
                yield node, Rule.KERNEL_TOUCHED, f"changes {', '.join(sorted(changed))}, which a kernel reads"
            sets = isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
            if sets and root(node) in read - {"self", "ctx"} and not self._in_kernel(node):
                yield node, Rule.KERNEL_TOUCHED, f"changes {ast.unparse(node)}, which a kernel reads"

    def _check_kernel_definitions(self) -> Iterator[Found]:
        """Kernels that are defined twice or conditionally, or that have unknown decorators."""
        top = [node for node in self._tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        stored = [node for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        bound = [node.name for node in top] + [node.id for node in stored if not self._is_local(node)]
        for name, kernel in self._kernels.items():
            if kernel not in top or bound.count(name) > 1:
                yield kernel, Rule.KERNEL_TOUCHED, f"defines the kernel {name} under a condition or twice"
            for decorator in kernel.decorator_list:
                function = decorator.func if isinstance(decorator, ast.Call) else decorator
                if self._path(function) not in _DECORATING_KERNELS:
                    yield decorator, Rule.KERNEL_TOUCHED, f"decorates a kernel with {ast.unparse(decorator)}"
        for node in top:
            if self._path(ast.Name(node.name)).startswith("triton"):
                yield node, Rule.KERNEL_TOUCHED, f"defines {node.name}, which is Triton's"

    def _check_attribute(self, node: ast.Attribute) -> Iterator[tuple[Rule, str]]:
        owner, whole = root(node), node
        while isinstance(parent := self._parents[whole], ast.Attribute):
            whole = parent
        if self._path(whole) in _EXCEPTIONS or (_TYPED_TENSOR.fullmatch(self._path(node)) and self._annotates(node)):
            return
        path = self._path(node)
        if _is_hidden(node.attr, self._shared.get(owner, "")) and not self._is_own(node) and path not in _IMPORTS:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if _is_not_allowed(self._path(node.value), node.attr) or _is_internal(self._path(node.value), node.attr):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        from_module = self._path(node.value) not in ("", *_ALLOWED_NAMES)
        if (node.attr in _REEXPORTED and path not in _IMPORTS and from_module) or path == "torch.nn.functional.math":
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        yield from self._check_decorator(node, path)
        if _HOOK.fullmatch(node.attr):
            yield Rule.SPECIAL_METHOD, f"a hook: {ast.unparse(node)}"
        if path.startswith(_ABSTRACT) and node.attr == "register":
            yield Rule.SETS_SHARED, ast.unparse(node)
        if node.attr.startswith("register_module_"):
            yield Rule.SETS_SHARED, ast.unparse(node)
        if node.attr in ("format", "format_map") and not self._formats(node):
            yield Rule.BY_NAME, f"text that may read attributes: {ast.unparse(node)}"
        if node.attr in _FORBIDDEN_METHODS and owner not in self._shared:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if self._path(node.value) == "torch.cuda" and node.attr not in _EMULATED_CUDA:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        is_alias = path in _IMPORTS and self._source.renames_module(self._parents[node])
        if whole is node and is_module(path) and not is_alias:
            yield Rule.HIDDEN_NAME, f"passes the module {path} on"
        if whole is not node and is_module(path) and path not in _IMPORTS | _TORCH_PARTS:
            yield Rule.HIDDEN_NAME, self._path(whole)
        if whole is node and self._is_kernel_function(path, node):
            yield Rule.HIDDEN_NAME, f"uses {path} outside of kernels"
        if isinstance(node.ctx, (ast.Store, ast.Del)) and not self._may_set(node):
            yield Rule.SETS_SHARED, f"sets {ast.unparse(node)}"
        if isinstance(node.value, ast.Name) and self._is_kernel(node.value, set()):
            yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(node)}"
        if isinstance(node.ctx, ast.Load) and self._looks_into_kernel(node):
            yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(self._parents[node])}"

    def _check_decorator(self, node: ast.expr, path: str) -> Iterator[tuple[Rule, str]]:
        if self._decorates(node):
            return
        if path in _DECORATORS:
            yield Rule.SETS_SHARED, f"{path} of an object that the file does not define"
        if path == "triton.jit":
            yield Rule.KERNEL_TOUCHED, f"makes a kernel without a definition: {ast.unparse(node)}"

    def _looks_into_kernel(self, node: ast.Name | ast.Attribute) -> bool:
        looks = self._is_kernel(node, self._kernel_aliases) and _looks_into(node, self._parents[node])
        return looks and not self._in_kernel(node)

    def _decorates(self, node: ast.AST) -> bool:
        """True if `node`, or a call of it, decorates a definition."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call) and parent.func is node:
            node, parent = parent, self._parents[parent]
        return node in getattr(parent, "decorator_list", ())

    def _formats(self, node: ast.Attribute) -> bool:
        """True for a call of `format` on a literal whose fields read no attributes and no items."""
        parent, text = self._parents[node], node.value
        if not (isinstance(parent, ast.Call) and isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return False
        return node.attr == "format" and not _reads(text.value)

    def _is_own(self, node: ast.Attribute) -> bool:
        """True for `self._name`, `super().__init__`, `type(x).__name__` and private names of the file's classes."""
        if _is_dunder(node.attr):
            base = node.value
            is_super = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
            is_named = node.attr == "__class__" and getattr(self._parents[node], "attr", "") == "__name__"
            if (node.attr == "__name__" or is_named) and root(base) not in self._shared:
                return True
            return is_super and node.attr in ("__init__", "__new__")
        if node.attr in _TENSOR_INTERNALS or _MODULE_INTERNALS.fullmatch(node.attr) or root(node) in self._assigned:
            return False
        return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "ctx", *self._classes)

    def _may_set(self, node: ast.Attribute) -> bool:
        """True for an attribute of `self` or of an object of the file, except `data`, `forward` and kernels' own."""
        owner = root(node)
        if node.attr in ("forward", "__name__") or (owner != "self" and node.attr in _KERNEL_ATTRIBUTES):
            return False
        if node.attr == "data" and isinstance(node.value, ast.Name):
            return False
        if node.attr == _TILING:
            return owner not in self._shared and not self._reads_tiling
        return owner in ("self", "ctx") or (owner in self._assigned and owner not in self._shared)

    @cached_property
    def _reads_tiling(self) -> bool:
        """True if the file may read the attribute `block_shape`, directly or by name."""
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr == _TILING:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
                text = node.args[1] if len(node.args) > 1 else None
                if not isinstance(text, ast.Constant) or text.value == _TILING:
                    return True
        return False

    def _check_name(self, node: ast.Name) -> Iterator[tuple[Rule, str]]:
        parent = self._parents[node]
        if isinstance(node.ctx, ast.Load):
            if node.id in _FORBIDDEN_BUILTINS or (node.id.startswith("__") and not self._is_main_test(parent)):
                yield Rule.HIDDEN_NAME, node.id
            called = isinstance(parent, ast.Call) and parent.func is node
            if node.id in _BY_NAME and not called:
                yield Rule.BY_NAME, node.id
            path = self._path(node)
            yield from self._check_decorator(node, path)
            if self._is_kernel_function(path, node):
                yield Rule.HIDDEN_NAME, f"uses {path} outside of kernels"
            module, _, name = path.rpartition(".")
            if self._starred and name == node.id and name in _FORBIDDEN_NAMES[_origin(module)]:
                yield Rule.HIDDEN_NAME, f"{module}.{name}"
            if node.id in self._modules and not isinstance(parent, ast.Attribute) and not self._is_local(node):
                yield Rule.HIDDEN_NAME, f"passes the module {node.id} on"
            if node.id in self._kernels and isinstance(parent, ast.Call) and not called and not root(parent.func):
                yield Rule.KERNEL_TOUCHED, f"passes the kernel {node.id} on"
            if self._looks_into_kernel(node):
                yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(parent)}"
        elif _is_dunder(node.id) and node.id not in _ALLOWED_SPECIAL_NAMES:
            yield Rule.SPECIAL_METHOD, f"sets {node.id}"

    def _check_call(self, node: ast.Call) -> Iterator[tuple[Rule, str]]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("getattr", "hasattr", "isinstance", "type") and self._in_kernel(node):
            yield Rule.KERNEL_TOUCHED, f"inspects a value in a kernel: {ast.unparse(node)}"
        if isinstance(node.func, ast.Subscript) and root(node.func) in self._kernels and self._is_used(node):
            yield Rule.KERNEL_TOUCHED, f"uses what a launch returns: {ast.unparse(node.func)}"
        if isinstance(node.func, ast.Attribute) and node.func.attr == "seed" and not node.args:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in ("format", "repr", "str", "type") and node.args and self._is_torch_function(node.args[0]):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in _BY_NAME:
            text = _prefix(node.args[1]) if len(node.args) > 1 else ""
            owner = root(node.args[0]) if node.args else ""
            if (
                not text
                or self._is_hidden_lookup(node.args[1], text)
                or owner in self._shared
                or owner in self._kernels
            ):
                yield Rule.BY_NAME, ast.unparse(node)
        if any(keyword.arg == _FORBIDDEN_KEYWORDS.get(self._path(node.func), "") for keyword in node.keywords):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if last_name(node.func) == "autocast" and not _is_disabled(node):
            yield Rule.HIDDEN_NAME, f"has PyTorch compute in other dtypes: {ast.unparse(node)}"
        if name == "type" and len(node.args) + len(node.keywords) != 1 and not _is_plain_class(node):
            yield Rule.SPECIAL_METHOD, f"makes a class without a statement: {ast.unparse(node)}"
        if name == "type" and not isinstance(self._parents[node], (ast.Compare, ast.Call, ast.Attribute)):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in ("isinstance", "str", "repr") and node.args and root(node.args[0]) in self._kernels:
            yield Rule.KERNEL_TOUCHED, ast.unparse(node)

    def _is_hidden_lookup(self, node: ast.AST, prefix: str) -> bool:
        """True if the name that is looked up, or any with its literal prefix if it is computed, is forbidden."""
        if isinstance(node, ast.Constant):
            return prefix in _FORBIDDEN_METHODS | _KERNEL_ONLY_ATTRIBUTES or _is_hidden(prefix, "")
        hidden = _FORBIDDEN_METHODS | _GATEWAYS | _FRAMES | _KERNEL_ATTRIBUTES
        return prefix.startswith("_") or any(name.startswith(prefix) for name in hidden)

    def _is_main_test(self, parent: ast.AST) -> bool:
        """True for the test of `if __name__ == "__main__":` if nothing outside reads a name that its body binds."""
        against = parent.comparators[0] if isinstance(parent, ast.Compare) else None
        is_test = isinstance(against, ast.Constant) and against.value == "__main__"
        branch = self._parents[parent]
        return is_test and isinstance(branch, ast.If) and not _bound_in(branch) & self._read_outside(branch)

    def in_main(self, node: ast.AST) -> bool:
        """True if the node only runs where the file is a program, as it never is in a check."""
        while (branch := self._parents.get(node)) is not None:
            if isinstance(branch, ast.If) and node in branch.body and ast.unparse(branch.test) in MAIN_TESTS:
                return self._is_main_test(branch.test)
            node = branch
        return False

    def _read_outside(self, branch: ast.AST) -> set[str]:
        inside = set(ast.walk(branch))
        names = (node for node in self._nodes if isinstance(node, ast.Name) and node not in inside)
        return {node.id for node in names if isinstance(node.ctx, ast.Load) and not self._is_local(node)}

    def _is_torch_function(self, node: ast.AST) -> bool:
        """True for a function or method of torch, whose text shows its address."""
        path = self._path(node)
        return path.startswith(("torch.Tensor.", "torch.nn.functional.", "torch.cuda."))

    def _is_local(self, node: ast.Name) -> bool:
        """True if the name is a local variable, which may shadow a module."""
        inner: ast.AST = node
        while inner in self._parents:
            scope = self._parents[inner]
            if isinstance(scope, ast.FunctionDef) and inner in scope.body and node.id in _variables(scope):
                return True
            if isinstance(scope, ast.Lambda) and inner is scope.body and node.id in _arguments(scope):
                return True
            # The first iterable of a comprehension is evaluated outside of it.
            if isinstance(scope, ast.comprehension) and inner is scope.iter and scope is _first(self._parents[scope]):
                scope = self._parents[scope]
            elif isinstance(scope, _COMPREHENSIONS) and node.id in _bound_in(
                *(each.target for each in scope.generators)
            ):
                return True
            inner = scope
        return False

    def _is_kernel_function(self, path: str, node: ast.expr) -> bool:
        """True for a function of triton.language outside of kernels, unless it is called or passed to a launch.

        The interpreter replaces these functions, so a candidate could tell it from the compiler.
        """
        name = path.removeprefix("triton.language.")
        if name == path or is_module(path) or _MODE_INDEPENDENT.fullmatch(name) or self._in_kernel(node):
            return False
        parent = self._parents[node]
        parent = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        return not (isinstance(parent, ast.Call) and (parent.func is node or isinstance(parent.func, ast.Subscript)))

    def _depends_on_set_order(self, node: ast.AST) -> bool:
        """True if the code depends on the order of a set of strings, which varies by process."""
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Set, ast.SetComp, ast.Call)):
            return False
        if not (_is_set(node) or (self._sets and ast.unparse(node) in self._sets)):
            return False
        parent = self._parents[node]
        if isinstance(parent, ast.Attribute):
            return parent.attr == "pop"
        if isinstance(parent, (ast.For, ast.comprehension)):
            kept = isinstance(self._parents[parent], ast.SetComp)
            return parent.iter is node and not kept
        if isinstance(parent, ast.Call):
            by_key = any(keyword.arg == "key" for keyword in parent.keywords)  # ties are broken by order
            among = by_key and last_name(parent.func) in ("max", "min", "sorted")
            return node in parent.args and (among or last_name(parent.func) in _ORDER_DEPENDENT)
        return isinstance(parent, ast.Starred) or (isinstance(parent, ast.Assign) and _unpacks(parent))

    @cached_property
    def _sets(self) -> set[str]:
        """Targets, as text, that a set of strings is assigned to."""
        assignments = [node for node in self._nodes if isinstance(node, ast.Assign) and _is_set(node.value)]
        return {ast.unparse(target) for node in assignments for target in node.targets}

    def _is_asserted(self, node: ast.AST) -> bool:
        statement = next(each for each in self._source.ancestors(node) if isinstance(each, ast.stmt))
        return isinstance(statement, ast.Assert)

    def _is_used(self, node: ast.Call) -> bool:
        """True if the code uses the value of the call."""
        parent = self._parents[node]
        if isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets):
            named = {target.id for target in parent.targets if isinstance(target, ast.Name)}
            loaded = {item.id for item in self._nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
            return bool(named & loaded)
        return not isinstance(parent, ast.Expr)


def _arguments(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    taken = function.args
    return {argument.arg for argument in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}


def _first(comprehension: ast.AST) -> ast.comprehension:
    assert isinstance(comprehension, _COMPREHENSIONS)
    return comprehension.generators[0]


def _variables(function: ast.FunctionDef) -> set[str]:
    """Local variables of a function: its parameters, and names that its own statements assign."""
    found, imported_or_global = _arguments(function), set[str]()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            imported_or_global |= set(node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imported_or_global |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
    return found - imported_or_global


def _targets(target: ast.AST) -> set[str]:
    """The names and attributes, as text, that an assignment changes, wholly or in part."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {text for item in target.elts for text in _targets(item)}
    if isinstance(target, (ast.Subscript, ast.Starred)):
        return _targets(target.value)
    return {ast.unparse(target)}


def _is_disabled(node: ast.Call) -> bool:
    given = [keyword.value for keyword in node.keywords if keyword.arg == "enabled"]
    return any(isinstance(value, ast.Constant) and value.value is False for value in given)


def _bound_in(*parts: ast.AST) -> set[str]:
    inner = [node for part in parts for node in ast.walk(part)]
    found = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found | {node.name for node in inner if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _is_set(node: ast.AST) -> bool:
    """True if the expression makes a set with a string literal."""
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    if not (made or isinstance(node, (ast.Set, ast.SetComp))):
        return False
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))


def _unpacks(node: ast.Assign) -> bool:
    return any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets)


def _looks_into(node: ast.Name | ast.Attribute, parent: ast.AST) -> bool:
    """True if the parent inspects a kernel, or a container of kernels, by an attribute, a builtin or its text."""
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("get", "items", "values", "keys")
    inspected = isinstance(parent, ast.Call) and node in parent.args and root(parent.func) in _INSPECTING
    return inspected or isinstance(parent, ast.FormattedValue)


def _origin(module: str) -> str:
    """The key of `_FORBIDDEN_NAMES` for names in `module`."""
    first = module.split(".")[0]
    if module.startswith("triton.language"):
        return "triton.language"
    return first if first in _FORBIDDEN_NAMES else ""


def _is_not_allowed(module: str, name: str) -> bool:
    """True for a name in a module of the standard library that the lists exclude."""
    allowed = _ALLOWED_NAMES.get(module)
    return (allowed is not None and name not in allowed) or (module == "typing" and name in _FORBIDDEN_TYPING)


def _is_internal(module: str, name: str) -> bool:
    return module == "torch" and name[:1].isupper() and name not in _PUBLIC_CLASSES


def _is_hidden(attribute: str, origin: str) -> bool:
    if attribute.startswith("_") or attribute in _GATEWAYS | _FRAMES | _FORBIDDEN_NAMES[origin]:
        return True
    return origin == "torch" and attribute.startswith(_SETTINGS) and attribute not in _HARMLESS_SETTINGS


def _is_plain_class(node: ast.Call) -> bool:
    """True for `type(name, bases, members)` with literal, allowed names of members, as in a class statement."""
    members = node.args[2] if len(node.args) == 3 and not node.keywords else None
    if not isinstance(members, ast.Dict):
        return False
    names = [key.value if isinstance(key, ast.Constant) else None for key in members.keys]
    return all(isinstance(name, str) and (not _is_dunder(name) or name in _ALLOWED_SPECIAL_METHODS) for name in names)


def _reads(text: str) -> bool:
    """True if a format string reads attributes or items, or does not parse."""
    try:
        fields = list(Formatter().parse(text))
    except ValueError:
        return True
    return any((name and ("." in name or "[" in name)) or (spec and _reads(spec)) for _, name, spec, _ in fields)


def _prefix(node: ast.AST) -> str:
    """The literal start of a string expression; "" if it does not start with a literal."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
