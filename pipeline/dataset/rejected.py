"""Candidates that verify dropped, as rows of the config `rejected`."""

from __future__ import annotations

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
    """What became of the candidates that verify dropped."""

    rows: tuple[Rejection, ...] = ()  # what is published, by id
    counts: StageCounts = field(default=StageCounts(NAME, "candidate", 0, 0))  # dropped: withheld, by a filter's reason

    @property
    def reasons(self) -> Tally:
        """Reason -> number of rows."""
        return tally(row.reason for row in self.rows)

    @property
    def splits(self) -> Tally:
        return tally(row.split for row in self.rows)


def reject(candidates: Iterable[Candidate], losses: Iterable[DropRecord]) -> Rejected:
    """The rows of those `candidates` that verify lost, and of models' answers, which losses carry with them; but for
    what a filter objects to.

    What errored is not published: that is our failure, and says nothing of the candidate.

    Raises:
        ConservationError: a candidate was dropped and is not among `candidates`.
    """
    dropped = [loss for loss in losses if loss.status is Status.DROPPED]
    by_id = {loss.id: loss for loss in dropped if not loss.candidates}
    pairs = [(candidate, by_id[candidate.id]) for candidate in candidates if candidate.id in by_id]
    answers = [(c, loss) for loss in dropped for c in loss.candidates if c.triton_code]  # some have no code
    rows: dict[str, Rejection] = {}
    withheld: dict[str, int] = {}
    for candidate, loss in (*pairs, *answers):
        row = with_split(flatten_rejected(candidate, loss))
        if (objection := first_objection(row)) is None:
            rows[row.id] = row
        else:
            withheld[objection.reason.value] = withheld.get(objection.reason.value, 0) + 1
    entered = len(by_id) + len(answers)
    counts = StageCounts(NAME, "candidate", entered, len(rows), dict(sorted(withheld.items())))
    counts.check()
    return Rejected(tuple(sorted(rows.values(), key=lambda row: row.id)), counts)
