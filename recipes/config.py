"""The recipe file format: TOML, validated strictly. `configs/` holds the recipes that have a name."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.read_toml import read_toml, validated

CONFIGS = Path(__file__).parent / "configs"

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(gt=0.0, lt=1.0)]
Kind = Literal["modules", "slices", "composed"]  # of rows: mined modules, pieces cut from them, compositions
Kernels = Literal["pairs", "operators"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(_Section):
    """The model to train."""

    name: str  # Hub id, folder, GGUF file or folder with one, or "package:NAME" of a package with one
    context: Positive  # tokens of a row, prompt and answer; longer rows are left out and counted
    chat: str = ""  # file of `generate/chat/` that replaces the model's chat template; "" keeps it
    # Of the computation; weights are float32. auto: bfloat16 where the device has instructions for it.
    dtype: Literal["float32", "bfloat16", "auto"] = "bfloat16"
    # varlen: torch's flash attention for packed rows; sdpa computes all pairs of tokens of all packed rows
    attention: Literal["sdpa", "varlen", "eager", "flash_attention_2", "flash_attention_3"] = "sdpa"


class LoraSection(_Section):
    """Low-rank adapters in place of all weights. They are saved alone, and merged into the weights."""

    rank: Positive
    alpha: Positive
    dropout: Share = 0.0
    modules: str = "all-linear"


class OptimiserSection(_Section):
    """Settings that supervised training and GRPO share."""

    learning_rate: Rate
    epochs: Annotated[float, Field(gt=0)] = 1.0
    steps: int = -1  # -1: as many as `epochs` gives; 0: `train` skips the stage
    per_device: Positive = 1  # sequences in one forward pass of a device
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = "cosine"
    warmup: Share = 0.03
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    clip: Annotated[float, Field(gt=0.0)] = 1.0
    gradient_checkpointing: bool = True
    liger: bool = True  # use Liger's kernels if installed and there is a GPU
    compile: bool = False  # compile the layers with torch.compile
    lora: LoraSection | None = None
    save_steps: Positive = 50
    log_steps: Positive = 1
    keep_checkpoints: Positive = 2
    seed: int = 0
    report_to: Literal["none", "tensorboard", "trackio"] = "tensorboard"


class PhaseSection(_Section):
    """A part of the curriculum: rows up to a difficulty. 0 is no limit; a row without the measure exceeds any."""

    epochs: Annotated[float, Field(gt=0)]  # passes over the rows within the limits
    operators: Annotated[int, Field(ge=0)] = 0  # calls of operators in one forward
    depth: Annotated[int, Field(ge=0)] = 0  # longest chain of them
    kernels: Annotated[int, Field(ge=0)] = 0  # kernels that forward launches
    tokens: Annotated[int, Field(ge=0)] = 0  # of the kernel's source, estimated
    alike: Annotated[int, Field(ge=0)] = 0  # rows with the same operators in a pass, drawn at random


class SftSection(OptimiserSection):
    batch: Positive  # packed sequences per step, over all devices
    packing: bool = True
    # The texts to learn: the pairs' kernels, or a kernel for each operator, from the config `variants` of the dataset.
    kernels: Kernels = "pairs"
    phases: tuple[PhaseSection, ...] = ()  # the curriculum, in order; empty: `epochs` passes over all rows
    # Times that a row of each kind is in a pass; 0: never.
    weights: dict[Kind, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    share: Share = 1.0  # of the clusters that are trained on; a smaller share is part of a larger one
    validation: Annotated[int, Field(ge=0)] = 64  # most rows for the validation loss; 0: none
    thinking: bool = False  # begin answers with a plan from the row's columns: operators, state, sizes, kernels
    renamed: Annotated[int, Field(ge=0)] = 0  # copies of each row with other identifiers: see augment.py


class GrpoSection(OptimiserSection):
    prompts: Positive  # per step, over all devices
    generations: Annotated[int, Field(ge=2)]  # answers to each prompt
    prompt_tokens: Positive  # longer prompts are left out and counted
    kernel_tokens: Annotated[int, Field(ge=0)] = 0  # rows with longer kernels are left out too; 0: no limit
    survey: Annotated[int, Field(ge=0)] = 0  # answers to each prompt before the training, which `right` is about
    right: tuple[Share, Share] = (0.2, 0.8)  # train on prompts with this share of right answers, from and to
    completion_tokens: Positive
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    beta: Annotated[float, Field(ge=0.0)] = 0.0
    epsilon: Share = 0.2
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo"] = "dapo"
    scale: Literal["group", "batch", "none"] = "group"
    rollouts: Literal["auto", "transformers", "slots", "continuous", "vllm"] = "auto"  # auto: vLLM if installed


class RewardSection(_Section):
    """The reward, see `judge/reward.py`. `binary` is AutoTriton's rule AND test; the others reward partial progress."""

    kind: Literal["binary", "graded", "speed"] = "binary"
    loads: Share = 0.05  # graded and speed: total reward at each step
    runs: Share = 0.15
    contract: Share = 0.25
    correct: Share = 0.8
    pure: Share = 1.0
    speed: Annotated[float, Field(ge=0.0)] = 1.0  # speed: added for each doubling of the speed over eager
    speed_cap: Annotated[float, Field(gt=0.0)] = 4.0  # speedup over eager beyond which the reward stays the same
    # Subtracted, by class of hack: output not from the kernel, paths that no trial reaches.
    penalties: dict[Literal["unused", "untried"], Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        steps = [0.0, self.loads, self.runs, self.contract, self.correct, self.pure]
        if steps != sorted(steps):
            raise ValueError("loads, runs, contract, correct and pure must not fall")
        return self


class EvaluationSection(_Section):
    # of `train`
    suites: tuple[Literal["modules", "slices", "easy", "test", "embedded", "kernelbench"], ...] = ("test",)
    stages: tuple[Literal["base", "sft", "grpo"], ...] = ("base", "sft", "grpo")  # models that `train` evaluates
    kernelbench: str = ""  # a checkout of its repository, for `train`; "": the Hub
    samples: Positive = 10
    modules: int = 0  # of each suite; 0: all
    base_modules: int = 0  # of each suite, for the base model; 0: as many as for the others
    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 0.97
    new_tokens: Positive = 2048
    batch: Positive = 64  # answers that a local model writes at once
    slots: bool = False  # write with `decoder.py`: for small local models
    prompt_tokens: int = 0  # modules with longer prompts are left out and counted; 0: no limit
    weaker_checks: bool = True  # also score by the benchmark's own check and by a naive one: nearly twice the time
    timed: bool = True  # time the first answer to each problem if it is right and there is a GPU


class Recipe(_Section):
    """A whole recipe."""

    model: ModelSection
    sft: SftSection
    grpo: GrpoSection
    reward: RewardSection = RewardSection()
    evaluation: EvaluationSection = EvaluationSection()
    rows: int = 0  # of the training split: the first by id that fit; 0: all
    held_out: Share = 0.0  # share of the clusters for evaluation, in place of the dataset's splits; 0: keep the splits
    fresh: Share = 0.0  # share of the training's clusters reserved for GRPO; 0: both trainings use all
    needs_gpu: bool = False


def names() -> list[str]:
    """Names of the recipes in `configs/`."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))


def load_recipe(name: str, changes: Sequence[str] = ()) -> Recipe:
    """Read the recipe `name`, or a TOML file, and apply `section.key=value` changes.

    Raises:
        UserError: there is no such recipe, or a key is invalid; the message names the key.
    """
    path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.is_file():
        raise UserError(f"{name}: no such recipe: give a TOML file, or one of {', '.join(names())}")
    table = read_toml(path, "give a TOML file")
    for change in changes:
        _change(table, change)
    return validated(Recipe, table, name)


def _change(table: dict[str, Any], change: str) -> None:
    key, separator, text = change.partition("=")
    if not separator or not key:
        raise UserError(f"--set {change}: give section.key=value, such as sft.steps=20")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a string without quotes
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {change}: {section} is not a section: give section.key=value")
    table[last] = value
