"""Refuse to score a model on problems of a benchmark that its training data holds."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import Kernels
from kernelquarry.recipes.train.data import load_pairs

_logger = logging.getLogger(__name__)


def check_unseen(model: str, suite: str, levels: Sequence[int]) -> None:
    """Check that no row that the model was trained on is labelled as a copy of a problem of the suite.

    The folder of a training names its dataset. Other models, and datasets that are gone, cannot be checked.

    Args:
        levels: of KernelBench, that the model will be scored on.

    Raises:
        UserError: `matched_problems` of a row names such a problem.
    """
    prefixes = tuple(f"{suite}/level{level}/" for level in levels) if suite == "kernelbench" else f"{suite}/"
    for dataset, kernels in sorted(set(_datasets(Path(model)))):
        try:
            pairs = load_pairs(dataset, kernels=kernels)
        except UserError as error:
            _logger.warning("the training data of %s cannot be compared with %s: %s", model, suite, error)
            continue
        copies = [name for pair in pairs for name in pair.matched_problems if name.startswith(prefixes)]
        if copies:
            raise UserError(
                f"{model}: its training data {dataset} holds copies of problems of this suite, such as {copies[0]}: "
                "score it on other levels (--level), or train it on a build without least_operators"
            )


def _datasets(model: Path) -> Iterator[tuple[str, Kernels]]:
    """The datasets of the stage that trained the model, and of the supervised training before it, and `sft.kernels`."""
    stage = model.parent
    for path in (stage / "recipe.json", stage.parent / "sft" / "recipe.json"):
        if path.is_file():
            recorded = json.loads(path.read_text())
            section = recorded.get("recipe", {}).get("sft", {}) if path.parent.name == "sft" else {}
            yield recorded["dataset"], section.get("kernels", "pairs")
