"""Tables that the pages include, made from the code: `<!-- generated: NAME ARGUMENTS -->`, see `pages.py`."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

from figures import ROOT

from kernelquarry.filters import FILTERS
from kernelquarry.filters.balance import CAPS, NAMES, REASONS
from kernelquarry.filters.families import HELD_OUT_OPERATORS, HELD_OUT_PAIRS
from kernelquarry.pipeline.dataset.columns import comments
from kernelquarry.pipeline.publish.gates import GATES
from kernelquarry.pipeline.sandbox.inputs import DISTRIBUTIONS
from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.recipes.config import RewardSection
from kernelquarry.transforms.probe.probe_module import ProbeLimits
from kernelquarry.transforms.read.mapping import USUAL_NAMES
from kernelquarry.transforms.slice.cut_module import MOST
from kernelquarry.transforms.verify.answer import Step


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def reasons(*stages: str) -> str:
    """The reasons of stages. Raises: LookupError: a stage has none."""
    if unknown := set(stages) - {reason.stage for reason in Reason}:
        raise LookupError(f"no reason belongs to {', '.join(sorted(unknown))}")
    return table(["reason", "dropped because"], [(f"`{r.value}`", r.why) for r in Reason if r.stage in stages])


def filters() -> str:
    """The filters in their order, with their limits."""
    rows = []
    for filter in FILTERS:
        limits = [(field.name, field.default) for field in fields(filter)]  # type: ignore[arg-type]
        shown = [
            f"`{name}` {value:,}" if isinstance(value, int | float) else f"{len(value)} forms" for name, value in limits
        ]
        rows.append((f"`{type(filter).__name__}`", _sentence(type(filter)), ", ".join(shown)))
    return table(["filter", "effect", "default"], rows)


def caps() -> str:
    """The caps in their order."""
    about = comments(type(CAPS))
    return table(
        ["cap", "most", "default", "reason"],
        [(f"`{name}`", about[name], f"{getattr(CAPS, name):,}", f"`{REASONS[name].value}`") for name in NAMES],
    )


def held_out() -> str:
    """The held-out families."""
    pairs = [" and ".join(f"`{name}`" for name in sorted(pair)) for pair in HELD_OUT_PAIRS]
    operators = [f"`{name}`" for name in sorted(HELD_OUT_OPERATORS)]
    return table(["held out", "names"], [("operators", ", ".join(operators)), ("pairs", "; ".join(pairs))])


def gates() -> str:
    """The gates of publishing in their order."""
    return table(["gate", "requires"], [(f"`{name}`", _sentence(gate)) for name, gate in GATES])


def probe_limits() -> str:
    """The largest modules that probe accepts."""
    about = comments(ProbeLimits)
    return table(
        ["limit", "value", "counts"], [(f"`{f.name}`", f"{f.default:,}", about[f.name]) for f in fields(ProbeLimits)]
    )


def slice_limits() -> str:
    """The most slices of one module, by the number of their operators."""
    rows = [(_range(low, high), _range(least, most), number) for low, high, least, most, number in MOST]
    return table(["operators", "of which combine", "slices of one module at most"], rows)


def column_names() -> str:
    """The usual names of columns in tables of code."""
    return table(
        ["column", "names"], [(f"`{name}`", ", ".join(f"`{n}`" for n in names)) for name, names in USUAL_NAMES.items()]
    )


def distributions() -> str:
    """The distributions of floating-point inputs."""
    first: dict[Callable[..., object], str] = {}
    rows = []
    for name, draw in DISTRIBUTIONS.items():
        again = f"Those of `{first[draw]}`, in tensors with other strides." if draw in first else ""
        rows.append((f"`{name}`", again or _first_paragraph(draw.__doc__)))
        first[draw] = name
    return table(["distribution", "values"], rows)


def rewards() -> str:
    """The steps of an answer, and the graded reward of each."""
    paid = RewardSection().model_dump()
    rows = [
        (f"`{step.name.lower()}`", comments(Step)[step.name], f"{paid.get(step.name.lower(), 0):g}") for step in Step
    ]
    return table(["step", "reached by", "reward"], rows)


def layers() -> str:
    """The folders by layers of imports, the topmost first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    listed = next(contract["layers"] for contract in contracts if contract["name"] == "Imports go one way")
    rows = []
    for number, layer in enumerate(listed, start=1):
        for name in layer.split(" | "):
            path = ROOT / name.removeprefix("kernelquarry.").replace(".", "/")
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            place = f"{path.relative_to(ROOT)}/" if path.is_dir() else file.relative_to(ROOT)
            rows.append((number, f"`{place}`", _first_paragraph(ast.get_docstring(parse(file.read_text())))))
    return table(["layer", "folder", "contents"], rows)


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _sentence(documented: Callable[..., object]) -> str:
    """The docstring as one line."""
    return " ".join(inspect.cleandoc(documented.__doc__ or "").split())


def _first_paragraph(docstring: str | None) -> str:
    return " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())


TABLES: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        reasons,
        filters,
        caps,
        held_out,
        gates,
        probe_limits,
        slice_limits,
        column_names,
        distributions,
        rewards,
        layers,
    )
}
