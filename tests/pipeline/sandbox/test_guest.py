"""The environment of a guest's code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from scripts import Run

from kernelquarry.pipeline.sandbox import Status
from kernelquarry.pipeline.sandbox.guest.lib.load_source import load_source


def test_the_environment_is_the_guests_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    report = run(
        """
        import os, tempfile
        folders = ["HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"]
        inside = [os.environ[name].startswith(os.getcwd()) for name in folders]
        return {"inside": all(inside) and tempfile.mkdtemp().startswith(os.getcwd()),
                "token": "HF_TOKEN" in os.environ, "threads": os.environ["OMP_NUM_THREADS"]}, {}
        """
    )
    assert report.reply == {"inside": True, "token": False, "threads": "1"}, report.error


def test_only_its_own_descriptors_are_open(run: Run) -> None:
    report = run(
        """
        import os
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2
                 and os.path.lexists(f"/proc/self/fd/{fd}")]
        return {"links": sorted(link.split()[0].rstrip("0123456789") for link in links)}, {}
        """
    )
    assert report.reply == {"links": ["/memfd:reply", "/memfd:request", "/proc/"]}, report.error


def test_torch_and_numpy_work(run: Run) -> None:
    report = run(
        """
        import torch
        module = torch.nn.Conv2d(3, 4, 3)
        y = module(torch.randn(2, 3, 8, 8))
        torch.save(module.state_dict(), "state.pt")
        torch.load("state.pt")
        z = torch.linalg.solve(torch.eye(64) * 2, torch.ones(64, 1))
        return {"shape": list(y.shape), "numpy": float(y.detach().numpy().shape[0]), "z": z.sum().item()}, {}
        """
    )
    assert report.reply == {"shape": [2, 4, 6, 6], "numpy": 2.0, "z": 32.0}, report.error


@pytest.mark.parametrize(
    ("target", "binary"), [("'cuda', 90, 32", "cubin"), ("'hip', 'gfx942', 64", "hsaco")], ids=["H100", "MI300"]
)
def test_triton_compiles_with_its_own_tools(run: Run, target: str, binary: str) -> None:
    """ptxas and the linker run as processes, from the package; no compiler of the machine is needed."""
    report = run(
        f"""
        import importlib.util, sys, triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        source = '''
        import triton
        import triton.language as tl

        @triton.jit
        def double(x, y, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
        '''
        import textwrap
        open("double.py", "w").write(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location("double", "double.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        source = ASTSource(
            fn=module.double, signature={{"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}},
            constexprs={{(3,): 128}},
        )
        return {{"bytes": len(triton.compile(source, target=GPUTarget({target})).asm["{binary}"])}}, {{}}
        """,
        wall_s=60,
    )
    assert report.status is Status.OK, (report.error, report.stderr)
    assert report.reply is not None and report.reply["bytes"] > 1000


def test_the_project_cannot_be_imported(run: Run) -> None:
    report = run(
        """
        found = []
        for name in ("kernelquarry.filters", "kernelquarry.pipeline.schema", "kernelquarry.pipeline.cli.app",
                     "filters", "pipeline", "transforms", "conftest"):
            try:
                __import__(name)
                found.append(name)
            except ImportError:
                pass
        return {"found": found}, {}
        """
    )
    assert report.reply == {"found": []}, report.error


def test_a_source_is_a_module_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "import inspect\ndef f(): pass\ntext = inspect.getsource(f)\nme = __name__"
    module = load_source(code, "mined_source")
    assert (module.me, module.text, Path(module.__file__ or "").parent) == ("mined_source", "def f(): pass\n", tmp_path)
    assert sys.modules.pop("mined_source") is module


def test_a_second_load_replaces_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inspected = "import inspect\ndef f(): return {}\ntext = inspect.getsource(f)"
    assert load_source(inspected.format(1), "mined_twice").text == "def f(): return 1\n"
    assert load_source(inspected.format(234), "mined_twice").text == "def f(): return 234\n"
    del sys.modules["mined_twice"]


@pytest.mark.parametrize("name", ["os", "torch", "a.b", "../a", ""])
def test_a_source_takes_no_other_modules_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="cannot load"):
        load_source("x = 1", name)
    assert not os.listdir(tmp_path)


def test_a_source_that_fails_is_not_left_half_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError):
        load_source("x = 1 / 0", "mined_broken")
    assert "mined_broken" not in sys.modules
