"""The smallest call on which a rejected candidate fails, for people, and for models that are to learn from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CounterExample, Workload
from kernelquarry.transforms.workloads.resize import Size, free_sizes, resized

from .evidence import Rejected
from .task import Call, PlannedTrial, Task, plan

# Reasons that a call shows. The others are of the source, of all calls together, or of the module.
_SHOWN = frozenset({Reason.WRONG_VALUES, Reason.WRONG_CONTRACT, Reason.NOT_DETERMINISTIC, Reason.DOES_NOT_RUN})
_TRIES = 12  # calls, each in a guest for either side: about two seconds of one core, for rejected candidates alone
_LEAST = 2  # a size of 1 is broadcast, which compilers treat as another kind of call
_NOTHING = 0.0  # in place of the values where none is wrong


Check = Callable[[Call], None]  # raises Rejected where the candidate fails


def counter_examples(task: Task, rejected: Rejected, check: Check) -> tuple[CounterExample, ...]:
    """The smallest call found that `check` rejects for the reason that `task` was rejected for; none if there is none.

    At the end no free size of it can be made one less, unless the tries are used up before.
    """
    if rejected.reason not in _SHOWN:
        return ()
    search = _Search(task, rejected.reason, check)
    for trial in [rejected.trial] if rejected.trial else _one_of_each_workload(task):
        search.shrink(trial)
        if search.found is not None:
            return (search.found,)
    return ()


def _one_of_each_workload(task: Task) -> list[PlannedTrial]:
    first: dict[int, PlannedTrial] = {}
    for trial in plan(task):
        first.setdefault(trial.workload, trial)
    return list(first.values())


class _Search:
    """Calls that were tried, and the last that failed, which is the smallest."""

    def __init__(self, task: Task, reason: Reason, check: Check) -> None:
        self._task, self._reason, self._check = task, reason, check
        self._left = _TRIES
        self.found: CounterExample | None = None

    def shrink(self, trial: PlannedTrial) -> None:
        """From `trial` to the smallest call that fails; `found` stays None if it does not fail alone."""
        start = self._task.calls[trial.workload]
        family = (start, *(workload for workload in self._task.workloads if workload != start))
        free = free_sizes(family) if self._task.shape_general else []  # else no other size is claimed

        def fails(setting: Mapping[Size, int]) -> bool:
            return self._fails(trial, resized(family, setting))

        for least in (_LEAST, _LEAST + 1):  # most failures have nothing to do with sizes
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
        """Whether it does so for the same reason; not, once the tries are used up."""
        if not self._left:
            return False
        self._left -= 1
        try:
            self._check(Call.of(self._task, workload, trial.seed, trial.distribution))
        except Rejected as rejected:
            if rejected.reason is Reason.TIMED_OUT:
                self._left = 0  # one deadline is enough to wait for
            if rejected.reason is not self._reason:
                return False
            element = rejected.element
            self.found = CounterExample(
                workload=workload,
                seed=trial.seed,
                distribution=trial.distribution,
                found=rejected.found,
                output=element.name if element else "",
                expected=element.expected if element else _NOTHING,
                actual=element.actual if element else _NOTHING,
            )
            return True
        return False
