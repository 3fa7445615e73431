"""Print the share of answers that were verified in a run with teachers: the figure `distill.acceptance`.

kernelquarry serve MODEL &
kernelquarry dataset examples/modules --out out/taught --distill teachers.toml
python benchmarks/teaching.py out/taught --note "SmolLM2-135M-Instruct, untrained" --record

With `--trained`, the teacher is a coder that was trained on our dataset: the figures are `distill.acceptance.trained`
and `train.coder.distilled`, the rows of the train split that it wrote.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from figures import record

from kernelquarry.pipeline.dataset.teacher_stats import TeacherStats, summarise_answers
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Pair, Verified


def read(run: Path) -> TeacherStats:
    """Statistics of a run's answers. Raises: SystemExit: the run has no answers."""
    kept = [v for shard in sorted(run.glob("stages/*-distill/kept-*.parquet")) for v in read_records(shard, Verified)]
    losses = [loss for shard in run.glob("stages/*-distill/lost.parquet") for loss in read_records(shard, DropRecord)]
    stats = summarise_answers(kept, losses)
    if stats is None:
        raise SystemExit(f"{run}: no answers of models: run it with --distill")
    return stats


def written(run: Path) -> int:
    """Number of rows of a run's train split that a model wrote."""
    pairs = (pair for shard in run.glob("stages/*-split/kept-*.parquet") for pair in read_records(shard, Pair))
    return sum(bool(pair.distillation) and pair.split == "train" for pair in pairs)


def describe(stats: TeacherStats) -> str:
    """One line: verified answers, reasons of failures, tokens."""
    answers, accepted = sum(group.answers for group in stats.groups), sum(group.verified for group in stats.groups)
    reasons = ", ".join(f"{number} {reason}" for reason, number in stats.failures)
    return f"{accepted} of {answers} answers ({reasons or 'none rejected'}), {stats.tokens:,} tokens"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--where", default="", help="machine of the run; default: this one without a GPU")
    parser.add_argument("--note", default="")
    parser.add_argument("--trained", action="store_true", help="the model was trained on our dataset")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    stats = read(arguments.run)
    for group in stats.groups:
        print(f"{group.model} {group.route} turn {group.turn}: {group.verified} of {group.answers}")
    for reason, number in stats.failures:
        print(f"  {number} {reason}")
    answers, accepted = sum(group.answers for group in stats.groups), sum(group.verified for group in stats.groups)
    note = "; ".join(filter(None, (describe(stats), arguments.note)))
    print(note)
    found = {f"distill.acceptance{'.trained' * arguments.trained}": 100 * accepted / answers}
    if arguments.trained:
        found["train.coder.distilled"] = written(arguments.run)
        print(f"{found['train.coder.distilled']:.0f} rows of the train split")
    if arguments.record:
        command = f"python benchmarks/teaching.py out/{arguments.run.name}{' --trained' * arguments.trained} --record"
        for id, value in found.items():
            record(id, value, command, note, arguments.where)


if __name__ == "__main__":
    main()
