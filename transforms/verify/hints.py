"""Hints on the likely cause of wrong values, for the evidence of a model's candidate."""

from __future__ import annotations

import ast
import re

from kernelquarry.filters.language.parsed_source import parsed
from kernelquarry.pipeline.sandbox.inputs import KINDS_OF_VALUES

_FINITE_MASK = re.compile(r"-\d+(?:\.\d*)?e\+?\d+|-\d{5,}\.\d*")  # a number that masks usually are
_PRECISION = 3  # place of `input_precision` among the arguments of `tl.dot`


def hint(code: str, distribution: str, is_half: bool) -> str:
    """The likely cause of wrong values on a distribution; "" if none is known.

    Args:
        is_half: the row has a half dtype, whose products do not need the precision of float32.
    """
    if not is_half and _rounds_to_tf32(code):
        return "tl.dot rounds float32 to TF32: write input_precision='ieee'"
    if distribution in KINDS_OF_VALUES and (finite := _FINITE_MASK.search(code)):
        return f"{finite[0]} in place of -inf: some values are below it: write float('-inf')"
    if distribution in ("shifted", "shifted_strided"):
        return "the inputs have a mean of 32: a variance as E[x^2] - E[x]^2 cancels"
    return ""


def _rounds_to_tf32(code: str) -> bool:
    source = parsed(code)
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    products = [call for call in calls if source.path(call.func) == "triton.language.dot"]
    return any(len(call.args) <= _PRECISION and not _sets_precision(call) for call in products)


def _sets_precision(call: ast.Call) -> bool:
    """True for a precision other than TF32, or one that is not known."""
    set_to = {each.arg: getattr(each.value, "value", None) for each in call.keywords}
    precision, allowed = set_to.get("input_precision", "tf32"), set_to.get("allow_tf32", True)
    return precision != "tf32" or allowed is not True
