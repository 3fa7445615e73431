"""What a candidate's source may use, so that what its guest saw of the run is what the run did.

The recorders of launches and operators live in the candidate's process, where Python can reach and change
anything. What is allowed is therefore a list: imports, the parts of torch and Triton that lead nowhere else, no
private names, no code made from text, no attribute set on what others share. A kernel is defined once, at the top
of the file, and only launched, so that the interpreter and the compiler have the same one.

This narrows what a candidate can hide; an executor that replays its launches needs to trust none of it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from string import Formatter

from .finding import Rule
from .parsed_source import MAIN, Source, is_module, root

_IMPORTS = frozenset(
    "__future__ abc collections collections.abc contextlib copy dataclasses enum functools itertools math numbers "
    "operator typing warnings torch torch.amp torch.nn torch.nn.functional torch.nn.init torch.nn.parameter "
    "torch.nn.utils torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.autograd torch.autograd.function "
    "torch.cuda.amp triton triton.language triton.language.extra triton.language.math triton.language.extra.libdevice "
    "triton.language.extra.cuda triton.language.extra.cuda.libdevice triton.tools.tensor_descriptor".split()
)
# Further parts of torch: of others, what they import for themselves leads anywhere.
_PARTS = frozenset("torch.cuda torch.fft torch.linalg torch.nn.modules torch.special torch.version".split())
# Of modules of the standard library, what neither evaluates text nor sets what others share.
_OFFERED = {
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
# Of typing: where text becomes code, and what remembers functions for all.
_TYPING = frozenset("ForwardRef evaluate_forward_ref get_type_hints clear_overloads get_overloads overload".split())
# Attributes that lead from a module to one that is not on the list, whatever they are looked up on.
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
# What modules import for themselves, but for what those of torch and Triton have of the same name.
_LEFT_THERE = (sys.stdlib_module_names | {"container_abcs", "np", "numpy"}) - {"chunk", "math", "select", "trace"}
# Parts of torch and Triton that run code, read memory, change what all share, or tell where they run.
_WITHHELD = {
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
# Classes that torch itself has for all; the others there are parts of it, in which one could count unseen.
_CLASSES = frozenset("Generator OutOfMemoryError Size SymBool SymFloat SymInt Tensor".split())
# Of a tensor: its values, unseen, or where they are; of a value in a kernel: what stands for it while it is compiled.
_METHODS = frozenset(
    "apply_ cache_info data_ptr handle initial_seed map_ map2_ set_ set_state storage storage_type "
    "untyped_storage".split()
)
# Of a module, whatever it calls itself: what others hang on it, or make of it.
_OF_MODULES = re.compile(r"_\w*hooks\w*|_(compiled_)?call_impl|_slow_forward|_backward_\w+|_version|_is_\w+_hook")
_OF_TENSORS = frozenset("_cdata _typed_storage _use_count _version".split())  # whatever `self` is
# Of torch: what sets, or tells, how it was built and what it does for all.
_SETTINGS = tuple(
    "autocast_decrement autocast_increment cudnn_ get_autocast has_ init_ is_anomaly is_autocast is_warn set_".split()
)
_HARMLESS_SETTINGS = frozenset({"set_device", "set_grad_enabled"})  # the first is of `torch.cuda` alone
# What guests answer of a GPU that they do not have; all else there could tell one from another.
_ANSWERED = frozenset(
    "amp current_device device device_count device_of empty_cache get_device_capability get_device_name "
    "get_device_properties is_available is_bf16_supported set_device synchronize".split()
)
_EXCEPTIONS = frozenset(
    (
        "triton.runtime.driver.active.get_active_torch_device",  # as Triton's own tutorials ask for them
        "triton.runtime.driver.active.get_current_target",
        "torch.testing.assert_close",  # of tests that are left behind the class
        "torch.nn.init._calculate_correct_fan",  # as PyTorch's own layers ask for it
        "torch.nn.init._calculate_fan_in_and_fan_out",
    )
)
# Some differ from one process to the next, so that a candidate could be wrong in few.
_BUILTINS = frozenset(
    "__import__ breakpoint compile delattr dir eval exec globals hash id locals memoryview open vars".split()
)
_DECORATING_KERNELS = frozenset(("triton.autotune", "triton.heuristics", "triton.jit"))
# Arguments that a check has no use for: a clock that only a tuner asks, warnings with the names of their files, what is
# called where a kernel is compiled, and that a class is from elsewhere, where nobody would look into it.
_NOT_GIVEN = {
    "triton.autotune": "do_bench",
    "triton.jit": "repr",
    "warnings.catch_warnings": "record",
    "collections.namedtuple": "module",
    **{f"enum.{kind}": "module" for kind in ("Enum", "Flag", "IntEnum", "IntFlag", "StrEnum")},
}
# Each sets attributes of what it decorates, so that is a definition in the file.
_DECORATORS = frozenset(("dataclasses.dataclass", "functools.wraps"))
_HOOK = re.compile(r"_?register_(?!load_state_dict|state_dict)\w*hook")
_ABSTRACT = ("abc.", "collections.abc.", "numbers.", "typing.")
_DEFINED = frozenset(
    "__call__ __contains__ __getitem__ __init__ __iter__ __len__ __new__ __post_init__ __repr__ __setitem__ "
    "__str__".split()
)
# Of a kernel under whatever name: set, they have another one interpreted than compiled.
_OF_KERNELS = frozenset("arg_names configs constexprs fn kernel params pre_run_hooks raw_src run signature src".split())
_TILING = "block_shape"  # of a tensor descriptor, which hooks of a tuner's configurations set
# Names that kernels have and little else, so that naming one is enough wherever it stands in a look-up.
_OF_KERNELS_ALONE = frozenset(
    "arg_names cache_key create_binder device_caches is_gluon noinline pre_run_hooks preload raw_src rewrite "
    "starting_line_number used_global_vals".split()
)
_ASSIGNED = frozenset("__all__ __constants__ __slots__ __version__".split())
_ASKING = frozenset("callable format getattr hasattr hash id isinstance issubclass print repr setattr str type".split())
_BY_NAME = ("getattr", "hasattr", "setattr")
_IN_ORDER = frozenset("dict enumerate filter fromkeys iter join list map next reversed tuple zip".split())
# What is used, and only used, where a file is a program: to time its kernels.
_MEASURING = re.compile(r"(imports )?(time|timeit|argparse|torch\.cuda|triton\.testing)(\.\w+)*")
_OF_A_TYPE = re.compile(r"torch\.[A-Z]\w+Tensor")
# Each has variables of its own.
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_COMPREHENSIONS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# What Triton's language has for all: types, and what marks constants.
_FOR_ALL = re.compile(r"u?int\d+|float\d+\w*|bfloat16|const|constexpr|dtype|tensor|tensor_descriptor|void")


Found = tuple[ast.AST, Rule, str]


def reaches(source: Source) -> Iterator[Found]:
    """What a candidate may not use: where, which rule, and the code."""
    yield from _Reader(source).all()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tree, self._nodes, self._parents = source.tree, source.nodes, source.parents
        self._path = source.path
        self._imports, self._kernels = source.imports, source.kernels
        self._modules, self._shared = self._imported()
        self._classes = {node.name for node in self._tree.body if isinstance(node, ast.ClassDef)} - self._shared.keys()
        self._starred = any(alias.name == "*" for node in self._imports for alias in node.names)
        self._other_names = self._named_otherwise()
        self._made = {node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}

    def all(self) -> Iterator[Found]:
        found = self._all()
        return (each for each in found if not (_MEASURING.fullmatch(each[2]) and self._in_main(each[0])))

    def _all(self) -> Iterator[Found]:
        yield from self._imports_off_the_list()
        yield from self._kernels_twice()
        yield from self._globals_of_kernels()
        for node in self._nodes:
            if self._takes_an_order(node):
                yield node, Rule.HIDDEN_NAME, f"goes through a set, which has no order: {ast.unparse(node)}"
            if isinstance(node, ast.Attribute):
                yield from ((node, rule, what) for rule, what in self._attribute(node))
            elif isinstance(node, ast.Name):
                yield from ((node, rule, what) for rule, what in self._name(node))
            elif isinstance(node, ast.FunctionDef) and _is_dunder(node.name) and node.name not in _DEFINED:
                yield node, Rule.SPECIAL_METHOD, f"defines {node.name}"
            elif isinstance(node, ast.Call):
                yield from ((node, rule, what) for rule, what in self._call(node))
            elif isinstance(node, ast.FormattedValue) and self._is_function(node.value):
                yield node, Rule.HIDDEN_NAME, ast.unparse(node.value)
            elif isinstance(node, ast.NamedExpr) and self._is_asserted(node):
                yield node, Rule.HIDDEN_NAME, f"sets a name in an assertion, which need not run: {ast.unparse(node)}"
            elif isinstance(node, ast.MatchClass) and node.kwd_attrs:
                yield node, Rule.BY_NAME, f"matches attributes: {ast.unparse(node)}"

    def _imported(self) -> tuple[set[str], dict[str, str]]:
        """Names that stand for modules, and all names that stand for what others share, with where they are from."""
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

    def _named_otherwise(self) -> set[str]:
        """Names and attributes that are given something that names a kernel, as they are written."""
        found = set[str]()
        bound = [
            node for node in self._nodes if isinstance(node, (ast.Assign, ast.For, ast.NamedExpr, ast.comprehension))
        ]
        while True:
            known = len(found)
            for node in bound:
                value = node.value if isinstance(node, (ast.Assign, ast.NamedExpr)) else node.iter
                if not self._holds(value, found):
                    continue
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    found |= _written(target)
            if len(found) == known:
                return found

    def _holds(self, node: ast.AST, names: set[str]) -> bool:
        """Whether a kernel, one of the names, or something that has it as an item, could be the value of `node`: no
        launch, and no function that is called with it."""
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
        return any(self._holds(item, names) for item in inner)

    def _is_kernel(self, node: ast.Name | ast.Attribute, names: set[str]) -> bool:
        """Whether it is one, or has one of the other names; a variable of a function may be called as a kernel is."""
        if names and ast.unparse(node) in names:
            return True
        return isinstance(node, ast.Name) and node.id in self._kernels and not self._is_local(node)

    def _imports_off_the_list(self) -> Iterator[Found]:
        for node in self._imports:
            names = [alias.name for alias in node.names]
            wanted = names if isinstance(node, ast.Import) else [node.module or "."]
            yield from ((node, Rule.IMPORT, f"imports {name}") for name in wanted if name not in _IMPORTS)
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                whole = {name for name in names if f"{node.module}.{name}" in _IMPORTS}
                origin = _origin(node.module or "")
                hidden = [name for name in names if name not in whole and _is_hidden(name, origin)]
                hidden += [name for name in names if _is_withheld(node.module or "", name)]
                hidden += [name for name in names if _is_internal(node.module or "", name)]
                if node.module not in _OFFERED:
                    hidden += [name for name in names if name in _LEFT_THERE and name not in whole]
                hidden = [name for name in hidden if f"{node.module}.{name}" not in _EXCEPTIONS]
                yield from ((node, Rule.IMPORT, f"imports {name}") for name in hidden)

    def _annotates(self, node: ast.AST) -> bool:
        """Whether it is a part of what says of which type something is."""
        while isinstance(parent := self._parents[node], (ast.Subscript, ast.Tuple, ast.BinOp)):
            node = parent
        return node in (getattr(parent, name, None) for name in ("annotation", "returns"))

    def _read_in_kernels(self) -> set[str]:
        """Names that kernels read: a global is as good as an argument, and nobody sees what it was."""
        inner = [node for kernel in self._kernels.values() for node in ast.walk(kernel)]
        return {node.id for node in inner if isinstance(node, ast.Name)} - self._kernels.keys()

    def _globals_of_kernels(self) -> Iterator[Found]:
        read = self._read_in_kernels() if self._kernels else set()
        for node in self._nodes:
            if isinstance(node, ast.Global) and (changed := read & set(node.names)):
                yield node, Rule.KERNEL_TOUCHED, f"changes {', '.join(sorted(changed))}, which a kernel reads"
            sets = isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
            if sets and root(node) in read - {"self", "ctx"} and not self._in_kernel(node):
                yield node, Rule.KERNEL_TOUCHED, f"changes {ast.unparse(node)}, which a kernel reads"

    def _kernels_twice(self) -> Iterator[Found]:
        """A kernel that is not the only one of its name, or not there in every run."""
        top = [node for node in self._tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        stored = [node for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        bound = [node.name for node in top] + [node.id for node in stored if not self._is_local(node)]
        for name, kernel in self._kernels.items():
            if kernel not in top or bound.count(name) > 1:
                yield kernel, Rule.KERNEL_TOUCHED, f"defines the kernel {name} under a condition or twice"
            for decorator in kernel.decorator_list:
                if (
                    self._path(decorator.func if isinstance(decorator, ast.Call) else decorator)
                    not in _DECORATING_KERNELS
                ):
                    yield decorator, Rule.KERNEL_TOUCHED, f"decorates a kernel with {ast.unparse(decorator)}"
        for node in top:
            if self._path(ast.Name(node.name)).startswith("triton"):
                yield node, Rule.KERNEL_TOUCHED, f"defines {node.name}, which is Triton's"

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[Rule, str]]:
        owner, whole = root(node), node
        while isinstance(parent := self._parents[whole], ast.Attribute):
            whole = parent
        if self._path(whole) in _EXCEPTIONS or (_OF_A_TYPE.fullmatch(self._path(node)) and self._annotates(node)):
            return
        path = self._path(node)
        if _is_hidden(node.attr, self._shared.get(owner, "")) and not self._is_own(node) and path not in _IMPORTS:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if _is_withheld(self._path(node.value), node.attr) or _is_internal(self._path(node.value), node.attr):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        left_there = node.attr in _LEFT_THERE and path not in _IMPORTS and self._path(node.value) not in ("", *_OFFERED)
        if left_there or path == "torch.nn.functional.math":
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if path == "triton.jit" and not self._decorates(node):
            yield Rule.KERNEL_TOUCHED, f"makes a kernel of what is no definition: {ast.unparse(node)}"
        if _HOOK.fullmatch(node.attr):
            yield Rule.SPECIAL_METHOD, f"a hook: {ast.unparse(node)}"
        if path.startswith(_ABSTRACT) and node.attr == "register":
            yield Rule.SETS_SHARED, ast.unparse(node)
        if node.attr.startswith("register_module_"):
            yield Rule.SETS_SHARED, ast.unparse(node)
        if node.attr in ("format", "format_map") and not self._formats(node):
            yield Rule.BY_NAME, f"text that may read attributes: {ast.unparse(node)}"
        if path in _DECORATORS and not self._decorates(node):
            yield Rule.SETS_SHARED, f"{path} of what is defined elsewhere"
        if node.attr in _METHODS and owner not in self._shared:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if self._path(node.value) == "torch.cuda" and node.attr not in _ANSWERED:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        anew = path in _IMPORTS and self._source.names_anew(self._parents[node])
        if whole is node and is_module(path) and not anew:
            yield Rule.HIDDEN_NAME, f"passes the module {path} on"
        if whole is not node and is_module(path) and path not in _IMPORTS | _PARTS:
            yield Rule.HIDDEN_NAME, self._path(whole)
        if whole is node and self._is_of_kernels(path, node):
            yield Rule.HIDDEN_NAME, f"uses {path} outside of kernels"
        if isinstance(node.ctx, (ast.Store, ast.Del)) and not self._may_set(node):
            yield Rule.SETS_SHARED, f"sets {ast.unparse(node)}"
        if isinstance(node.value, ast.Name) and self._is_kernel(node.value, set()):
            yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(node)}"
        if isinstance(node.ctx, ast.Load) and self._looks_into_kernel(node):
            yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(self._parents[node])}"

    def _looks_into_kernel(self, node: ast.Name | ast.Attribute) -> bool:
        looks = self._is_kernel(node, self._other_names) and _looks_into(node, self._parents[node])
        return looks and not self._in_kernel(node)

    def _decorates(self, node: ast.AST) -> bool:
        """Whether what `node` names, or its call, decorates a definition."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call) and parent.func is node:
            node, parent = parent, self._parents[parent]
        return node in getattr(parent, "decorator_list", ())

    def _formats(self, node: ast.Attribute) -> bool:
        """Whether it is called, of text that is written down, and reads no attributes and no items."""
        parent, text = self._parents[node], node.value
        if not (isinstance(parent, ast.Call) and isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return False
        return node.attr == "format" and not _reads(text.value)

    def _is_own(self, node: ast.Attribute) -> bool:
        """`self._name`, `super().__init__`, `type(x).__name__`, and private names of the file's classes."""
        if _is_dunder(node.attr):
            base = node.value
            above = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
            mine = root(base) not in self._shared
            named = node.attr == "__class__" and getattr(self._parents[node], "attr", "") == "__name__"
            return ((node.attr == "__name__" or named) and mine) or (above and node.attr in ("__init__", "__new__"))
        if node.attr in _OF_TENSORS:
            return False
        if _OF_MODULES.fullmatch(node.attr) or root(node) in self._made:
            return False
        return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "ctx", *self._classes)

    def _may_set(self, node: ast.Attribute) -> bool:
        """On `self`, or on an object that was made here: not what a tensor's values are, or what is called forward."""
        owner = root(node)
        if node.attr in ("forward", "__name__") or (owner != "self" and node.attr in _OF_KERNELS):
            return False
        if node.attr == "data" and isinstance(node.value, ast.Name):
            return False
        if node.attr == _TILING:
            return owner not in self._shared and not self._reads_tiling
        return owner in ("self", "ctx") or (owner in self._made and owner not in self._shared)

    @cached_property
    def _reads_tiling(self) -> bool:
        """Whether the file could read what it set there."""
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr == _TILING:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
                text = node.args[1] if len(node.args) > 1 else None
                if not isinstance(text, ast.Constant) or text.value == _TILING:
                    return True
        return False

    def _name(self, node: ast.Name) -> Iterator[tuple[Rule, str]]:
        parent = self._parents[node]
        if isinstance(node.ctx, ast.Load):
            if node.id in _BUILTINS or (node.id.startswith("__") and not self._asks_for_main(parent)):
                yield Rule.HIDDEN_NAME, node.id
            called = isinstance(parent, ast.Call) and parent.func is node
            if node.id in _BY_NAME and not called:
                yield Rule.BY_NAME, node.id
            if self._path(node) in _DECORATORS and not self._decorates(node):
                yield Rule.SETS_SHARED, f"{self._path(node)} of what is defined elsewhere"
            if self._path(node) == "triton.jit" and not self._decorates(node):
                yield Rule.KERNEL_TOUCHED, f"makes a kernel of what is no definition: {node.id}"
            if self._is_of_kernels(self._path(node), node):
                yield Rule.HIDDEN_NAME, f"uses {self._path(node)} outside of kernels"
            module, _, name = self._path(node).rpartition(".")
            if self._starred and name == node.id and name in _WITHHELD[_origin(module)]:
                yield Rule.HIDDEN_NAME, f"{module}.{name}"
            if node.id in self._modules and not isinstance(parent, ast.Attribute) and not self._is_local(node):
                yield Rule.HIDDEN_NAME, f"passes the module {node.id} on"
            if node.id in self._kernels and isinstance(parent, ast.Call) and not called and not root(parent.func):
                yield Rule.KERNEL_TOUCHED, f"passes the kernel {node.id} on"
            if self._looks_into_kernel(node):
                yield Rule.KERNEL_TOUCHED, f"looks into the kernel: {ast.unparse(parent)}"
        elif _is_dunder(node.id) and node.id not in _ASSIGNED:
            yield Rule.SPECIAL_METHOD, f"sets {node.id}"

    def _call(self, node: ast.Call) -> Iterator[tuple[Rule, str]]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("getattr", "hasattr", "isinstance", "type") and self._in_kernel(node):
            yield Rule.KERNEL_TOUCHED, f"asks in a kernel what a value is: {ast.unparse(node)}"
        if isinstance(node.func, ast.Subscript) and root(node.func) in self._kernels and self._is_used(node):
            yield Rule.KERNEL_TOUCHED, f"uses what a launch returns: {ast.unparse(node.func)}"
        if isinstance(node.func, ast.Attribute) and node.func.attr == "seed" and not node.args:
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in ("format", "repr", "str", "type") and node.args and self._is_function(node.args[0]):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in _BY_NAME:
            text = _start(node.args[1]) if len(node.args) > 1 else ""
            owner = root(node.args[0]) if node.args else ""
            if not text or self._leads_on(node.args[1], text) or owner in self._shared or owner in self._kernels:
                yield Rule.BY_NAME, ast.unparse(node)
        if any(keyword.arg == _NOT_GIVEN.get(self._path(node.func), "") for keyword in node.keywords):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if _last_name(node.func) == "autocast" and not _is_off(node):
            yield Rule.HIDDEN_NAME, f"has PyTorch compute in other dtypes: {ast.unparse(node)}"
        if name == "type" and len(node.args) + len(node.keywords) != 1 and not _is_plain_class(node):
            yield Rule.SPECIAL_METHOD, f"makes a class without a statement: {ast.unparse(node)}"
        if name == "type" and not isinstance(self._parents[node], (ast.Compare, ast.Call, ast.Attribute)):
            yield Rule.HIDDEN_NAME, ast.unparse(node)
        if name in ("isinstance", "str", "repr") and node.args and root(node.args[0]) in self._kernels:
            yield Rule.KERNEL_TOUCHED, ast.unparse(node)

    def _leads_on(self, node: ast.AST, start: str) -> bool:
        """Whether the name that is looked up, or one with this `start` if it is put together, is hidden."""
        if isinstance(node, ast.Constant):
            return start in _METHODS | _OF_KERNELS_ALONE or _is_hidden(start, "")
        hidden = _METHODS | _GATEWAYS | _FRAMES | _OF_KERNELS
        return start.startswith("_") or any(name.startswith(start) for name in hidden)

    def _asks_for_main(self, parent: ast.AST) -> bool:
        """`if __name__ == "__main__":`"""
        against = parent.comparators[0] if isinstance(parent, ast.Compare) else None
        asked = isinstance(against, ast.Constant) and against.value == "__main__"
        branch = self._parents[parent]
        return asked and isinstance(branch, ast.If) and not _bound_in(branch) & self._read_outside(branch)

    def _in_main(self, node: ast.AST) -> bool:
        """Whether it is run where the file is a program alone, which it never is here."""
        while (branch := self._parents.get(node)) is not None:
            if isinstance(branch, ast.If) and node in branch.body and ast.unparse(branch.test) in MAIN:
                return self._asks_for_main(branch.test)
            node = branch
        return False

    def _read_outside(self, branch: ast.AST) -> set[str]:
        inside = set(ast.walk(branch))
        names = (node for node in self._nodes if isinstance(node, ast.Name) and node not in inside)
        return {node.id for node in names if isinstance(node.ctx, ast.Load) and not self._is_local(node)}

    def _is_function(self, node: ast.AST) -> bool:
        """Whether it is one, or a method, of a module that is imported: what is printed of it is where it is."""
        path = self._path(node)
        return path.startswith(("torch.Tensor.", "torch.nn.functional.", "torch.cuda."))

    def _is_local(self, node: ast.Name) -> bool:
        """Whether it is a variable of a function that it is in, though the file has a module of its name."""
        inner: ast.AST = node
        while inner in self._parents:
            scope = self._parents[inner]
            if isinstance(scope, ast.FunctionDef) and inner in scope.body and node.id in _variables(scope):
                return True
            if isinstance(scope, ast.Lambda) and inner is scope.body and node.id in _arguments(scope):
                return True
            # What a comprehension goes through first is read outside of it.
            if isinstance(scope, ast.comprehension) and inner is scope.iter and scope is _first(self._parents[scope]):
                scope = self._parents[scope]
            elif isinstance(scope, _COMPREHENSIONS) and node.id in _bound_in(
                *(each.target for each in scope.generators)
            ):
                return True
            inner = scope
        return False

    def _is_of_kernels(self, path: str, node: ast.expr) -> bool:
        """Whether it is a function of Triton's language that is neither called nor given to a launch: it is another
        where kernels are interpreted, and could be asked for that."""
        name = path.removeprefix("triton.language.")
        if name == path or is_module(path) or _FOR_ALL.fullmatch(name) or self._in_kernel(node):
            return False
        parent = self._parents[node]
        parent = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        return not (isinstance(parent, ast.Call) and (parent.func is node or isinstance(parent.func, ast.Subscript)))

    def _takes_an_order(self, node: ast.AST) -> bool:
        """Whether it goes through a set of texts, whose order is another in each process."""
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
            by_key = any(keyword.arg == "key" for keyword in parent.keywords)  # by which several may be alike
            among = by_key and _last_name(parent.func) in ("max", "min", "sorted")
            return node in parent.args and (among or _last_name(parent.func) in _IN_ORDER)
        return isinstance(parent, ast.Starred) or (isinstance(parent, ast.Assign) and _unpacks(parent))

    @cached_property
    def _sets(self) -> set[str]:
        """What is given a set somewhere in the file, as it is written there."""
        given = [node for node in self._nodes if isinstance(node, ast.Assign) and _is_set(node.value)]
        return {ast.unparse(target) for node in given for target in node.targets}

    def _is_asserted(self, node: ast.AST) -> bool:
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return isinstance(node, ast.Assert)

    def _in_kernel(self, node: ast.AST) -> bool:
        kernels = self._kernels.values()
        while node in self._parents and node not in kernels:
            node = self._parents[node]
        return node in kernels

    def _is_used(self, node: ast.Call) -> bool:
        """Whether the value is more than named."""
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
    """Names that stand for nothing else anywhere in a function: its arguments, and what its own statements assign."""
    found, elsewhere = _arguments(function), set[str]()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere |= set(node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            elsewhere |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
    return found - elsewhere


def _written(target: ast.AST) -> set[str]:
    """The names and attributes that something is given to; of a part of something, that."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {text for item in target.elts for text in _written(item)}
    if isinstance(target, (ast.Subscript, ast.Starred)):
        return _written(target.value)
    return {ast.unparse(target)}


def _is_off(node: ast.Call) -> bool:
    given = [keyword.value for keyword in node.keywords if keyword.arg == "enabled"]
    return any(isinstance(value, ast.Constant) and value.value is False for value in given)


def _bound_in(*parts: ast.AST) -> set[str]:
    inner = [node for part in parts for node in ast.walk(part)]
    found = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found | {node.name for node in inner if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _is_set(node: ast.AST) -> bool:
    """Whether it makes a set of texts that are written there."""
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    if not (made or isinstance(node, (ast.Set, ast.SetComp))):
        return False
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))


def _last_name(node: ast.AST) -> str:
    """`join` of `", ".join`, `list` of `list`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _unpacks(node: ast.Assign) -> bool:
    return any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets)


