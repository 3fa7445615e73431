"""A pair in the terminal: both sides next to each other, and what is known of them."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from .schema.records import Pair, Workload


def render_pair(pair: Pair) -> RenderableType:
    """PyTorch on the left, Triton on the right, the facts below. Wraps to the width of the console."""
    sides = Table.grid(expand=True, padding=(0, 1))
    sides.add_column(ratio=9)
    sides.add_column(ratio=11)
    sides.add_row(_source("PyTorch", pair.python_code), _source("Triton", pair.triton_code))
    return Group(Text(f"{pair.module_name}  {pair.id}", "bold"), sides, _facts(pair))


def _source(title: str, code: str) -> Panel:
    syntax = Syntax(code.rstrip(), "python", theme="ansi_dark", background_color="default", word_wrap=True)
    return Panel(syntax, title=title, title_align="left", border_style="dim")


def _facts(pair: Pair) -> Table:
    source, verdict = pair.source, pair.verdict
    facts = {
        "source": f"{source.package} {source.revision}, {source.path}",
        "licence": f"{pair.licence.spdx} ({pair.licence.evidence})",
        "operators": ", ".join(pair.operators),
        "kernels": ", ".join(pair.kernels),
        "purity": " ".join((pair.purity, *pair.extern_ops)),
        "shapes": "; ".join(shapes(workload) for workload in pair.workloads)
        + (", shape-general" if pair.shape_general else ", specialised"),
        "verdict": f"{', '.join(verdict.tiers)}; {', '.join(verdict.targets)}; {len(verdict.trials)} comparisons, "
        f"worst error {verdict.worst_ratio:.2g} of 1 allowed",
        "generator": f"{pair.generator.name} {pair.generator.version}",
        "split": pair.split,
    }
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(value))
    return table


def shapes(workload: Workload) -> str:
    """`x[5, 8], mask[5]`: the tensors of one call of forward."""
    return ", ".join(f"{tensor.name}[{', '.join(map(str, tensor.shape))}]" for tensor in workload.tensors)
