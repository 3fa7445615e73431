"""Honest sources pass, and each attempt to evade the recorders is found."""

from __future__ import annotations

import pytest
from corpus import Case, load_cases

from kernelquarry.filters.lint import forbidden


@pytest.mark.parametrize("case", load_cases("honest"), ids=lambda case: case.name)
def test_honest_sources_pass(case: Case) -> None:
    assert forbidden(case.candidate.triton_code) == ""


@pytest.mark.parametrize(
    "code",
    [
        "from triton import jit",
        "type('Config', (), {'dim': 32, 'parts': type('Part', (torch.nn.Module,), {'forward': f})()})()",
        "from copy import copy\nfrom collections import deque",
        "def f(self, hook):\n    self.register_load_state_dict_post_hook(hook)",
        "from triton.language.extra import libdevice",
        "def f(self, x):\n    self._scale = getattr(self, f'scale_{x}')",
        "class A:\n    def __init__(self):\n        super().__init__()",
        "def f(x):\n    return type(x) is int and type(x).__name__ == 'int'",
        "layer = torch.nn.Linear(1, 1)\nlayer.extra = 3",
        "x = y.select(0, 1).library",
        "'{} and {:.2f}'.format(1, 2.0)",
        "import functools\n@functools.wraps(f)\ndef g(): pass",
        "import triton.language as tl\ntl.math.exp(1)",
        "import triton.language as tl\nT = {torch.half: tl.float16}\ndef f(n: tl.constexpr): 1\nk[1](f=tl.sigmoid)",
        "F = torch.nn.functional\nF.relu(x)",
        "import triton\n@triton.jit\ndef k(): pass\nk[1]()\n_ = k[1]()",
        "torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count",
        "import triton\nDEVICE = triton.runtime.driver.active.get_active_torch_device()",
        "import triton\ntriton.runtime.driver.active.get_current_target().backend == 'cuda'",
        "if __name__ == '__main__':\n    print('tried')",
        "f = lambda m: m + 1\nif __name__ == '__main__':\n    m = 1\n    f(m)",
        "def f(xs): return [m + 1 for m in xs if m]\nif __name__ == '__main__':\n    m = 1\n    f([m])",
        "if __name__ == '__main__':\n    import time\n    time.time(), torch.cuda.Event()",
        "def f(x: torch.LongTensor, y: 'None | torch.FloatTensor' = None) -> tuple[torch.Tensor, torch.FloatTensor]: 1",
        "torch.chunk(x, 2, dim=-1)",
        "KNOWN = {torch.float16, torch.float32}\nassert torch.float16 in KNOWN and sorted({'a', 'b'}) and len(KNOWN)",
        "for size in {16, 32}:\n    print(size)",
        "for size in sorted({'a', 'b'}, reverse=True):\n    print(size)",
        "def f(dims):\n    return tuple(set(dims))",
        "import triton\n@triton.jit\ndef k(): pass\n@triton.jit\ndef other():\n    k = 1\n    return k",
        "import triton\n@triton.jit\ndef k(): pass\nclass A:\n    def f(self):\n        k = 1\n        return k",
        "torch.cuda.set_device(0)",
        "class A:\n    def __repr__(self):\n        return self.__class__.__name__",
        "def f(x): return x\nif __name__ == '__main__':\n    x = 1\n    f(x)",
        "with torch.amp.autocast('cuda', enabled=False): pass",
        "torch.special.expm1(torch.linalg.norm(x)), torch.version.hip, torch.nn.modules.Linear(1, 1)",
        "torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))",
        "from torch.nn.utils.parametrizations import spectral_norm\nspectral_norm(torch.nn.Linear(2, 2))",
        "torch.Size([2]), torch.Generator()",
        "import dataclasses\n@dataclasses.dataclass\nclass C:\n    warps: int = dataclasses.field(default=4)",
        "from typing import Optional, NamedTuple\nfrom contextlib import nullcontext",
        "class A(torch.nn.Module):\n    __constants__ = ['size']",
        "from torch.amp import custom_fwd\nfrom torch.autograd.function import once_differentiable",
        "def set_blocks(given):\n    given['x'].block_shape = [given['ROWS'], 64]",
        "import torch.nn.functional as F\ndef f(x):\n    B, F = x.shape\n    return [g(B, F) for _ in range(F)]",
        "from torch import nn\ndef f(nn):\n    def g():\n        return nn + 1\n    return g",
        "from torch.nn import init\nfan, _ = init._calculate_fan_in_and_fan_out(x)",
        "from torch.nn.init import _calculate_fan_in_and_fan_out",
        "import triton\n@triton.jit\ndef k(): pass\nALL = {'k': k}\nALL.get('k')[1]()\nfor a in ALL.values(): a[1]()",
    ],
)
def test_harmless_module_code_passes(code: str) -> None:
    assert forbidden(f"import torch\n{code}\n") == ""


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("import ctypes", "imports ctypes"),
        ("(x for x in y).gi_frame", "gi_frame"),
        ("error.with_traceback(None).tb_frame", "tb_frame"),
        ("import typing\ntyping.operator", "typing.operator"),
        ("from typing import operator", "imports operator"),
        ("getattr(x, f'data{y}')", "getattr(x, f'data{y}')"),
        ("getattr(x, 'data_ptr')", "getattr(x, 'data_ptr')"),
        ("def f(self):\n    return self._version", "self._version"),
        ("torch.has_cuda", "torch.has_cuda"),
        ("from torch.nn.init import _no_grad_fill_", "imports _no_grad_fill_"),
        ("from torch.amp import is_autocast_available", "imports is_autocast_available"),
        ("def f(x):\n    x.block_shape = 1\ndef g(x):\n    return x.block_shape", "sets x.block_shape"),
        ("def f(x):\n    x.block_shape = getattr(x, f'block_{y}', 1)", "sets x.block_shape"),
        ("torch.nn.Linear.block_shape = 1", "sets torch.nn.Linear.block_shape"),
        ("def f(x):\n    [torch for torch in x]\n    return g(torch)", "passes the module torch on"),
        ("def f(x):\n    h = lambda torch: torch\n    return g(torch)", "passes the module torch on"),
        ("def f(x=g(torch), torch=1):\n    return x", "passes the module torch on"),
        ("def f(x):\n    global torch\n    torch = 1\ndef h():\n    return g(torch)", "passes the module torch on"),
        ("def f(x):\n    import torch\n    return g(torch)\n    torch = 1", "passes the module torch on"),
        ("def f(x):\n    class C:\n        torch = 1\n    return g(torch)", "passes the module torch on"),
        ("m = torch.nn.modules\nm.utils", "passes the module torch.nn.modules on"),
        ("F = torch.nn.functional\nF.warnings", "F.warnings"),
        ("def f(m=torch.nn.functional): pass", "passes the module torch.nn.functional on"),
        ("import triton.language as tl\nknown = [tl.exp]", "uses triton.language.exp outside of kernels"),
        ("from triton.language import exp\nrepr(exp)", "uses triton.language.exp outside of kernels"),
        ("torch.set_warn_always(True)", "torch.set_warn_always"),
        ("import warnings\nwarnings.catch_warnings(record=True)", "record=True"),
        ("x.register_hook(f)", "a hook: x.register_hook"),
        ("from triton import jit\nk = jit(f)", "makes a kernel without a definition: jit"),
        ("jit = triton.jit\n@jit\ndef k(): pass", "makes a kernel without a definition: triton.jit"),
        ("import functools\n@triton.jit\n@functools.wraps(f)\ndef k(): pass", "decorates a kernel with"),
        ("@triton.autotune([], key=[], do_bench=f)\n@triton.jit\ndef k(): pass", "do_bench=f"),
        ("from torch import *\nget_num_threads()", "torch.get_num_threads"),
        ("print(__name__)", "__name__"),
        ("import typing\ntyping.get_type_hints(f)", "get_type_hints"),
        ("from typing import get_type_hints", "imports get_type_hints"),
        ("import typing\ntyping.overload(f)", "typing.overload"),
        ("import torch\ntorch.ScriptList([0])", "torch.ScriptList"),
        ("from torch import Graph", "imports Graph"),
        ("from collections import namedtuple\nnamedtuple('P', 'a', module='m')", "module='m'"),
        ("from enum import Enum\nEnum('P', 'a', module='m')", "module='m'"),
        ("MAIN = __name__ == '__main__'", "__name__"),
        ("WRONG = False\nif __name__ == '__main__': WRONG = True\nprint(WRONG)", "__name__"),
        ("m = [1]\nprint([0 for m in m])\nif __name__ == '__main__': m = [2]", "__name__"),
        ("if __name__ != '__main__':\n    import time", "imports time"),
        ("if __name__ == '__main__':\n    1\nelse:\n    import time", "imports time"),
        ("if __name__ == '__main__':\n    import os", "imports os"),
        ("torch.FloatTensor([1])", "torch.FloatTensor"),
        ("import torch\nwith torch.amp.autocast('cuda', dtype=torch.float16): pass", "other dtypes"),
        ("import torch\ntorch.cuda.amp.common.find_spec('sys')", "torch.cuda.amp.common"),
        ("import torch\ntorch.optim.lr_scheduler.wraps", "torch.optim"),
        ("import torch\ntorch.linalg.common_notes['n'] = 1", "common_notes"),
        ("import torch\n[torch.default_generator][0].initial_seed()", "default_generator"),
        ("def f(self):\n    return self.drawn[0].initial_seed()", "initial_seed"),
        ("def f(self):\n    return len(self._forward_hooks)", "_forward_hooks"),
        ("def f(self):\n    return self._compiled_call_impl", "_compiled_call_impl"),
        ("def f(self, x):\n    ctx = x\n    return ctx._base", "ctx._base"),
        ("import triton\n@triton.jit(repr=print)\ndef k(): pass", "repr=print"),
        ("assert not (wrong := False)", "wrong := False"),
        ("NAMES = {'a', 'b'}\nfor name in NAMES: print(name)", "goes through a set"),
        ("import triton\n@triton.jit\ndef k(): pass\ndef f():\n    global k\n    k = 1", "defines the kernel k"),
        ("import triton\n@triton.jit\ndef k(): pass\nfor k in (1, 2): pass", "defines the kernel k"),
        ("NAMES = frozenset(('a', 'b'))\nfirst = next(iter(NAMES))", "goes through a set"),
        ("first, second = {'a', 'b'}", "goes through a set"),
        ("print(*{'a', 'b'})", "goes through a set"),
        ("print(', '.join({'a', 'b'}))", "goes through a set"),
        ("first = {'a', 'b'}.pop()", "goes through a set"),
        ("first = min({'a', 'b'}, key=len)", "goes through a set"),
        ("import functools\nfunctools.update_wrapper(torch.nn, f)", "update_wrapper"),
        ("from dataclasses import make_dataclass", "imports make_dataclass"),
        ("torch.get_num_threads()", "get_num_threads"),
        ("torch.glob.glob('/dev/*')", "torch.glob"),
        ("torch.functional.operator.attrgetter('fn')", "torch.functional.operator"),
        ("torch.amp.autocast_mode.np", "autocast_mode.np"),
        ("from torch import platform", "imports platform"),
        ("'{0.fn}'.format(f)", "text that may read attributes"),
        ("TEXT.format(f)", "text that may read attributes"),
        ("match f:\n    case object(fn=g): pass", "matches attributes"),
        (
            "import functools\nfunctools.wraps(f)(torch.relu)",
            "functools.wraps of an object that the file",
        ),
        ("from dataclasses import dataclass\ndataclass(torch.Tensor)", "dataclasses.dataclass of an object"),
        ("import numbers\nnumbers.Number.register(torch.Tensor)", "numbers.Number.register"),
        ("str(torch.Tensor.tolist)", "torch.Tensor.tolist"),
        ("f'{torch.cuda.is_available}'", "torch.cuda.is_available"),
        ("torch.relu.__name__", "torch.relu.__name__"),
        ("torch.Generator().seed()", "seed()"),
        ("hash('a')", "hash"),
        ("f.cache_info()", "cache_info"),
        (
            "import triton\nA = 1\n@triton.jit\ndef k(): A\ndef f():\n    global A\n    A = 2",
            "changes A, which a kernel",
        ),
        ("import triton\nA = f()\n@triton.jit\ndef k(): A\nA.value = 2", "changes A.value, which a kernel"),
        ("torch.random.initial_seed()", "torch.random"),
        ("class A:\n    __torch_function__ = classmethod(f)", "sets __torch_function__"),
        ("type('A', (torch.Tensor,), {'__torch_function__': f})", "without a statement"),
        ("type('A', (torch.Tensor,), {NAME: f})", "without a statement"),
        ("type('A', (torch.Tensor,), members)", "without a statement"),
        ("import triton\n@triton.jit\ndef k(): pass\nf'{k}'", "looks into the kernel"),
        ("import triton\n@triton.jit\ndef k(): pass\nother = (k,)[0]\nother.fn", "looks into the kernel"),
        ("import triton\n@triton.jit\ndef k(): pass\nfor one in [k]:\n    repr(one)", "looks into the kernel"),
        ("def swap(a, b):\n    c = a\n    c.fn = b", "sets c.fn"),
        ("x = " + "1 + " * 300 + "1", "nested"),
        ("import torch.utils.data", "imports torch.utils.data"),
        ("from torch import _C", "imports _C"),
        ("from torch import utils as u", "imports utils"),
        ("from . import sibling", "imports ."),
        ("torch.sys.modules", "torch.sys"),
        ("torch.nn.functional.torch.utils", "torch.nn.functional.torch"),
        ("t = torch", "passes the module torch on"),
        ("n = torch.nn\nn.modules.module.torch", "n.modules.module.torch"),
        ("torch._C", "torch._C"),
        ("(lambda: 0).__globals__", "__globals__"),
        ("().__class__.__base__.__subclasses__()", "__class__"),
        ("torch.cuda.memory_allocated()", "torch.cuda.memory_allocated"),
        ("with torch.cuda.stream(None): pass", "torch.cuda.stream"),
        ("c = torch.cuda", "passes the module torch.cuda on"),
        ("torch.accelerator.is_available()", "torch.accelerator"),
        ("isinstance(1, torch.FloatTensor)", "torch.FloatTensor"),
        ("x.data_ptr()", "data_ptr"),
        ("import triton\ntriton.runtime.driver.active.get_benchmarker()", "triton.runtime"),
        ("import triton.language as tl\ntl.core.knobs", "tl.core"),
        ("from triton.language import core", "imports core"),
        ("getattr(torch, 'li' + 'brary')", "getattr"),
        ("getattr(torch, 'library')", "getattr"),
        ("g = getattr", "getattr"),
        ("eval('1')", "eval"),
        ("__builtins__", "__builtins__"),
        ("torch.empty = None", "sets torch.empty"),
        ("T = torch.Tensor\nT.clone = None", "sets T.clone"),
        ("def f(x):\n    x.shape = 1", "sets x.shape"),
        ("T = type(1)", "type(1)"),
        ("type(x).clone = None", "sets type(x).clone"),
        ("x.untyped_storage()", "untyped_storage"),
        ("class T:\n    def __torch_dispatch__(self): pass", "defines __torch_dispatch__"),
        ("if x:\n    @triton.jit\n    def k(): pass", "under a condition or twice"),
        ("@triton.jit\ndef k(): pass\nk = 3", "under a condition or twice"),
        ("@triton.jit\ndef k(): pass\nk.fn", "looks into the kernel"),
        ("@triton.jit\ndef k(): pass\nstr(k)", "str(k)"),
        ("@triton.jit\ndef k(): pass\nc = k[1]()\nc.asm", "uses what a launch returns"),
        ("@triton.jit\ndef k(x):\n    isinstance(x, int)", "inspects a value in a kernel"),
        ("def (", "does not parse"),
    ],
)
def test_evasions_of_the_recorders_are_found(code: str, evidence: str) -> None:
    assert evidence in forbidden(f"import torch\nimport triton\n{code}\n")


