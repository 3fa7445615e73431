"""A published row, verified again from the row alone, beside what it says."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.records import Pair, Rejection, Verdict

from .evidence import Rejected
from .task import Call, Task, VerifySettings, plan, replan
from .validate_task import validate_task
from .verify_candidate import check_call, judge_task


@dataclass(frozen=True, slots=True)
class Replayed:
    """The row's verdict and the one that was reached now; `rejected` says why if there is none."""

    id: str
    stored: Verdict
    now: Verdict | None
    rejected: str

    @property
    def differences(self) -> tuple[str, ...]:
        """What the row claims and the replay did not find.

        Errors may differ, since other machines round otherwise, and so may what ran the kernels: a verdict of an
        interpreter can be repeated on a GPU, and the other way round.
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
        """The row holds: it passes again, and all that it claims was found again."""
        return self.now is not None and not self.differences

    @property
    def identical(self) -> bool:
        """Also the errors are the same to the last bit, as they are on the same kind of machine."""
        return self.now is not None and self.stored.trials == self.now.trials[: len(self.stored.trials)]

    def render(self) -> str:
        """For people: each trial with both errors, then the conclusion."""
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
        lines.append(f"verified again{exactly}" if self.agrees else "NOT verified")
        return "\n".join(lines)


def replay_pair(pair: Pair, sandbox: Sandbox, settings: VerifySettings | None = None) -> Replayed:
    """Repeat the trials of the row's verdict, for the targets that it names, and make those that it should have had: a
    row may have lost some."""
    settings, task = settings or VerifySettings(targets=pair.verdict.targets), Task.of_row(pair)
    named = replan(pair.verdict.trials)
    try:
        validate_task(task)
        trials = (*named, *(trial for trial in plan(task) if trial not in named))
        verdict = judge_task(task, trials, sandbox, settings)
    except Rejected as rejected:
        return Replayed(pair.id, pair.verdict, None, f"{rejected.reason.value}: {rejected.evidence}")
    return Replayed(pair.id, pair.verdict, verdict, "")


@dataclass(frozen=True, slots=True)
class ReplayedRejection:
    """What a rejected row says, and what was found now on its counter-example, or of the whole if it has none."""

    row: Rejection
    now: Rejected | None  # None: it passes

    @property
    def agrees(self) -> bool:
        """It fails again, for the same reason. What is measured may differ from one machine to another."""
        return self.now is not None and self.now.reason.value == self.row.reason

    def render(self) -> str:
        """For people: what is stored, what was found, then the conclusion."""
        stored = next((example.found for example in self.row.counter_examples), self.row.evidence)
        now = f"{self.now.reason.value}: {self.now.found}" if self.now else "it passes"
        lines = [self.row.id, f"stored: {self.row.reason}: {stored}", f"now: {now}"]
        if self.now and (element := self.now.element):
            lines.append(f"{element.name} is {element.actual:g}, not {element.expected:g}")
        return "\n".join([*lines, "fails again" if self.agrees else "does NOT fail as the row says"])


def replay_rejection(row: Rejection, sandbox: Sandbox, settings: VerifySettings | None = None) -> ReplayedRejection:
    """Repeat the row's counter-example; verify the candidate from the start, if it has none."""
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
