"""The built and installed packages are complete, and pinned."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from itertools import combinations
from pathlib import Path

import pytest
from doc_commands import commands, pages
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kernelquarry.pipeline.cli.failures import EXTRAS

ROOT = Path(__file__).parents[1]
FOLDERS = ("filters", "pipeline", "recipes", "transforms")
API = Path("pipeline", "api", "__init__.py")  # is kernelquarry/__init__.py
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def sources() -> list[Path]:
    """All files of the package, by path in the repository."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    return sorted(path.relative_to(ROOT) for path in files if "__pycache__" not in path.parts)


def installed(path: Path) -> Path:
    """The path of a file of the repository where the package is installed."""
    return Path("kernelquarry", path.name if path == API else path)


def test_every_package_is_listed() -> None:
    packages = {".".join(installed(path).parent.parts) for path in sources() if path.suffix == ".py"}
    assert PROJECT["tool"]["setuptools"]["packages"] == sorted(packages)


def test_every_package_is_one() -> None:
    assert all((ROOT / path.parent / "__init__.py").is_file() for path in sources() if path.suffix == ".py")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, since a build writes into its source folder."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built without a network."""
    target = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run([*pip, "--wheel-dir", target, copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_holds_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = sorted(Path(name) for name in archive.namelist() if ".dist-info/" not in name)
        (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert held == sorted(map(installed, sources()))


def test_the_wheel_works(wheel: Path, tmp_path: Path) -> None:
    """The wheel is unpacked and run outside of the repository."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = (
        "import kernelquarry.pipeline.cli.app as cli\n"
        "from kernelquarry.pipeline.dataset.card import render_card\n"
        "from kernelquarry.transforms.read import open_corpus\n"
        "from pathlib import Path\n"
        "print(cli.__file__, len(open_corpus('tiny', Path('cache')).digests()))\n"
        "cli.main()\n"
    )
    command, environment = [sys.executable, "-c", script, "funnel", "nowhere"], {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    app = tmp_path / "site" / "kernelquarry" / "pipeline" / "cli" / "app.py"
    assert done.stdout.split() == [str(app), "4"], done.stderr
    assert done.returncode == 1
    assert done.stderr.startswith("kernelquarry: nowhere holds no run")


# the commands that install it

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
INSTALLS = sorted({line for page in pages() for line in commands(page) if line.startswith("pip ")})


def add_to_index(index: Path, name: str, version: str) -> None:
    """Add an empty wheel to a package index that is a folder."""
    folder = index / canonicalize_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{stem}-py3-none-any.whl">{stem}</a>')


@pytest.mark.parametrize("line", INSTALLS)
def test_the_docs_install_commands_choose_the_packages_that_they_promise(
    line: str, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip itself resolves the line, with two folders in place of PyPI and of PyTorch's index."""
    extras = PROJECT["project"]["optional-dependencies"]
    named = re.findall(r"\w+", (re.search(r"\[(.*)\]", line) or ["", ""])[1])
    needed = [*PROJECT["project"]["dependencies"], *(each for extra in named for each in extras[extra])]
    for requirement in map(Requirement, needed):
        versions = [spec.version for spec in requirement.specifier if spec.operator in (">=", "==")]
        add_to_index(tmp_path / "pypi", requirement.name, versions[0] if versions else "1.0")
    add_to_index(tmp_path / "cpu", "torch", "2.11+cpu")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "CONFIG_FILE": os.devnull,
        "INDEX_URL": (tmp_path / "pypi").as_uri(),
        "REPORT": str(tmp_path / "report.json"),
        **dict.fromkeys(("DRY_RUN", "QUIET", "IGNORE_INSTALLED"), "1"),
        "NO_BUILD_ISOLATION": "0",  # means "no isolation"
    }.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    _, *words = shlex.split(line.replace(CPU_INDEX, (tmp_path / "cpu").as_uri()))
    done = subprocess.run([sys.executable, "-m", "pip", *words], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    chosen = {canonicalize_name(each["metadata"]["name"]): each["metadata"]["version"] for each in report["install"]}
    assert set(chosen) == {canonicalize_name(Requirement(each).name) for each in needed} | {"kernelquarry"}
    assert chosen["torch"] == ("2.11+cpu" if CPU_INDEX in line else "2.11")


# the lock


LOCKS = {"dev": "requirements.lock", "train": "requirements-train.lock", "verifiers": "requirements-verifiers.lock"}


def locked(extra: str) -> list[tuple[Requirement, int]]:
    """Each requirement in the lock file of an extra, with its number of hashes."""
    lines = (ROOT / LOCKS[extra]).read_text().replace("\\\n", " ").splitlines()
    entries = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [(Requirement(entry.split("--hash")[0]), entry.count("--hash=sha256:")) for entry in entries]


@pytest.mark.parametrize("extra", LOCKS)
def test_every_locked_package_is_pinned_and_has_hashes(extra: str) -> None:
    for requirement, hashes in locked(extra):
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert hashes, requirement


@pytest.mark.parametrize("extra", LOCKS)
def test_the_lock_holds_the_projects_requirements(extra: str) -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    requirements = map(Requirement, [*project["dependencies"], *extras["build"], *extras[extra]])
    pins: dict[str, list[str]] = {}
    for requirement, _ in locked(extra):
        pins.setdefault(canonicalize_name(requirement.name), []).append(str(requirement.specifier)[2:])
    for requirement in requirements:
        if requirement.name == "torch":
            continue
        versions = pins.get(canonicalize_name(requirement.name), [])
        assert versions and all(version in requirement.specifier for version in versions), requirement


def test_all_locks_pin_the_same_versions() -> None:
    locks = [{(r.name, str(r.marker)): str(r.specifier) for r, _ in locked(extra)} for extra in LOCKS]
    for one, other in combinations(locks, 2):
        assert all(one[key] == other[key] for key in one.keys() & other.keys())


@pytest.mark.parametrize("extra", LOCKS)
def test_torch_is_not_locked(extra: str) -> None:
    """Torch's CPU and CUDA builds share a version but have different hashes. Its other requirements are locked."""
    names = {canonicalize_name(requirement.name) for requirement, _ in locked(extra)}
    assert not {name for name in names if name == "torch" or name.startswith("nvidia-")}
    assert {canonicalize_name(name) for name in PROJECT["dependency-groups"]["torch"]} <= names


def test_the_environment_installs_a_torch_that_the_project_accepts() -> None:
    (version,) = re.findall(r"^TORCH +\?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    (torch,) = (r for r in map(Requirement, PROJECT["project"]["dependencies"]) if r.name == "torch")
    assert version in torch.specifier


# the Makefile


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_alone_lists_the_targets() -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make"], cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^  make ([a-z-]+) +(\S.*)$", done.stdout, re.MULTILINE))
    assert len(listed) == len(done.stdout.splitlines())
    assert {"setup", "dataset", "test", "check", "bench", "figures", "clean"} <= set(listed)
    (phony,) = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(listed) <= set(phony.split())  # a folder is called docs


def test_ci_runs_what_contributors_run() -> None:
    commands = (ROOT / ".ci" / "run").read_text().splitlines()
    assert {"make check", "make test"} <= set(commands)
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


# the core

_WITHOUT_EXTRAS = """
import sys
from importlib.abc import MetaPathFinder

from kernelquarry.pipeline.cli.failures import EXTRAS


class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if any(name.partition(".")[0] in modules for modules in EXTRAS.values()):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
import kernelquarry.pipeline.dataset.rows
import kernelquarry.pipeline.report.check_text
import kernelquarry.pipeline.report.show
import kernelquarry.transforms.verify.replay_row
from kernelquarry import Checker
from kernelquarry.pipeline.cli.app import main

main()
"""


def test_the_core_runs_without_the_extras(tmp_path: Path) -> None:
    """Checking, reading and replay import without the extras; any other command names the extra that it needs."""
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, "dataset"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert re.search(
        r"kernelquarry: \w+ is not installed, .* pip install 'kernelquarry\[build\]'$", done.stderr.strip()
    )
    done = subprocess.run([*command[:-1], "check", "no.py", "no.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "no.py: no such file or folder" in done.stderr


def test_the_extras_list_the_modules_of_their_packages() -> None:
    modules = {name: {module.replace("_", "-") for module in found} for name, found in EXTRAS.items()}
    for extra, others in {"build": {"universal-pathlib"}, "train": set()}.items():
        packages = {
            canonicalize_name(Requirement(each).name) for each in PROJECT["project"]["optional-dependencies"][extra]
        }
        assert packages - others <= modules[extra]
