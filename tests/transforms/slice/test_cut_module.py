"""A module is cut in the sandbox; of each pattern a few pieces stay, and each piece is accounted for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from factories import make_fingerprint, make_module, make_probed

from kernelquarry.pipeline.run.run_settings import CutShare, Settings
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.cut import CutPiece
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, Probed, SliceOrigin
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of
from kernelquarry.transforms.slice.choose import MOST_OF_PATTERN, choose, count_modules
from kernelquarry.transforms.slice.cut_module import cut
from kernelquarry.transforms.slice.transform import SliceModules
from kernelquarry.transforms.stage_transform import StageContext

CODE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, 2 * dim)
        self.norm = nn.LayerNorm(2 * dim)

    def forward(self, x):
        return x.sum(1, keepdim=True) + torch.tanh(self.norm(self.proj(x))).mean(-1, keepdim=True)
"""


def probed(sandbox: Sandbox, code: str = CODE) -> Probed:
    outcome = probe(make_module(code), sandbox)
    assert isinstance(outcome, Kept), outcome
    return outcome.record


def test_pieces_tell_where_they_are_from(sandbox: Sandbox) -> None:
    mother = probed(sandbox)
    outcome = cut(mother, sandbox)
    assert isinstance(outcome, Kept)
    by_name = {piece.module.name: piece for piece in outcome.record.pieces}
    signature = signature_of(paths_of(mother.graph))
    piece = by_name["Linear"]
    assert piece.module.slice_of == (SliceOrigin(mother.id, mother.module.name, signature, ("2:proj",), 1),)
    assert (piece.module.source, piece.module.licence) == (mother.module.source, mother.module.licence)
    assert "nn.Linear(in_features, out_features)" in piece.module.code
    assert str(mother.workloads[0].tensors[0].shape)[1:-1] in piece.own_inputs


def test_a_module_whose_forward_fails_is_dropped(sandbox: Sandbox) -> None:
    broken = replace(probed(sandbox), python_code=CODE + "\n\ndef get_init_inputs():\n    return [3]\n")
    outcome = cut(broken, sandbox)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.NO_WORKLOAD


def piece(name: str, form: str, mother: str) -> CutPiece:
    module = replace(make_module(f"{name} = 1\n"), slice_of=(SliceOrigin(mother, "Net", mother, (), 1),))
    return CutPiece(module, "", "pattern", form)


def test_one_piece_of_a_form_and_a_few_of_a_pattern_stay() -> None:
    forms = "aabbbcdef"
    pieces = [piece(f"{form}{i}", form, f"mod_{i % 3}") for i, form in enumerate(forms)]
    found = choose(pieces)
    kept = [one for one in found if isinstance(one, CutPiece)]
    assert len(found) == len(pieces) and found == choose(reversed(pieces))
    assert len(kept) == MOST_OF_PATTERN == len({one.form for one in kept}) and {"a", "b"} < {one.form for one in kept}
    assert {one.module.slice_of[0].modules for one in kept} == {3}
    reasons = [one.reason for one in found if isinstance(one, Dropped)]
    assert sorted(reason.value for reason in reasons) == ["over_pattern"] * 2 + ["same_piece"] * 3


def test_slices_of_one_signature_share_their_number_of_modules() -> None:
    def slice_of(mother: str, modules: int) -> Probed:
        return make_probed(replace(make_module(), slice_of=(SliceOrigin(mother, "Net", mother, (), modules),)))

    def numbers(*slices: Probed, is_whole: bool = False) -> list[int]:
        return [one.module.slice_of[0].modules for one in count_modules(slices, is_whole)]

    assert numbers(slice_of("a", 1)) == [1] and numbers() == []
    assert numbers(slice_of("a", 1), slice_of("b", 1)) == [2, 2]
    assert numbers(slice_of("a", 1), slice_of("a", 5)) == [5, 5]
    assert numbers(slice_of("a", 1), is_whole=True) == [2]


def test_the_stage_loses_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    mother = probed(sandbox)
    copy = replace(mother, module=replace(mother.module, id="mod_copy"))
    broken = replace(mother, module=replace(mother.module, id="mod_broken"), python_code="raise ValueError\n")
    settings = SandboxSettings(workers=1)
    context = StageContext(
        fingerprint=make_fingerprint(),
        store=tmp_path / "store",
        sandbox=settings,
        settings=Settings(),
    )
    written = sum(len(outcome.record.pieces) + len(outcome.record.lost) for outcome in (cut(mother, sandbox),)
                  if isinstance(outcome, Kept))  # fmt: skip

    def check(found: Iterable[tuple[str, Outcome[Any]]]) -> None:
        ends = list(found)
        cuts = {end.id: type(end) for line, end in ends if line == "cut"}
        assert cuts == {mother.id: Kept, "mod_copy": Kept, "mod_broken": Dropped}
        pieces = [end for line, end in ends if line == "slice"]
        kept = [end.record for end in pieces if isinstance(end, Kept)]
        assert len(pieces) == 2 * written and len({one.id for one in kept}) == len(kept) >= 8
        assert all(len(one.workloads) == 3 and one.module.slice_of[0].modules == 1 for one in kept)
        assert all(isinstance(one.module, Module) and not one.module.user for one in kept)

    def check_none(found: Iterable[tuple[str, Outcome[Any]]]) -> None:
        ends = [(line, end.reason) for line, end in found if isinstance(end, Dropped)]
        assert ends == [("cut", Reason.NOT_DRAWN)] * 3

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        modules = pipeline | beam.Create([mother, copy, broken])
        assert_that(modules | SliceModules.from_context(context), check)
        none = modules | "None" >> SliceModules.from_context(replace(context, settings=Settings(CutShare(0.0))))
        assert_that(none, check_none, label="none")
