"""Compare a dataset with the published facts about the rows of KernelBook."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.records import Pair, Purity, Tier

FACTS = Path(__file__).parent / "templates" / "kernelbook.toml"


@dataclass(frozen=True, slots=True)
class Compared:
    """A fact about KernelBook and the same of this dataset. Shares are between 0 and 1; None: the fact is text."""

    what: str
    kernelbook: str
    ours: str
    source: str  # of the fact about KernelBook
    kernelbook_share: float | None = None
    our_share: float | None = None


def compare_with_kernelbook(pairs: Sequence[Pair], removed: int) -> list[Compared]:
    """The published facts about KernelBook, each with that of `pairs`. `removed`: modules that overlap a benchmark."""
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    shares = {name: sum(map(holds, pairs)) for name, holds in _SHARES.items()}
    texts = {
        "rows": f"{len(pairs):,}",
        "duplicates": "exact, renamed and near copies are removed",
        "benchmarks": f"modules that overlap a benchmark are removed: {removed:,}",
        "licence": f"SPDX expression of each file; {len({pair.licence.spdx for pair in pairs})} in these rows",
    }
    return [
        Compared(
            fact["what"],
            fact["value"],
            f"{shares[name]:,} of {len(pairs):,}" if name in shares else texts[name],
            fact["source"],
            fact.get("share"),
            shares[name] / len(pairs) if name in shares else None,
        )
        for name, fact in facts.items()
    ]


_SHARES: Mapping[str, Callable[[Pair], bool]] = {
    "pure": lambda pair: pair.purity is Purity.PURE,
    "independent": lambda pair: "torch._inductor" not in pair.triton_code,
    "other_shape": lambda pair: len({trial.workload for trial in pair.verdict.trials}) > 1,
    "executed": lambda pair: Tier.EXECUTED in pair.verdict.tiers,
    "one_shape": lambda pair: all(spec.shape == (4, 4, 4, 4) for call in pair.workloads for spec in call.tensors),
    "buffers": lambda pair: any(state.kind == "buffer" for state in pair.state),
}
