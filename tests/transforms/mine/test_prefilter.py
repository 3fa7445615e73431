"""The prefilter skips only files in which no class can be a module."""

import pytest

from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.mine import tree_sitter_nodes
from kernelquarry.transforms.mine.classes import Classes
from kernelquarry.transforms.mine.prefilter import Candidates
from kernelquarry.transforms.mine.tree import SourceTree
from tests.transforms.mine.golden import CASES, kept, mine, read_case

BASE = "from torch import nn\nclass Base(nn.Module):\n    def forward(self, x): return x\n"
WAYS = {
    "attribute": "import torch\nclass Net(torch.nn.Module):",
    "imported": "from torch.nn import (  # see (below)\n    Linear,\n    Module,\n)\nclass Net(Module):",
    "continued": "from torch.nn import Linear, \\\n    Module\nclass Net(Module):",
    "renamed_module": "import torch.nn.modules.module as parts\nclass Net(parts.Module):",
    "renamed_package": "from torch import nn as layers\nclass Net(layers.Module):",
    "renamed_class": "from base import Base as Other\nclass Net(Other):",
    "assigned": "import base\nOther: type = base.Base  # an alias\nclass Net(Other):",
    "star": "from torch.nn import *\nclass Net(Module):",
    "among_others": "from base import Base\nclass Net(dict[str, 'a:b'], make(1), Base):",
    "on_lines": "from base import Base\nclass Net(\n    Base,  # (which is a module)\n    metaclass=type,\n):",
    "generic": "from base import Base\nclass Net[T](Base):",
    "conditional": "from base import Base\nif True:\n  class Net(Base):",
}


@pytest.mark.parametrize("start", WAYS.values(), ids=WAYS.keys())
def test_every_way_to_derive_a_module_is_found(start: str) -> None:
    indent = "    " if start.splitlines()[-1].startswith("  class") else ""
    text = f"{start}\n{indent}    def forward(self, x): return x\n"
    result = mine({"net.py": text, "base.py": BASE})
    assert [type(outcome) for outcome in result.files] == [Kept, Kept]


def test_files_without_module_classes_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    parse = tree_sitter_nodes.parse
    monkeypatch.setattr(tree_sitter_nodes, "parse", lambda source: parsed.append(source) or parse(source))
    config = (
        "from enum import Enum\nfrom torch import Tensor\nclass Kind(Enum):\n    A = 1\nclass Pipe(Kind):\n    B = 2\n"
    )
    result = mine({"net.py": BASE, "config.py": config})
    assert [module.name for module in kept(result)] == ["Base"]
    assert parsed == [BASE.encode()]


def test_no_module_of_any_golden_case_is_missed() -> None:
    found = 0
    for path in CASES.glob("*.txt"):
        tree = SourceTree({name: text.encode() for name, text in read_case(path).files.items()})
        candidates = Candidates(tree.sources, {})
        with_modules = [name for name in tree.sources if Classes(tree).modules(name)]
        assert all(map(candidates.may_define, with_modules)), path
        found += len(with_modules)
    assert found
