"""Checks the language of names and docstrings: `python tests/check_language.py [PATH ...]`, part of `make check`.

The list holds the words of an old private vocabulary and the openings of docstrings that are no sentences.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("pipeline", "transforms", "filters", "recipes", "benchmarks", "tests", "examples", "tools")
SKIPPED = ("tests/evil", "tests/honest", "tests/references")  # candidates, which are data
WORDS = frozenset(
    "told taught taught_in fated fate fates beside elsewhere asks asked asking school lesson lessons yardstick bench "
    "benches workplace borne".split()
)
COLUMNS = {"asked"}  # published columns keep their names
OPENINGS = re.compile(r"(What|Of|None|As|Beside|Who|Whether|Where|That|Which)\b")


def complaints(path: Path) -> Iterator[str]:
    """One line for each banned identifier and each docstring with a banned opening."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in _names(node):
            if name not in COLUMNS and (
                found := WORDS & set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))
            ):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {name}: rename {min(found)!r}"
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if opening := OPENINGS.match(text):
                line = getattr(node, "lineno", 1)
                yield f"{path.relative_to(ROOT)}:{line}: docstring begins with {opening[0]!r}: name the thing first"


def _names(node: ast.AST) -> Iterator[str]:
    """Names that the node defines or binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if not path.relative_to(ROOT).as_posix().startswith(SKIPPED):
                yield path


def main() -> int:
    """Print the complaints; exit status 1 if there is one."""
    places = [Path(argument).resolve() for argument in sys.argv[1:]] or [ROOT / room for room in ROOMS]
    found = [complaint for path in files(places) for complaint in complaints(path)]
    print("\n".join(found) if found else "language: nothing to complain about")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
