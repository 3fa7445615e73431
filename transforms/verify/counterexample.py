"""Search for the smallest call on which a rejected candidate fails, as feedback for people and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CounterExample, Workload
from kernelquarry.transforms.workloads.resize import Size, free_sizes, resized

from .evidence import Rejected
from .task import Call, PlannedTrial, Task, plan

# Reasons that a single call can show. The others depend on the source, on several calls, or on the module.
_SHOWN_BY_ONE_CALL = frozenset(
    {Reason.WRONG_VALUES, Reason.WRONG_CONTRACT, Reason.NOT_DETERMINISTIC, Reason.DOES_NOT_RUN}
)
_TRIES = 12  # calls, each with two guests: about two seconds of one core
_LEAST = 2  # a size of 1 is broadcast, which compilers treat as another kind of call

Check = Callable[[Call], object]  # raises Rejected where the candidate fails


def counter_examples(task: Task, rejected: Rejected, check: Check) -> tuple[CounterExample, ...]:
    """The smallest call found on which `check` rejects `task` for the same reason, in a tuple; () if none was found.

    Unless the tries ran out, the candidate passes if any free size of the call is reduced by one.
    """
    if rejected.reason not in _SHOWN_BY_ONE_CALL:
        return ()
    search = _Search(task, rejected.reason, check)
    for workload, trial in _first_tries(task, rejected):
        search.shrink(workload, trial)
        if search.smallest is not None:
            return (search.smallest,)
    return ()


def _first_tries(task: Task, rejected: Rejected) -> list[tuple[Workload, PlannedTrial]]:
    """The failing call if it is known, else the first trial of each workload."""
    if rejected.call is not None:
        return [(rejected.call.task.workloads[0], rejected.call.trial)]
    calls = task.calls
    if rejected.trial is not None:
        return [(calls[rejected.trial.workload], rejected.trial)]
    first: dict[int, PlannedTrial] = {}
    for trial in plan(task):
        first.setdefault(trial.workload, trial)
    return [(calls[workload], trial) for workload, trial in first.items()]


class _Search:
    """Search with a limited number of tries; the last failing call is the smallest."""

    def __init__(self, task: Task, reason: Reason, check: Check) -> None:
        self._task, self._reason, self._check = task, reason, check
        self._left = _TRIES
        self.smallest: CounterExample | None = None

    def shrink(self, start: Workload, trial: PlannedTrial) -> None:
        """Set `smallest` to the smallest failing call; leave it None if the call `start` does not fail alone."""
        family = (start, *(workload for workload in self._task.workloads if workload != start))
        free = free_sizes(family) if self._task.shape_general else []  # it claims no other sizes

        def fails(setting: Mapping[Size, int]) -> bool:
            return self._fails(trial, resized(family, setting))

        for least in (_LEAST, _LEAST + 1):  # most failures do not depend on sizes
            small = {size: min(size[0], least) for size in free}
            if any(small[size] < size[0] for size in free) and fails(small):
                return
        setting = {size: size[0] for size in free}
        if not fails(setting):
            return
        for size in free:
            if setting[size] > _LEAST and fails(setting | {size: _LEAST}):
                setting[size] = _LEAST
        for size in sorted(free, key=lambda size: (-setting[size], size)):
            low, high = _LEAST, setting[size]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if fails(setting | {size: middle}) else (middle, high)
            setting[size] = high

    def _fails(self, trial: PlannedTrial, workload: Workload) -> bool:
        """True if the candidate fails for the same reason; False once the tries are used up."""
        if not self._left:
            return False
        self._left -= 1
        try:
            self._check(Call.of(self._task, workload, trial.seed, trial.distribution))
        except Rejected as rejected:
            if rejected.reason is Reason.TIMED_OUT:
                self._left = 0  # wait for one timeout only
            if rejected.reason is not self._reason:
                return False
            element = rejected.element
            self.smallest = CounterExample(
                workload=workload,
                seed=trial.seed,
                distribution=trial.distribution,
                found=rejected.found,
                output=element.name if element else "",
                expected=element.expected if element else 0.0,
                actual=element.actual if element else 0.0,
            )
            return True
        return False
