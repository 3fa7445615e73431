"""Text from the templates in `templates/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_ROOMS = Path(__file__).parents[1]
TEMPLATES = _ROOMS / "dataset" / "templates"


def render(template: str, **values: Any) -> str:
    """The template with `values`; what goes into HTML is escaped, and a value that is missing is an error."""
    environment = Environment(
        loader=FileSystemLoader([TEMPLATES, _ROOMS / "report" / "templates"]),
        autoescape=template.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment.get_template(template).render(**values)
