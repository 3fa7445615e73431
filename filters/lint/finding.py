"""The linter's rules and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rule(Enum):
    """`Rule.NAME` has a stable id (`.value`) and a sentence (`.why`); `.hides` is true if it can deceive the checks."""

    why: str
    hides: bool

    def __new__(cls, id: str, why: str, hides: bool = False) -> Rule:
        member = object.__new__(cls)
        member._value_ = id
        member.why, member.hides = why, hides
        return member

    # Code that can hide from the checks how a candidate computes: verify rejects it as `forbidden_code`.
    UNPARSABLE = ("unparsable", "the source is not Python 3 that parses", True)
    IMPORT = ("import_off_list", "it imports more than torch, Triton and a few harmless modules", True)
    HIDDEN_NAME = ("hidden_name", "it uses a name that leads to frames, files, the environment or raw memory", True)
    BY_NAME = ("by_name", "it looks up attributes by computed names, or on shared objects", True)
    SETS_SHARED = ("sets_shared", "it changes shared objects", True)
    SPECIAL_METHOD = ("special_method", "it defines a method that Python or PyTorch calls implicitly", True)
    KERNEL_TOUCHED = ("kernel_touched", "it uses a kernel in other ways than to define it once and launch it", True)

    # Work that is not done by a kernel: a hint before verification, which decides.
    NO_ENTRY = ("no_entry", "there is no class ModelNew with a forward")
    NO_KERNEL = ("no_kernel", "there is no triton.jit kernel")
    NOT_LAUNCHED = ("not_launched", "a kernel is defined and nothing launches it")
    STORES_NOTHING = ("stores_nothing", "a kernel is launched that stores nothing")
    TORCH_COMPUTE = ("torch_compute", "PyTorch computes outside of the kernels")
    VALUES_LEAVE = ("values_leave", "tensor values are converted to Python values")
    DEFERRED = ("deferred", "a hook, or a class of results, could compute after forward returns")
    GUARDED = ("guarded", "a try or suppress could catch a failing launch")


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
