"""Shows verdicts of `kernelquarry check` in the terminal, and as one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelquarry.pipeline.check.verdict import CheckVerdict, Shapes, Status
from kernelquarry.pipeline.dataset.render_template import render
from kernelquarry.pipeline.dataset.speeds import describe_timing
from kernelquarry.pipeline.schema.outcome import printable
from kernelquarry.pipeline.schema.records import CounterExample

from .show import facts_table

STYLES = {Status.VERIFIED: "bold green", Status.REJECTED: "bold red", Status.UNJUDGED: "bold yellow"}
_EVIDENCE = 80  # characters in a table
TEMPLATE = Path(__file__).parent / "templates" / "check.html.j2"


def render_verdict(verdict: CheckVerdict) -> RenderableType:
    """The errors, the facts and the counter-example of a verdict."""
    parts: list[RenderableType] = [_errors(verdict)] if verdict.trials else []
    return Group(*parts, facts_table(facts(verdict)))


def render_headline(verdict: CheckVerdict) -> Text:
    """The one line that says the verdict."""
    return Text(printable(verdict.headline), STYLES[verdict.status])


def render_summary(verdicts: Iterable[tuple[str, CheckVerdict]]) -> RenderableType:
    """One line for each kernel, then the number of kernels by status."""
    named = list(verdicts)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("kernel", "verdict", "reason", "evidence"):
        table.add_column(column, overflow="fold")
    for column in ("speedup", "seconds"):
        table.add_column(column, justify="right")
    for name, verdict in named:
        evidence = " ".join(verdict.evidence.split())[:_EVIDENCE]
        speed = f"{verdict.speedup:.2f}" if verdict.speedup else "-"
        cells = (verdict.reason or verdict.purity, evidence, speed, f"{verdict.wall_s:.1f}")
        status = Text(verdict.status.upper(), STYLES[verdict.status])
        table.add_row(Text(printable(name)), status, *(Text(printable(cell)) for cell in cells))
    return Group(table, Text(counts(verdict for _, verdict in named), "bold"))


def counts(verdicts: Iterable[CheckVerdict]) -> str:
    """`12 kernels: 7 verified, 4 rejected, 1 unjudged`."""
    number = Counter(verdict.status for verdict in verdicts)
    parts = ", ".join(f"{number[status]} {status}" for status in Status if number[status])
    return f"{number.total()} kernels: {parts}"


def facts(verdict: CheckVerdict) -> dict[str, str]:
    """The facts of a verdict by name, without those that are unknown."""
    example = verdict.counter_example
    found = {
        "sizes": "; ".join(map(shapes, verdict.sizes)),
        "as given": shapes(verdict.given) if verdict.given not in verdict.sizes else "",
        "note": verdict.note,
        "narrowed": "\n".join(verdict.narrowed),
        "kernels": f"{', '.join(verdict.kernels)}; {_launches(verdict.launches)}" if verdict.kernels else "",
        "purity": " ".join([verdict.purity, *verdict.torch_operators]),
        "ran": _engine(verdict),
        "time": describe_timing(verdict.timing) if verdict.timing else "",
        "fails on": counter_example_line(example) if example else "",
    }
    return {name: value for name, value in found.items() if value}


def _launches(number: int) -> str:
    return f"{number} launch{'es' * (number > 1)} a call"


def _engine(verdict: CheckVerdict) -> str:
    if not verdict.engine:
        return ""
    ran = "in Triton's interpreter" if verdict.engine == "interpreter" else f"on a GPU ({verdict.engine})"
    compiled = f", compiled for {', '.join(verdict.targets)}" if verdict.targets else ""
    return f"{ran}{compiled}, {'' if verdict.deterministic else 'not '}deterministic"


def counter_example_line(example: CounterExample) -> str:
    """`[2, 65], seed 5, normal: error 1.4, ...; output 0[0, 64] is 0.0, not 1.25`: the call and its failure."""
    inputs = shapes(tuple(spec.shape for spec in example.workload.tensors))
    call = f"{inputs}, seed {example.seed}, {example.distribution}: {example.found}"
    return f"{call}; {example.output} is {example.actual:g}, not {example.expected:g}" if example.output else call


def shapes(call: Shapes) -> str:
    """`[5, 8], [5]`: the shapes of the inputs of one call."""
    return ", ".join(str(list(shape)) for shape in call)


def _errors(verdict: CheckVerdict) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("inputs")
    table.add_column("distribution")
    for column in ("seed", "error", "PyTorch's error", "tolerance", "of tolerance"):
        table.add_column(column, justify="right")
    for trial in verdict.trials:
        numbers: Sequence[str] = [f"{n:.2g}" for n in (trial.error, trial.honest_error, trial.tolerance)]
        share = f"{trial.error / trial.tolerance:.0%}" if trial.tolerance else "-"
        table.add_row(shapes(trial.shapes), trial.distribution, str(trial.seed), *numbers, share)
    return table


def render_page(checked: Iterable[tuple[str, str, str, CheckVerdict]]) -> str:
    """A page of (name, source of the module, source of the kernel, verdict); it loads no other file."""
    rows = list(checked)
    title = counts(verdict for *_, verdict in rows) if len(rows) > 1 else rows[0][0]
    return render(TEMPLATE, title=title, rows=rows, facts=facts, shapes=shapes)
