"""Turn Inductor's source for a module into a candidate: one file with imports, `ModelNew` and kernels."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence

from kernelquarry.pipeline.schema import parse_python
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Candidate, Lowered, Purity, Source

from .constructor.constructor_slice import slice_constructor
from .forward.arguments import Argument, arguments, result, signature, size_word
from .forward.autograd_function import render_function
from .forward.call_guards import guards_of_calls
from .forward.forward_body import Body, FileNames, Words
from .kernel.triton_functions import LIBRARY, library_calls
from .read.call_steps import Size, steps
from .read.inductor_source import parse
from .refusals import NeedsImport, NotTidied
from .syntax.print_code import file_text, function_text, wrapped

_EVIDENCE = 500  # characters


def tidy(lowered: Lowered, autotuned: bool = False) -> Outcome[Candidate]:
    """Write one self-contained file with the class `ModelNew`.

    With `autotuned`, kernels choose their block sizes on the GPU, except kernels that read their own output.
    """
    try:
        code, bodies = _render(lowered, autotuned)
    except NeedsImport as refusal:
        return Dropped(lowered.id, Reason.CONSTRUCTOR_NEEDS_IMPORT, str(refusal)[:_EVIDENCE])
    except NotTidied as refusal:
        return Dropped(lowered.id, Reason.NOT_TIDIED, str(refusal)[:_EVIDENCE])
    kernels = [kernel for body in bodies for kernel in body.kernels.values()]
    if autotuned and not any(kernel.is_tuned for kernel in kernels):
        return Dropped(lowered.id, Reason.NOTHING_TO_TUNE, "each kernel reads what it writes")
    extern = tuple(sorted({operator for body in bodies for operator in body.extern}))
    return Kept(
        Candidate(
            probed=lowered.probed,
            triton_code=code,
            kernels=tuple(kernel.function.name for kernel in kernels),
            purity=Purity.MIXED if extern else Purity.PURE,
            extern_ops=extern,
            shape_general=lowered.shape_general,
            generator=lowered.generator,
            inductor_code="\n\n".join([lowered.inductor_code, *(half.inductor_code for half in lowered.backward)]),
            guards=guards_of_calls(lowered),
            training=bool(lowered.backward),
            dtype=lowered.dtype,
            autotuned=autotuned,
            constructions=lowered.constructions,
        )
    )


def _render(lowered: Lowered, autotuned: bool) -> tuple[str, list[Body]]:
    """The text of the file, and its functions that launch kernels."""
    raw = parse(lowered.inductor_code)
    forward = signature(lowered.probed)
    given = arguments(lowered, forward)
    taken = {"self"} | {argument.arg for argument in ast.walk(forward) if isinstance(argument, ast.arg)}
    sizes = [step for step in steps(raw.call) if isinstance(step, Size)]
    words = Words(taken, {size.name: size_word(lowered, size.argument, size.dim) for size in sizes}, ("out",))
    if lowered.backward:
        function = render_function(lowered, raw, given, words)
        bodies, texts, lines = list(function.bodies), [function.text], function.call
    else:
        tree, file = json.loads(lowered.outputs), FileNames(autotuned=autotuned)
        bodies = [Body(raw, given, words, file, lambda values: [f"return {result(tree, values)}"], lowered)]
        texts, lines = [], bodies[0].lines
    head = f"    def forward({ast.unparse(forward)}):"
    body = [wrapped(line, 8) for group in lines for line in group.splitlines()]
    return _file(lowered, given, bodies, texts, "\n".join([head, *body])), bodies


def _file(
    lowered: Lowered, given: Mapping[str, Argument], bodies: Sequence[Body], functions: Sequence[str], forward: str
) -> str:
    """The text of the file, from `ModelNew` down to the functions that kernels call.

    `functions` are classes that `forward` uses.
    """
    kept = [part for binding in lowered.bindings for part in re.findall(r"\w+", binding.name)]
    constructor = slice_constructor(lowered.probed.python_code, [state.name for state in lowered.probed.state], kept)
    kernels = [kernel.function for body in bodies for kernel in body.kernels.values()]
    triton = [*kernels, *bodies[0].combines.values()]
    library = library_calls(triton)
    defined = {node.name for node in constructor.definitions if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if hidden := defined.intersection(library):
        raise NotTidied(f"the constructor defines {', '.join(sorted(hidden))}")
    entry = constructor.entry
    constants = [binding for binding in lowered.bindings if binding.source is Source.CONSTANT]
    # Attributes that the constructor computes from parameters again after loading are on their device already.
    constants = [binding for binding in constants if binding.name.split(".")[-1] not in constructor.made_later]
    paths = {binding.name: given[binding.argument].expression for binding in constants}
    used = {name: path for name, path in paths.items() if re.search(_whole(path), forward)}
    for path, buffer in _register_constants(entry, used).items():
        forward = re.sub(_whole(path), f"self.{buffer}", forward)
    literals = [binding for binding in lowered.bindings if binding.source is Source.LITERAL]
    _register_literals(entry, {given[literal.argument].role: literal.name for literal in literals})
    texts = [
        *map(function_text, constructor.definitions),
        _entry_text(entry) + "\n\n" + forward,
        *functions,
        *map(function_text, triton),
        *(LIBRARY[name] for name in reversed(library)),
    ]
    return file_text(_imports(constructor.imports, triton, functions, texts), texts)


def _imports(
    own: Sequence[ast.stmt], triton: Sequence[ast.stmt], functions: Sequence[str], texts: Sequence[str]
) -> list[str]:
    """The import lines of the file; `own` are the imports of the constructor, `texts` all that follows."""
    imports = ["import torch", "import torch.nn as nn", "import triton", "import triton.language as tl"]
    if not any(re.search(r"\bnn\.", text) for text in texts):
        imports.remove("import torch.nn as nn")
    if functions:
        imports.append("from torch.autograd.function import once_differentiable")
    if any("libdevice" in ast.unparse(function) for function in triton):
        imports.append("from triton.language.extra import libdevice")
    packages = {line: line.split()[1].split(".")[0] for line in map(ast.unparse, own)}
    standard = [line for line, package in packages.items() if package not in ("numpy", "torch")]
    imports[:0] = [line for line, package in packages.items() if package == "numpy"]
    imports += [line for line, package in packages.items() if package == "torch"]
    return [*standard, "", *imports] if standard else imports


def _whole(expression: str) -> str:
    """A pattern for `self.conv.weight` that does not match in `self.conv.weight_v`."""
    return rf"{re.escape(expression)}(?!\w)"


def _register_constants(entry: ast.ClassDef, names: Mapping[str, str]) -> dict[str, str]:
    """Register tensors in plain attributes as buffers outside the state, which move to a GPU with the module.

    `names` maps each attribute to its expression. Tensors in lists, in dicts and in submodules get a new attribute;
    these are returned, by expression.
    """
    renamed: dict[str, str] = {}
    for name, expression in names.items():
        if name.isidentifier() and (assigned := _assigned_once(entry, name)) is not None:
            value = ast.unparse(assigned.value)
            (registered,) = parse_python.parse(f"self.register_buffer({name!r}, {value}, persistent=False)").body
            body = _constructor(entry).body
            body[body.index(assigned)] = registered
            continue
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


def _assigned_once(entry: ast.ClassDef, name: str) -> ast.Assign | None:
    """The statement of the constructor that sets an attribute, if nothing else in the class names the attribute."""
    uses = [node for node in ast.walk(entry) if name in (getattr(node, "attr", ""), getattr(node, "value", ""))]
    for node in _constructor(entry).body:
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self")) as target]) if uses == [target]:
                return node
    return None


def _constructor(entry: ast.ClassDef) -> ast.FunctionDef:
    """The constructor of the entry point, added if only its bases have one."""
    for node in entry.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return node
    (added,) = parse_python.parse("def __init__(self, *args, **kwargs):\n    super().__init__(*args, **kwargs)").body
    assert isinstance(added, ast.FunctionDef)
    entry.body[:] = [added, *(node for node in entry.body if not isinstance(node, ast.Pass))]
    return added


def _register_literals(entry: ast.ClassDef, literals: Mapping[str, str]) -> None:
    """Register tensors that the reference's `forward` makes of numbers as buffers; `literals` holds them as JSON."""
    for name, text in literals.items():
        literal = json.loads(text)
        tensor = f"torch.tensor({literal['numbers']!r}, dtype={literal['dtype']})"
        added = f"self.register_buffer({name!r}, {tensor}, persistent=False)"
        _constructor(entry).body += parse_python.parse(added).body


def _entry_text(entry: ast.ClassDef) -> str:
    assert entry.name == CANDIDATE_ENTRY_POINT
    if len(entry.body) == 1 and isinstance(entry.body[0], ast.Pass):
        return function_text(entry).rsplit("\n", 1)[0]
    return function_text(entry)
