"""Cases of probing as text: a class, then the expected call or the expected reason for a drop.

    -> [32, 4]; x: float a b 32; mask: bool a b     arguments of the constructor; of forward
    -> where b % 4 == 0                             further conditions on the sizes
    -> random: a call changes count                 the reason, and a part of the evidence

A number is a size that is the same in all workloads. A letter is a size that varies between workloads; sizes with the
same letter are equal in each workload.
"""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factories import make_module

from kernelquarry.pipeline.schema.records import Module, Probed, Workload

HEADER = "import torch\nfrom torch import nn\n\n\n"
FOLDER = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Case:
    about: str
    module: Module
    expected: tuple[str, ...]


def read_cases(name: str) -> list[Case]:
    cases = []
    for text in (FOLDER / f"{name}.txt").read_text().split("\n## ")[1:]:
        about, _, rest = text.partition("\n")
        code, *expected = rest.split("\n-> ")
        cases.append(Case(about, make_module(HEADER + code.strip() + "\n"), tuple(line.strip() for line in expected)))
    return cases


def describe(probed: Probed) -> str:
    """The arguments of the constructor and of forward, as the cases write them."""
    letters = _letters(probed.workloads)
    names = {sizes: letter for letter, sizes in letters.items()}
    calls = zip(*(json.loads(workload.args) for workload in probed.workloads), strict=True)
    return "; ".join([probed.init_args, *(_argument(list(trees), probed.workloads, names) for trees in calls)])


def sizes_of(probed: Probed) -> list[dict[str, int]]:
    """The size of each letter, for each workload."""
    letters = _letters(probed.workloads)
    return [{letter: sizes[i] for letter, sizes in letters.items()} for i in range(len(probed.workloads))]


def _letters(workloads: tuple[Workload, ...]) -> dict[str, tuple[int, ...]]:
    tensors = zip(*(workload.tensors for workload in workloads), strict=True)
    found = [sizes for specs in tensors for sizes in zip(*(spec.shape for spec in specs), strict=True)]
    found += list(zip(*(_numbers(json.loads(workload.args)) for workload in workloads), strict=True))
    varying = dict.fromkeys(sizes for sizes in found if len(set(sizes)) > 1)
    return dict(zip(string.ascii_lowercase, varying, strict=False))


def _numbers(tree: Any) -> list[int]:
    if isinstance(tree, list):
        return [number for item in tree for number in _numbers(item)]
    return [tree] if type(tree) is int else []


def _argument(trees: list[Any], workloads: tuple[Workload, ...], names: dict[tuple[int, ...], str]) -> str:
    """One argument of forward, from its tree in each workload."""
    first = trees[0]
    if isinstance(first, list):
        return f"[{', '.join(_argument(list(items), workloads, names) for items in zip(*trees, strict=True))}]"
    if isinstance(first, dict) and first.keys() != {"tensor"}:
        items = {key: _argument([tree[key] for tree in trees], workloads, names) for key in first}
        return f"{{{', '.join(items.values())}}}"
    if not isinstance(first, dict):
        return names.get(tuple(trees), repr(first))
    specs = [workload.tensors[tree["tensor"]] for tree, workload in zip(trees, workloads, strict=True)]
    kinds = {"float32": "float", "int64": f"int {specs[0].low}..{specs[0].high - 1}", "bool": "bool"}
    if specs[0].dtype == "float32" and specs[0].low < specs[0].high:
        kinds["float32"] = f"float {specs[0].low}..{specs[0].high}"
    shape = [names.get(sizes, str(sizes[0])) for sizes in zip(*(spec.shape for spec in specs), strict=True)]
    return " ".join([f"{specs[0].name}:", kinds[specs[0].dtype], *shape])
