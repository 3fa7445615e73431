"""Load a source as a module from a file, which Triton needs."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from types import CodeType, ModuleType

_compiled: dict[str, tuple[str, CodeType]] = {}  # the text of a file, and its code


def load_source(code: str, name: str) -> ModuleType:
    """Import `code` from `<name>.py` in the working folder, the guest's scratch.

    `@triton.jit` and `inspect` read a function's source from its file, so it has to be in one. The
    module is in `sys.modules` while it runs, as for any import; a second load under the same name
    replaces the first.

    Raises:
        ValueError: `name` is not an identifier, or names an imported module of another file.
        Exception: whatever the code raises.
    """
    path = Path.cwd() / f"{name}.py"
    present = sys.modules.get(name)
    if not name.isidentifier() or (present is not None and getattr(present, "__file__", None) != str(path)):
        raise ValueError(f"cannot load a source as {name!r}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(_code_of(code, path), module.__dict__)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _code_of(text: str, path: Path) -> CodeType:
    """The code of a text, which is written to the file unless that has it."""
    known, code = _compiled.get(str(path), ("", None))
    if code is None or known != text or not path.exists():
        code = compile(text, str(path), "exec", dont_inherit=True)
        path.write_text(text, encoding="utf-8")
        linecache.checkcache(str(path))
        _compiled[str(path)] = text, code
    return code
