"""Says what models made of a run's modules: `distill.acceptance`, of a run that asked them.

kernelquarry serve MODEL &
kernelquarry dataset examples/modules --out out/taught --distill teachers.toml
python benchmarks/teaching.py out/taught --note "SmolLM2-135M-Instruct, untrained" --record
"""

from __future__ import annotations

import argparse
from pathlib import Path

from figures import record

from kernelquarry.pipeline.dataset.teacher_stats import TeacherStats, summarise_answers
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Verified


def read(run: Path) -> TeacherStats:
    """Raises: SystemExit: the run asked nobody."""
    kept = [v for shard in sorted(run.glob("stages/*-distill/kept-*.parquet")) for v in read_records(shard, Verified)]
    losses = [loss for shard in run.glob("stages/*-distill/lost.parquet") for loss in read_records(shard, DropRecord)]
    found = summarise_answers(kept, losses)
    if found is None:
        raise SystemExit(f"{run}: no model was asked: run it with --distill")
    return found


def told(found: TeacherStats) -> str:
    """How many answers were verified, why the others were not, and their tokens."""
    asked, accepted = sum(group.answers for group in found.groups), sum(group.verified for group in found.groups)
    reasons = ", ".join(f"{number} {reason}" for reason, number in found.failures)
    return f"{accepted} of {asked} answers ({reasons or 'none rejected'}), {found.tokens:,} tokens"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--where", default="", help="machine that it ran on; this one without a GPU by default")
    parser.add_argument("--note", default="")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    found = read(arguments.run)
    for group in found.groups:
        print(f"{group.model} {group.route} turn {group.turn}: {group.verified} of {group.answers}")
    for reason, number in found.failures:
        print(f"  {number} {reason}")
    asked, accepted = sum(group.answers for group in found.groups), sum(group.verified for group in found.groups)
    note = "; ".join(filter(None, (told(found), arguments.note)))
    print(note)
    if arguments.record:
        command = f"python benchmarks/teaching.py out/{arguments.run.name} --record"
        record("distill.acceptance", 100 * accepted / asked, command, note, arguments.where)


if __name__ == "__main__":
    main()
