"""The dataset's pages: the card, for people; the error rates of the verifier; and metadata, for machines."""

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
from .render_template import TEMPLATES, render
from .summary import Summary

# Licence names that the Hub knows; everything else is "other" there and spelled out in the card.
_HUB_LICENCES = frozenset(
    {
        "apache-2.0", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear", "bsl-1.0", "cc0-1.0", "isc", "mit", "ncsa",
        "unlicense", "wtfpl", "zlib",
    }
)  # fmt: skip
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
) -> str:
    """The card as Markdown with the Hub's YAML header. It holds no date: the same build gives the same bytes.

    `configs`: shards by config and split, the default config first; `rows`: their number.
    `benchmarks`: names of those that rows were compared with.
    """
    return render(
        "card.md.j2",
        summary=summary,
        splits=dict(summary.splits),
        funnel=funnel,
        corpus=corpus,
        citation=_citation(summary, corpus),
        licences=_hub_licences([*dict(summary.licences), *(row.licence.spdx for row in rejected.rows)]),
        size=next((name for limit, name in _SIZES if summary.pairs < limit), "1M<n<10M"),
        configs={name: _patterns(shards) for name, shards in configs.items()},
        whats={each.name: each.what for each in CONFIGS},
        rows=rows,
        rejected=rejected,
        benchmarks=benchmarks,
        explain=explain,
    )


def render_verifier() -> str:
    """The error rates of the verifier, as measured last."""
    return render(
        "verifier.md.j2", figures=json.loads((TEMPLATES / "error_rates.json").read_text()), release=_release()
    )


def render_metadata(summary: Summary, configs: Configs, digests: Mapping[str, str], corpus: str) -> str:
    """The dataset in the Croissant format."""
    return render_croissant(
        name=f"kernelquarry-{re.sub(r'[^a-z0-9]+', '-', corpus.lower()).strip('-')}",
        description=f"{summary.pairs:,} PyTorch modules, each paired with a Triton kernel that was checked to compute "
        "the same thing. Every row carries the evidence of that check, and one command replays it.",
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