def _looks_into(node: ast.Name | ast.Attribute, parent: ast.AST) -> bool:
    """Whether more is done with a kernel, or what holds some, than to take one, launch it or pass it to a function of
    the file."""
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("get", "items", "values", "keys")
    asked = isinstance(parent, ast.Call) and node in parent.args and root(parent.func) in _ASKING
    return asked or isinstance(parent, ast.FormattedValue)


def _origin(module: str) -> str:
    """The key of `_WITHHELD` for what is looked up on `module`."""
    first = module.split(".")[0]
    if module.startswith("triton.language"):
        return "triton.language"
    return first if first in _WITHHELD else ""


def _is_withheld(module: str, name: str) -> bool:
    """Whether a module of the standard library does not offer it."""
    return (module in _OFFERED and name not in _OFFERED[module]) or (module == "typing" and name in _TYPING)


def _is_internal(module: str, name: str) -> bool:
    return module == "torch" and name[:1].isupper() and name not in _CLASSES


def _is_hidden(attribute: str, origin: str) -> bool:
    if attribute.startswith("_") or attribute in _GATEWAYS | _FRAMES | _WITHHELD[origin]:
        return True
    return origin == "torch" and attribute.startswith(_SETTINGS) and attribute not in _HARMLESS_SETTINGS


def _is_plain_class(node: ast.Call) -> bool:
    """Whether the class that is made has what a statement could give it: members whose names are written down."""
    members = node.args[2] if len(node.args) == 3 and not node.keywords else None
    if not isinstance(members, ast.Dict):
        return False
    names = [key.value if isinstance(key, ast.Constant) else None for key in members.keys]
    return all(isinstance(name, str) and (not _is_dunder(name) or name in _DEFINED) for name in names)


def _reads(text: str) -> bool:
    """Whether a format's fields lead to attributes or items, or cannot be told."""
    try:
        fields = list(Formatter().parse(text))
    except ValueError:
        return True
    return any((name and ("." in name or "[" in name)) or (spec and _reads(spec)) for _, name, spec, _ in fields)


def _start(node: ast.AST) -> str:
    """What a name that is put together starts with, as far as it is written down."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
