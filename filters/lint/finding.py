"""What the linter finds: rules with ids and messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rule(Enum):
    """`Rule.NAME` has a stable id (`.value`), a sentence (`.why`), and says whether it hides (`.hides`)."""

    why: str
    hides: bool

    def __new__(cls, id: str, why: str, hides: bool = False) -> Rule:
        member = object.__new__(cls)
        member._value_ = id
        member.why, member.hides = why, hides
        return member

    # What could hide from the checks how a candidate computes: verify rejects it as `forbidden_code`.
    UNPARSABLE = ("unparsable", "the source is not Python 3 that parses", True)
    IMPORT = ("import_off_list", "it imports more than torch, Triton and a few harmless modules", True)
    HIDDEN_NAME = ("hidden_name", "it reaches for what leads to frames, files, the environment or raw memory", True)
    BY_NAME = ("by_name", "it looks attributes up by names that are put together, or on what all share", True)
    SETS_SHARED = ("sets_shared", "it changes what others share", True)
    SPECIAL_METHOD = ("special_method", "it defines a method that Python or PyTorch calls unasked", True)
    KERNEL_TOUCHED = ("kernel_touched", "it does other things with a kernel than to define it once and launch it", True)

    # What is no kernel's work: seen early, but the verdict decides.
    NO_ENTRY = ("no_entry", "there is no class ModelNew with a forward")
    NO_KERNEL = ("no_kernel", "there is no triton.jit kernel")
    NOT_LAUNCHED = ("not_launched", "a kernel is defined and nothing launches it")
    STORES_NOTHING = ("stores_nothing", "a kernel is launched that stores nothing")
    TORCH_COMPUTE = ("torch_compute", "PyTorch computes outside of the kernels")
    VALUES_LEAVE = ("values_leave", "values leave the tensors for Python")
    DEFERRED = ("deferred", "a hook, or a result of a class of its own, could compute when forward is over")
    GUARDED = ("guarded", "a try or suppress could catch that a launch fails")


_RULES = {rule.value: rule for rule in Rule}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One place in a source that breaks a rule."""

    line: int
    what: str  # the code that does it
    id: str  # of the rule

    @property
    def rule(self) -> Rule:
        return _RULES[self.id]

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what  # 0: the file as a whole
