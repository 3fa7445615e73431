"""Writes docs/kernels.md: rows in KernelBook's form beside rows of ours, made from the same modules.

    kernelquarry dataset examples/modules
    python examples/side_by_side.py out/modules/dataset

KernelBook's rows hold what Inductor printed, comments stripped, and a class that hands it the module's parameters. What
stands for them here is made so, by the Inductor that is installed, with its defaults. It is no row of KernelBook.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from figures import ROOT
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensor

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.sandbox.guest.lowering.devices import pretend_gpu
from kernelquarry.pipeline.sandbox.guest.lowering.functional_graph import State, Trace, placeholders, state_of, trace
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Pair

PAGE = ROOT / "docs" / "kernels.md"
NAMES = ("PairwiseDistance", "RootMeanSquareNorm", "ConvolutionBlock", "GatedFeedForward", "SelfAttention")
_HEAD = """\
# Rows side by side

Five of the modules in `examples/modules`, each in the form in which
[KernelBook](https://huggingface.co/datasets/GPUMODE/KernelBook) publishes kernels, and as a row of ours. Both sides
come from Inductor, without a GPU, on the same shapes. The first of each is what the compiler prints with its
defaults, in a class that hands it the parameters as `primals`, as KernelBook's rows do; none of it is copied from
there. The second is the `triton_code` that `kernelquarry dataset examples/modules` publishes.

What to look at:

| | KernelBook's form | ours |
|---|---|---|
| imports | Inductor's internals, of one release of torch | torch and triton |
| matrix products, convolutions | `extern_kernels`: cuBLAS, cuDNN | `tl.dot` in the kernel, with what follows fused |
| sizes | numbers: right for one shape | arguments, and what is fixed is checked |
| names | `in_ptr0`, `xnumel`, `tmp7` | roles: `weight_ptr`, `n_rows`, `normed` |
| parameters | in order, bound by shape | by name, from the trace |
| evidence | | a verdict that anyone can replay |

This page is written by `python examples/side_by_side.py out/modules/dataset`.
"""


def compiled(row: Pair) -> str:
    """The row's module as Inductor prints it for its first workload, and a class around it."""
    module = ModuleType("reference")
    exec(compile(row.python_code, "reference.py", "exec"), vars(module))
    torch.manual_seed(0)
    model = vars(module)[ENTRY_POINT](*vars(module)["get_init_inputs"]()).eval()
    workload = row.workloads[0]
    tensors = [{"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype} for spec in workload.tensors]
    state = state_of(model)
    traced = trace(model, state, {"tensors": tensors, "args": workload.args, "kwargs": workload.kwargs}, None)
    with pretend_gpu("sm_90"):
        code = printed(traced)
    arguments = [node.name for node in placeholders(traced.graph)]
    return f"{plain(code)}\n\n{wrapper(row, state, arguments)}"


def printed(traced: Trace) -> str:
    """Inductor's source for a graph, none of its choices changed."""
    fake_mode = next(value.fake_mode for value in traced.inputs if isinstance(value, FakeTensor))
    with config.patch(compile_threads=1, fx_graph_cache=False), tracing(TracingContext(fake_mode)), torch.no_grad():
        compile_fx.view_to_reshape(traced.graph)
        with V.set_fake_mode(fake_mode), V.set_debug_handler(DebugContext()):
            compile_fx._recursive_post_grad_passes(traced.graph, is_inference=True)
            lowered = GraphLowering(
                traced.graph, example_inputs=traced.inputs, shape_env=fake_mode.shape_env, is_inference=True
            )
            with V.set_graph_handler(lowered), V.set_extern_kernel_nodes([]):
                lowered.run(*traced.inputs)
                code, _ = lowered.codegen()
    return str(getattr(code, "value", code))


def plain(code: str) -> str:
    """Without comments, the benchmark at the end, and empty lines."""
    code = code.split("\ndef benchmark_compiled_module")[0].split("\ndef get_args")[0]
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type != tokenize.COMMENT]
    lines = tokenize.untokenize(tokens).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip(" \\"))


def wrapper(row: Pair, state: list[State], arguments: list[str]) -> str:
    """The class that KernelBook writes around the generated code."""
    (entry,) = (n for n in ast.parse(row.python_code).body if isinstance(n, ast.ClassDef) and n.name == ENTRY_POINT)
    inits = [node for node in entry.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    bound = [f"primals_{i + 1} = self.{held.name}" for i, held in enumerate(state)]
    inputs = [f"input_{i}" for i in range(len(arguments) - len(state))]
    bound += [f"primals_{len(state) + i + 1} = {name}" for i, name in enumerate(inputs)]
    primals = ", ".join(f"primals_{i + 1}" for i in range(len(arguments)))
    body = "".join(f"        {line}\n" for line in [*bound, f"output = call([{primals}])", "return output[0]"])
    init = "".join(f"    {line}\n" for node in inits for line in ast.unparse(node).splitlines())
    return f"class {row.module_name}New(nn.Module):\n{init}\n    def forward(self, {', '.join(inputs)}):\n{body}"


def folded(title: str, code: str) -> str:
    return f"<details><summary>{title}</summary>\n\n```python\n{code.rstrip()}\n```\n\n</details>\n"


def section(row: Pair) -> str:
    theirs, any_extern = compiled(row), "extern_kernels."
    calls = sorted({part.split("(")[0] for part in theirs.split(any_extern)[1:]})
    lines = len(theirs.splitlines()), len(row.triton_code.splitlines())
    note = f"{lines[0]} lines" + (f", of which the work is done by `{', '.join(calls)}`" if calls else "")
    parts = [
        f"## {row.module_name}\n",
        folded("the module", row.python_code),
        folded(f"KernelBook's form: {note}", theirs),
    ]
    return "\n".join([*parts, f"Ours, {lines[1]} lines:\n", f"```python\n{row.triton_code.rstrip()}\n```\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    rows: dict[str, Any] = {row.module_name: row for row in read_rows(parser.parse_args().dataset)}
    PAGE.write_text("\n".join([_HEAD, *(section(rows[name]) for name in NAMES)]))


if __name__ == "__main__":
    main()
