"""A whole dataset verified again on this machine: what still holds, and what has changed since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Group
from rich.table import Table

from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.runtime.events import advance
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome, printable
from kernelquarry.pipeline.schema.records import Pair, Verdict
from kernelquarry.transforms.verify.replay_row import Replayed, replay_pair

from .console import titled_table
from .progress_bar import Progress

NAME = "reverify"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one row, a line of the results."""

    id: str
    held: bool
    identical: bool  # also its errors, to the last bit
    differences: tuple[str, ...]  # what the row claims and was not found
    stored: str  # what it was verified on
    now: str
    stored_ratio: float  # worst error, as a share of what was allowed
    now_ratio: float

    @classmethod
    def of(cls, replayed: Replayed) -> Row:
        now = replayed.now
        return cls(
            id=replayed.id,
            held=replayed.agrees,
            identical=replayed.identical,
            differences=tuple(map(printable, replayed.differences)),
            stored=printable(_place(replayed.stored)),
            now=_place(now) if now else "",
            stored_ratio=replayed.stored.worst_ratio,
            now_ratio=now.worst_ratio if now else 0.0,
        )


def _place(verdict: Verdict) -> str:
    found = verdict.environment
    driver = f", driver {found.driver}" if found.driver else ""
    return f"{found.device}{driver}, torch {found.torch}, triton {found.triton} ({verdict.engine})"


def reverify(pairs: Iterable[Pair], settings: SandboxSettings, results: Path | None, progress: Progress) -> list[Row]:
    """Every pair verified again, `settings.workers` at once, in the order given.

    `results`, if given, gets a line a row as it comes, and rows that have one in it are not verified again.

    Raises:
        UserError: `results` holds something else.
    """
    rows = {row.id: row for row in _read(results)} if results and results.exists() else {}
    pairs = list(pairs)
    left = [pair for pair in pairs if pair.id not in rows]
    with progress.watch(NAME, len(left)):
        for row in _verified(left, settings):
            rows[row.id] = row
            if results:
                with results.open("a") as stream:
                    stream.write(json.dumps(asdict(row)) + "\n")
    return [rows[pair.id] for pair in pairs if pair.id in rows]


def _verified(pairs: list[Pair], settings: SandboxSettings) -> Iterator[Row]:
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        for outcome in threads.map(lambda pair: run_guarded(_again, pair, sandbox), pairs):
            if isinstance(outcome, Kept) and not outcome.record.held:
                row = outcome.record
                advance(NAME, row.id, Errored(row.id, "NotVerified", "; ".join(row.differences)))
            else:
                advance(NAME, outcome.record.id if isinstance(outcome, Kept) else outcome.id, outcome)
            if isinstance(outcome, Kept):
                yield outcome.record


def _again(pair: Pair, sandbox: Sandbox) -> Outcome[Row]:
    return Kept(Row.of(replay_pair(pair, sandbox)))


def _read(results: Path) -> list[Row]:
    try:
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        return [Row(**line | {"differences": tuple(line["differences"])}) for line in lines]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{results} holds no results of reverify ({error}): give another --results") from None


def render(rows: list[Row], total: int) -> Group:
    """Counts, what differs, and how errors moved from one machine to the other."""
    held = sum(row.held for row in rows)
    counts = (
        ("verified again", held),
        ("with the same errors to the last bit", sum(row.identical for row in rows)),
        ("not verified", len(rows) - held),
        ("not looked at: our own error, see above", total - len(rows)),
    )
    differences = Counter(d.partition(":")[0] for row in rows for d in row.differences)
    places = Counter((row.stored, row.now) for row in rows if row.now)
    moved = Table(title="\nverified on", title_justify="left", title_style="bold", box=None)
    for name in ("rows", "stored", "now", "worst error then", "now"):
        moved.add_column(name, justify="right" if name == "rows" else "left", overflow="fold")
    for (stored, now), number in places.most_common():
        of_place = [row for row in rows if (row.stored, row.now) == (stored, now)]
        worst = (max(row.stored_ratio for row in of_place), max(row.now_ratio for row in of_place))
        moved.add_row(f"{number:,}", stored, now, *(f"{ratio:.2f} of what is allowed" for ratio in worst))
    return Group(_numbered("rows", counts), _numbered("what differs", differences.most_common()), moved)


def _numbered(title: str, counts: Iterable[tuple[str, int]]) -> Table:
    return titled_table(title, [(f"{number:,}", name) for name, number in counts], numbers=True)
