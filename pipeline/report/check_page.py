"""Verdicts of `kernelquarry check` as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import jinja2

from kernelquarry.pipeline.check.verdict import CheckVerdict

from .check_text import counts, facts, shapes
from .highlight import highlight

_TEMPLATES = Path(__file__).parent / "templates"


def render_page(checked: Iterable[tuple[str, str, str, CheckVerdict]]) -> str:
    """A page of (name, source of the module, source of the kernel, verdict); it loads no other file."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True)
    environment.filters |= {"highlight": highlight, "shapes": shapes, "facts": facts}
    rows = list(checked)
    title = counts(verdict for *_, verdict in rows) if len(rows) > 1 else rows[0][0]
    return environment.get_template("check.html.j2").render(title=title, rows=rows)
