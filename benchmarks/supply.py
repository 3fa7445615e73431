"""Measure the supply of pairs of a finished run: how many, how small, how pure, and what one costs.

python benchmarks/supply.py out/tiny+slices            # prints the figures
python benchmarks/supply.py out/tiny+slices --record   # records them
python benchmarks/supply.py RUN --gpus 4               # of a run that four GPUs executed, counts their hours too

supply.tiny_slices, supply.default_slices    pairs of the corpus `tiny+slices` or `default+slices`
supply.pairs, supply.modules_wide    pairs of the corpus `wide+slices`; its modules that run and copy no other
supply.stack       pairs of shards of The Stack; such a run records supply.core_s_pair too, and no other figure
supply.small       share of the pairs that have one kernel of at most 700 tokens
supply.pure        share of the pairs that Triton alone computes
supply.core_s_pair core seconds of the stages from read to split, over the number of pairs
supply.mined       pairs of mined modules as they are: neither slices nor compositions
supply.executed    share of the pairs that a GPU executed
supply.gpu_hours   hours that the GPUs were held for verify, for a thousand pairs
supply.constructor_general    share that holds for other constructor arguments, of the pairs with parameters
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
from kernelquarry.pipeline.schema.records import Pair, Probed, Purity, Tier
from kernelquarry.recipes.train.schedule import kind_of

SHARDS = ".parquet"
MOST_TOKENS = 700  # of a small pair's kernel
MADE = ORDER[: ORDER.index(named("split")) + 1]  # stages that make a pair


@dataclass(frozen=True, slots=True)
class Supply:
    """The figures of a run, by the last part of their ids, and a note for each."""

    values: dict[str, float]
    notes: dict[str, str]


def supply(
    pairs: Sequence[Pair], core_s: dict[str, float], corpus: str, gpu_s: float = 0.0, modules: int = 0
) -> Supply:
    """The figures of pairs that cost so many core seconds, by stage, and held GPUs for so many seconds.

    Args:
        modules: mined ones that run and copy no other.
    """
    small = [pair for pair in pairs if pair.measures.kernels == 1 and pair.measures.tokens <= MOST_TOKENS]
    pure = [pair for pair in pairs if pair.purity is Purity.PURE]
    executed = [pair for pair in pairs if Tier.EXECUTED in pair.verdict.tiers]
    with_parameters = [pair for pair in pairs if any(spec.kind == "parameter" for spec in pair.state)]
    general = sum(pair.constructor_general for pair in with_parameters)
    kinds = Counter(map(kind_of, pairs))
    operators = Counter(min(pair.measures.operators, 5) for pair in pairs if pair.slice_of)
    by_size = ", ".join(f"{number} of {size}" for size, number in sorted(operators.items()))
    values: dict[str, float] = {
        "small": 100 * len(small) / len(pairs),
        "pure": 100 * len(pure) / len(pairs),
        "core_s_pair": sum(core_s.values()) / len(pairs),
        "mined": kinds["modules"],
        "executed": 100 * len(executed) / len(pairs),
        "constructor_general": 100 * general / max(len(with_parameters), 1),
    }
    notes = {
        "small": f"{len(small)} of {len(pairs)} pairs of {corpus}",
        "pure": f"{len(pure)} of {len(pairs)} pairs of {corpus}",
        "core_s_pair": ", ".join(f"{stage} {spent / len(pairs):.2f}" for stage, spent in core_s.items()),
        "mined": f"of {len(pairs)} pairs of {corpus}",
        "executed": f"{len(executed)} of {len(pairs)} pairs of {corpus}",
        "constructor_general": f"{general} of {len(with_parameters)} pairs with parameters of {corpus}",
    }
    if gpu_s:
        values["gpu_hours"] = gpu_s / 3.6 / len(pairs)
        notes["gpu_hours"] = f"{gpu_s:.0f} seconds of GPUs for {len(pairs)} pairs of {corpus}"
    base = corpus.removesuffix(SLICES)
    if base.endswith(SHARDS):
        counted = f"{len(small)} small, {kinds['modules']} of mined modules as they are, {len(executed)} executed"
        cost = {"core_s_pair": values["core_s_pair"]}
        return Supply({"stack": len(pairs), **cost}, {"stack": counted, "core_s_pair": notes["core_s_pair"]})
    if base != corpus and base == "wide":
        values |= {"pairs": len(pairs), "modules_wide": modules}
        notes |= {"pairs": f"{kinds['slices']} slices, by aten operators (5: or more): {by_size}"}
        notes |= {"modules_wide": f"mined modules of {corpus} that run and copy no other"}
    if base != corpus and base in ("tiny", "default"):
        values[f"{base}_slices"] = len(pairs)
        notes[f"{base}_slices"] = f"{kinds['slices']} slices, by aten operators (5: or more): {by_size}"
    return Supply(values, notes)


def measure(root: Path, gpus: int = 0) -> Supply:
    """The figures of the run in `root`, up to the stage `split`, whose stage `verify` held so many GPUs."""
    read = [StageManifest.read(stage_directory(root, stage).path / MANIFEST) for stage in MADE]
    manifests = {manifest.stage: manifest for manifest in read if manifest is not None}
    core_s = {name: manifest.core_s for name, manifest in manifests.items()}
    gpu_s = gpus * manifests["verify"].seconds if gpus else 0.0
    shards = stage_directory(root, named("split")).kept
    # A model's kernel is a second one for its module.
    pairs = [pair for shard in shards for pair in read_records(shard, Pair) if not pair.distillation]
    distinct = stage_directory(root, named("deduplicate")).kept
    modules = sum(not probed.module.slice_of for shard in distinct for probed in read_records(shard, Probed))
    return supply(pairs, core_s, claimed(root), gpu_s, modules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run directory, built from an empty store")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of the machine that verified")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results/figures.json")
    given = parser.parse_args()
    found = measure(given.run, given.gpus)
    for name, value in found.values.items():
        print(f"supply.{name:15} {value:.4g}  {found.notes[name]}")
        if given.record:
            record(f"supply.{name}", value, "python benchmarks/supply.py RUN --record", note=found.notes[name])


if __name__ == "__main__":
    main()
