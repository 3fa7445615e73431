"""Read a candidate's source, and run nothing: the language that it must be written in, and kernels without a launch."""

from __future__ import annotations

import ast

from kernelquarry.filters.language import findings
from kernelquarry.filters.language.parsed_source import Source, parsed
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

_EVIDENCE = 500  # characters
_MAX_NAMES = 5  # in a message


def source_rejection(code: str, init_args: str = "", module: str = "") -> tuple[Reason, str] | None:
    """The reason to reject a source without running it, with the evidence; None if there is none.

    Args:
        init_args: source of the constructor's arguments.
        module: text of the module's file.
    """
    try:
        source = parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Reason.NO_CODE, f"the text does not parse: {error}"[:_EVIDENCE]
    if source.entry is None:
        return Reason.NO_CODE, f"no class {CANDIDATE_ENTRY_POINT}{_other_definitions(source)}"[:_EVIDENCE]
    if outside := findings(code, init_args, module):
        first, *others = outside
        if not first.instead:
            return Reason.DOES_NOT_RUN, str(first)[:_EVIDENCE]
        shown = [str(first), *(f"{each.place}{each.what}: {each.instead}" for each in others)]
        return Reason.OUTSIDE_LANGUAGE, "; ".join(shown)[:_EVIDENCE]
    if source.idle:
        idle = ", ".join(sorted(source.idle))
        return Reason.OUTPUT_NOT_FROM_KERNEL, f"never launched: {idle}; launch each kernel, or leave it out"[:_EVIDENCE]
    if not source.launched:
        return Reason.OUTPUT_NOT_FROM_KERNEL, "no kernel with @triton.jit is launched: launch one in forward"
    return None


def _other_definitions(source: Source) -> str:
    """A list of the top-level classes and functions, to tell the author what was found in place of the entry."""
    names = [
        f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
        for node in source.tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name not in source.kernels
    ]
    return f", but {', '.join(names[:_MAX_NAMES])}" if names else ""
