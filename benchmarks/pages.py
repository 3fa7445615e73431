"""Generate documentation pages and package data from code, pages and measurements, by `make docs`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any

import typer
from figures import ROOT, goals, measured
from language_page import describe, prompt
from schema_page import render_schema
from tables import TABLES

from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.graph import ORDER
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Pair
from kernelquarry.transforms.verify.checks import CHECKS
from kernelquarry.transforms.verify.further_calls import further_calls

SAMPLE = ROOT / "examples" / "sample"
VERSUS = ROOT / "docs" / "results" / "versus.json"
ABLATION = ROOT / "docs" / "results" / "checks.json"
GENERATED = re.compile(r"<!-- generated: (.*?) -->.*?<!-- end -->", re.DOTALL)
_STAGES = {"guest": "Any stage that runs a guest"}
_ERROR_RATES = ("verdict.mutants_killed", "verdict.false_rejects", "verdict.evil_accepted", "verdict.flips")
_REASONS = """\
# Reasons

The reasons for which records are dropped. A dropped record is not fit for the dataset; its evidence says what was
measured. A record that *errored* shows a failure of the pipeline: it has the type of the exception in place of a code,
and the next run tries it again. Both are in the `lost.parquet` of their stage, with id, stage and evidence. Codes are
stable between releases.

This page is made from `pipeline/schema/reasons.py` by `make docs`.
"""
_COMMANDS = """\
# Commands

The commands of `kernelquarry`, with their arguments and options. Each prints the same with `--help`.

This page is made from the command line by `make docs`.
"""
_RESULTS = """\
# Results

The latest measurement of each figure beside its goal, good or bad. Every measurement that was ever made stands in
[figures.json](figures.json), with its versions and commit; `make figures` prints the latest,
`make bench` measures anew.

This page is made from `docs/results/` by `make docs`.

| figure | what | measured | goal | | on | date |
|---|---|---|---|---|---|---|
"""
_VERSUS = """\
# Error rates compared with KernelBench's evaluator

The errors of four judges on the same candidates: wrong candidates that a judge accepts, and right ones that it rejects.
`benchmarks/versus.py` measures them: its first lines describe the judges and how to repeat the measurement.

This page is made by `make docs` from the verdicts that the command records.
"""
_GALLERY = """\
# Gallery

The twenty rows of [`examples/sample`](../../examples/sample), a dataset that `make sample` builds from the modules in
[`examples/modules`](../../examples/modules). Below, each row has its module and its longest kernel. These commands show
a whole row with its evidence, and verify it again:

```
kernelquarry show {id} --dataset examples/sample
kernelquarry replay {id} --dataset examples/sample
```

The last column is the largest error of a row's trials against the float64 oracle, as a share of its tolerance.
{environment}

This page is made from the sample by `make docs`.

| module | kernels | lines | trials | largest error |
|---|--:|--:|--:|--:|
"""
_JUDGES = {
    "ours": "this verifier",
    "kernelbench": "KernelBench",
    "static": "KernelBench and its static checker",
    "allclose": "`allclose` at 1e-2, one shape",
}
_VERSUS_NOTES = """\
A cell has the number of errors, their share, and Wilson's interval of 95 %.

- **The two corpora are not a fair sample for this verifier.** They are its regression tests: every evil case that it
  once accepted was answered by a check, and every honest case that it once rejected by a repair. The mutants are drawn
  at random.
- **Mutants.** A mutant is one random mistake in the kernel of a verified row. It counts as wrong if this verifier
  rejects it, or if a search finds an input on which it is wrong and the row's kernel is right. A wrong mutant that
  neither finds does not count.
- **Candidates that count.** A judge must accept the row's own kernel before its verdict on a mutant counts, and the
  reference as its own answer before its verdict on another candidate counts. A candidate counts if it does so for all
  judges.
- **KernelBench runs in this project's sandbox**, with five trials in float32. The sandbox refuses some acts that
  KernelBench alone would let pass, so its rate on candidates that attack the machine may be too low. KernelBench
  expects that both classes draw equal weights under one seed, which the honest corpus does not promise.
