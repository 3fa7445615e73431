"""A dataset with the config `rl`, and a model for trainers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelquarry.pipeline.check import Checker
from kernelquarry.pipeline.prompts import kernel_request
from tests.pipeline.check.pairs import SCALE
from tests.recipes.conftest import tiny_model

__all__ = ["tiny_model"]  # a fixture
ROOT = Path(__file__).parents[3]
CARD = """\
---
configs:
- config_name: rl
  data_files:
  - split: train
    path: data/rl/train-*.parquet
---
"""


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One module, in the columns that the adapters read."""
    from datasets import Dataset

    folder = tmp_path_factory.mktemp("dataset")
    (folder / "data" / "rl").mkdir(parents=True)
    rows = [{"id": "rl_1", "prompt": kernel_request(SCALE), "python_code": SCALE}]
    Dataset.from_list(rows).to_parquet(folder / "data" / "rl" / "train-0.parquet")
    (folder / "README.md").write_text(CARD)
    return folder


@pytest.fixture(scope="session")
def chat_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, with a chat template."""
    folder = shutil.copytree(tiny_model, tmp_path_factory.mktemp("chat") / "model")
    shutil.copy(ROOT / "recipes" / "generate" / "chat" / "chatml.jinja", folder / "chat_template.jinja")
    return folder


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with Checker(gpus="none", workers=1) as checker:
        yield checker


def snippets(page: str, language: str) -> list[str]:
    """The code blocks of a page below docs/guides/adapters, in one language."""
    text = (ROOT / "docs" / "guides" / "adapters" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
