"""Launch plans: the host code of a candidate, evaluated as a small language in place of being run.

`Planner` reads the syntax tree of a candidate, a snapshot of its module and the shapes of the inputs, and gives a
`Plan`: memory, fills, copies, launches with their arguments, operators of PyTorch, and the outputs.
"""

from .launch_plan import Iteration, Launch, LoopRun, Plan
from .planner import PlannedCall, Planner
from .values import Raised, TooLong, Unsupported

__all__ = ["Iteration", "Launch", "LoopRun", "Plan", "PlannedCall", "Planner", "Raised", "TooLong", "Unsupported"]