"""


def render_reasons() -> str:
    """The page of reasons: a table for each stage, in order."""
    parts = [_REASONS]
    order = [line for stage in ORDER for line, _ in stage.counted]
    place = {line: index for index, line in enumerate(order)}
    by_stage = sorted(Reason, key=lambda reason: place.get(reason.stage, len(order)))  # "guest" is last
    for stage, reasons in groupby(by_stage, key=lambda reason: reason.stage):
        rows = "".join(f"| `{reason.value}` | {reason.why} |\n" for reason in reasons)
        parts.append(f"\n## {_STAGES.get(stage, stage.capitalize())}\n\n| code | why |\n|---|---|\n{rows}")
    return "".join(parts)


def render_results() -> str:
    """The page of results: a row for each measured figure, and its notes."""
    latest = {figure.id: figure for figure in measured()}
    rows, missed, notes = [], [], []
    for id, goal in goals().items():
        if (figure := latest.get(id)) is None:
            rows.append(f"| `{id}` | {goal.what} | not measured | {goal} | | | |\n")
            continue
        mark = "met" if goal.met(figure.value) else "**missed**"
        value = f"{figure.value:g} {figure.unit}"
        rows.append(f"| `{id}` | {goal.what} | {value} | {goal} | {mark} | {figure.machine} | {figure.date} |\n")
        missed += [f"- `{id}`: {goal.missed}\n"] if not goal.met(figure.value) else []
        notes += [f"- `{id}`: {figure.note} (`{figure.command}`)\n"] if figure.note else []
    return "".join([_RESULTS, *rows, *_section("What was missed, and why", missed), *_section("Notes", notes)])


def render_commands() -> str:
    """The page of commands: a section for each, with its arguments and options."""
    parts = [_COMMANDS]
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
        usage = " ".join(["kernelquarry", name, *((a.metavar or a.name).upper().strip("{}[]") for a in arguments)])
        text = re.sub(r"\s*\n\s*", " ", re.sub(r"\n\s*\n", "\0", (command.help or "").strip())).replace("\0", "\n\n")
        rows = "".join(_option(parameter) for parameter in command.params if "--help" not in parameter.opts)
        parts.append(f"\n## {name}\n\n`{usage}`\n\n{text}\n")
        parts.append(f"\n| option | meaning | default |\n|---|---|---|\n{rows}" if rows else "")
    return "".join(parts)


def _option(parameter: Any) -> str:
    """A row of the table of a command's options. The number of workers depends on the machine."""
    name = ", ".join(f"`{option}`" for option in [*parameter.opts, *parameter.secondary_opts])
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if parameter.name == "workers":
        shown = "by the number of cores"
    default = "" if shown in (None, "", False, (), []) or callable(shown) else f"`{shown}`"
    text = " ".join((parameter.help or "").split()).replace("|", "\\|").replace("\\[", "[")
    return f"| {name} | {text} | {default} |\n"


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"\n## {title}\n\n", *lines] if lines else []


def render_gallery() -> str:
    """The page of the sample's rows."""
    rows = sorted(read_rows(SAMPLE), key=lambda row: (row.source.path, row.module_name))
    environment = rows[0].verdict.environment
    made = (
        f"The sample was made with torch {environment.torch} and triton {environment.triton}, on {environment.device}."
    )
    lines = [
        f"| [{row.module_name}](#{row.module_name.lower()}) | {len(row.kernels)} | {len(row.triton_code.splitlines())} "
        f"| {len(row.verdict.trials)} | {max(trial.error / trial.tolerance for trial in row.verdict.trials):.0%} |\n"
        for row in rows
    ]
    return "".join([_GALLERY.format(id=rows[0].id, environment=made), *lines, *map(_gallery_section, rows)])


def _gallery_section(row: Pair) -> str:
    module = _definitions(row.python_code, ast.ClassDef)[ENTRY_POINT]
    kernels = _definitions(row.triton_code, ast.FunctionDef)
    name = max(row.kernels, key=lambda name: len(kernels[name]))
    inputs = ", ".join(f"`{spec.name}` {list(spec.shape)}" for spec in row.workloads[0].tensors)
    verdict = (
        f"Verified, {row.purity}, on inputs such as {inputs}. Kernels: {', '.join(f'`{one}`' for one in row.kernels)}."
    )
    folded = f"<details><summary><code>{name}</code></summary>\n\n```python\n{kernels[name]}\n```\n\n</details>\n"
    return f"\n## {row.module_name}\n\n{verdict}\n\n```python\n{module}\n```\n\n{folded}"


