"""The whole file: imports, kernels, what the constructor needs, and `ModelNew`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema import parse_python
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Lowered, Source

from .constructor.constructor_slice import slice_constructor
from .forward.arguments import Argument, arguments, result, signature, size_word
from .forward.autograd_function import render_function
from .forward.forward_body import Body, File, Words
from .kernel.triton_functions import LIBRARY, library_calls
from .read.call_steps import Size, steps
from .read.inductor_source import NotTidied, parse
from .syntax.print_code import file_text, function_text, wrapped


@dataclass(frozen=True, slots=True)
class Rendered:
    code: str
    kernels: tuple[str, ...]
    extern_operators: tuple[str, ...]
    is_tuned: bool  # some of its kernels are


def render_module(lowered: Lowered, autotuned: bool = False) -> Rendered:
    """Raises NotTidied or NeedsImport, see `tidy`."""
    raw = parse(lowered.inductor_code)
    forward = signature(lowered)
    given = arguments(lowered, forward)
    taken = {"self"} | {argument.arg for argument in ast.walk(forward) if isinstance(argument, ast.arg)}
    sizes = [step for step in steps(raw.call) if isinstance(step, Size)]
    words = Words(taken, {size.name: size_word(lowered, size.argument, size.dim) for size in sizes}, ("out",))
    if lowered.backward:
        function = render_function(lowered, raw, given, words)
        bodies, texts, lines = list(function.bodies), [function.text], function.call
    else:
        tree = json.loads(lowered.outputs)
        file = File(autotuned=autotuned)
        bodies = [Body(raw, given, words, file, lambda values: [f"return {result(tree, values)}"], lowered)]
        texts, lines = [], bodies[0].lines
    head = f"    def forward({ast.unparse(forward)}):"
    body = [wrapped(line, 8) for group in lines for line in group.splitlines()]
    return _rendered(lowered, given, bodies, texts, "\n".join([head, *body]))


def _rendered(
    lowered: Lowered, given: Mapping[str, Argument], bodies: Sequence[Body], functions: Sequence[str], forward: str
) -> Rendered:
    kept = [part for binding in lowered.bindings for part in re.findall(r"\w+", binding.name)]
    constructor = slice_constructor(lowered.probed.python_code, [state.name for state in lowered.probed.state], kept)
    kernels = [kernel.function for body in bodies for kernel in body.kernels.values()]
    combines = list(bodies[0].combines.values())
    library = library_calls([*kernels, *combines])
    if hidden := {name for name in map(_defined, constructor.definitions) if name in library}:
        raise NotTidied(f"the constructor defines {', '.join(sorted(hidden))}")
    imports = ["import torch", "import torch.nn as nn", "import triton", "import triton.language as tl"]
    if functions:
        imports.append("from torch.autograd.function import once_differentiable")
    if any("libdevice" in ast.unparse(function) for function in [*kernels, *combines]):
        imports.append("from triton.language.extra import libdevice")
    own = [ast.unparse(statement) for statement in constructor.imports]
    packages = {line: line.split()[1].split(".")[0] for line in own}
    standard = [line for line, package in packages.items() if package not in ("numpy", "torch")]
    imports[:0] = [line for line, package in packages.items() if package == "numpy"]
    imports += [line for line, package in packages.items() if package == "torch"]
    entry = constructor.entry
    constants = [binding for binding in lowered.bindings if binding.source is Source.CONSTANT]
    # What is made of the parameters, and anew after they were loaded, is on their device.
    constants = [binding for binding in constants if binding.name.split(".")[-1] not in constructor.made_later]
    reached = {binding.name: given[binding.argument].expression for binding in constants}
    used = {name: expression for name, expression in reached.items() if re.search(_whole(expression), forward)}
    for expression, buffer in _register_constants(entry, used).items():
        forward = re.sub(_whole(expression), f"self.{buffer}", forward)
    literals = [binding for binding in lowered.bindings if binding.source is Source.LITERAL]
    _register_literals(entry, {given[literal.argument].role: literal.name for literal in literals})
    texts = [
        *(LIBRARY[name] for name in library),
        *(function_text(combine) for combine in combines),
        *(function_text(kernel) for kernel in kernels),
        *functions,
        *(function_text(definition) for definition in constructor.definitions),
        _entry_text(entry) + "\n\n" + forward,
    ]
    if not any(re.search(r"\bnn\.", text) for text in texts):
        imports.remove("import torch.nn as nn")
    return Rendered(
        code=file_text([*standard, "", *imports] if standard else imports, texts),
        kernels=tuple(kernel.name for kernel in kernels),
        is_tuned=any(kernel.is_tuned for body in bodies for kernel in body.kernels.values()),
        extern_operators=tuple(sorted({operator for body in bodies for operator in body.extern})),
    )


def _whole(expression: str) -> str:
    """A pattern for `self.conv.weight` that is no part of `self.conv.weight_v`."""
    return rf"{re.escape(expression)}(?!\w)"


def _register_constants(entry: ast.ClassDef, names: Mapping[str, str]) -> dict[str, str]:
    """Tensors that the constructor keeps in plain attributes become buffers, which move to a GPU with the module.

    They stay out of the state, as in the reference. `names` maps each to the expression that reaches it. Returns the
    names of those that have another one now, by expression: what lies in lists, dicts and the attributes of submodules.
    """
    renamed: dict[str, str] = {}
    for name, expression in names.items():
        if name.isidentifier():
            added = f"self.register_buffer({name!r}, vars(self).pop({name!r}), persistent=False)"
        else:
            buffer = re.sub(r"\W+", "_", name).strip("_")
            held = {ast.unparse(node) for node in ast.walk(entry) if isinstance(node, ast.Attribute)}
            while f"self.{buffer}" in held or buffer in names or buffer in renamed.values():
                buffer += "_"
            renamed[expression] = buffer
            added = f"self.register_buffer({buffer!r}, {expression}, persistent=False)"
        _constructor(entry).body += parse_python.parse(added).body
    return renamed


def _constructor(entry: ast.ClassDef) -> ast.FunctionDef:
    """The entry point's own, which is made if only its bases have one."""
    for node in entry.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return node
    (made,) = parse_python.parse("def __init__(self, *args, **kwargs):\n    super().__init__(*args, **kwargs)").body
    assert isinstance(made, ast.FunctionDef)
    entry.body[:] = [made, *(node for node in entry.body if not isinstance(node, ast.Pass))]
    return made


def _register_literals(entry: ast.ClassDef, literals: Mapping[str, str]) -> None:
    """Numbers that the reference's `forward` makes tensors of become buffers. `literals`: as JSON, by name."""
    for name, said in literals.items():
        literal = json.loads(said)
        tensor = f"torch.tensor({literal['numbers']!r}, dtype={literal['dtype']})"
        _constructor(entry).body += parse_python.parse(
            f"self.register_buffer({name!r}, {tensor}, persistent=False)"
        ).body


def _defined(node: ast.stmt) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""


def _entry_text(entry: ast.ClassDef) -> str:
    assert entry.name == CANDIDATE_ENTRY_POINT
    if len(entry.body) == 1 and isinstance(entry.body[0], ast.Pass):
        return function_text(entry).rsplit("\n", 1)[0]
    return function_text(entry)