def test_only_utf_8_is_allowed() -> None:
    assert forbidden("# coding: utf-8\n") == ""
    assert "a comment declares the encoding utf-7" in forbidden("# coding: utf-7\n")


def test_the_finding_names_its_line() -> None:
    assert forbidden("import torch\n\n\nimport os\n") == "line 4: imports os"


@pytest.mark.parametrize(
    "arguments",
    [
        "[]",
        "[Config(dim=32), torch.float32, nn.GELU()]",
        "[type('Config', (), {'dim': 32})(), lambda x: nn.functional.relu(x)]",
    ],
)
def test_harmless_constructor_arguments_pass(arguments: str) -> None:
    assert forbidden("class Config: pass", arguments) == ""
    assert forbidden("", arguments) == ""


@pytest.mark.parametrize(
    ("arguments", "evidence"),
    [
        ("[__import__('os')]", "the constructor's arguments: __import__"),
        ("[torch.utils]", "torch.utils"),
        ("[setattr(nn.Module, 'eval', None)]", "setattr(nn.Module, 'eval', None)"),
        ("[k.fn]", "looks into the kernel: k.fn"),
        ("[(lambda: 0).__globals__]", "__globals__"),
        ("[1]\nimport os", "does not parse"),
        ("[", "does not parse"),
    ],
)
def test_constructor_arguments_obey_the_rules_for_sources(arguments: str, evidence: str) -> None:
    code = "import triton\n@triton.jit\ndef k(): pass\n"
    assert forbidden(code) == ""
    assert evidence in forbidden(code, arguments)


def test_constructor_arguments_use_the_names_of_the_source() -> None:
    assert "imports ctypes" in forbidden("import ctypes as torch\n", "[torch.c_int]")
    assert forbidden("import torch.nn.functional as nn\n", "[nn.relu]") == ""
