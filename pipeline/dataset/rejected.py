"""The rows of the config `rejected`: candidates that failed verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.flatten import flatten_rejected
from kernelquarry.pipeline.schema.outcome import DropRecord, Status
from kernelquarry.pipeline.schema.records import Candidate, Rejection
from kernelquarry.transforms.screen import first_objection
from kernelquarry.transforms.split import with_split

from .summary import Tally, tally

NAME = "rejected"


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows of the rejected candidates, and how many candidates were withheld."""

    rows: tuple[Rejection, ...] = ()  # published rows, sorted by id
    counts: StageCounts = field(default=StageCounts(NAME, "candidate", 0, 0))  # drops: withheld by a filter

    @property
    def reasons(self) -> Tally:
        """Code of the reason -> number of rows."""
        return tally(row.reason for row in self.rows)

    @property
    def splits(self) -> Tally:
        return tally(row.split for row in self.rows)


def collect_rejected(candidates: Iterable[Candidate], drops: Iterable[DropRecord]) -> Rejected:
    """The rows of the `candidates` that verify dropped, and of the models' answers that `drops` hold.

    Candidates to which a filter objects are withheld. Errored candidates are left out: the failure was the pipeline's.

    Raises:
        ConservationError: a dropped candidate is missing from `candidates`.
    """
    dropped = [drop for drop in drops if drop.status is Status.DROPPED]
    by_id = {drop.id: drop for drop in dropped if not drop.candidates}
    compiled = [(candidate, by_id[candidate.id]) for candidate in candidates if candidate.id in by_id]
    answers = [(c, drop) for drop in dropped for c in drop.candidates if c.triton_code]  # some have no code
    rows: dict[str, Rejection] = {}
    withheld: Counter[str] = Counter()
    for candidate, drop in (*compiled, *answers):
        row = with_split(flatten_rejected(candidate, drop))
        if (objection := first_objection(row)) is None:
            rows[row.id] = row
        else:
            withheld[objection.reason.value] += 1
    entered = len(by_id) + len(answers)
    counts = StageCounts(NAME, "candidate", entered, len(rows), dict(sorted(withheld.items())))
    counts.check()
    return Rejected(tuple(sorted(rows.values(), key=lambda row: row.id)), counts)
