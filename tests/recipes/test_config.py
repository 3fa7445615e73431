"""Recipes parse, and say what is wrong with one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import CONFIGS, load_recipe, names
from kernelquarry.recipes.generate.models import CHAT


def test_the_published_recipes_are_there_by_name() -> None:
    assert names() == [
        "autotriton-8b", "kernelllm-8b", "qwen-coder-0.5b", "qwen-coder-1.5b", "qwen-coder-7b", "smollm2-135m",
        "smollm2-135m-cpu",
    ]  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_every_recipe_parses_and_what_it_names_is_there(name: str) -> None:
    recipe = load_recipe(name)
    assert not recipe.model.chat or (CHAT / recipe.model.chat).is_file()
    assert recipe.grpo.prompts * recipe.grpo.generations % recipe.grpo.per_device == 0
    assert recipe.grpo.prompt_tokens + recipe.grpo.completion_tokens <= recipe.model.context or recipe.needs_gpu
    assert (CONFIGS / f"{name}.toml").read_text().startswith("# ")


def test_published_numbers_are_as_published() -> None:
    autotriton, kernelllm = load_recipe("autotriton-8b"), load_recipe("kernelllm-8b")
    assert (autotriton.rows, autotriton.sft.learning_rate, autotriton.sft.epochs) == (14_102, 1e-5, 3)
    assert (autotriton.model.context, autotriton.sft.batch, autotriton.grpo.prompts) == (16_384, 8, 64)
    assert (autotriton.grpo.learning_rate, autotriton.grpo.prompt_tokens, autotriton.reward.kind) == (
        1e-6,
        4096,
        "binary",
    )
    assert (kernelllm.sft.epochs, kernelllm.sft.batch) == (10, 32)
    assert (kernelllm.evaluation.temperature, kernelllm.evaluation.top_p) == (1.0, 0.97)


def test_changes_are_applied() -> None:
    recipe = load_recipe(
        "smollm2-135m", ("sft.steps=3", "model.name=some/model", "sft.lora.rank=4", "sft.lora.alpha=8")
    )
    assert (recipe.sft.steps, recipe.model.name) == (3, "some/model")
    assert recipe.sft.lora is not None and recipe.sft.lora.rank == 4


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("unknown", (), "no such recipe: give a TOML file, or one of autotriton-8b"),
        ("smollm2-135m", ("sft.stepps=3",), "sft.stepps: there is no such setting"),
        ("smollm2-135m", ("sft.steps",), "give section.key=value"),
        ("smollm2-135m", ("sft.steps=many",), "sft.steps: Input should be a valid integer"),
        ("smollm2-135m", ("rows.of=3",), "rows"),
        ("smollm2-135m", ("sft.learning_rate=0",), "sft.learning_rate: Input should be greater than 0"),
    ],
)
def test_an_invalid_key_is_named(name: str, changes: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        load_recipe(name, changes)


def test_a_file_that_is_no_toml_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(UserError, match=r"bad\.toml"):
        load_recipe(str(tmp_path / "bad.toml"))


@pytest.mark.parametrize("path", sorted((CONFIGS.parent / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_accelerate_accepts_our_config_files(path: Path) -> None:
    from accelerate.commands.config.config_args import ClusterConfig

    config = ClusterConfig.from_yaml_file(yaml_file=str(path))
    assert config.num_machines == 1
    assert yaml.safe_load(path.read_text())["mixed_precision"] == "bf16"
