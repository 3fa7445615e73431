"""Shows a row in the terminal: module and kernel side by side, and the facts about them."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kernelquarry.pipeline.dataset.speeds import describe_timing
from kernelquarry.pipeline.schema.outcome import printable
from kernelquarry.pipeline.schema.records import CounterExample, Pair, Rejection, Row, Workload

_WIDE = 100  # columns


def render_row(row: Pair | Rejection) -> RenderableType:
    """Both sources, and facts below them."""
    return Group(_title(row), _Sides(row), facts_table(_facts(row)))


def render_example(pair: Pair) -> RenderableType:
    """Both sources and the verdict of a pair."""
    facts = _facts(pair)
    shown = {name: facts[name] for name in ("source", "licence", "verdict")}
    return Group(_title(pair), _Sides(pair), facts_table(shown))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The PyTorch source and the Triton source, side by side where the terminal is wide enough."""

    row: Row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left, right = _source("PyTorch", self.row.python_code), _source("Triton", self.row.triton_code)
        if options.max_width < _WIDE:
            yield left
            yield right
            return
        sides = Table.grid(expand=True, padding=(0, 1))
        sides.add_column(ratio=9)
        sides.add_column(ratio=11)
        sides.add_row(left, right)
        yield sides


def _title(row: Row) -> Text:
    return Text(printable(f"{row.module_name}  {row.id}"), "bold")


def _source(title: str, code: str) -> Panel:
    syntax = Syntax(printable(code.rstrip()), "python", theme="ansi_dark", background_color="default", word_wrap=True)
    return Panel(syntax, title=title, title_align="left", border_style="dim")


def _facts(row: Pair | Rejection) -> dict[str, str]:
    source = row.source
    return {
        "source": f"{source.package} {source.revision}, {source.path}",
        "licence": f"{row.licence.spdx} ({row.licence.evidence})",
        "operators": ", ".join(row.operators),
        "kernels": ", ".join(row.kernels),
        "purity": " ".join((row.purity, *row.extern_ops)),
        "shapes": "; ".join(shapes(workload) for workload in row.workloads)
        + (", shape-general" if row.shape_general else ", specialised")
        + (", constructor-general" if isinstance(row, Pair) and row.constructor_general else "")
        + "".join(f", {guard}" for guard in row.guards),
        **(_evidence(row) if isinstance(row, Pair) else _failure(row)),
        "generator": f"{row.generator.name} {row.generator.version}",
        "split": row.split,
    }


def facts_table(facts: dict[str, str]) -> Table:
    """Names and values, one a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(printable(value)))
    return table


def _evidence(pair: Pair) -> dict[str, str]:
    verdict, times = pair.verdict, [describe_timing(timing) for timing in pair.timings]
    verified = f"{', '.join(verdict.tiers)}; {', '.join(verdict.targets)}; {len(verdict.trials)} comparisons, "
    return {
        "verdict": f"{verified}worst error {verdict.worst_ratio:.2g} of 1 allowed",
        "time": "; ".join(times) or "not measured",
    }


def _failure(row: Rejection) -> dict[str, str]:
    return {
        "rejected": f"{row.reason}: {row.evidence}",
        "fails on": "; ".join(map(example_line, row.counter_examples)) or "no single call shows the failure",
    }


def example_line(example: CounterExample) -> str:
    """`x[2, 65], normal, seed 5: error 1.4, ...; output 0[0, 64] is 0.0, not 1.25`: the call and its failure."""
    call = f"{shapes(example.workload)}, {example.distribution}, seed {example.seed}: {example.found}"
    return f"{call}; {example.output} is {example.actual:g}, not {example.expected:g}" if example.output else call


def shapes(workload: Workload) -> str:
    """`x[5, 8], mask[5]`: names and shapes of the tensors of one call."""
    return ", ".join(f"{tensor.name}[{', '.join(map(str, tensor.shape))}]" for tensor in workload.tensors)