def _definitions(code: str, kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> dict[str, str]:
    """Sources of the functions or classes of a file, by name, with their decorators."""
    lines = code.splitlines()
    found = [node for node in ast.parse(code).body if isinstance(node, kind)]
    starts = [min(part.lineno for part in (node, *node.decorator_list)) for node in found]
    pairs = zip(found, starts, strict=True)
    return {node.name: "\n".join(lines[start - 1 : node.end_lineno]) for node, start in pairs}


def render_error_rates() -> str:
    """Package data: the latest measurements of the verifier's error rates."""
    latest = {figure.id: figure for figure in measured()}
    chosen = [goal for goal in goals().values() if goal.id.startswith(_ERROR_RATES) and goal.id in latest]
    return _json([{**asdict(latest[goal.id]), "what": goal.what} for goal in chosen])


def fill(path: str) -> str:
    """A page, with what stands between `<!-- generated: NAME ARGUMENTS -->` and `<!-- end -->` rendered anew."""

    def render(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        return f"<!-- generated: {match[1]} -->\n\n{INCLUDES[name](*arguments).strip()}\n\n<!-- end -->"

    return GENERATED.sub(render, (ROOT / path).read_text())


def pages_with_includes() -> list[str]:
    """Paths of the hand-written pages that hold a generated part."""
    paths = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    return [path.relative_to(ROOT).as_posix() for path in paths if GENERATED.search(path.read_text())]


def include_checks() -> str:
    """The verifier's checks, with the number of evil cases that each rejects."""
    found = json.loads(ABLATION.read_text())
    counts = {row["check"]: row for row in found["checks"]}
    rows = ["| check | catches | applies to | rejects | alone |", "|---|---|---|--:|--:|"]
    for check in CHECKS:
        row = counts.get(check.name, {"rejects": "", "alone": ""})
        rows.append(f"| {check.name} | {check.catches} | {check.applies.value} | {row['rejects']} | {row['alone']} |")
    return "\n".join([*rows, f"\nCounted over {found['cases']} evil cases, {found['machine']}."])


def include_further_calls() -> str:
    """The plan of the further calls of a model's candidate."""
    lines = (further_calls.__doc__ or "").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip().startswith("|"))


def include_figures(*ids: str) -> str:
    """The latest measurements of figures."""
    latest = {figure.id: figure for figure in measured()}
    rows = ["| what | measured | goal | on |", "|---|--:|--:|---|"]
    for id in ids:
        goal, figure = goals()[id], latest.get(id)
        value, where = (f"{_short(figure.value)} {figure.unit}", figure.machine) if figure else ("not yet", "")
        rows.append(f"| {goal.what} | {value} | {goal} | {where} |")
    return "\n".join(rows)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def include_gpu_cases() -> str:
    """The evil cases that only a GPU can reject."""
    rows = ["| case | mistake | modelled on |", "|---|---|---|"]
    for path in sorted((ROOT / "tests" / "evil").rglob("*.py")):
        text = path.read_text()
        header = dict(re.findall(r'^# (\w+) = "(.*)"$', text, re.MULTILINE))
        if header.get("needs") == "gpu":
            mistake = ast.get_docstring(ast.parse(text)) or ""
            rows.append(f"| `{path.stem}` | {mistake.splitlines()[0]} | {header['source']} |")
    return "\n".join(rows)


def render_versus() -> str:
    """The page of the error rates of several judges."""
    return f"{_VERSUS}\n{render_versus_table() or 'Not measured yet.'}".rstrip() + "\n"


def render_versus_table() -> str:
    """Package data: the same rates and notes for the dataset card, "" if they were not measured."""
    if not VERSUS.exists():
        return ""
    found = json.loads(VERSUS.read_text())
    judges = found["judges"]
    head = "| class | candidates |" + "".join(f" {_JUDGES[judge]} |" for judge in judges)
    rows = [
        f"| {_error_class(row['class'])} | {row['candidates']} |"
        + "".join(f" {_rate(row[judge])} |" for judge in judges)
        for row in found["classes"]
    ]
    table = "\n".join([head, "|---|--:|" + "--:|" * len(judges), *rows])
    left_out = ", ".join(f"{number} of {corpus}" for corpus, number in found["left_out"].items()) or "none"
    disputed = "; ".join(f"{_JUDGES[judge]} rejects {len(ids)}" for judge, ids in found["disputed"].items())
    about = f"- Left out, since a judge could not judge them: {left_out}. Mutants that this verifier accepts and that\n"
    about += f"  have no witness, which do not count either: {found['unproven']}; of these, {disputed}.\n"
    about += f"- Measured on {found['machine']}; KernelBench at commit {found['revision'] or 'unknown'}.\n"
    return f"{table}\n\n{_VERSUS_NOTES}{about}"


def _error_class(name: str) -> str:
    return "honest: wrongly rejected" if name == "honest" else f"{name}: wrongly accepted"


def _rate(cell: dict[str, Any]) -> str:
    return f"{cell['errors']} ({cell['rate']:.1f} %; {cell['low']:.1f} to {cell['high']:.1f})"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


INCLUDES: dict[str, Callable[..., str]] = TABLES | {
    "checks": include_checks,
    "further_calls": include_further_calls,
    "figures": include_figures,
    "gpu_cases": include_gpu_cases,
}
WHOLE: dict[str, Callable[[], str]] = {
    "docs/reference/gallery.md": render_gallery,
    "docs/reference/reasons.md": render_reasons,
    "docs/reference/language.md": describe,
    "pipeline/prompts/language.md.j2": prompt,
    "docs/reference/cli.md": render_commands,
    "docs/reference/schema.md": render_schema,
    "docs/results/README.md": render_results,
    "docs/results/versus.md": render_versus,
    "pipeline/dataset/templates/versus.md": render_versus_table,
    "pipeline/dataset/templates/error_rates.json": render_error_rates,
}
PAGES = WHOLE | {path: partial(fill, path) for path in pages_with_includes()}

if __name__ == "__main__":
    for path, render in PAGES.items():
        (ROOT / path).write_text(render())
