"""The notebook runs on any dataset, and is stored with the outputs of the tiny corpus."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from factories import make_pairs
from nbclient import NotebookClient

from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "explore.ipynb"


def execute(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> nbformat.NotebookNode:
    monkeypatch.setenv("KERNELQUARRY_DATASET", str(dataset))
    monkeypatch.setenv("HF_HOME", str(dataset.parent / "cache"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> str:
    return str([output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs])


def test_it_shows_what_is_in_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(
        tmp_path / "dataset", make_pairs(30, ("train", "validation", "test")), Rejected(), [], Build("tiny", {})
    )
    shown = outputs(execute(tmp_path / "dataset", monkeypatch))
    for text in ("num_rows: 10", "layers0", "Apache-2.0", "image/png", "scale_shift_relu", "sm_90", "honest_error"):
        assert text in shown


def test_one_specialised_row_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = replace(make_pairs(1)[0], shape_general=False)
    write_dataset(tmp_path / "dataset", [pair], Rejected(), [], Build("tiny", {}))
    assert pair.id in outputs(execute(tmp_path / "dataset", monkeypatch))


def test_outputs_are_those_of_one_run_without_paths_of_a_machine() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs and all(output.output_type != "error" for output in cell.outputs) for cell in cells)
    assert not re.search(r"/(?:home|root|tmp|work|Users)/", outputs(notebook))
