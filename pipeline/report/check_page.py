"""Verdicts of `kernelquarry check` as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernelquarry.pipeline.check.verdict import CheckVerdict
from kernelquarry.pipeline.dataset.render_template import render

from .check_text import counts, facts, shapes

TEMPLATE = Path(__file__).parent / "templates" / "check.html.j2"


def render_page(checked: Iterable[tuple[str, str, str, CheckVerdict]]) -> str:
    """A page of (name, source of the module, source of the kernel, verdict); it loads no other file."""
    rows = list(checked)
    title = counts(verdict for *_, verdict in rows) if len(rows) > 1 else rows[0][0]
    return render(TEMPLATE, title=title, rows=rows, facts=facts, shapes=shapes)
