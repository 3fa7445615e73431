"""The linter's rules and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rule(Enum):
    """`Rule.NAME` has a stable id (`.value`) and a sentence (`.why`)."""

    why: str

    def __new__(cls, id: str, why: str) -> Rule:
        member = object.__new__(cls)
        member._value_ = id
        member.why = why
        return member

    UNPARSABLE = ("unparsable", "the source is not Python 3 that parses")
    NO_ENTRY = ("no_entry", "there is no class ModelNew with a forward")
    NO_KERNEL = ("no_kernel", "there is no triton.jit kernel")
    NOT_LAUNCHED = ("not_launched", "a kernel is defined and nothing launches it")
    STORES_NOTHING = ("stores_nothing", "a kernel is launched that stores nothing")
    TORCH_COMPUTE = ("torch_compute", "PyTorch computes outside of the kernels")
    VALUES_LEAVE = ("values_leave", "tensor values are converted to Python values")


_RULES = {rule.value: rule for rule in Rule}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A place in a source that breaks a rule."""

    line: int
    what: str  # the offending code
    id: str  # of the rule

    @property
    def rule(self) -> Rule:
        return _RULES[self.id]

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what  # line 0: the whole file
