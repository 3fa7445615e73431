"""The list of stages fits together, and each stage names all the code that decides its results."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from kernelquarry.pipeline import manifest
from kernelquarry.pipeline.graph import ALL, BACKWARD, STAGES, Stage, before
from kernelquarry.pipeline.manifest import Fingerprint
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.pipeline.schema.stages import DOES, OPTIONAL
from kernelquarry.transforms.stage import Where

ROOT = Path(__file__).parents[2]
SANDBOX = "pipeline.sandbox"
# How guests are started, stopped and spoken with; what they find does not depend on it.
_MACHINERY = "ending exchange executor executor.service job launcher pool protocol settings"
MACHINERY = {SANDBOX, *(f"{SANDBOX}.{name}" for name in _MACHINERY.split())}
GUESTS = [stage for stage in STAGES if stage.work is not None and stage.work.where is Where.GUESTS]


def by_name(stage: Stage) -> str:
    return stage.name


def test_each_stage_takes_what_the_one_before_gives() -> None:
    assert STAGES[0].takes is None
    assert [stage.takes for stage in STAGES[1:]] == [stage.gives for stage in STAGES[:-1]]
    assert STAGES[-1].gives is Pair
    assert all(stage.takes is before(stage).gives for stage in ALL[1:])
    assert before(BACKWARD).name == "decontaminate"


def test_stages_are_those_that_the_schema_describes() -> None:
    assert [stage.name for stage in STAGES] == list(DOES)
    assert [stage.name for stage in ALL] == [*DOES, *OPTIONAL]
    assert all(stage.units[-1][0] == stage.name for stage in ALL)
    assert all((stage.work is None) != (stage.wiring is None) for stage in ALL if not stage.asks)
    assert [stage.name for stage in ALL if stage.asks] == ["distill"]


@pytest.mark.parametrize("stage", ALL, ids=by_name)
def test_all_code_that_decides_a_stage_is_in_its_fingerprint(stage: Stage) -> None:
    """Follows imports from the code that is listed: whatever else they reach must be known to decide nothing."""
    listed = set(modules_of(stage.code))
    missing = reached(listed) - listed - MACHINERY
    missing = {name for name in missing if not name.startswith(("pipeline.schema", f"{SANDBOX}.layers"))}
    assert not missing


@pytest.mark.parametrize("stage", GUESTS, ids=by_name)
def test_the_guests_that_a_stage_asks_are_in_its_code(stage: Stage) -> None:
    asked = {
        call.args[0].value
        for module in modules_of((f"transforms.{stage.name}",))
        for call in ast.walk(ast.parse(path_of(module).read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Job"
        if isinstance(call.args[0], ast.Constant)
    }
    assert asked
    assert {f"{SANDBOX}.guest.{kind}" for kind in asked} <= set(stage.code)
    assert {"torch", "triton"} <= set(stage.packages)


@pytest.mark.parametrize("stage", ALL, ids=by_name)
def test_a_fingerprint_is_of_code_that_exists(stage: Stage) -> None:
    assert Fingerprint.of(stage.code, stage.packages) == Fingerprint.of(stage.code, stage.packages)


def test_a_fingerprint_changes_with_the_code_the_versions_and_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = {"transforms/a/__init__.py": "", "transforms/a/b.py": "x = 1\n", "pipeline/sandbox/c.py": "y = 1\n"}
    for name, text in code.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / "pipeline")
    versions = {"torch": "1"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)

    def key() -> str:
        return Fingerprint.of(("transforms.a", "pipeline.sandbox.c"), ("torch",)).key

    seen = [key()]
    (tmp_path / "transforms/a/b.py").write_text("x = 2\n")
    seen.append(key())
    (tmp_path / "transforms/a/d.py").write_text("")
    seen.append(key())
    (tmp_path / "pipeline/sandbox/c.py").write_text("y = 2\n")
    seen.append(key())
    versions["torch"] = "2"
    seen.append(key())
    monkeypatch.setattr(manifest, "SCHEMA_VERSION", 1000)
    seen.append(key())
    assert len(set(seen)) == len(seen)
    (tmp_path / "pipeline/other.py").write_text("z = 1\n")
    assert key() == seen[-1]


# imports


def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules_of(code: Iterable[str]) -> Iterable[str]:
    """The modules that a stage's `code` names, those of packages included."""
    for name in code:
        path = ROOT.joinpath(*name.split("."))
        files = path.rglob("*.py") if path.is_dir() else [path_of(name)]
        for file in files:
            yield ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(module: str) -> set[str]:
    """Modules of ours that a module imports, also inside of functions."""
    path = path_of(module)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *filter(None, [node.module])]).removeprefix("kernelquarry.")
            names = [f"{target}.{name.name}" for name in node.names]
            found |= {name if is_ours(name) else target for name in names}
        elif isinstance(node, ast.Import):
            found |= {name.name.removeprefix("kernelquarry.") for name in node.names}
    return {name for name in found if is_ours(name)}


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("pipeline", "transforms", "filters") and path_of(name).is_file()


def reached(modules: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(modules)
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += imports(module)
    return found
