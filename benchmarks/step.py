"""Profile a few steps of supervised training with torch's profiler.

    python benchmarks/step.py --dataset out/default/dataset
    python benchmarks/step.py --dataset out/default/dataset --set sft.compile=false --out plain.txt

The first steps compile and are not counted, the next ones are timed, and the last ones are profiled. It prints tokens
per second, the share of the GPU's peak arithmetic, the GPU's idle share, the time by kind of kernel, and the most
expensive operators and kernels. No model is saved.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers import TrainerCallback

from kernelquarry.pipeline.cli.training import default_recipe
from kernelquarry.recipes.config import load_recipe
from kernelquarry.recipes.train.sft import train
from kernelquarry.recipes.train.trainer import TrainingJob

H100_FLOPS = 989e12  # dense, bfloat16; an H200 has as much
WARM, TIMED, LOOKED_AT = 6, 8, 3  # steps
KINDS = {  # kind of a kernel -> pattern of its name; the first match counts
    "attention": r"flash|fmha|attn",
    "products of matrices": r"gemm|nvjet|cutlass|xmma|cublas|splitk",
    "head": r"^_(forward|backward)_kernel",  # TRL's loss, without its matrix products
    "compiled layers": r"^triton_",
    "optimiser": r"multi_tensor|adam",
    "copies": r"memcpy|memset|copy",
    "other": "",
}


class Watch(TrainerCallback):
    """Times steps, profiles further ones, and ends the training."""

    def __init__(self, warm: int, timed: int, looked_at: int) -> None:
        self._begin, self._end, self._last = warm, warm + timed, warm + timed + looked_at
        self.steps = timed
        self.seconds = 0.0  # of the timed steps
        self.tokens = 0  # in the timed steps
        self.rows: list[torch.Tensor] = []  # offsets of the rows of each batch, and their end
        self.profile: Any = None
        self.looked_at_s = 0.0
        self.weights = self.width = self.layers = 0  # of the model
        self._counts = False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.weights, self.width = model.num_parameters(), model.config.hidden_size
        self.layers = model.config.num_hidden_layers
        model.register_forward_pre_hook(self._seen, with_kwargs=True)

    def _seen(self, model: Any, args: Any, inputs: dict[str, Any]) -> None:
        if self._counts:
            self.tokens += inputs["input_ids"].numel()
            if "cu_seq_lens_q" in inputs:
                self.rows.append(inputs["cu_seq_lens_q"])

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self._begin:
            self._counts, self.seconds = True, _now()
        if state.global_step == self._end:
            self._counts, self.seconds = False, _now() - self.seconds
            self.profile = profile(activities=[*_activities()]).__enter__()
            self.looked_at_s = _now()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self._last:
            self.looked_at_s = _now() - self.looked_at_s
            self.profile.__exit__(None, None, None)
            control.should_training_stop = True


def _now() -> float:
    """The time after all launched GPU work is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


def _activities() -> Iterable[ProfilerActivity]:
    yield ProfilerActivity.CPU
    if torch.cuda.is_available():
        yield ProfilerActivity.CUDA


def kind_of(kernel: str) -> str:
    return next(kind for kind, pattern in KINDS.items() if re.search(pattern, kernel, re.IGNORECASE))


def render(watch: Watch, peak: float) -> str:
    """The report as text. Without a GPU it has no share of arithmetic and no kinds of kernels."""
    rate = watch.tokens / watch.seconds
    each, ms = watch.tokens / watch.steps, 1e3 * watch.seconds / watch.steps
    lines = [f"{each:,.0f} tokens a step in {ms:.0f} ms: {rate:,.0f} a second"]
    kernels = [event for event in watch.profile.events() if event.device_type == DeviceType.CUDA]
    kernels = [event for event in kernels if not event.is_user_annotation]
    table = watch.profile.key_averages().table
    if not kernels:
        return "\n".join([*lines, "", table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=70)])
    squares = sum(float(starts.diff().double().square().sum()) for starts in watch.rows)
    products = 7  # two in the forward and five in the backward, for half of all pairs of tokens
    attention = products * squares * watch.width * watch.layers / watch.seconds
    times = Counter[str]()
    for event in kernels:
        times[kind_of(event.name)] += event.device_time
    busy, whole = sum(times.values()), 1e6 * watch.looked_at_s
    lines += [
        f"{100 * 6 * watch.weights * rate / peak:.1f} % of the arithmetic by 6 for each weight; attention, "
        f"which that leaves out, is {100 * attention / peak:.1f} % more",
        f"{100 * (1 - busy / whole):5.1f} %  idle while profiled",
    ]
    lines += [f"{100 * time / whole:5.1f} %  {kind}" for kind, time in times.most_common()]
    lines += ["", table(sort_by="self_device_time_total", row_limit=30, max_name_column_width=90)]
    lines += ["", table(sort_by="device_time_total", row_limit=30, max_name_column_width=90)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="out/tiny/dataset")
    parser.add_argument("--config", default="", help="recipe; default: by GPU")
    parser.add_argument("--set", action="append", default=[], help="override of the recipe: section.key=value")
    parser.add_argument(
        "--steps", type=int, nargs=3, default=(WARM, TIMED, LOOKED_AT), help="warm-up, timed and profiled steps"
    )
    parser.add_argument("--peak", type=float, default=H100_FLOPS, help="operations per second of the GPU")
    parser.add_argument("--out", type=Path, help="file for the report")
    given = parser.parse_args()
    whole = 'sft.report_to="none"', "sft.log_steps=1000", "sft.save_steps=1000", f"sft.steps={sum(given.steps) + 1}"
    recipe = load_recipe(given.config or default_recipe(), (*whole, *given.set))
    watch = Watch(*given.steps)
    with tempfile.TemporaryDirectory() as folder:
        train(TrainingJob(recipe, given.dataset, Path(folder), callbacks=(watch,)))
    text = render(watch, given.peak)
    print(text)
    if given.out is not None:
        given.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
