"""A recipe: one TOML file, parsed strictly. `configs/` holds those that are known by name."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernelquarry.pipeline.schema.errors import UserError

CONFIGS = Path(__file__).parent / "configs"

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(gt=0.0, lt=1.0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(_Section):
    """What is trained."""

    name: str  # Hub id, folder, or "package:NAME" of a package that holds one GGUF file
    context: Positive  # tokens of a row, prompt and answer; longer ones are left out and counted
    chat: str = ""  # file of `chat/` in place of the model's own chat template; "" keeps that
    dtype: Literal["float32", "bfloat16"] = "bfloat16"  # of the computation; float32 weights are kept
    # varlen: packed rows by torch's own flash attention; with sdpa, every token of a device meets every other
    attention: Literal["sdpa", "varlen", "eager", "flash_attention_2", "flash_attention_3"] = "sdpa"


class LoraSection(_Section):
    """Low-rank adapters in place of all weights. They are merged when the training is over."""

    rank: Positive
    alpha: Positive
    dropout: Share = 0.0
    modules: str = "all-linear"


class OptimiserSection(_Section):
    """What both trainings have."""

    learning_rate: Rate
    epochs: Annotated[float, Field(gt=0)] = 1.0
    steps: int = -1  # -1: as `epochs` says
    per_device: Positive = 1  # sequences on a device at once
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = "cosine"
    warmup: Share = 0.03
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    clip: Annotated[float, Field(gt=0.0)] = 1.0
    gradient_checkpointing: bool = True
    liger: bool = True  # its kernels, where they are installed and there is a GPU
    compile: bool = False  # the model's layers, by torch.compile
    lora: LoraSection | None = None
    save_steps: Positive = 50
    log_steps: Positive = 1
    keep_checkpoints: Positive = 2
    seed: int = 0
    report_to: Literal["none", "tensorboard", "trackio"] = "tensorboard"


class SftSection(OptimiserSection):
    batch: Positive  # packed sequences a step, over all devices
    packing: bool = True
    thinking: bool = False  # answers say first what the columns of their row tell: operators, state, sizes, kernels
    renamed: Annotated[int, Field(ge=0)] = 0  # copies of each row, in each epoch, under other names: see renaming.py


class GrpoSection(OptimiserSection):
    prompts: Positive  # a step, over all devices
    generations: Annotated[int, Field(ge=2)]  # answers to each prompt
    prompt_tokens: Positive  # longer prompts are left out and counted
    kernel_tokens: Annotated[int, Field(ge=0)] = (
        0  # as are rows with longer kernels, which no answer could be; 0 is none
    )
    completion_tokens: Positive
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    beta: Annotated[float, Field(ge=0.0)] = 0.0
    epsilon: Share = 0.2
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo"] = "dapo"
    scale: Literal["group", "batch", "none"] = "group"
    rollouts: Literal["auto", "transformers", "slots", "continuous", "vllm"] = "auto"  # auto: vLLM where it is


class RewardSection(_Section):
    """See `reward.py`. `binary` is the rule and the test, as AutoTriton's; the others pay for parts of the way."""

    kind: Literal["binary", "graded", "speed"] = "binary"
    loads: Share = 0.05  # graded and speed: what each step of the way is worth in sum
    runs: Share = 0.15
    contract: Share = 0.25
    correct: Share = 0.8
    pure: Share = 1.0
    speed: Annotated[float, Field(ge=0.0)] = 1.0  # speed: for each doubling over eager
    speed_cap: Annotated[float, Field(gt=0.0)] = 4.0  # times as fast as eager, where more is no longer paid
    # Taken off, by class of hack: kernels that do not do the work, code that hides how, other ways where nobody looks.
    penalties: dict[Literal["unused", "fraud", "untried"], Annotated[float, Field(ge=0.0)]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _rises(self) -> Self:
        steps = [0.0, self.loads, self.runs, self.contract, self.correct, self.pure]
        if steps != sorted(steps):
            raise ValueError("loads, runs, contract, correct and pure must not fall")
        return self


class EvaluationSection(_Section):
    samples: Positive = 10
    modules: int = 0  # of each suite; 0 is all
    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 0.97
    new_tokens: Positive = 2048
    batch: Positive = 64  # answers at once, of a local model
    slots: bool = False  # a local model's answers are written by `decoder.py`: for small models
    prompt_tokens: int = 0  # modules with longer prompts are left out and counted; 0 is none
    timed: bool = True  # first answers that are right are timed, where there is a GPU


class Recipe(_Section):
    """A whole recipe."""

    model: ModelSection
    sft: SftSection
    grpo: GrpoSection
    reward: RewardSection = RewardSection()
    evaluation: EvaluationSection = EvaluationSection()
    rows: int = 0  # of the training split, the first by id that fit; 0 is all
    held_out: Share = 0.0  # of the clusters, for evaluation, in place of the dataset's splits; 0 keeps those
    fresh: Share = 0.0  # of the training's clusters, which GRPO alone asks for; 0: both trainings have all of them
    needs_gpu: bool = False


def names() -> list[str]:
    """The recipes that are known by name."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))


def load_recipe(name: str, changes: Sequence[str] = ()) -> Recipe:
    """The recipe of that name, or of a TOML file, with `section.key=value` changes.

    Raises:
        UserError: there is none, or it does not parse; the message names the key.
    """
    path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.is_file():
        raise UserError(f"{name}: no such recipe: give a TOML file, or one of {', '.join(names())}")
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}") from None
    for change in changes:
        _change(table, change)
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        found = error.errors()[0]
        raise UserError(f"{name}: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None


def _change(table: dict[str, Any], change: str) -> None:
    key, separator, text = change.partition("=")
    if not separator or not key:
        raise UserError(f"--set {change}: give section.key=value, such as sft.steps=20")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a string needs no quotes
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {change}: {section} is no section")
    table[last] = value
