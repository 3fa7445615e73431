"""Training curves: the trainer's log as JSON lines, and a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.files import replace_file

PANELS = {
    "sft": ("loss", "eval_loss", "mean_token_accuracy", "learning_rate"),
    "grpo": ("reward", "completions/mean_length", "correct", "reward_wait"),
}


def write_curves(stage: Path, name: str, history: Sequence[Mapping[str, Any]]) -> None:
    """Write `curves.jsonl` and `curves.png` from the trainer's log."""
    with replace_file(stage / "curves.jsonl") as stream:
        stream.writelines(f"{json.dumps(dict(entry))}\n".encode() for entry in history)
    panels = [(panel, points) for panel in PANELS[name] if (points := series(history, panel))]
    if panels:
        _plot(stage / "curves.png", panels)


def series(history: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """(step, value) pairs of one quantity."""
    return [(entry["step"], float(entry[key])) for entry in history if key in entry and "step" in entry]


def _plot(path: Path, panels: Sequence[tuple[str, Sequence[tuple[int, float]]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(panels), 2.8), layout="constrained")
    for axes, (name, points) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 30 else "", linewidth=1.2)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("step", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    with replace_file(path) as stream:
        figure.savefig(stream, format="png", dpi=150)
