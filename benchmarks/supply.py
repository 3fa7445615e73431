"""Measure the supply of pairs of a finished run: how many, how small, how pure, and what one costs.

python benchmarks/supply.py out/tiny+slices            # prints the figures
python benchmarks/supply.py out/tiny+slices --record   # records them

supply.tiny_slices, supply.default_slices    pairs of the corpus `tiny+slices` or `default+slices`
supply.small       share of the pairs that have one kernel of at most 700 tokens
supply.pure        share of the pairs that Triton alone computes
supply.core_s_pair core seconds of the stages from read to split, over the number of pairs
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import record

from kernelquarry.pipeline.graph import ORDER, SLICES, named
from kernelquarry.pipeline.run.run import claimed, stage_directory
from kernelquarry.pipeline.run.stage_directory import MANIFEST
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.records import Pair, Purity

MOST_TOKENS = 700  # of a small pair's kernel
MADE = ORDER[: ORDER.index(named("split")) + 1]  # stages that make a pair


@dataclass(frozen=True, slots=True)
class Supply:
    """The figures of a run, by the last part of their ids, and a note for each."""

    values: dict[str, float]
    notes: dict[str, str]


def supply(pairs: Sequence[Pair], core_s: dict[str, float], corpus: str) -> Supply:
    """The figures of pairs that cost so many core seconds, by stage."""
    small = [pair for pair in pairs if pair.measures.kernels == 1 and pair.measures.tokens <= MOST_TOKENS]
    pure = [pair for pair in pairs if pair.purity is Purity.PURE]
    slices = sum(bool(pair.slice_of) for pair in pairs)
    operators = Counter(min(pair.measures.operators, 5) for pair in pairs if pair.slice_of)
    by_size = ", ".join(f"{number} of {size}" for size, number in sorted(operators.items()))
    values: dict[str, float] = {
        "small": 100 * len(small) / len(pairs),
        "pure": 100 * len(pure) / len(pairs),
        "core_s_pair": sum(core_s.values()) / len(pairs),
    }
    notes = {
        "small": f"{len(small)} of {len(pairs)} pairs of {corpus}",
        "pure": f"{len(pure)} of {len(pairs)} pairs of {corpus}",
        "core_s_pair": ", ".join(f"{stage} {spent / len(pairs):.2f}" for stage, spent in core_s.items()),
    }
    base = corpus.removesuffix(SLICES)
    if base != corpus and base in ("tiny", "default"):
        values[f"{base}_slices"] = len(pairs)
        notes[f"{base}_slices"] = f"{slices} slices, by aten operators (5: or more): {by_size}"
    return Supply(values, notes)


def measure(root: Path) -> Supply:
    """The figures of the run in `root`, up to the stage `split`."""
    core_s: dict[str, float] = {}
    for stage in MADE:
        manifest = StageManifest.read(stage_directory(root, stage).path / MANIFEST)
        if manifest is not None:
            core_s[stage.name] = manifest.core_s
    shards = stage_directory(root, named("split")).kept
    return supply([pair for shard in shards for pair in read_records(shard, Pair)], core_s, claimed(root))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run directory, built from an empty store")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results/figures.json")
    given = parser.parse_args()
    found = measure(given.run)
    for name, value in found.values.items():
        print(f"supply.{name:15} {value:.4g}  {found.notes[name]}")
        if given.record:
            record(f"supply.{name}", value, "python benchmarks/supply.py RUN --record", note=found.notes[name])


if __name__ == "__main__":
    main()
