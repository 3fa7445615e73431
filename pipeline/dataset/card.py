"""Renders the pages of the dataset: the card, the verifier's error rates, and the Croissant metadata."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from kernelquarry.pipeline.runtime.funnel import StageCounts, explain

from .configs import CONFIGS
from .croissant import render_croissant
from .rejected import Rejected
from .render_template import render
from .summary import Summary

# Licence names that the Hub accepts. The header calls all others "other", and the card spells them out.
_HUB_LICENCES = frozenset(
    {
        "apache-2.0", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear", "bsl-1.0", "cc0-1.0", "isc", "mit", "ncsa",
        "unlicense", "wtfpl", "zlib",
    }
)  # fmt: skip
TEMPLATES = Path(__file__).parent / "templates"
Configs: TypeAlias = Mapping[str, Mapping[str, Sequence[Path]]]  # config -> split -> shards
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def render_card(
    summary: Summary,
    funnel: Sequence[StageCounts],
    configs: Configs,
    rows: Mapping[str, Mapping[str, int]],
    rejected: Rejected,
    corpus: str,
    benchmarks: Sequence[str] = (),
    least_operators: int = 1,
    private: bool = False,
) -> str:
    """The card as Markdown with the Hub's YAML header. It has no date, so the same build gives the same bytes.

    `configs`: shards by config and split, the default config first; `rows`: number of rows by config and split;
    `benchmarks`: descriptions of the benchmarks that rows were compared with; `least_operators`: the setting of
    decontamination by which copies of smaller problems were kept; `private`: sources may be of any licence.
    """
    return render(
        TEMPLATES / "card.md.j2",
        summary=summary,
        splits=dict(summary.splits),
        funnel=funnel,
        corpus=corpus,
        citation=_citation(summary, corpus),
        licences=_hub_licences([*dict(summary.licences), *(row.licence.spdx for row in rejected.rows)]),
        size=next((name for limit, name in _SIZES if summary.pairs < limit), "1M<n<10M"),
        configs={name: _patterns(shards) for name, shards in configs.items()},
        descriptions={config.name: config.description for config in CONFIGS},
        rows=rows,
        rejected=rejected,
        benchmarks=benchmarks,
        least_operators=least_operators,
        private=private,
        explain=explain,
        versus=(TEMPLATES / "versus.md").read_text(),
    )


def render_verifier() -> str:
    """The page of the verifier's latest measured error rates."""
    figures = json.loads((TEMPLATES / "error_rates.json").read_text())
    return render(TEMPLATES / "verifier.md.j2", figures=figures, release=_release())


def render_metadata(summary: Summary, configs: Configs, digests: Mapping[str, str], corpus: str) -> str:
    """The dataset's metadata in the Croissant format."""
    return render_croissant(
        name=f"kernelquarry-{re.sub(r'[^a-z0-9]+', '-', corpus.lower()).strip('-')}",
        description=f"{summary.pairs:,} PyTorch modules, each paired with a Triton kernel that is verified to compute "
        "the same thing. Every row holds the evidence, and one command replays the verification.",
        version=_release(),
        citation=_citation(summary, corpus),
        licences=[name for name, _ in summary.licences],
        responsible=tomllib.loads((TEMPLATES / "responsible.toml").read_text()),
        configs=configs,
        digests=digests,
    )


def _release() -> str:
    return importlib.metadata.version("kernelquarry")


def _citation(summary: Summary, corpus: str) -> str:
    return (
        "@software{kernelquarry,\n"
        "  title   = {KernelQuarry: datasets of PyTorch modules paired with verified Triton kernels},\n"
        f"  version = {{{_release()}}},\n"
        f"  note    = {{Corpus {corpus}, {summary.pairs} pairs}}\n"
        "}"
    )


def _patterns(shards: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    return {split: f"{paths[0].parent.as_posix()}/{split}-*.parquet" for split, paths in shards.items()}


def _hub_licences(expressions: Iterable[str]) -> list[str]:
    names = {part.lower() for expression in expressions for part in re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression)}
    return sorted({name if name in _HUB_LICENCES else "other" for name in names if name}) or ["other"]
