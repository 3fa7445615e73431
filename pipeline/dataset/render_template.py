"""Renders Jinja templates to text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: Path, **values: Any) -> str:
    """The template with `values`. HTML is escaped, and a missing value is an error."""
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=template.name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment.get_template(template.name).render(**values)
