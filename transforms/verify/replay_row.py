"""Verify a published row again, from the row alone, and compare the result with the row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.records import Pair, Rejection, Verdict

from .compiling import compile_for_targets
from .evidence import Rejected
from .running import check_call
from .task import Call, Task, VerifySettings, plan, replan
from .validate_task import validate_task
from .verify_candidate import judge_task


@dataclass(frozen=True, slots=True)
class Replayed:
    """The stored verdict of a row and that of the replay; `rejected` is the reason if the replay reached none."""

    id: str
    stored: Verdict
    now: Verdict | None
    rejected: str

    @property
    def differences(self) -> tuple[str, ...]:
        """Claims of the row that the replay does not confirm.

        Numerical errors and the engine may differ: machines round differently, and a verdict of the interpreter can be
        repeated on a GPU and vice versa.
        """
        if self.now is None:
            return (self.rejected,)
        claims = ("targets", "launches", "launched_kernels", "written", "impostors")
        found = [name for name in claims if getattr(self.stored, name) != getattr(self.now, name)]
        if set(replan(self.stored.trials)) - set(replan(self.now.trials)):
            found.append("trials")
        if self.stored.deterministic and not self.now.deterministic:
            found.append("deterministic")
        return tuple(f"{name}: {getattr(self.stored, name)} stored, {getattr(self.now, name)} now" for name in found)

    @property
    def agrees(self) -> bool:
        """True if the row passes again, and the replay confirms all of its claims."""
        return self.now is not None and not self.differences

    @property
    def identical(self) -> bool:
        """True if the errors are the same to the last bit, as on the same type of machine."""
        return self.now is not None and self.stored.trials == self.now.trials[: len(self.stored.trials)]

    def render(self) -> str:
        """A text table of the trials with stored and new errors, then the conclusion."""
        lines = [f"{self.id}"]
        if self.now is not None:
            lines.append(f"{'workload':>8} {'seed':>4} {'values':<13}{'stored':>10} {'now':>10} {'allowed':>10}")
            for old, new in zip(self.stored.trials, self.now.trials, strict=False):
                errors = f"{old.error:>10.2e} {new.error:>10.2e} {new.tolerance:>10.2e}"
                lines.append(f"{old.workload:>8} {old.seed:>4} {old.distribution:<13}{errors}")
            lines.append(f"kernels {', '.join(self.now.launched_kernels)}; compiled for {', '.join(self.now.targets)}")
            lines.append(f"impostors that failed: {', '.join(self.now.impostors)}")
            places = [verdict.environment for verdict in (self.stored, self.now)]
            devices = [f"{place.device}, torch {place.torch}, triton {place.triton}" for place in places]
            lines.append(f"on {devices[1]}" if devices[0] == devices[1] else f"on {devices[1]}; stored: {devices[0]}")
        lines += [f"differs: {difference}" for difference in self.differences]
        exactly = " to the last bit" if self.identical else "; errors differ within what is allowed"
        lines.append(f"PASS: verified again{exactly}" if self.agrees else "FAIL: NOT verified")
        return "\n".join(lines)


def replay_pair(pair: Pair, sandbox: Sandbox, settings: VerifySettings | None = None) -> Replayed:
    """Repeat the trials of the row's verdict, compile for its targets, and add planned trials that the row lacks."""
    first, *others = pair.verdict.targets or ("",)
    settings, task = settings or VerifySettings(target=first), Task.of_row(pair)
    stored = replan(pair.verdict.trials)
    try:
        validate_task(task)
        trials = (*stored, *(trial for trial in plan(task) if trial not in stored))
        verdict = judge_task(task, trials, sandbox, settings)
        if others and verdict.targets == (first,):
            compiled = compile_for_targets(task, verdict, others, sandbox, settings.limits)
            verdict = replace(verdict, targets=(first, *compiled))
    except Rejected as rejected:
        return Replayed(pair.id, pair.verdict, None, f"{rejected.reason.value}: {rejected.evidence}")
    return Replayed(pair.id, pair.verdict, verdict, "")


@dataclass(frozen=True, slots=True)
class ReplayedRejection:
    """A rejected row, and the rejection of the replay."""

    row: Rejection
    now: Rejected | None  # None: it passes

    @property
    def agrees(self) -> bool:
        """True if the candidate fails again for the same reason; measured values may differ between machines."""
        return self.now is not None and self.now.reason.value == self.row.reason

    def render(self) -> str:
        """A text with the stored evidence, the new evidence and the conclusion."""
        stored = next((example.found for example in self.row.counter_examples), self.row.evidence)
        now = f"{self.now.reason.value}: {self.now.found}" if self.now else "it passes"
        lines = [self.row.id, f"stored: {self.row.reason}: {stored}", f"now: {now}"]
        if self.now and (element := self.now.element):
            lines.append(f"{element.name} is {element.actual:g}, not {element.expected:g}")
        return "\n".join([*lines, "PASS: fails again" if self.agrees else "FAIL: does NOT fail as the row says"])


def replay_rejection(row: Rejection, sandbox: Sandbox, settings: VerifySettings | None = None) -> ReplayedRejection:
    """Repeat the counter-examples of the row; without any, verify the candidate from the start."""
    task, settings = Task.of_row(row), settings or VerifySettings()
    try:
        validate_task(task)
        if not row.counter_examples:
            judge_task(task, plan(task), sandbox, settings)
        for example in row.counter_examples:
            check_call(Call.of(task, example.workload, example.seed, example.distribution), sandbox, settings)
    except Rejected as rejected:
        return ReplayedRejection(row, rejected)
    return ReplayedRejection(row, None)
