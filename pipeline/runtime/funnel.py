"""The funnel: how many records entered each stage, and how many left it kept, dropped or errored, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kernelquarry.pipeline.schema.reasons import Reason

_WHY = {reason.value: reason.why for reason in Reason} | {  # outcomes that have no result yet
    "BudgetSpent": "the limits in the table of teachers are used up: raise them, and the next run goes on",
    "Postponed": "its questions wait for a batch: import the answers, and run the same again",
    "Unanswered": "an endpoint did not answer: the next run asks again, and pays for no answer twice",
}


class ConservationError(Exception):
    """A stage did not account for every record that entered it."""


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One line of the funnel, in the stage's own unit: a file, a class, a module or a pair."""

    stage: str
    unit: str
    entered: int
    kept: int
    dropped: Mapping[str, int] = field(default_factory=dict)  # code of the Reason -> number
    errored: Mapping[str, int] = field(default_factory=dict)  # type of the exception -> number

    @property
    def total_dropped(self) -> int:
        return sum(self.dropped.values())

    @property
    def total_errored(self) -> int:
        return sum(self.errored.values())

    def check(self) -> None:
        """Raise ConservationError unless entered = kept + dropped + errored."""
        out = self.kept + self.total_dropped + self.total_errored
        if self.entered != out:
            raise ConservationError(
                f"{self.stage}: {self.entered} {self.unit} entered, but {out} left "
                f"({self.kept} kept, {self.total_dropped} dropped, {self.total_errored} errored)"
            )

    def summary(self) -> str:
        """One line: what entered, and how it left."""
        return (
            f"{self.stage}: {self.entered:,} {self.unit} in, {self.kept:,} kept, "
            f"{self.total_dropped:,} dropped, {self.total_errored:,} errored"
        )

    def losses(self) -> list[tuple[str, int]]:
        """(code of the reason or type of the exception, number), most frequent first."""
        both = [*self.dropped.items(), *self.errored.items()]
        return sorted(both, key=lambda item: (-item[1], item[0]))


def explain(code: str) -> str:
    """The sentence that explains a reason's code or the type of an exception."""
    return _WHY.get(code, "a failure of the pipeline, not of the record: the next run tries again")


def render_text(funnel: Sequence[StageCounts]) -> Group:
    """The funnel as a table for the terminal: each stage with its reasons of loss, then the meaning of each reason."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("unit", style="dim")
    for name in ("entered", "kept", "dropped", "errored"):
        table.add_column(name, justify="right")
    table.add_column("kept %", justify="right")
    reasons = Table(box=None, pad_edge=False, show_header=False, style="dim")
    for counts in funnel:
        share = f"{100 * counts.kept / counts.entered:.1f}" if counts.entered else "-"
        figures = [f"{n:,}" for n in (counts.entered, counts.kept, counts.total_dropped, counts.total_errored)]
        table.add_row(Text(counts.stage, "bold"), counts.unit, *figures, share)
        for code, number in counts.losses():
            dropped, errored = (f"{number:,}", "") if code in counts.dropped else ("", f"{number:,}")
            table.add_row(Text(f"  {code}", "dim"), "", "", "", dropped, errored, "")
            reasons.add_row(Text(code, "bold"), explain(code))
    return Group(table, "", reasons)
