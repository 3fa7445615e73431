"""Compositions run, depend on seed and number alone, differ from each other, and name their parts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import torch
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that

from kernelquarry.pipeline.schema.arrow import write_shard
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed, SourceFile, TensorSpec, Workload
from kernelquarry.transforms.mine.transform import MineTrees
from kernelquarry.transforms.read import full_name, open_corpus, read_shard
from kernelquarry.transforms.read.compositions import NAME, compose
from kernelquarry.transforms.read.compositions.blocks import FAMILIES
from kernelquarry.transforms.read.compositions.builder import Kind
from kernelquarry.transforms.read.compositions.mined_modules import part_of, parts
from kernelquarry.transforms.similarity.form import THRESHOLD, form_of, similarity
from tests.factories import make_module, make_probed
from tests.transforms.read.wheel import MIT

CODE = """import torch
from torch import nn


class Helper(nn.Module):
    def forward(self, x):
        return x * 2


class Model(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.proj = nn.Linear(dim, width)
        self.helper = Helper()

    def forward(self, x):
        return self.helper(self.proj(x))  # what a Model does
"""


def mined(code: str = CODE, outputs: Any = None, shapes: tuple[tuple[int, ...], ...] = ((2, 5, 24),)) -> Probed:
    tensors = tuple(TensorSpec(f"x{i}", shape, "float32") for i, shape in enumerate(shapes))
    args = json.dumps([{"tensor": i} for i in range(len(shapes))])
    shape = [2, 5, 16] if outputs is None else outputs
    return replace(
        make_probed(),
        module=replace(make_module(code=code), id=module_id(code), licence=Licence("MIT", "LICENSE: MIT")),
        init_args="[24, 16]",
        workloads=(Workload(tensors, args),),
        outputs=json.dumps({"tensor": 0, "shape": shape, "dtype": "float32"}),
    )


def run(code: str, shape: tuple[int, ...]) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(code, names)
    torch.manual_seed(0)
    result = names[NAME]().eval()(torch.randn(shape))
    assert isinstance(result, torch.Tensor)
    return result


def shape_of(code: str) -> tuple[int, ...]:
    width = int(found[1]) if (found := re.search(r"dim: int = (\d+)", code)) else 16
    takes = next(kind for kind in Kind if f"Takes {kind}" in code)
    return {Kind.FLAT: (3, width), Kind.SEQUENCE: (3, 7, width), Kind.IMAGE: (3, width, 9, 11)}[takes]


@pytest.mark.parametrize("seed", [0, 1])
def test_compositions_run(seed: int) -> None:
    codes = [compose(seed, number).code for number in range(120)]
    results = [run(code, shape_of(code)) for code in codes]
    assert all(result.isfinite().all() for result in results)
    assert sum(result.std() == 0 for result in results) <= 2  # what a chain cuts off below is all zero


def test_a_composition_depends_on_seed_and_number_alone() -> None:
    assert [compose(7, number) for number in range(20)] == [compose(7, number) for number in range(20)]
    assert compose(7, 3).code != compose(8, 3).code
    assert {compose(0, number).family for number in range(len(FAMILIES))} == set(FAMILIES)


def test_compositions_rarely_repeat() -> None:
    forms = [form_of(compose(0, number).code) for number in range(150)]
    alike = sum(any(similarity(a, b) >= THRESHOLD for b in forms[:i]) for i, a in enumerate(forms))
    assert alike <= 0.05 * len(forms)


# parts that were mined


def test_every_other_group_of_eight_has_a_mined_module() -> None:
    (part,) = parts([mined()])
    assert (part.takes, part.gives, part.width, part.init_args) == (Kind.SEQUENCE, Kind.SEQUENCE, 16, "24, 16")
    with_part = [number for number in range(32) if compose(0, number, (part,)).mined]
    assert with_part == [*range(8, 16), *range(24, 32)]
    for number in with_part:
        made = compose(0, number, (part,))
        assert part.id in made.path
        assert "class Part(nn.Module)" in made.code
        assert "# what a Model does" in made.code  # only names change
        assert run(made.code, (2, 5, 24)).isfinite().all()


@pytest.mark.parametrize(
    "probed",
    [
        mined(shapes=((2, 5, 24), (2, 5, 24))),
        mined(shapes=((24,),)),
        mined(outputs=[2]),
        mined(code=CODE + "#" * 5000),
        mined(code=CODE.replace("from torch import nn", "from torch import nn\nF = 3")),
        mined(code=CODE.replace("import torch\n", "import torch\nimport numpy as F\n")),
        mined(code=CODE.replace("Helper", "Part")),
    ],
    ids=["two_inputs", "one_dimension", "vector", "long", "name", "import", "class"],
)
def test_unsuitable_modules_are_not_parts(probed: Probed) -> None:
    assert part_of(probed) is None


# as a source


def read(corpus: str, cache: Path) -> list[SourceFile]:
    shards = open_corpus(corpus, cache).shards()
    outcomes = [outcome for shard in shards for piece in shard.pieces() for outcome in read_shard(piece)]
    assert all(isinstance(outcome, Kept) for outcome in outcomes)
    return [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]


def test_a_row_names_its_parts(tmp_path: Path) -> None:
    files = read("compose:600:3", tmp_path)
    assert len(files) == 600
    file = files[599]
    made = compose(3, 599)
    assert (file.source.package, file.source.revision, file.source.path) == (
        "compose",
        "3.599",
        f"{made.path}/3.599.py",
    )
    assert file.source.path.startswith(f"{made.family}/{made.parts[0]}-")
    assert (file.licence.spdx, file.licence.evidence) == ("Apache-2.0", "composed by kernelquarry")


def test_parts_come_from_a_run_and_are_not_mined_again(tmp_path: Path) -> None:
    stage = tmp_path / "run" / "stages" / "03-probe"
    write_shard(stage / "kept-00000-of-00001.parquet", [mined()], Probed)
    (stage / "stage.json").write_text("{}")
    source = tmp_path / "mine.toml"
    source.write_text('compose = 16\nmodules = "run"\n')
    files = read(str(source), tmp_path)
    assert files[8].licence.spdx == "Apache-2.0 AND MIT"
    assert files[8].licence.evidence.endswith(": LICENSE: MIT")
    theirs = mined().module.source
    assert (files[8].source.corpus, files[8].source.package) == ("compose", theirs.package)  # whose wishes hold

    def check(outcomes: list[Any]) -> None:
        classes = [outcome for line, outcome in outcomes if line == "mine"]
        kept = [outcome.record for outcome in classes if isinstance(outcome, Kept)]
        numbers = [module.source.path.removesuffix(".py").rpartition(".")[2] for module in kept]
        assert sorted(map(int, numbers)) == [*range(16)]
        assert {module.name for module in kept} == {NAME}
        dropped = [outcome for outcome in classes if isinstance(outcome, Dropped)]
        assert {(outcome.reason, outcome.evidence) for outcome in dropped} == {
            (Reason.PART_OF_COMPOSED, "Part"),
            (Reason.PART_OF_COMPOSED, "Helper"),
        }

    with TestPipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(files) | MineTrees(), check)


def test_compositions_can_be_joined_to_any_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "LICENSE").write_text(MIT)
    (tmp_path / "code" / "layers.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "3").mkdir()  # no part of the name is a path
    assert full_name("compose:3") == "compose:3"
    name = full_name("code+compose:3:7")
    corpus = open_corpus(name, tmp_path)
    assert name == f"{tmp_path}/code+compose:3:7" and corpus.name == "code+compose"
    assert [file.source.corpus for file in read(name, tmp_path)] == ["code", "compose", "compose", "compose"]
    alone = [open_corpus(part, tmp_path).digests() for part in ("code", "compose:3:7")]
    assert corpus.digests() == {**alone[0], **alone[1]} and all(alone)


@pytest.mark.parametrize("name", ["compose:", "compose:0", "compose:many", "compose:1:2:3", "tiny+compose:0"])
def test_malformed_names_are_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give compose:NUMBER or compose:NUMBER:SEED"):
        open_corpus(name, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("compose = 0", "are numbers"),
        ('compose = 1\nseed = "a"', "are numbers"),
        ("compose = 1\nsize = 2", "does not know size: give compose, modules, seed"),
        ('compose = 1\nmodules = "nowhere"', "has no probed modules: give a run directory"),
    ],
)
def test_wrong_source_files_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        read(str(tmp_path / "mine.toml"), tmp_path)
