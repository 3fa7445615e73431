"""Verifies every row of a dataset again on this machine, and reports the differences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Group
from rich.table import Table

from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.runtime.events import advance
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.pipeline.schema.outcome import Errored, Kept, printable
from kernelquarry.pipeline.schema.records import Pair, Verdict
from kernelquarry.transforms.verify.replay_row import Replayed, replay_pair

from .console import titled_table
from .progress_bar import Progress

NAME = "reverify"


@dataclass(frozen=True, slots=True)
class ReverifiedRow:
    """The result for one row; a line of the results file."""

    id: str
    held: bool  # verified again, as the row claims
    identical: bool  # with the same errors, to the last bit
    differences: tuple[str, ...]  # claims of the row that were not confirmed
    stored: str  # machine and software of the row's verdict
    now: str  # the same of this verification
    stored_ratio: float  # worst error, as a share of the tolerance
    now_ratio: float

    @classmethod
    def of(cls, replayed: Replayed) -> ReverifiedRow:
        now = replayed.now
        return cls(
            id=replayed.id,
            held=replayed.agrees,
            identical=replayed.identical,
            differences=tuple(map(printable, replayed.differences)),
            stored=printable(_describe_environment(replayed.stored)),
            now=_describe_environment(now) if now else "",
            stored_ratio=replayed.stored.worst_ratio,
            now_ratio=now.worst_ratio if now else 0.0,
        )


def _describe_environment(verdict: Verdict) -> str:
    machine = verdict.environment
    driver = f", driver {machine.driver}" if machine.driver else ""
    return f"{machine.device}{driver}, torch {machine.torch}, triton {machine.triton} ({verdict.engine})"


def reverify(
    pairs: Sequence[Pair], settings: SandboxSettings, results: Path | None, progress: Progress
) -> list[ReverifiedRow]:
    """Verify every pair again, `settings.workers` at once. The results have the order of the pairs.

    `results`: a JSONL file that gets one line per row; its rows are not verified again.

    Raises: UserError: `results` is not such a file.
    """
    rows = {row.id: row for row in _read(results)} if results and results.exists() else {}
    left = [pair for pair in pairs if pair.id not in rows]
    with progress.watch({NAME: len(left)}):
        for row in _verified(left, settings):
            rows[row.id] = row
            if results:
                add_line(results, asdict(row))
    return [rows[pair.id] for pair in pairs if pair.id in rows]


def _verified(pairs: list[Pair], settings: SandboxSettings) -> Iterator[ReverifiedRow]:
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        replay = partial(run_guarded, lambda pair: Kept(ReverifiedRow.of(replay_pair(pair, sandbox))))
        for outcome in threads.map(replay, pairs):
            if isinstance(outcome, Kept) and not outcome.record.held:
                row = outcome.record
                advance(NAME, row.id, Errored(row.id, "NotVerified", "; ".join(row.differences)))
            else:
                advance(NAME, outcome.id, outcome)
            if isinstance(outcome, Kept):
                yield outcome.record


def _read(results: Path) -> list[ReverifiedRow]:
    try:
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        return [ReverifiedRow(**line | {"differences": tuple(line["differences"])}) for line in lines]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{results} holds no results of reverify ({error}): give another --results") from None


def render(rows: list[ReverifiedRow], total: int) -> Group:
    """Tables of the counts, of the differences, and of the worst errors by machine."""
    held = sum(row.held for row in rows)
    counts = (
        ("verified again", held),
        ("with the same errors to the last bit", sum(row.identical for row in rows)),
        ("not verified", len(rows) - held),
        ("errored: failure of the pipeline, see above", total - len(rows)),
    )
    differences = Counter(d.partition(":")[0] for row in rows for d in row.differences)
    places = Counter((row.stored, row.now) for row in rows if row.now)
    moved = Table(title="\nverified on", title_justify="left", title_style="bold", box=None)
    for name in ("rows", "stored", "now", "worst error then", "now"):
        moved.add_column(name, justify="right" if name == "rows" else "left", overflow="fold")
    for (stored, now), number in places.most_common():
        of_place = [row for row in rows if (row.stored, row.now) == (stored, now)]
        worst = (max(row.stored_ratio for row in of_place), max(row.now_ratio for row in of_place))
        moved.add_row(f"{number:,}", stored, now, *(f"{ratio:.2f} of the tolerance" for ratio in worst))
    return Group(_numbered("rows", counts), _numbered("differences", differences.most_common()), moved)


def _numbered(title: str, counts: Iterable[tuple[str, int]]) -> Table:
    return titled_table(title, [(f"{number:,}", name) for name, number in counts], numbers=True)
