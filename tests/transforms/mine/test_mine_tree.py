"""Properties of mining any tree: every class has one outcome, whatever the text, and results are deterministic."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.mine import mine_tree
from kernelquarry.transforms.mine.resolve import MAX_DEFINITIONS
from tests.transforms.mine.golden import CASES, kept, make_file, mine, read_case

NET = """
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return {}
"""

HOSTILE = {
    "null_bytes": NET.format("x") + "\0\0",
    "lone_surrogate": NET.format("'\ud800'"),
    "deep_parentheses": NET.format("(" * 3000 + "x" + ")" * 3000),
    "deep_sum": NET.format("+".join(["x"] * 20_000)),
    "deep_unary": NET.format("-" * 20_000 + "x"),
    "deep_attributes": NET.format("x" + ".a" * 20_000),
    "deep_blocks": "import torch\n"
    + "".join(" " * i + "if a:\n" for i in range(1500))
    + " " * 1500
    + "class A(B): pass",
    "unclosed": "class A(nn.Module:\n def torch(\n" * 5000,
    "ten_megabytes": NET.format("x") + "# torch\n" * 1_300_000,
    "one_long_line": NET.format("[" + "1," * 300_000 + "]"),
    "many_classes": "import torch\n" + "class A(torch.nn.Module): pass\n" * 1500,
    "own_base": "import torch\nclass A(B): pass\nclass B(A): pass\n",
    "imports_itself": "import torch\nfrom file import *\nfrom . import file\nfrom file import Net\nclass A(Net): ...",
    "form_feeds": NET.format("x").replace("\n\n", "\n\f\n"),
    "carriage_returns": NET.format("x").replace("\n", "\r"),
    "only_a_mark": "\ufeff",
    "empty": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_ends_in_an_outcome(text: str) -> None:
    result = mine({"file.py": text, "fine.py": NET.format("x")})
    assert len(result.files) == 2
    assert not [outcome for outcome in (*result.files, *result.classes) if isinstance(outcome, Errored)]
    assert "fine.py" in {module.source.path for module in kept(result)}


def test_an_unparsable_file_does_not_affect_its_neighbours() -> None:
    files = {
        "file.py": HOSTILE["deep_blocks"],
        "net.py": NET.format("A(x)").replace("class", "from file import A\nclass"),
    }
    result = mine(files)
    (outcome,) = result.classes
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Reason.UNRESOLVED_NAME


@settings(max_examples=150)
@given(st.data())
def test_damaged_source_ends_in_an_outcome(data: st.DataObject) -> None:
    files = read_case(CASES / "scopes.txt").files
    text = next(iter(files.values()))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 60)))
    damaged = (
        text[:start] + data.draw(st.text(alphabet="()[]{}:,.=*@\\'\"\n \tdefclassifinlambda", max_size=12)) + text[end:]
    )
    result = mine({"net.py": damaged})
    assert len(result.files) == 1
    assert not [outcome for outcome in result.classes if isinstance(outcome, Errored)]


def test_every_class_has_one_outcome() -> None:
    files = {name: text for path in CASES.glob("*.txt") for name, text in read_case(path).files.items()}
    result = mine(files)
    units = Counter(
        f"{o.record.source.path}:{o.record.name}" if isinstance(o, Kept) else o.id.partition("/")[2].partition("@")[0]
        for o in result.classes
    )
    repeated = {"uses.py:Twice"}
    assert {unit for unit, times in units.items() if times > 1} <= repeated
    assert len(result.files) == len(files)


def test_too_many_definitions() -> None:
    chain = "".join(f"def f{i}(x):\n    return f{i + 1}(x)\n\n\n" for i in range(MAX_DEFINITIONS + 1))
    text = f"from torch import nn\n\n\n{chain}def f{MAX_DEFINITIONS + 1}(x):\n    return x\n" + NET.format("f0(x)")
    (outcome,) = mine({"net.py": text}).classes
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Reason.TOO_MANY_DEFINITIONS
    (outcome,) = mine({"net.py": text.replace("f0(x)", "f9(x)")}).classes
    assert isinstance(outcome, Kept)


def test_a_module_has_its_source_and_the_licences_of_its_files() -> None:
    files = [
        make_file("pkg/net.py", "from .act import act\n" + NET.format("act(x)"), "MIT"),
        make_file("pkg/act.py", "def act(x):\n    return x.relu()\n", "Apache-2.0"),
    ]
    (module,) = kept(mine_tree(files))
    assert module.id == module_id(module.code)
    assert module.name == "Net"
    assert module.source == files[0].source
    assert module.imported_files == ("pkg/act.py",)
    assert module.licence.spdx == "Apache-2.0 AND MIT"
    assert module.licence.evidence == "LICENSE: MIT; LICENSE: Apache-2.0"


def test_a_module_is_indented_by_spaces() -> None:
    text = NET.format("x").replace("    ", "\t").replace("\t\treturn", "        # as one tab is indented\n\t\treturn")
    (module,) = kept(mine({"net.py": text}))
    assert "\t" not in module.code and "\n                return x" in module.code


def test_the_same_class_in_two_files_has_one_id() -> None:
    first, second = kept(
        mine({"a.py": NET.format("x"), "b.py": "# elsewhere\n" + NET.format("x").replace("Net", "Other")})
    )
    assert first.id == second.id


def test_a_file_without_torch_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: bytes) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("kernelquarry.transforms.mine.tree_sitter_nodes.parse", refuse)
    (outcome,) = mine({"file.py": "class A(B): pass\n"}).files
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Reason.NO_MODULE


@pytest.mark.parametrize(
    ("importing", "path"),
    [
        ("from lib.act import act", "src/lib/act.py"),  # packages kept in src
        ("from act import act", "src/tool/act.py"),  # scripts that import their neighbours
        ("import lib.act as a; act = a.act", "lib/act.py"),
    ],
)
def test_packages_are_found_in_many_folders_of_a_checkout(importing: str, path: str) -> None:
    files = {"src/tool/net.py": importing + "\n" + NET.format("act(x)"), path: "def act(x):\n    return x.relu()\n"}
    (module,) = kept(mine(files))
    assert "return x.relu()" in module.code


def test_a_shared_definition_is_written_for_each_class() -> None:
    """One definition is renamed where its name is taken, and one class restores a part that the others drop."""
    helper = "def scale(x):\n    return x * {}\n\n"
    shared = (
        "from torch import nn\nimport wandb\nfrom other import scale as double\n\n"
        + helper.format(3)
        + "class Base(nn.Module):\n    def note(self, x):\n        return wandb.watch(x)\n\n"
        + "    def forward(self, x):\n        return scale(x)\n\n"
    )
    classes = (
        "class One(nn.Module):\n    def forward(self, x):\n        return scale(x)\n\n"
        "class Two(nn.Module):\n    def forward(self, x):\n        return scale(double(x))\n\n"
        "class Three(Base):\n    pass\n\n"
        "class Four(Base):\n    def forward(self, x):\n        return self.note(x)\n"
    )
    result = mine({"net.py": shared + classes, "other.py": helper.format(2)})
    codes = {module.name: module.code for module in kept(result)}
    assert codes.keys() == {"Base", "One", "Two", "Three"}
    assert "return x * 3" in codes["One"] and "_2" not in codes["One"]
    assert "scale_2(scale(x))" in codes["Two"]
    assert "wandb" not in codes["Three"]
    assert [o.reason for o in result.classes if isinstance(o, Dropped)] == [Reason.FORBIDDEN_IMPORT]
