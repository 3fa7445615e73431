"""Commands, options, paths and links that the pages name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from kernelquarry.pipeline.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TEMPLATES = sorted((ROOT / "pipeline" / "dataset" / "templates").iterdir())
FIGURES = ROOT / "docs" / "results" / "figures.json"  # which the first `make bench` writes
MAKEFILE = (ROOT / "Makefile").read_text()
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def lines_of_code(page: Path) -> Iterator[str]:
    """Lines of code blocks, and inline code between backticks or <code> tags."""
    for index, part in enumerate(re.split(r"^ *```.*$", page.read_text(), flags=re.MULTILINE)):
        if index % 2:
            yield from (line.strip().removeprefix("$ ") for line in part.splitlines())
        else:
            yield from re.findall(r"`([^`\n]+)`", part)
            yield from re.findall(r"<code>([^<]+)</code>", part)


def words(line: str) -> list[str]:
    return re.split(r"\s+#|[;|&>]", line)[0].split()


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=name)
def test_commands_and_their_options_exist(page: Path) -> None:
    for line in lines_of_code(page):
        if not line.startswith("kernelquarry "):
            continue
        _, command, *arguments = words(line)
        if command.startswith("-"):
            continue
        assert command in COMMANDS, line
        options = {option for parameter in COMMANDS[command].params for option in parameter.opts} | {"--help"}
        given = {argument.partition("=")[0] for argument in arguments if argument.startswith("-")}
        assert given <= options, line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_targets_and_their_variables_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) *\?=", MAKEFILE, re.MULTILINE))
    for line in lines_of_code(page):
        if not line.startswith("make "):
            continue
        for word in words(line)[1:]:
            variable, assigned, _ = word.partition("=")
            assert (variable in variables) if assigned else (word in targets), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_exist(page: Path) -> None:
    """Paths in the repository, without those of a run's output below `out/`."""
    for line in lines_of_code(page):
        path = re.fullmatch(
            r"(?:python )?((?:pipeline|transforms|filters|tests|docs|benchmarks|examples)/[\w./-]+)", line
        )
        if path is not None:
            assert (ROOT / path[1]).exists() or ROOT / path[1] == FIGURES, line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)  # code such as `kernel[grid](...)` is no link
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        place, _, heading = target.partition("#")
        if ":" in place:
            continue  # on the net
        linked = page.parent / place if place else page
        assert linked.exists() or linked == FIGURES, target
        if heading:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}, target


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    navigation = re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if ROOT / "docs" in page.parents]
    assert sorted(navigation) == sorted(pages)


def test_something_is_checked() -> None:
    found = [line for page in PAGES for line in lines_of_code(page)]
    assert sum(line.startswith("make ") for line in found) >= 5
    assert sum(line.startswith("kernelquarry ") for line in found) >= 3
